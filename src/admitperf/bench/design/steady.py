"""Whether something has settled, and whether it drifts."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import erfc, exp, sqrt
from statistics import fmean, median

from admitperf.reports.comparison.statistics import ALPHA

BATCH = 5
"""Observations in a batch of MSER-5: White 1997."""

MOST_DRIFT = 0.03
"""What probes may change by over an experiment, of their median: the method's own."""

BIN_S = 10.0
"""Width of the means a trend is looked for in: the method's own."""

_FEWEST_BINS = 4  # below it no order of values has p < 0.05


def mser5(series: Sequence[float]) -> int:
    """How many observations to cut at the beginning, by MSER-5.

    White 1997: of the means of 5, cut those whose going leaves the narrowest interval
    for the mean of the rest; at most half of them.

    Args:
        series: equally spaced in time.

    Returns:
        A multiple of 5. Half of the series says that it did not settle at all.
    """
    whole = len(series) // BATCH
    means = [fmean(series[BATCH * i : BATCH * (i + 1)]) for i in range(whole)]
    if len(means) < 2:  # noqa: PLR2004  a spread takes two
        return 0
    return BATCH * min(range(whole // 2 + 1), key=lambda cut: _mser(means[cut:]))


def _mser(means: Sequence[float]) -> float:
    centre = fmean(means)
    return sum((one - centre) ** 2 for one in means) / len(means) ** 2


def theil_sen(xs: Sequence[float], ys: Sequence[float]) -> float:
    """The median of the slopes between any two points, in y per x.

    Args:
        xs, ys: as long as each other; with fewer than two different x it is 0.
    """
    points = zip(xs, ys, strict=True)
    slopes = [
        (there - here) / (to - at)
        for (at, here), (to, there) in combinations(points, 2)
        if to != at
    ]
    return median(slopes) if slopes else 0.0


def mann_kendall(series: Sequence[float]) -> float:
    """Two-sided p that a series has no trend, by the normal approximation.

    Ties lower the variance (Kendall 1975).

    Args:
        series: in the order of time; with fewer than 4 it is 1.
    """
    n = len(series)
    if n < _FEWEST_BINS:
        return 1.0
    s = sum((b > a) - (b < a) for a, b in combinations(series, 2))
    tied = sum(k * (k - 1) * (2 * k + 5) for k in Counter(series).values())
    variance = (n * (n - 1) * (2 * n + 5) - tied) / 18
    if not s or variance <= 0:
        return 1.0
    return erfc((abs(s) - 1) / sqrt(variance) / sqrt(2))


@dataclass(frozen=True, slots=True)
class Trend:
    """How a quantity changed within one run.

    Attributes:
        p: that it has no trend; 1 when there are too few bins.
        slope: in its unit per second.
        bins: means that were looked at.
    """

    p: float
    slope: float
    bins: int


def trend(
    at_s: Sequence[float], values: Sequence[float], bin_s: float = BIN_S
) -> Trend:
    """The trend of the means of a quantity over bins of time.

    Args:
        at_s: when each value was seen, in any order.
        values: as many.
        bin_s: width of a bin; empty ones are left out.
    """
    bins: dict[int, list[float]] = {}
    for at, value in zip(at_s, values, strict=True):
        bins.setdefault(int(at // bin_s), []).append(value)
    places = sorted(bins)
    means = [fmean(bins[place]) for place in places]
    slope = theil_sen([place * bin_s for place in places], means)
    return Trend(mann_kendall(means), slope, len(means))


@dataclass(frozen=True, slots=True)
class Drift:
    """How a fixed probe changed over an experiment.

    Attributes:
        n: probes.
        change: slope times the span of orders, over the median probe.
        p: that there is no trend.
        shift: the largest step between two halves, over the median probe.
        shift_p: that there is no step (Pettitt 1979).
    """

    n: int
    change: float
    p: float
    shift: float
    shift_p: float

    @property
    def drifts(self) -> bool:
        """Whether it changed by more than 3 %, and not by chance."""
        creeps = abs(self.change) > MOST_DRIFT and self.p < ALPHA
        return creeps or (abs(self.shift) > MOST_DRIFT and self.shift_p < ALPHA)


def drift(probes: Mapping[int, float]) -> Drift | None:
    """The drift of probes by the order of their runs; None below 4 of them."""
    if len(probes) < _FEWEST_BINS:
        return None
    orders = sorted(probes)
    series = [probes[order] for order in orders]
    middle = median(series) or 1.0
    runs = orders[-1] - orders[0] + 1
    change = theil_sen(orders, series) * runs / middle
    shift, shift_p = _step(series)
    return Drift(len(series), change, mann_kendall(series), shift / middle, shift_p)


def _step(series: Sequence[float]) -> tuple[float, float]:
    """The size of the most likely step, and p that there is none: Pettitt 1979."""
    n = len(series)
    found = {
        cut: sum((b > a) - (b < a) for a in series[:cut] for b in series[cut:])
        for cut in range(1, n)
    }
    cut = max(found, key=lambda one: abs(found[one]))
    p = min(1.0, 2 * exp(-6 * found[cut] ** 2 / (n**3 + n**2)))
    return median(series[cut:]) - median(series[:cut]), p
