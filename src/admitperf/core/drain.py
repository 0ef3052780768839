"""How fast a quantity falls: the basis of every computed wait."""

from collections import deque

WINDOW_S = 10.0
"""Seconds looked back. Plain choice: the last seconds, long enough for a few requests
to end on a busy engine."""

MEASURED_AFTER_S = 2.0
"""Seconds of watching after which what fell is a rate. That nothing fell is one only
after the whole window: answers of some seconds end in none of the first. Plain
choice."""

_BIN_NS = 250_000_000
"""What falls this close together is kept as one: the window has at most 40 entries."""


class Drain:
    """Gross decrease per second over the last `WINDOW_S`.

    Rises are not subtracted: what came in does not slow what went out.
    """

    __slots__ = ("_falls", "_since_ns", "_value")

    def __init__(self) -> None:
        self._falls: deque[tuple[int, float]] = deque()
        self._since_ns: int | None = None
        self._value: float | None = None

    def watch(self, value: float, now_ns: int) -> None:
        """Takes the quantity's value at a time; what it fell by drained.

        Of nothing, nothing can drain: that time says nothing either.
        """
        last, self._value = self._value, value
        if last is None or value > last or value == last == 0:
            self.begin(now_ns)
        elif value < last:
            self.fell(last - value, now_ns)

    def begin(self, now_ns: int) -> None:
        """There is more to drain from now on: until now, "nothing fell" said nothing.

        A burst after a quiet time is not an engine that stands still.
        """
        self._forget(now_ns)
        if not self._falls:
            self._since_ns = now_ns

    def fell(self, amount: float, now_ns: int) -> None:
        """Takes an amount that drained at a time."""
        if self._since_ns is None:
            self._since_ns = now_ns
        falls = self._falls
        if falls and now_ns - falls[-1][0] < _BIN_NS:
            falls[-1] = (falls[-1][0], falls[-1][1] + amount)
        else:
            falls.append((now_ns, amount))
        self._forget(now_ns)

    def rate_per_s(self, now_ns: int) -> float | None:
        """Amount per second; 0.0 when nothing fell; None until that is measured."""
        if self._since_ns is None:
            return None
        self._forget(now_ns)
        watched_s = (now_ns - self._since_ns) / 1e9
        if watched_s < (MEASURED_AFTER_S if self._falls else WINDOW_S):
            return None
        return sum(amount for _, amount in self._falls) / min(watched_s, WINDOW_S)

    def _forget(self, now_ns: int) -> None:
        oldest_ns = now_ns - int(WINDOW_S * 1e9)
        while self._falls and self._falls[0][0] < oldest_ns:
            self._falls.popleft()
