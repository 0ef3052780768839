"""The last values of one quantity, for its quantiles."""

from bisect import bisect_left, bisect_right, insort
from collections import deque
from math import ceil

KEPT = 256
"""Values remembered. Plain choice: a quantile of 0.95 rests on 13."""


class Recent:
    """The last values in order of time and of size.

    Attributes:
        latest: in order of time.
        ordered: in order of size.
    """

    __slots__ = ("latest", "ordered")

    def __init__(self) -> None:
        self.latest: deque[float] = deque()
        self.ordered: list[float] = []

    def __len__(self) -> int:
        return len(self.ordered)

    def add(self, value: float) -> float | None:
        """Takes one; of too many the oldest, which is forgotten for it, or None."""
        self.latest.append(value)
        insort(self.ordered, value)
        if len(self.ordered) <= KEPT:
            return None
        oldest = self.latest.popleft()
        del self.ordered[bisect_left(self.ordered, oldest)]
        return oldest

    def quantile(self, q: float) -> float | None:
        """The value that a share `q` of them stays within; None of none."""
        ordered = self.ordered  # by nearest rank
        return ordered[max(1, ceil(q * len(ordered))) - 1] if ordered else None

    def middle_above(self, value: float) -> float | None:
        """The median of those above a value; None when there is none."""
        place, ordered = bisect_right(self.ordered, value), self.ordered
        if place == len(ordered):
            return None
        return ordered[place + (len(ordered) - place - 1) // 2]
