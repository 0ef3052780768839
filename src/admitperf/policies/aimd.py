"""A limit on open requests that finds itself: up by steps, down by a factor."""

from math import inf
from typing import Annotated

from admitperf.core.decision import Decision
from admitperf.core.outcome import Outcome
from admitperf.core.param import Param
from admitperf.core.policy import Policy
from admitperf.core.signals import IN_FLIGHT, OLDEST_WAIT_S
from admitperf.core.snapshot import Snapshot
from admitperf.policies.parts.adaptive.period import Period
from admitperf.policies.parts.adaptive.waits import Waits
from admitperf.policies.parts.adaptive.window import Window

RAMP = 1.5
"""Factor of a growth at a cold start, and when several in a row met no wait. Plain
choice: with TCP's 2 the first cut is deep; four times the limit takes four of these."""

DEEPEST = 0.8
"""What a cut leaves at least. Plain choice: between TCP's 0.5, after which a small
engine idles, and Netflix's 0.9, which takes 14 cuts to a quarter; this takes seven."""

ROOM = 0.1
"""Part of the target under which there is room; between the two the limit stays. Plain
choice: one request that waits for a slot is a tenth already, and enough."""

URGENT = 2.0
"""Times the target over which a cut waits for no ends. Plain choice: a wait of twice
what is borne needs no more evidence than `min_samples`."""

TRIED = 1.0
"""Part of the limit that has to be in use for it to grow. Plain choice, stricter than
Netflix's half: the next step is made once this one was filled and nobody waited."""


class Aimd(Policy):
    """Refuses while as many requests are open as a limit that follows congestion.

    Congestion is a wait before prefill that is longer than the target. The length of
    the whole answer plays no part: it says how much was asked for, not how full it is.
    A cut is by as many as wait too long, by Little's law: the ends a second times the
    seconds over the target.
    """

    name = "aimd"
    slo_awareness = "latency"
    signal_quantity = "wait_estimate"
    requires = (IN_FLIGHT, OLDEST_WAIT_S)

    target_ms: Annotated[
        float,
        Param(
            "wait before prefill over which the limit is cut, in milliseconds",
            above=0.0,
            high=3.6e6,
            origin="plain choice: a third of a first token within 1.5 s",
        ),
    ] = 500.0
    start: Annotated[
        int,
        Param(
            "open requests of this host before anything was measured",
            low=1,
            per_process=True,
            origin="plain choice: small, as it grows by half each period at first",
        ),
    ] = 8
    floor: Annotated[
        int,
        Param(
            "open requests of this host that are let in whatever the waits are",
            low=1,
            per_process=True,
            origin="plain choice: with none open nothing would be learnt",
        ),
    ] = 1
    ceiling: Annotated[
        int,
        Param(
            "open requests of this host at most, however short the waits are",
            low=1,
            per_process=True,
            origin="plain choice: more slots than an engine is given",
        ),
    ] = 1024
    step: Annotated[
        float,
        Param(
            "open requests by which a growth raises the limit",
            above=0.0,
            high=1e6,
            origin="Netflix's AIMD",
        ),
    ] = 1.0
    period_s: Annotated[
        float,
        Param(
            "seconds between two changes of the limit, at least",
            above=0.0,
            high=3600.0,
            origin="plain choice: two readings of a gateway that looks each 0.25 s",
        ),
    ] = 0.5
    min_samples: Annotated[
        int,
        Param(
            "looks at the wait that a change rests on, at least",
            low=1,
            high=256,
            origin="plain choice: the middle one of three is not the odd one out",
        ),
    ] = 3
    cool_s: Annotated[
        float,
        Param(
            "seconds after a cut, and after in flight has come down to it, without cut",
            low=0.0,
            high=3600.0,
            origin="plain choice: who waited before the cut starts meanwhile",
        ),
    ] = 0.5

    def __init__(self, **given: object) -> None:
        super().__init__(**given)
        self._waits = Waits()
        self._over_s = -inf  # when more than the limit were last open
        self._period = Period(self.period_s, self.min_samples)
        self._window = Window(
            limit=self.start,
            floor=self.floor,
            ceiling=max(self.floor, self.ceiling),
            step=self.step,
            cool_s=self.cool_s,
            ramp=RAMP,
            tried=TRIED,
        )

    def decide(self, metrics: Snapshot) -> Decision:
        """Refuse at the limit of the moment."""
        if metrics.at_least(IN_FLIGHT, self._window.whole):
            return self.defer("in_flight_cap")
        return self.admit()

    def observe(self, metrics: Snapshot, outcome: Outcome | None) -> None:
        """Look at who waits; once a period, move the limit."""
        in_flight = metrics.read(IN_FLIGHT)
        if in_flight is None:
            return
        now_s, wait_s = metrics.now_s, self._waits.sample_s(metrics, outcome)
        if not self._counts(now_s, in_flight, wait_s):
            wait_s = None
        self._period.add(now_s, wait_s, in_flight, ended=outcome is not None)
        waits_s = self._period.waits_s(now_s)
        if waits_s is not None:
            self._move(now_s, *waits_s)

    def _counts(self, now_s: float, in_flight: float, wait_s: float | None) -> bool:
        """Whether a wait says something about the present limit.

        While more are open, and shortly after, who waits was let in under another one.
        That nobody waits although more are open says that it is too low: a host may
        let in what was refused.
        """
        if in_flight > self._window.whole:
            self._over_s = now_s
            return wait_s is not None and wait_s < ROOM * self.target_ms / 1000
        return now_s - self._over_s >= self.cool_s

    def _move(self, now_s: float, wait_s: float, longer_s: float) -> None:
        period, window = self._period, self._window
        target_s = self.target_ms / 1000
        if wait_s < URGENT * target_s and not period.told(now_s):
            return
        if wait_s > target_s:
            many = max(self.step, period.ends_per_s(now_s) * (wait_s - target_s))
            left = 1.0 - many / max(1.0, min(window.limit, period.used))
            window.cut(max(DEEPEST, left), now_s, period.used)
        elif longer_s < ROOM * target_s:
            window.grow(period.used)
        else:
            window.hold()
        period.begin(now_s)
