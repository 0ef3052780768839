"""What a handful of paired differences can show: intervals and tests.

A difference is one block's goodput of an arm minus the baseline's, as fractions of what
was offered. Student's t comes from scipy, loaded when it is first needed; the rest is a
few lines over numbers that can be checked by hand.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean, stdev
from typing import Any

from admitperf.reports.extra import needed

ALPHA = 0.05
"""Level of every test, two-sided. Plain choice, the usual one."""

CONFIDENCE = 1 - ALPHA
EQUIVALENCE_CONFIDENCE = 1 - 2 * ALPHA
"""Two one-sided tests at `ALPHA` say yes exactly when this interval is inside."""

MOST_FLIPPED = 40
"""Exact sign flips take two lists of 2^(n/2) sums; above this many pairs the lists grow
past a million, and the t test alone is asked. Plain choice."""

_TIE = 1e-12
"""Sums this near, over the sum of all sizes, are equal: floats add up in an order."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A confidence interval.

    Attributes:
        level: how often such intervals hold the truth, as a fraction.
        low, high: its ends, in the unit of the differences.
    """

    level: float
    low: float
    high: float

    def inside(self, margin: float) -> bool:
        """Whether all of it lies strictly between -margin and +margin."""
        return -margin < self.low and self.high < margin

    @property
    def excludes_zero(self) -> bool:
        """Whether it lies on one side of 0."""
        return self.low > 0 or self.high < 0


def special() -> Any:  # noqa: ANN401  scipy.special carries no types
    """The module that knows Student's t.

    Raises:
        MissingExtra: scipy is not installed.
    """
    return needed("scipy.special")


def t_interval(differences: Sequence[float], level: float = CONFIDENCE) -> Interval:
    """The paired t interval for the mean difference.

    Args:
        differences: at least two; when all are equal the interval is that one value.
        level: a fraction.
    """
    n, centre = len(differences), fmean(differences)
    reach = float(special().stdtrit(n - 1, (1 + level) / 2))
    half = reach * stdev(differences) / sqrt(n)
    return Interval(level, centre - half, centre + half)


def t_p(differences: Sequence[float]) -> float:
    """Two-sided p of the paired t test that the mean difference is 0."""
    return 2 * _t_above(abs(fmean(differences)), differences)


def not_worse_p(differences: Sequence[float], margin: float) -> float:
    """One-sided p that the mean difference is -margin or lower: non-inferiority."""
    return _t_above(fmean(differences) + margin, differences)


def equivalence_p(differences: Sequence[float], margin: float) -> float:
    """The larger p of two one-sided tests that the mean lies outside +-margin.

    Schuirmann 1987. Below `ALPHA` exactly when the 90 % interval is inside.
    """
    below = _t_above(margin - fmean(differences), differences)
    return max(below, not_worse_p(differences, margin))


def _t_above(distance: float, differences: Sequence[float]) -> float:
    """P(T >= distance in standard errors)."""
    error = stdev(differences) / sqrt(len(differences))
    if error:
        return float(special().stdtr(len(differences) - 1, -distance / error))
    return 0.5 if distance == 0 else float(distance < 0)


def sign_flip_p(differences: Sequence[float]) -> float | None:
    """Two-sided exact p over all 2^n ways to flip the signs of n differences.

    With identical arms each way is as likely as the one that was seen. The sums are
    counted by halves, so that 30 pairs take milliseconds.

    Returns:
        None above `MOST_FLIPPED` differences.
    """
    n, size = len(differences), sum(map(abs, differences))
    if n > MOST_FLIPPED:
        return None
    least = abs(sum(differences)) - _TIE * size
    if least <= 0:
        return 1.0
    left = _flipped_sums(differences[: n // 2])
    right = sorted(_flipped_sums(differences[n // 2 :]))
    above = sum(len(right) - bisect_left(right, least - one) for one in left)
    return float(2 * above) / float(2**n)


def _flipped_sums(differences: Sequence[float]) -> list[float]:
    sums = [0.0]
    for one in differences:
        sums = [total + flipped for flipped in (one, -one) for total in sums]
    return sums


def least_sign_flip_p(n: int) -> float:
    """The smallest p that n pairs can give, 2^(1-n)."""
    return 2.0 ** (1 - n)


def ranges_apart(a: Sequence[float], b: Sequence[float]) -> bool:
    """Whether no value of one arm lies within the range of the other."""
    return max(a) < min(b) or max(b) < min(a)


def holm(ps: Sequence[float]) -> list[float]:
    """The p of several tests, raised so that one false alarm among them stays rare.

    Holm 1979.

    Returns:
        In the order given, at most 1.
    """
    adjusted, running = [0.0] * len(ps), 0.0
    for rank, place in enumerate(sorted(range(len(ps)), key=lambda i: ps[i])):
        running = max(running, (len(ps) - rank) * ps[place])
        adjusted[place] = min(1.0, running)
    return adjusted
