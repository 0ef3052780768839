"""Percentiles by nearest rank, the one definition every report uses."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

FRACTIONS = (0.5, 0.95, 0.99)
FEWEST_FOR_P95 = 20  # below it, p95 by nearest rank is the maximum
FEWEST_FOR_P99 = 100  # below it, p99 by nearest rank is the maximum


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
        low, p50, p95, p99, high: percentiles by nearest rank.
        withheld: why p95 is None although there are values; None when it is given.
        withheld_p99: the same of p99.
    """

    n: int
    low: float | None
    p50: float | None
    p95: float | None
    p99: float | None
    high: float | None
    withheld: str | None
    withheld_p99: str | None

    @classmethod
    def of(cls, values: Iterable[float]) -> Self:
        """The spread of `values`; NaN stands for a value that is not known."""
        ordered = sorted(value for value in values if not math.isnan(value))
        if not ordered:
            return cls._made(0, None, (None, None, None), None)
        ranks = tuple(nearest_rank(ordered, fraction) for fraction in FRACTIONS)
        return cls._made(len(ordered), ordered[0], ranks, ordered[-1])

    @classmethod
    def read(cls, found: Mapping[str, Any] | None) -> Self:
        """The spread that `spread_of` asked for; None = no row was there to ask."""
        if found is None or not found["n"]:
            return cls.of(())
        return cls._made(found["n"], found["low"], found["ranks"], found["high"])

    @classmethod
    def _made(
        cls,
        n: int,
        low: float | None,
        ranks: Sequence[float | None],
        high: float | None,
    ) -> Self:
        few = f"too few samples ({n})" if n else None
        p95, p99 = n >= FEWEST_FOR_P95, n >= FEWEST_FOR_P99
        return cls(
            n=n,
            low=low,
            p50=ranks[0],
            p95=ranks[1] if p95 else None,
            p99=ranks[2] if p99 else None,
            high=high,
            withheld=None if p95 else few,
            withheld_p99=None if p99 else few,
        )

    @property
    def moved(self) -> bool:
        """Whether it took more than one value."""
        return self.n > 0 and self.low != self.high


def spread_of(value: str, where: str = "true") -> str:
    """The spread of an SQL expression over a group's rows; see `Spread.read`.

    Args:
        value: NULL stands for one that is not known. It may not be NaN.
        where: only rows that meet this.
    """
    only = f"FILTER ({where})"
    fractions = ", ".join(map(str, FRACTIONS))  # decimals: their ranks are exact
    return f"""{{
        'n': count({value}) {only},
        'low': min({value}) {only},
        'ranks': quantile_disc({value}, [{fractions}]) {only},
        'high': max({value}) {only}}}"""
