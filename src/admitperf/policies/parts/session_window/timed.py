"""Sessions whose lengths and ends are counted."""

from collections import deque
from statistics import median

from admitperf.core.request import Request
from admitperf.core.snapshot import Snapshot
from admitperf.policies.parts.live.session import Session
from admitperf.policies.parts.live.sessions import Sessions

ENDS_KEPT = 16
"""Ends that a rate is taken of. Plain choice: some minutes of a busy engine."""

ENDS_LEAST = 3
"""Ends after which there is a rate, and a median. Plain choice: one says little."""


class _Timed(Session):
    """Attributes: entered_ns: when its first call was admitted."""

    __slots__ = ("entered_ns",)

    def __init__(self, root: str, now_ns: int) -> None:
        super().__init__(root, now_ns)
        self.entered_ns = now_ns


class TimedSessions(Sessions):
    """Sessions that know how long they last, and how fast they end.

    Args:
        name, lease_s, reasons: as of `Sessions`.

    Attributes:
        now_ns: the time; its policy sets it before it tells anything.
        task_s: median seconds from a session's first admitted call to its last sign of
            life, of those that ended last; None until some did.
    """

    def __init__(self, name: str, lease_s: float, *reasons: str) -> None:
        super().__init__(name, lease_s, *reasons)
        self._lasted: deque[float] = deque(maxlen=ENDS_KEPT)
        self._ends: deque[int] = deque(maxlen=ENDS_KEPT)
        self.now_ns = 0
        self.task_s: float | None = None

    def ends_per_s(self, now_ns: int) -> float | None:
        """Live sessions that end per second, of the last ones; None = too few did."""
        ends = self._ends
        if len(ends) < ENDS_LEAST:
            return None
        return len(ends) / max(1e-3, (now_ns - ends[0]) / 1e9)

    def open_calls(self, metrics: Snapshot, session: Session) -> int:
        """Open calls of a session and its helpers."""
        return metrics.charges(self.account(session))

    def end(self, session: Session) -> None:
        """Counts the end of a live one."""
        if session.live:
            self._ends.append(self.now_ns)
            last_ns = max(session.seen_ns, session.idle_ns)
            if isinstance(session, _Timed):
                self._lasted.append((last_ns - session.entered_ns) / 1e9)
            if len(self._lasted) >= ENDS_LEAST:
                self.task_s = median(self._lasted)
        super().end(session)

    def _made(
        self,
        name: str,
        request: Request,  # noqa: ARG002  as of `Sessions`
        now_ns: int,
    ) -> Session:
        return _Timed(name, now_ns)

    def _enter(self, session: Session) -> None:
        if session.live:
            return
        if isinstance(session, _Timed):
            session.entered_ns = self.now_ns
        super()._enter(session)
