"""QLM's estimator: how long requests wait behind others, by the central limit theorem.

Behind q requests wait the sum of q answers over the rate at which answers are made.
Sums of many are near normal, so its upper quantile is the mean and so many standard
deviations: q mu / rate + z sigma sqrt(q) / rate.
"""

from math import sqrt
from typing import NamedTuple


class WaitingTime(NamedTuple):
    """Seconds that work takes at one rate, counted from work that is ahead of it.

    Attributes:
        rate_per_s: output tokens a second, over 0.
        z: standard deviations added to the mean.
        tokens: output tokens expected of what is ahead of everything.
        variance: of those, in tokens squared.
    """

    rate_per_s: float
    z: float
    tokens: float = 0.0
    variance: float = 0.0

    def seconds(self, tokens: float, variance: float) -> float:
        """Until work of so many tokens, and what is ahead of it, is done."""
        spread = sqrt(max(0.0, self.variance + variance))
        return (self.tokens + tokens + self.z * spread) / self.rate_per_s
