"""A limit on open requests that shrinks as waits lengthen: Gradient2 on queueing."""

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

SMOOTHING = 0.2
"""Part of the way to its aim that the limit goes each period. Origin: Gradient2."""

STEEPEST = 0.5
"""Least gradient. Origin: Gradient2."""

LONG = 2.0 / 601.0
"""Weight of a period in the long average. Origin: Gradient2's 600 windows, as the
exponential average of the same span."""

ROOM = 1.1
"""Part of the long average under which there is room. Plain choice: 50 ms with the
default base, which a prompt that is half computed may take."""

RAMP = 1.5
"""Factor of a growth at a cold start, and when several in a row met no wait. Plain
choice: Gradient2 grows by four a window towards hundreds; an engine has tens of slots
and periods of a second, and four times the limit takes four of these."""


class Gradient(Policy):
    """Refuses while as many requests are open as a limit that follows the waits.

    Netflix's Gradient2, fed with the wait before prefill instead of the time of the
    whole call. With both averages of that wait raised by a base, the limit goes towards
    limit * tolerance * long / short + queue; where nobody waits it grows by steps.
    """

    name = "gradient"
    slo_awareness = "latency"
    signal_quantity = "wait_estimate"
    requires = (IN_FLIGHT, OLDEST_WAIT_S)

    tolerance: Annotated[
        float,
        Param(
            "times the long average that waits may take before the limit shrinks",
            low=1.0,
            high=100.0,
            origin="Gradient2",
        ),
    ] = 1.5
    base_ms: Annotated[
        float,
        Param(
            "added to each wait before averages are compared, in milliseconds",
            above=0.0,
            high=3.6e6,
            origin="plain choice: with tolerance 1.5, 250 ms of waiting are let be",
        ),
    ] = 500.0
    queue: Annotated[
        float,
        Param(
            "requests that may wait beside those the gradient leaves",
            above=0.0,
            high=1e6,
            origin="plain choice: Gradient2's 4 is half of a small engine",
        ),
    ] = 1.0
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
            origin="plain choice: Gradient2's 20 is more than small engines have",
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
        self._waits = Waits()
        self._long_ms = self.base_ms
        self._period = Period(self.period_s, self.min_samples)
        self._window = Window(
            limit=self.start,
            floor=self.floor,
            ceiling=max(self.floor, self.ceiling),
            step=1.0,
            cool_s=0.0,
            ramp=RAMP,
            tried=1.0,
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
        if in_flight > self._window.whole and not self._short(wait_s):
            wait_s = None  # who waits now was let in under the limit before
        self._period.add(now_s, wait_s, in_flight, ended=outcome is not None)
        waits_s = self._period.waits_s(now_s)
        if waits_s is not None:
            self._move(now_s, *waits_s)

    def _short(self, wait_s: float | None) -> bool:
        """Whether nobody waits worth mention."""
        if wait_s is None:
            return False
        return 1000 * wait_s + self.base_ms <= ROOM * self._long_ms

    def _move(self, now_s: float, wait_s: float, longer_s: float) -> None:
        period, window = self._period, self._window
        short_ms = 1000 * wait_s + self.base_ms
        gradient = gradient_of(self.tolerance, self._long_ms, short_ms)
        if gradient > STEEPEST and not period.told(now_s):
            return
        if period.used < window.whole:
            self._long_ms += LONG * (short_ms - self._long_ms)
        aim = aim_of(window.limit, gradient, self.queue)
        if self._short(longer_s):
            window.grow(period.used)
        elif aim < window.limit:
            window.cut(aim / window.limit, now_s)
        else:
            window.approach(aim)
        period.begin(now_s)


def gradient_of(tolerance: float, long_ms: float, short_ms: float) -> float:
    """How much of the limit the waits leave, from `STEEPEST` to 1."""
    return min(1.0, max(STEEPEST, tolerance * long_ms / short_ms))


def aim_of(limit: float, gradient: float, queue: float) -> float:
    """Where one period takes the limit."""
    return (1.0 - SMOOTHING) * limit + SMOOTHING * (limit * gradient + queue)
