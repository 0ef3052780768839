"""What an engine counts over its life, as its page shows it."""

from bisect import bisect_left
from collections.abc import Sequence

TTFT_S = (
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0,
    7.5, 10.0, 20.0, 40.0, 80.0, 160.0, 640.0, 2560.0,
)  # fmt: skip
GAP_S = (
    0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5,
    10.0, 20.0, 40.0, 80.0,
)  # fmt: skip
REQUEST_S = (
    0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0,
    120.0, 240.0, 480.0, 960.0, 1920.0, 7680.0,
)  # fmt: skip
"""Upper bounds of vLLM 0.32's buckets, as its own page lists them."""


class Histogram:
    """Values counted by size.

    Args:
        bounds: upper bounds of the buckets, rising; one without a bound follows.

    Attributes:
        bounds: as given.
        sum: of the values.
        count: of the values.
    """

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.sum = 0.0
        self.count = 0
        self._in = [0] * (len(bounds) + 1)

    def add(self, value: float, times: int = 1) -> None:
        """Counts a value, or as many of the same."""
        self.sum += value * times
        self.count += times
        self._in[bisect_left(self.bounds, value)] += times

    def with_more(self, value: float, times: int) -> "Histogram":
        """A copy that has counted a value so often besides."""
        more = Histogram(self.bounds)
        more.sum, more.count, more._in = self.sum, self.count, list(self._in)
        more.add(value, times)
        return more

    def up_to(self) -> list[int]:
        """For each bound, how many values were no greater."""
        total, counts = 0, list[int]()
        for count in self._in[:-1]:
            total += count
            counts.append(total)
        return counts


class Tally:
    """Counters, all at 0.

    Attributes:
        preempted: times a request was thrown out of memory.
        started, ended: requests that had their first token, and their last.
        prompt_tokens: of the requests that had their first token.
        queried_tokens, cached_tokens: looked up in the prefix cache at first starts,
            and found.
        refused: by the engine's own limits, by the limit's name.
        ttft_s, gap_s, queue_s, prefill_s, decode_s, e2e_s: times in seconds; of a
            request as a whole, but for the gaps between tokens.
    """

    def __init__(self) -> None:
        self.preempted = self.started = self.ended = 0
        self.prompt_tokens = self.queried_tokens = self.cached_tokens = 0
        self.refused = {"max_num_queued_reqs": 0, "max_num_queued_tokens": 0}
        self.ttft_s = Histogram(TTFT_S)
        self.gap_s = Histogram(GAP_S)
        self.queue_s = Histogram(REQUEST_S)
        self.prefill_s = Histogram(REQUEST_S)
        self.decode_s = Histogram(REQUEST_S)
        self.e2e_s = Histogram(REQUEST_S)
