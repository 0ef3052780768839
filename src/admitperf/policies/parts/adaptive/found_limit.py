"""What `aimd` and `gradient` have in common: a limit that moves once a period."""

from math import inf
from typing import Annotated

from admitperf.core.decision import Decision
from admitperf.core.errors import ConfigError
from admitperf.core.outcome import Outcome
from admitperf.core.param import Param
from admitperf.core.policy import Policy
from admitperf.core.signals import IN_FLIGHT, OLDEST_WAIT_S
from admitperf.core.snapshot import Snapshot
from admitperf.policies.parts.adaptive.period import Period
from admitperf.policies.parts.adaptive.waits import Waits
from admitperf.policies.parts.adaptive.window import Window
from admitperf.policies.parts.stuck import PROBE_S, Stuck

RAMP = 1.5
"""Factor of a growth at a cold start, and when several in a row met no wait. Plain
choice: with TCP's 2 the first cut is deep, Gradient2's four a window is meant for
hundreds; four times the limit takes four of these."""

TRIED = 1.0
"""Part of the limit that has to be in use for it to grow. Plain choice, stricter than
Netflix's half: the next step is made once this one was filled and nobody waited."""

SAME_S = 0.001
"""Seconds by which the time may be off at which the oldest came: it is worked out from
its age each time. Plain choice: over what rounding does, under a wait that matters."""


class FoundLimit(Policy):
    """Refuses while as many requests are open as a limit that follows the waits.

    A subclass says which waits speak of the present limit (`_counts`), and where they
    take it (`_move`).

    One that waits for something else than its turn must not keep the limit down: while
    somebody waits and nobody is let in, a probe is now and then, and when it has ended
    first the limit goes back to what it was before the other one waited.

    Raises:
        ConfigError: `ceiling` is under `floor`.
    """

    slo_awareness = "latency"
    signal_quantity = "wait_estimate"
    refuses_with = ("in_flight_cap",)
    requires = (IN_FLIGHT, OLDEST_WAIT_S)

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

    def __init__(self, **given: object) -> None:
        super().__init__(**given)
        if self.ceiling < self.floor:
            fault = f"ceiling = {self.ceiling} is under floor = {self.floor}"
            raise ConfigError(f"policy {self.name}", [fault])
        self._waits, self._stuck = Waits(), Stuck(0.0)
        self._oldest_s = -inf  # when the oldest of those that wait came
        self._before = 0.0  # the limit as it was then
        self._period = Period(self.period_s, self.min_samples)
        self._window = Window(
            limit=self.start,
            floor=self.floor,
            ceiling=self.ceiling,
            step=1.0,
            cool_s=0.0,
            ramp=RAMP,
            tried=TRIED,
        )

    def decide(self, metrics: Snapshot) -> Decision:
        """Refuse at the limit of the moment, but for a probe under the ceiling."""
        if not metrics.at_least(IN_FLIGHT, self._window.whole):
            return self.admit()
        under = float(metrics.read(IN_FLIGHT) or 0.0) < self.ceiling
        probes = under and self._stuck.probe_is_due(metrics)
        return self.admit() if probes else self.defer("in_flight_cap")

    def decided(self, metrics: Snapshot, d: Decision) -> None:
        """Note when one was let in."""
        self._stuck.decided(metrics, d)

    def observe(self, metrics: Snapshot, outcome: Outcome | None) -> None:
        """Look at who waits; once a period, move the limit."""
        in_flight = metrics.read(IN_FLIGHT)
        if in_flight is None:
            return
        now_s, wait_s = metrics.now_s, self._waits.sample_s(metrics, outcome)
        self._take_back(metrics, in_flight)
        if not self._counts(now_s, in_flight, wait_s):
            wait_s = None
        self._period.add(now_s, wait_s, in_flight, ended=outcome is not None)
        waits_s = self._period.waits_s(now_s)
        if waits_s is not None:
            self._move(now_s, *waits_s)

    def _take_back(self, metrics: Snapshot, in_flight: float) -> None:
        """Undoes, once, the cuts for one that turns out to be stuck."""
        age_s = float(metrics.read(OLDEST_WAIT_S) or 0.0)
        came_s, window = metrics.now_s - age_s, self._window
        if abs(came_s - self._oldest_s) > SAME_S:
            self._oldest_s, self._before = came_s, window.limit
        elif age_s >= PROBE_S and self._waits.overtaken(metrics) and self._before:
            window.approach(max(window.limit, self._before, in_flight + 1))
            self._before = 0.0

    def _counts(self, now_s: float, in_flight: float, wait_s: float | None) -> bool:
        """Whether a wait says something about the present limit."""
        raise NotImplementedError

    def _move(self, now_s: float, wait_s: float, longer_s: float) -> None:
        """Moves the limit by two waits of a period, in seconds; the shorter first."""
        raise NotImplementedError
