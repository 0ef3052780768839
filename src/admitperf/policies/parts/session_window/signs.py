"""What tells that too many sessions are live, or that there is room for more.

Four signs of which each is enough for the first, and none of which needs a model of the
engine: caches that are not there any more, memory that ran out, a queue, and answers
that stall. What is not known is not asked.
"""

from collections import deque

from admitperf.core.outcome import Outcome
from admitperf.core.signals import OLDEST_WAIT_S, PREEMPTIONS
from admitperf.core.snapshot import Snapshot
from admitperf.policies.parts.live.retention import TURNS_LEAST, Retention
from admitperf.policies.parts.session_window.bounds import Bounds
from admitperf.policies.parts.stuck import Stuck

CONGESTED = 0.5
CALM = 0.1
"""Oldest wait as a part of the time to first token aimed at: over the one it is too
long, under the other there is room. Origin: research notes, 7.5."""

_SLOW_SHARE = 0.9
"""The stall that so many answers keep. Origin: research notes, 7.5."""

_GAPS_MOST = 256
"""Answers of one period whose stalls are kept, the latest. Plain choice."""


class Signs:
    """Collects them from one step of a window to the next.

    Args:
        bounds: what they are compared with.
        lease_s: seconds of silence after which a session's next call is its first.
    """

    def __init__(self, bounds: Bounds, lease_s: float) -> None:
        self._bounds = bounds
        self._retention = Retention(lease_s)
        self._most_s = CONGESTED * bounds.ttft_s
        self._stuck = Stuck(self._most_s)
        self._gaps_ms: deque[float] = deque(maxlen=_GAPS_MOST)
        self._stall_ms: float | None = None
        self._preempted = False
        self._turns_before = 0

    def overtaken(self, metrics: Snapshot) -> bool:
        """Whether who waits longest is stuck on its own: its wait says nothing then."""
        return self._stuck.overtaken(metrics)

    def record(self, metrics: Snapshot) -> bool:
        """Records every sign that is known as a gate; for `decide`.

        Returns:
            Whether a queue stands.
        """
        kept, stall_ms, bounds = self._retention.value, self._stall_ms, self._bounds
        if kept is not None:
            metrics.gate("retention", kept, bounds.low, "<")
        if PREEMPTIONS in metrics.view.values:
            metrics.above(PREEMPTIONS, 0.0)
        if stall_ms is not None:
            metrics.gate("stall_ms", stall_ms, bounds.stall_ms, ">")
        wait_s = metrics.read(OLDEST_WAIT_S)
        if wait_s is None:
            return False
        long = metrics.gate(OLDEST_WAIT_S.name, wait_s, self._most_s, ">")
        return long and not self.overtaken(metrics)

    def observe(self, metrics: Snapshot, outcome: Outcome | None) -> None:
        """A call ended, or a reading came."""
        self._retention.observe(metrics, outcome)
        self._stuck.observe(metrics, outcome)
        if outcome is None:
            self._preempted |= float(metrics.read(PREEMPTIONS) or 0.0) > 0.0
        elif outcome.max_gap_ms is not None:
            self._gaps_ms.append(outcome.max_gap_ms)

    def step(self, metrics: Snapshot) -> tuple[bool, bool]:
        """Ends a period.

        Returns:
            Whether too many are live, and whether there is room for more; not both.
        """
        bounds, wait_s = self._bounds, self._wait_s(metrics)
        self._stall_ms = self._stall()
        stalls = self._stall_ms is not None and self._stall_ms > bounds.stall_ms
        preempted, self._preempted = self._preempted, False
        waits = wait_s > self._most_s
        congested = preempted or stalls or waits or self._lost()
        kept = self._retention.value
        room = wait_s < CALM * bounds.ttft_s and (kept is None or kept >= bounds.high)
        return congested, room and not congested

    def cut(self) -> None:
        """The window was cut: retention counts again when enough turns came since."""
        self._turns_before = self._retention.turns

    def _lost(self) -> bool:
        kept, turns = self._retention.value, self._retention.turns
        enough = turns - self._turns_before >= TURNS_LEAST
        return enough and kept is not None and kept < self._bounds.low

    def _wait_s(self, metrics: Snapshot) -> float:
        """Of who waits longest, 0.0 if it is stuck or if that is not known."""
        if self.overtaken(metrics):
            return 0.0
        return float(metrics.read(OLDEST_WAIT_S) or 0.0)

    def _stall(self) -> float | None:
        """What nine of ten answers kept; None while there are too few of them."""
        gaps_ms = sorted(self._gaps_ms)
        if len(gaps_ms) < TURNS_LEAST:
            return None
        self._gaps_ms.clear()
        return gaps_ms[min(len(gaps_ms) - 1, int(_SLOW_SHARE * len(gaps_ms)))]
