"""How slow faults together make an engine, at the worst moment of what was told."""

from collections import defaultdict
from collections.abc import Iterable
from math import exp, inf, log

Span = tuple[float, float, float]
"""A factor, and from when to when it holds, in seconds of one clock."""

LEAST, MOST = 0.01, 1e4
"""What factors that hold at once may come to, as one of them alone."""


def bounded(factor: float) -> float:
    """A product of factors, within what an engine can be slowed by."""
    return min(max(factor, LEAST), MOST)


def extremes(spans: Iterable[Span]) -> tuple[float, float]:
    """The least and the greatest product of the factors that ever hold at once."""
    steps: defaultdict[float, float] = defaultdict(float)
    for factor, begin_s, end_s in spans:
        steps[begin_s] += log(factor)
        if end_s < inf:
            steps[end_s] -= log(factor)
    least = most = now = 0.0
    for moment_s in sorted(steps):
        now += steps[moment_s]
        least, most = min(least, now), max(most, now)
    return _power(least), _power(most)


def _power(exponent: float) -> float:
    """A product from its logarithm; one that no number holds is infinite."""
    return float(f"{exp(exponent):.9g}") if exponent < log(1e300) else inf
