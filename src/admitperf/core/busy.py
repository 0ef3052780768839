"""How fast work is done while there is work: what a server can, not what it was asked.

A rate over all time measures demand as long as the server keeps up. This one counts
only the time in which something was left to do.
"""

from math import inf

KEPT_S = 30.0
"""Busy seconds after which what was measured counts half. Plain choice: some tens of
requests on a busy engine."""

SILENT_MOST_S = 10.0
"""Of a silence so much counts as busy, unless it ends with work that is done: in a
longer one nobody asks, and what is left is stuck. Plain choice, as long as a drain
looks back."""

MEASURED_AFTER = 3
"""Ends after which it is a rate. Plain choice: one end says when it began."""


class Busy:
    """Work done per busy second.

    Attributes:
        left: work not done yet, in its unit.
    """

    __slots__ = ("_busy_s", "_done", "_ends", "_pieces", "_seen_ns", "left")

    def __init__(self) -> None:
        self.left = 0.0
        self._seen_ns = 0
        self._busy_s = 0.0
        self._done = 0.0
        self._ends = 0
        self._pieces = 0

    def more(self, amount: float, now_ns: int) -> None:
        """A piece of work came."""
        self._pass(now_ns, SILENT_MOST_S)
        self._pieces += 1
        self.left += amount

    def less(self, amount: float, now_ns: int, *, done: bool) -> None:
        """A piece is no longer left: done, or given up."""
        self._pass(now_ns, inf if done else SILENT_MOST_S)
        self._pieces = max(0, self._pieces - 1)
        self.left = max(0.0, self.left - amount) if self._pieces else 0.0
        if done:
            self._done += amount
            self._ends += 1
            if self._busy_s > KEPT_S:
                self._busy_s /= 2
                self._done /= 2

    def rate_per_s(self, now_ns: int) -> float | None:
        """Work done per busy second; None until that is measured."""
        if self._ends < MEASURED_AFTER:
            return None
        busy_s = self._busy_s + self._since_s(now_ns, SILENT_MOST_S)
        return self._done / busy_s if busy_s > 0 else None

    def _pass(self, now_ns: int, most_s: float) -> None:
        self._busy_s += self._since_s(now_ns, most_s)
        self._seen_ns = max(self._seen_ns, now_ns)

    def _since_s(self, now_ns: int, most_s: float) -> float:
        """Busy time since something came or went, at most so much."""
        if self.left <= 0:
            return 0.0
        return min(most_s, max(0, now_ns - self._seen_ns) / 1e9)
