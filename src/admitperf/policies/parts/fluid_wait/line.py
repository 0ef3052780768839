"""A straight line through points of which some are wrong."""

from collections.abc import Sequence
from statistics import median


def theil_sen(points: Sequence[tuple[float, float]]) -> tuple[float, float] | None:
    """Intercept and slope: the median of all slopes, then of all intercepts.

    Up to 29 % of the points may be anything. Its time grows with the square of their
    number. None when no two points differ in x.
    """
    slopes = [
        (y2 - y1) / (x2 - x1)
        for n, (x1, y1) in enumerate(points)
        for x2, y2 in points[n + 1 :]
        if x1 != x2
    ]
    if not slopes:
        return None
    slope = median(slopes)
    return median(y - slope * x for x, y in points), slope
