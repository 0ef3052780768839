"""What must be so before a number of the page counts."""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from benchmarks.sessions.arms import METRICS
from benchmarks.sessions.cells import CLIENTS, LOADS
from benchmarks.sessions.evidence import ARMS, ENGINES, Evidence, Row, one_set, sets
from benchmarks.sessions.judged import place_of, three
from benchmarks.sessions.tables import shown

MOST_HOURS, MOST_S = 3.0, 3.0
"""Core-hours of everything, and seconds of one run. Protocol."""

BLOCKS = 8
"""Of every final cell. Protocol."""


def checks(evidence: Evidence, told: Row) -> Iterator[tuple[str, str]]:
    """What must be so before a number counts, each with what is wrong; empty = nothing.

    Args:
        evidence: what was run.
        told: as `about` has it.
    """
    yield "arms of a cell and block met the same tasks", _listed(_plans(evidence))
    yield (
        f"every arm has {BLOCKS} blocks in every main cell",
        _listed(_lacking(evidence)),
    )
    yield "an arm with one parameter set has one", _listed(_several(evidence))
    longest = max(row["cpu_s"] for row in evidence.rows)
    over = f"{three(longest)} s" if longest > MOST_S else ""
    yield f"no run took over {MOST_S:g} s", over
    hours = sum(cpu_s for _, cpu_s in told["spent"].values()) / 3600
    over = f"{three(hours)}" if hours > MOST_HOURS else ""
    yield f"all runs together took at most {MOST_HOURS:g} core-hours", over


def _listed(found: Iterable[str], most: int = 5) -> str:
    every = list(found)
    more = f" and {len(every) - most} more" if len(every) > most else ""
    return "; ".join(every[:most]) + more


def _plans(evidence: Evidence) -> Iterator[str]:
    for cell, arms in evidence.runs.items():
        plans: dict[int, set[str]] = defaultdict(set)
        for own in arms.values():
            for block, row in own.items():
                plans[block].add(row["plan"])
        bad = [str(block) for block, one in sorted(plans.items()) if len(one) > 1]
        if bad:
            yield f"{place_of(cell)}, block {', '.join(bad)}"


def _lacking(evidence: Evidence) -> Iterator[str]:
    asked = BLOCKS * len(ENGINES) * len(CLIENTS) * len(LOADS)
    names = {evidence.named(arm, metric): None for arm in ARMS for metric in METRICS}
    for arm in names:
        runs = evidence.of_arm(arm, evidence.grid())
        n = sum(1 <= row["block"] <= BLOCKS for row in runs)
        if n != asked:
            yield f"`{arm}` {n} of {asked}"


def _several(evidence: Evidence) -> Iterator[str]:
    for arm in shown(evidence, list(evidence.runs)):
        found = sets(evidence.of_arm(arm, evidence.runs))
        if one_set(arm) and len(found) > 1:
            yield f"`{arm}` has {len(found)}"
