"""What a policy did to everything but the metric: the middle run above capacity.

Each number is one that a run's summary holds; all that is done here is to take the
median over runs. A latency over what was offered stands beside the one of those served,
which alone would flatter whoever refuses.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from admitperf.bench.design.results import Run, finite, number_at
from admitperf.reports.pages.columns import aligned
from admitperf.reports.pages.layout import wrapped
from admitperf.reports.wording import NOT_KNOWN, number, printable

INFINITE = "infinite"

NOTE = (
    "offered: over every call; one that was refused, or not served when its run ended,"
    " counts as infinite. Medians of the runs that have the number, as their"
    " summary.json holds it."
)
_OFFERED = ("ttft_offered_ms", "p95")
_SERVED = ("ttft_served_ms", "p95")


@dataclass(frozen=True, slots=True)
class _Column:
    """A number of summaries.

    Attributes:
        head: two lines above it.
        keys: where it stands in a summary.
        written: how.
        always: whether it is shown where no run has it.
    """

    head: tuple[str, str]
    keys: tuple[str, ...]
    written: Callable[[float | None], str]
    always: bool = False


def _ms(value: float | None) -> str:
    """Three digits or so."""
    if value is None or not math.isfinite(value):
        return spelled(value)
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"  # noqa: PLR2004


def spelled(value: float | None) -> str:
    """A number; a word where it is infinite, `--` where it is not known."""
    return INFINITE if value == math.inf else number(value)


def _three(value: float | None) -> str:
    return NOT_KNOWN if value is None else f"{value:.3f}"


_TABLES: tuple[tuple[_Column, ...], ...] = (
    (
        _Column(("TTFT p95", "offered ms"), _OFFERED, _ms, always=True),
        _Column(("TTFT p95", "served ms"), _SERVED, _ms, always=True),
        _Column(("refusal", "p50 ms"), ("refusal_ms", "p50"), _ms),
        _Column(("lag", "p99 ms"), ("late_ms", "p99"), _ms),
        _Column(("decision", "p50 us"), ("decide_us", "p50"), _ms),
        _Column(("decision", "p99 us"), ("decide_us", "p99"), _ms),
    ),
    (
        _Column(("attempts", "per call"), ("attempts_per_call",), _three),
        _Column(("wasted", "share"), ("wasted_share",), _three),
        _Column(("session", "goodput"), ("session_goodput",), _three),
        _Column(("work", "goodput"), ("work_goodput",), _three),
        _Column(("Jain", "index"), ("jain",), _three),
        _Column(("cost", "per good"), ("cost_per_good",), number),
    ),
)


ALWAYS = frozenset(
    " ".join(column.head) for columns in _TABLES for column in columns if column.always
)
"""Names of the numbers that are shown where no run has them too."""


def middle(runs: Sequence[Run], *keys: str) -> float | None:
    """The median of a number over runs; None when none of them has it."""
    values = (_value(run.summary, keys) for run in runs)
    known = [value for value in values if value is not None]
    return median(known) if known else None


def offered_p95(runs: Sequence[Run]) -> float | None:
    """Of the time to first token over all calls, in ms; infinite = it never came."""
    return middle(runs, *_OFFERED)


def served_p95(runs: Sequence[Run]) -> float | None:
    """The same of those served, in ms: never to be shown alone."""
    return middle(runs, *_SERVED)


def _value(summary: Mapping[str, object], keys: Sequence[str]) -> float | None:
    """Infinite where a summary says so in place of the number."""
    found = number_at(summary, *keys)
    told = summary.get(keys[0])
    if found is None and isinstance(told, dict) and told.get("infinite") is True:
        return math.inf
    return finite(found)


def numbers(arms: Sequence[str], runs: Sequence[Run]) -> list[dict[str, Any]]:
    """The columns as plain values, an entry for each arm that has a run.

    Args:
        arms: in the order of the entries.
        runs: those above capacity.

    Returns:
        `arm`, and `values` by name: the median; null = no run has it; the word
        "infinite" where it is.
    """
    own = {arm: [run for run in runs if run.arm == arm] for arm in arms}
    return [
        {
            "arm": arm,
            "values": {
                " ".join(column.head): _plain(middle(found, *column.keys))
                for columns in _TABLES
                for column in columns
            },
        }
        for arm, found in own.items()
        if found
    ]


def _plain(value: float | None) -> float | str | None:
    return INFINITE if value == math.inf else value


def table(arms: Sequence[str], runs: Sequence[Run]) -> Iterator[str]:
    """A row for each arm, in 80 columns; nothing where no arm has a run.

    Args:
        arms: in the order of the rows.
        runs: those above capacity.
    """
    own = {arm: [run for run in runs if run.arm == arm] for arm in arms}
    shown = {arm: found for arm, found in own.items() if found}
    if not shown:
        return
    for columns in _TABLES:
        yield from _table(shown, columns)
    yield from wrapped(NOTE)


def _table(own: Mapping[str, Sequence[Run]], columns: Sequence[_Column]) -> list[str]:
    """The columns that any arm has."""
    cells = {
        column: [middle(runs, *column.keys) for runs in own.values()]
        for column in columns
    }
    kept = [
        one for one in columns if one.always or any(v is not None for v in cells[one])
    ]
    heads = [["", *(column.head[line] for column in kept)] for line in (0, 1)]
    rows = [
        [printable(arm), *(one.written(cells[one][place]) for one in kept)]
        for place, arm in enumerate(own)
    ]
    return [*aligned([*heads, *rows])] if kept else []
