"""What was admitted lately, and how much work that is."""

from collections import deque
from dataclasses import dataclass


@dataclass(slots=True)
class _Part:
    """One sub-window."""

    number: int
    count: int = 0
    cost: float = 0.0


class Admissions:
    """Admitted requests of a sliding window, counted in sub-windows.

    Its size is bounded by the number of sub-windows.

    Args:
        window_s: seconds looked back, the current sub-window included.
        parts: sub-windows in a window.
        peak: take the fullest sub-window's rate; otherwise the window's.
    """

    __slots__ = ("_kept", "_part_s", "_parts", "_peak", "_window_s")

    def __init__(self, window_s: float, parts: int, *, peak: bool) -> None:
        self._window_s = window_s
        self._part_s = window_s / parts
        self._parts = parts
        self._peak = peak
        self._kept: deque[_Part] = deque(maxlen=parts)

    def add(self, now_s: float, cost: float | None) -> None:
        """Counts an admitted request.

        Args:
            cost: its work; None = not known, then it counts as the mean of the others.
        """
        number = self._number(now_s)
        if cost is None:
            lately = self._since(number)
            count = sum(part.count for part in lately)
            cost = sum(part.cost for part in lately) / count if count else 0.0
        if not self._kept or self._kept[-1].number < number:
            self._kept.append(_Part(number))
        self._kept[-1].count += 1
        self._kept[-1].cost += cost

    def empty(self, now_s: float) -> bool:
        """Whether nothing was admitted lately."""
        return not self._since(self._number(now_s))

    def load(self, now_s: float, cost: float, share: float) -> float:
        """Work per unit of time, one more request of this cost included.

        The rate times the mean cost, as a fraction of one.

        Args:
            share: part of all the work that is admitted here, as a fraction; what was
                admitted stands for the rest too, and the one more is only itself.
        """
        return self._load(self._number(now_s), cost, share)

    def falls_in_s(
        self, now_s: float, cost: float, share: float, most: float
    ) -> float | None:
        """Seconds until that load is at most `most`, if nobody is admitted meanwhile.

        To the start of a sub-window; an empty window is no load. None = never: `most`
        is below 0.
        """
        number = self._number(now_s)
        for later in range(number + 1, number + self._parts + 1):
            alone = not self._since(later)
            if (0.0 if alone else self._load(later, cost, share)) <= most:
                return max(0.0, later * self._part_s - now_s)
        return None

    def _number(self, now_s: float) -> int:
        return int(now_s // self._part_s)

    def _since(self, number: int) -> list[_Part]:
        """The sub-windows that are still in the window at this one."""
        oldest = number - self._parts
        return [part for part in self._kept if part.number > oldest]

    def _load(self, number: int, cost: float, share: float) -> float:
        count, work, most = 1.0, cost, 1.0
        for part in self._since(number):
            count += part.count / share
            work += part.cost / share
            most = max(most, part.count / share + (part.number == number))
        rate = most / self._part_s if self._peak else count / self._window_s
        return rate * work / count
