"""A limit on open requests that shrinks as waits lengthen: Gradient2 on queueing."""

from typing import Annotated

from admitperf.core.param import Param
from admitperf.policies.parts.adaptive.found_limit import FoundLimit

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


class Gradient(FoundLimit):
    """Refuses while as many requests are open as a limit that follows the waits.

    Netflix's Gradient2, fed with the wait before prefill instead of the time of the
    whole call. With both averages of that wait raised by a base, the limit goes towards
    limit * tolerance * long / short + queue; where nobody waits it grows by steps.
    """

    name = "gradient"

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

    def __init__(self, **given: object) -> None:
        super().__init__(**given)
        self._long_ms = self.base_ms

    def _counts(self, _: float, in_flight: float, wait_s: float | None) -> bool:
        """Who waits while more are open was let in under the limit before."""
        return in_flight <= self._window.whole or self._short(wait_s)

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
