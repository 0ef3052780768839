"""What a front door counts: plain numbers, bumped in the request path."""

from bisect import bisect_left
from collections import Counter

DECIDE_US = (10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0, 5000.0)
"""Bounds for the time to decide, in microseconds. Plain choice: around the targets of
the decision path (40 us paced, 5 ms while the metrics page hangs)."""

SECONDS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Bounds for waits, holds and first tokens, in seconds. Plain choice: the longest wait
sent is 60 s."""


class Histogram:
    """Counts by upper bound.

    Attributes:
        bounds: upper bounds, inclusive; what is above the last is counted too.
        counts: one more than bounds.
        total: sum of what was added.
    """

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def add(self, value: float) -> None:
        """Counts a value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value


class Counters:
    """Numbers of one pool.

    Attributes:
        decisions: by (verdict, reason or "", admitted, "policy" or the host's why).
        outcomes: by "ok" or the word for what went wrong.
        attempts: by number of the try, from 3 up as 3.
        blind: decisions that a posture answered.
        probes: requests let in to see whether a frozen signal still means anything.
        unreadable: bodies that were no JSON object.
        unfinished: bodies that never came whole.
        live: admitted requests under way, counted apart from the ledger.
        decide_us, wait_s, held_s, ttft_s: histograms.
    """

    def __init__(self) -> None:
        self.decisions: Counter[tuple[str, str, bool, str]] = Counter()
        self.outcomes: Counter[str] = Counter()
        self.attempts: Counter[int] = Counter()
        self.blind = self.probes = self.unreadable = self.unfinished = self.live = 0
        self.decide_us = Histogram(DECIDE_US)
        self.wait_s = Histogram(SECONDS)
        self.held_s = Histogram(SECONDS)
        self.ttft_s = Histogram(SECONDS)
