"""How fast work is done while there is work: what a server can, not what it was asked.

A rate over all time measures demand as long as the server keeps up. This one counts
only the time in which something was left to do.
"""

KEPT_S = 30.0
"""Busy seconds after which what was measured counts half. Plain choice: some tens of
requests on a busy engine."""

MEASURED_AFTER = 3
"""Ends after which it is a rate. Plain choice: one end says when it began."""


class Busy:
    """Work done per busy second.

    Attributes:
        left: work not done yet, in its unit.
    """

    __slots__ = ("_busy_s", "_done", "_ends", "_seen_ns", "left")

    def __init__(self) -> None:
        self.left = 0.0
        self._seen_ns = 0
        self._busy_s = 0.0
        self._done = 0.0
        self._ends = 0

    def more(self, amount: float, now_ns: int) -> None:
        """Work came."""
        self._pass(now_ns)
        self.left += amount

    def less(self, amount: float, now_ns: int, *, done: bool) -> None:
        """Work is no longer left: done, or given up."""
        self._pass(now_ns)
        self.left = max(0.0, self.left - amount)
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
        busy_s = self._busy_s + self._since_s(now_ns)
        return self._done / busy_s if busy_s > 0 else None

    def _pass(self, now_ns: int) -> None:
        self._busy_s += self._since_s(now_ns)
        self._seen_ns = max(self._seen_ns, now_ns)

    def _since_s(self, now_ns: int) -> float:
        return max(0, now_ns - self._seen_ns) / 1e9 if self.left > 0 else 0.0
