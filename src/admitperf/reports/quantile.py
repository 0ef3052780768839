"""Percentiles by nearest rank, the one definition every report uses."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

FEWEST_FOR_P95 = 20  # below it, p95 by nearest rank is the maximum


def nearest_rank(ordered: list[float], fraction: float) -> float:
    """The smallest value with at least `fraction` of the values at or below it.

    Args:
        ordered: ascending, not empty.
        fraction: above 0, at most 1.
    """
    return ordered[max(math.ceil(fraction * len(ordered)), 1) - 1]


@dataclass(frozen=True, slots=True)
class Spread:
    """How a quantity was spread, in its own unit.

    Attributes:
        n: how many values; when 0 the rest is None: it was never supplied.
        low, p50, p95, high: p50 and p95 by nearest rank.
        withheld: why p95 is None although there are values; None when it is given.
    """

    n: int
    low: float | None
    p50: float | None
    p95: float | None
    high: float | None
    withheld: str | None

    @classmethod
    def of(cls, values: Iterable[float]) -> Self:
        """The spread of `values`; NaN stands for a value that is not known."""
        ordered = sorted(value for value in values if not math.isnan(value))
        n = len(ordered)
        if not n:
            return cls(0, None, None, None, None, None)
        p50, enough = nearest_rank(ordered, 0.5), n >= FEWEST_FOR_P95
        p95 = nearest_rank(ordered, 0.95) if enough else None
        withheld = None if enough else f"too few samples ({n})"
        return cls(n, ordered[0], p50, p95, ordered[-1], withheld)

    @property
    def moved(self) -> bool:
        """Whether it took more than one value."""
        return self.n > 0 and self.low != self.high
