"""Refuse while a queue stands: its oldest request has waited too long for a while.

What is watched is a(t), the time that the request waiting longest has waited. While
one request is the oldest, a rises by a second each second; when it has its first token
or ends, a falls to the age of the next. So a look at time t that finds a(t) over the
target tells more than one instant: this request has been waiting ever since
t - a(t), so that a was over the target all the time from t - a(t) + target on. If the
look before lies in that stretch and found a over the target too, the two stretches
join, and a was over the target since the first of them began. If it does not lie in
it, a may have been under the target between the looks, and is taken to have been.
Hence

- every fall under the target is noticed, however short and however rarely one looks:
  the request that is oldest at the next look was younger than the target then;
- what is said to have stood over the target did so without a break.

That is the least wait over an interval, which CoDel asks for, without keeping a list.
It is worked out from the last look alone, so that asking changes nothing.
"""

import math
from typing import Annotated

from admitperf.core.decision import Decision
from admitperf.core.outcome import Outcome
from admitperf.core.param import Param
from admitperf.core.policy import Policy
from admitperf.core.signals import OLDEST_WAIT_S
from admitperf.core.snapshot import Snapshot
from admitperf.policies.parts.stuck import Stuck

QUIET_INTERVALS = 16
"""Intervals without a standing queue after which the next one is met with the whole
patience again. Origin: CoDel's pseudocode (RFC 8289), from memory."""

_NEVER_NS = -(1 << 62)


class QueueAge(Policy):
    """Refuses newcomers while the oldest wait stays over a target.

    It has to stay over it for `interval_s` before the first refusal: one old request
    for a moment is no standing queue. When it falls under the target, requests are let
    in again. A queue that comes back soon is refused sooner: the n-th time in a row
    after the interval divided by the square root of n.

    One request each `interval_s` is let in all the same. When it is served within the
    target, the old one does not wait in a queue, but for something of its own.
    """

    name = "queue_age"
    slo_awareness = "latency"
    signal_quantity = "wait_estimate"
    refuses_with = ("queue_age",)
    requires = (OLDEST_WAIT_S,)

    target_s: Annotated[
        float,
        Param(
            "seconds that the oldest request may wait for its first token",
            above=0.0,
            high=3600.0,
            origin="research notes, 4: half of a time to first token of 2 s",
        ),
    ] = 1.0
    interval_s: Annotated[
        float,
        Param(
            "seconds that it must be over the target before requests are refused",
            above=0.0,
            high=3600.0,
            origin="research notes, 4: twice a time to first token of 2 s",
        ),
    ] = 4.0

    def __init__(self, **given: object) -> None:
        super().__init__(**given)
        self._interval_ns = round(self.interval_s * 1e9)
        self._over_ns: int | None = None
        self._looked_ns = _NEVER_NS
        self._stands = False
        self._times = 0
        self._fell_ns = _NEVER_NS
        self._stuck = Stuck(self.target_s, self.interval_s, at_once=True)

    def decide(self, metrics: Snapshot) -> Decision:
        """Refuse when it is over, has been for long enough, and one was let in."""
        now_ns = metrics.now_ns
        over = metrics.at_least(OLDEST_WAIT_S, self.target_s)
        since_ns = self._since_ns(metrics)
        over_s = 0.0 if since_ns is None else (now_ns - since_ns) / 1e9
        patience_s = self._patience_ns(now_ns) / 1e9
        stands = metrics.gate("over_target_s", over_s, patience_s)
        probes = self._stuck.probe_is_due(metrics)
        shut = over and stands and not probes
        return self.defer("queue_age") if shut else self.admit()

    def decided(self, metrics: Snapshot, d: Decision) -> None:
        """Take a look, and note when one was let in."""
        self._note(metrics)
        self._stuck.decided(metrics, d)

    def observe(self, metrics: Snapshot, outcome: Outcome | None) -> None:
        """Take a look; begin anew when a newcomer was served within the target."""
        self._note(metrics)
        since_ns, came_ns = self._over_ns, self._stuck.observe(metrics, outcome)
        if since_ns is not None and came_ns is not None and came_ns >= since_ns:
            self._over_ns, self._stands, self._times = metrics.now_ns, False, 0

    def _since_ns(self, metrics: Snapshot) -> int | None:
        """Since when the oldest wait is surely over the target; None = it is not."""
        over_s = float(metrics.read(OLDEST_WAIT_S) or 0.0) - self.target_s
        if over_s < 0:
            return None
        surely_ns = metrics.now_ns - round(over_s * 1e9)
        if self._over_ns is None or surely_ns > self._looked_ns:
            return surely_ns
        return self._over_ns

    def _patience_ns(self, now_ns: int) -> float:
        """How long it must be over, the shorter the more often it was lately."""
        return self._interval_ns / math.sqrt(self._times_before(now_ns) + 1)

    def _times_before(self, now_ns: int) -> int:
        """Standing queues in a row, until now."""
        quiet_ns = QUIET_INTERVALS * self._interval_ns
        recent = self._stands or now_ns - self._fell_ns < quiet_ns
        return self._times if recent else 0

    def _note(self, metrics: Snapshot) -> None:
        """Takes a look: joins it to the last one, or begins anew."""
        now_ns, since_ns = metrics.now_ns, self._since_ns(metrics)
        patience_ns = self._patience_ns(now_ns)
        if self._stands and since_ns != self._over_ns:
            self._stands, self._fell_ns = False, now_ns
        self._over_ns, self._looked_ns = since_ns, now_ns
        if since_ns is None or self._stands or now_ns - since_ns < patience_ns:
            return
        self._times, self._stands = self._times_before(now_ns) + 1, True
