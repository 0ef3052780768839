"""Output tokens a second that an engine makes while it is full.

A rate over all time measures demand as long as the engine keeps up, and an engine that
is half full makes tokens half as fast as it could: nobody waits then. So only the time
in which it was full counts, and only the answers that ended in it.

`core.busy` halves in the same way, but counts the time in which this host's own work
was left to do: an engine that runs one request of ours is busy there and not full here,
and several replicas are full for several seconds in one.
"""

from collections import OrderedDict

from admitperf.core.busy import KEPT_S, MEASURED_AFTER
from admitperf.policies.parts.replicas import REPLICAS_MOST

LATELY_S = 10.0
"""Seconds after which a replica that is no longer read counts no more. Origin: the
window of `core.drain`."""


class Throughput:
    """The rate of a pool: what its full replicas make, times how many it has.

    Whether a replica is full is told with each reading and taken to last until the
    next.
    """

    def __init__(self) -> None:
        self._read: OrderedDict[str | None, tuple[float, bool]] = OrderedDict()
        self._full = 0
        self._seen_s: float | None = None
        self._full_s = self._tokens = 0.0
        self._ends = 0

    def reading(self, replica: str | None, now_s: float, *, full: bool) -> None:
        """Takes a reading of a replica; None = the whole pool, or the only one."""
        self._pass(now_s)
        self._read[replica] = now_s, full
        self._read.move_to_end(replica)
        while next(iter(self._read.values()))[0] < now_s - LATELY_S:
            self._read.popitem(last=False)
        if len(self._read) > REPLICAS_MOST:
            self._read.popitem(last=False)
        self._full = sum(full for _, full in self._read.values())

    def ended(self, output_tokens: int, now_s: float) -> None:
        """Takes an answer that ended; while nothing is full it says nothing."""
        self._pass(now_s)
        if not self._full:
            return
        self._tokens += output_tokens
        self._ends += 1
        if self._full_s > KEPT_S:
            self._full_s /= 2
            self._tokens /= 2

    def per_s(self, now_s: float) -> float | None:
        """Output tokens a second of the pool; None until that is measured."""
        full_s = self._full_s + self._since_s(now_s)
        if self._ends < MEASURED_AFTER or full_s <= 0 or not self._tokens:
            return None
        return len(self._read) * self._tokens / full_s

    def _pass(self, now_s: float) -> None:
        self._full_s += self._since_s(now_s)
        self._seen_s = now_s

    def _since_s(self, now_s: float) -> float:
        """Seconds of full replicas since it was told anything, all together."""
        return 0.0 if self._seen_s is None else self._full * (now_s - self._seen_s)
