"""How often values fell between round edges, six of them a decade."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

from admitperf.reports.runs.store import Store

STEPS = (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)
"""Plain choice: round numbers at nearly even distances on a logarithmic axis."""

_QUANTITIES = ("ttft_ms", "max_gap_ms")


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts between edges.

    Attributes:
        edges: one more than counts, ascending; a value on an edge counts above it.
        counts: from the first bin that has a value to the last.
        n: how many values.
        below: those of them that are 0 or less, which no logarithmic bin holds.
    """

    edges: tuple[float, ...]
    counts: tuple[int, ...]
    n: int
    below: int

    @classmethod
    def of(cls, bins: Mapping[int, int], below: int = 0) -> Self:
        """From counts by place; place 0 begins at 1, place 6 at 10.

        Args:
            bins: may be empty.
            below: values of 0 or less.
        """
        n = sum(bins.values()) + below
        if not bins:
            return cls((), (), n, below)
        first, last = min(bins), max(bins)
        edges = tuple(_edge(place) for place in range(first, last + 2))
        counts = tuple(bins.get(place, 0) for place in range(first, last + 1))
        return cls(edges, counts, n, below)

    def coarser(self, most: int) -> Self:
        """The same counts in fewer bins, where that is possible: 3 a decade, or 1.

        Args:
            most: bins that are wanted; no more than that, unless values span more
                decades.
        """
        for steps in _COARSER:
            made: dict[float, int] = {}
            for edge, count in zip(self.edges, self.counts, strict=False):
                low = _down(edge, steps)
                made[low] = made.get(low, 0) + count
            if len(made) <= most or steps == _COARSER[-1]:
                break
        end = _up(self.edges[-1], steps) if made else None
        edges = (*made, end) if end is not None else ()
        return replace(self, edges=edges, counts=tuple(made.values()))


_COARSER = (STEPS, (1.0, 2.0, 5.0), (1.0,))


def _down(edge: float, steps: Sequence[float]) -> float:
    """The last edge of some steps that is not above one of all."""
    part, decade = f"{edge:.6e}".split("e")
    return float(f"{max(step for step in steps if step <= float(part))}e{decade}")


def _up(edge: float, steps: Sequence[float]) -> float:
    """The first edge of some steps that is not below one of all."""
    part, decade = f"{edge:.6e}".split("e")
    above = [step for step in (*steps, 10.0) if step >= float(part)]
    return float(f"{above[0]}e{decade}")


def histograms(store: Store) -> dict[tuple[int, str], Histogram]:
    """TTFT and longest gap of the outcomes that ended well, by run and quantity.

    Args:
        store: with the view `judged`.

    Returns:
        By the number of the run and "ttft_ms" or "max_gap_ms"; a run without values
        has none.
    """
    bins: dict[tuple[int, str], dict[int, int]] = {}
    below: dict[tuple[int, str], int] = {}
    for run, quantity, place, n in store.rows(_COUNTED):
        found = bins.setdefault((run, quantity), {})
        if place is None:
            below[run, quantity] = n
        else:
            found[place] = n
    return {key: Histogram.of(found, below.get(key, 0)) for key, found in bins.items()}


def _edge(place: int) -> float:
    decade, step = divmod(place, len(STEPS))
    return float(f"{STEPS[step]}e{decade}")


def _placed(quantity: str) -> str:
    """Counts of a quantity by its place; NULL where it has none."""
    steps = " + ".join(f"(part >= {step})::INTEGER" for step in STEPS[1:])
    return f"""
    SELECT run_n, '{quantity}' AS quantity,
        CASE WHEN value > 0 THEN {len(STEPS)} * decade + {steps} END AS place,
        count(*) AS n
    FROM (
        SELECT run_n, value, decade, round(value / 10.0 ** decade, 12) AS part
        FROM (
            SELECT run_n, {quantity} AS value, CASE WHEN {quantity} > 0
                THEN floor(log10({quantity}) + 1e-12)::INTEGER END AS decade
            FROM judged WHERE ok AND {quantity} IS NOT NULL))
    GROUP BY ALL"""


_COUNTED = " UNION ALL ".join(map(_placed, _QUANTITIES))
