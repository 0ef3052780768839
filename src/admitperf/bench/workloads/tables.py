"""Distributions as tables of their quantiles: what is kept of a measured quantity."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from random import Random

from admitperf.reports.quantile import nearest_rank

GRID = (
    0.0, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6,
    0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.925, 0.95, 0.97, 0.98, 0.99, 0.995, 0.999, 1.0,
)  # fmt: skip
"""The shares of a table's values, in order; closer where tails are long."""

Table = Sequence[float]
"""Values of a quantity at the shares of `GRID`, ascending."""


def table(values: Iterable[float], digits: int = 3) -> list[float]:
    """The quantiles of values by nearest rank; there is at least one.

    Args:
        values: in any order.
        digits: to which they are rounded.
    """
    ordered = sorted(map(float, values))
    return [round(nearest_rank(ordered, share), digits) for share in GRID]


def drawn(quantiles: Table, chance: Random) -> float:
    """A value of the distribution; between two quantiles it is even."""
    share = chance.random()
    place = bisect_right(GRID, share)
    low, high = GRID[place - 1], GRID[place]
    part = (share - low) / (high - low)
    return quantiles[place - 1] + part * (quantiles[place] - quantiles[place - 1])
