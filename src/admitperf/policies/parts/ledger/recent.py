"""The last values of one quantity, for its quantiles."""

from bisect import bisect_left, bisect_right, insort
from collections import deque
from math import ceil

KEPT = 256
"""Values remembered. Plain choice, as many as of the lengths of answers."""


class Recent:
    """The last values in order of time and of size."""

    __slots__ = ("_latest", "_ordered")

    def __init__(self) -> None:
        self._latest: deque[float] = deque()
        self._ordered: list[float] = []

    def __len__(self) -> int:
        return len(self._ordered)

    def add(self, value: float) -> None:
        """Takes one, and forgets the oldest of too many."""
        self._latest.append(value)
        insort(self._ordered, value)
        if len(self._ordered) > KEPT:
            del self._ordered[bisect_left(self._ordered, self._latest.popleft())]

    def quantile(self, q: float) -> float | None:
        """The value that a share `q` of them stays within; None of none."""
        ordered = self._ordered
        return ordered[max(1, ceil(q * len(ordered))) - 1] if ordered else None

    def middle_above(self, value: float) -> float | None:
        """The median of those above a value; None when there is none."""
        place, ordered = bisect_right(self._ordered, value), self._ordered
        if place == len(ordered):
            return None
        return ordered[place + (len(ordered) - place - 1) // 2]
