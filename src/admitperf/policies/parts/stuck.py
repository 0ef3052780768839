"""Is who waits longest the first of a queue, or stuck on its own?

Where the oldest wait shuts a door, nobody can show any more that he would have been
served at once. So now and then one is let in, and what becomes of it is looked at.
"""

from admitperf.core.decision import Decision
from admitperf.core.outcome import Outcome
from admitperf.core.signals import OLDEST_WAIT_S
from admitperf.core.snapshot import Snapshot
from admitperf.core.verdict import Verdict

PROBE_S = 4.0
"""Seconds without anybody let in after which one is. Origin: the interval of
`queue_age`."""

KEPT_NS = 10_000_000_000
"""For how long it holds that the oldest was overtaken, since an answer showed it last.
Plain choice, as long as a drain looks back: a queue may come up behind a stuck one."""

_NEVER_NS = -(1 << 62)


class Stuck:
    """Who was let in last, and who was served soon since the oldest came.

    Args:
        soon_s: time to first token of who did not wait, in seconds.
        every_s: seconds between two probes.
        at_once: whether the very first may be one; else it counts as let in.
    """

    def __init__(
        self, soon_s: float, every_s: float = PROBE_S, *, at_once: bool = False
    ) -> None:
        self._soon_ms = 1000 * soon_s
        self._every_s, self._at_once = every_s, at_once
        self._let_in_ns: int | None = None
        self._came_ns = _NEVER_NS  # the newest that was served soon
        self._learnt_ns = _NEVER_NS  # when one of those ended

    def probe_is_due(self, metrics: Snapshot) -> bool:
        """Whether somebody waits and nobody was let in for long enough; for `decide`.

        An engine that is busy with answers has nobody waiting, and gets no probe.
        """
        last_ns = self._let_in_ns
        if last_ns is None:
            last_ns = _NEVER_NS if self._at_once else metrics.now_ns
        let_in_s = (metrics.now_ns - last_ns) / 1e9
        lately = metrics.gate("last_let_in_s", let_in_s, self._every_s, "<")
        return not lately and bool(metrics.read(OLDEST_WAIT_S))

    def decided(self, metrics: Snapshot, d: Decision) -> None:
        """Notes when one was let in, probe or not; the first asked counts as one."""
        if d.verdict is Verdict.ADMIT or self._let_in_ns is None:
            self._let_in_ns = metrics.now_ns

    def observe(self, metrics: Snapshot, outcome: Outcome | None) -> int | None:
        """Learns from an end.

        Returns:
            When it came that has just ended, if it was served soon; else None.
        """
        if outcome is None or outcome.ttft_ms is None or outcome.e2e_ms is None:
            return None
        if outcome.ttft_ms > self._soon_ms:
            return None
        came_ns = metrics.now_ns - int(1e6 * outcome.e2e_ms)
        self._came_ns = max(self._came_ns, came_ns)
        self._learnt_ns = metrics.now_ns
        return came_ns

    def overtaken(self, metrics: Snapshot) -> bool:
        """Whether one that came after the oldest was served soon, as seen lately."""
        since_ns = metrics.now_ns - 1e9 * (metrics.read(OLDEST_WAIT_S) or 0.0)
        fresh = metrics.now_ns - self._learnt_ns <= KEPT_NS
        return fresh and self._came_ns > since_ns
