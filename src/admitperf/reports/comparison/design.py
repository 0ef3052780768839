"""What a number of pairs could have shown, and how many more it takes."""

from collections.abc import Callable
from functools import cache
from math import ceil, log2, sqrt

from admitperf.reports.comparison.statistics import ALPHA, special

POWER = 0.8
"""How often a design should see what is there. Plain choice, the usual one."""

FEWEST_ASKED = 3
"""Below this many pairs the question is not asked: the brief, section 9."""

FEWEST_FLIPPED = 6
"""From here on sign flips can give p < 0.05: 2^(1-6) = 0.031."""

MOST_BLOCKS = 10_000
"""More pairs than this are not counted out. Plain choice."""

_STEPS = 60  # halvings: 50 / 2^60 is below what a float tells apart
_FARTHEST = 50.0  # no design of two pairs or more needs a larger noncentrality


def smallest_effect(n: int, sd: float) -> float:
    """The smallest true difference that n pairs show with 80 % power (the MDE).

    Args:
        n: pairs, at least two.
        sd: standard deviation of the paired differences.

    Returns:
        In the unit of `sd`, for the paired t test, two-sided.
    """
    return factor(n) * sd


@cache
def factor(n: int) -> float:
    """The smallest effect in standard deviations of the paired differences."""
    low, high = 0.0, _FARTHEST
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if power(n, middle / sqrt(n)) < POWER:
            low = middle
        else:
            high = middle
    return high / sqrt(n)


def power(n: int, effect: float) -> float:
    """How often the two-sided paired t test sees a true effect.

    Args:
        n: pairs, at least two.
        effect: in standard deviations of the paired differences.
    """
    reach = _reach(n, ALPHA / 2)
    apart = abs(effect) * sqrt(n)
    missed = _below(n, apart, reach) - _below(n, apart, -reach)
    return 1 - missed


def equivalence_power(n: int, effect: float, margin: float) -> float:
    """At least how often two one-sided tests say that an effect is inside a margin.

    Args:
        n: pairs, at least two.
        effect, margin: in standard deviations of the paired differences.
    """
    reach = _reach(n, ALPHA)
    seen = [
        1 - _below(n, (margin - side * abs(effect)) * sqrt(n), reach)
        for side in (1, -1)
    ]
    return max(0.0, sum(seen) - 1)


def blocks_to_resolve(mean: float, sd: float, margin: float) -> int | None:
    """How many pairs would resolve a mean difference like the observed one.

    One at or over the margin is resolved when it is told from 0; a smaller one can
    only be shown to be within the margin.

    Returns:
        At least 6, so that sign flips can be asked; None when over `MOST_BLOCKS`.
    """
    if not sd:
        return FEWEST_FLIPPED
    if abs(mean) >= margin:
        return _fewest(lambda n: power(n, mean / sd))
    return _fewest(lambda n: equivalence_power(n, mean / sd, margin / sd))


def fewest_for_family(arms: int) -> int:
    """The fewest pairs whose sign flips can give p < 0.05 for each of several arms."""
    return max(FEWEST_FLIPPED, ceil(1 + log2(arms / ALPHA) + 1e-9))


def _fewest(seen: Callable[[int], float]) -> int | None:
    """The smallest number of pairs with enough power; power grows with pairs."""
    low, high = FEWEST_FLIPPED - 1, MOST_BLOCKS
    if seen(high) < POWER:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if seen(middle) < POWER else (low, middle)
    return high


def _reach(n: int, tail: float) -> float:
    return float(special().stdtrit(n - 1, 1 - tail))


def _below(n: int, apart: float, at: float) -> float:
    """P(noncentral t <= at)."""
    return float(special().nctdtr(n - 1, apart, at))
