"""What must be so before a number of the page counts."""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from benchmarks.sessions.arms import METRICS
from benchmarks.sessions.cells import CLIENTS, LOAD, LOADS, Cell
from benchmarks.sessions.evidence import (
    ARMS,
    ENGINES,
    SHIFTED,
    Evidence,
    Row,
    one_set,
    sets,
)
from benchmarks.sessions.judged import place_of, three
from benchmarks.sessions.tables import counted, shown

MOST_HOURS, MOST_S = 3.0, 3.0
"""Core-hours of everything, and seconds of one run. Protocol."""

BLOCKS = 8
"""Of every final cell. Protocol."""


SHIFT = [Cell(mix, "kv", client, LOAD) for mix in SHIFTED for client in CLIENTS]
EXTRA = [
    *(Cell("final", engine, "deaf", LOAD) for engine in ENGINES),
    Cell("final", "kv", "polls", LOAD),
    *(Cell("burst", engine, "patient", LOAD) for engine in ENGINES),
    Cell("no_final", "kv", "patient", LOAD),
    *(Cell(mix, "kv", "impatient", LOAD) for mix in ("fan-out", "short")),
]
"""What is run beside the main cells, as PROTOCOL.md and its changes have it."""

CONTROLS = (
    "memoryless_protect",
    "memoryless_shed",
    "vllm_queued_tokens:count",
    "vllm_queued_tokens:work",
)


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
    yield "the shift test is whole", _listed(_absent(evidence, SHIFT, _names(evidence)))
    yield (
        "what is run beside it is whole, as cut for time (Changes in the protocol)",
        _listed(_absent(evidence, EXTRA, _names(evidence))),
    )
    yield (
        f"the controls are whole at {LOAD:g}x",
        _listed(_absent(evidence, _controlled(), CONTROLS)),
    )
    yield "an arm with one parameter set has one", _listed(_several(evidence))
    longest = max((row["cpu_s"] for row in evidence.rows), default=0.0)
    over = f"{three(longest)} s" if longest > MOST_S else ""
    yield f"no run took over {MOST_S:g} s", over
    hours = counted(told)[1] / 3600
    over = f"{three(hours)}" if hours > MOST_HOURS else ""
    yield f"all runs that were counted took at most {MOST_HOURS:g} core-hours", over


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
    for arm in _names(evidence):
        runs = evidence.of_arm(arm, evidence.grid())
        n = sum(1 <= row["block"] <= BLOCKS for row in runs)
        if n != asked:
            yield f"`{arm}` {n} of {asked}"


def _names(evidence: Evidence) -> list[str]:
    names = (evidence.named(arm, metric) for arm in ARMS for metric in METRICS)
    return list(dict.fromkeys(names))


def _controlled() -> list[Cell]:
    return [Cell("final", one, client, LOAD) for one in ENGINES for client in CLIENTS]


def _absent(
    evidence: Evidence, cells: Iterable[Cell], names: Iterable[str]
) -> Iterator[str]:
    """Cells that lack runs, each with how many it has."""
    arms = list(names)
    for cell in cells:
        runs = [row for arm in arms for row in evidence.of_arm(arm, [cell])]
        n = sum(1 <= row["block"] <= BLOCKS for row in runs)
        if n != BLOCKS * len(arms):
            yield f"{place_of(cell)}: {n} of {BLOCKS * len(arms)}"


def _several(evidence: Evidence) -> Iterator[str]:
    for arm in shown(evidence, list(evidence.runs)):
        found = sets(evidence.of_arm(arm, evidence.runs))
        if one_set(arm) and len(found) > 1:
            yield f"`{arm}` has {len(found)}"
