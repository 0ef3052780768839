"""A limit on open requests that finds itself: up by steps, down by a factor."""

from math import inf
from typing import Annotated

from admitperf.core.param import Param
from admitperf.policies.parts.adaptive.found_limit import FoundLimit

DEEPEST = 0.8
"""What a cut leaves at least. Plain choice: between TCP's 0.5, after which a small
engine idles, and Netflix's 0.9, which takes 14 cuts to a quarter; this takes seven."""

ROOM = 0.1
"""Part of the target under which there is room; between the two the limit stays. Plain
choice: one request that waits for a slot is a tenth already, and enough."""

URGENT = 2.0
"""Times the target over which a cut waits for no ends. Plain choice: a wait of twice
what is borne needs no more evidence than `min_samples`."""


class Aimd(FoundLimit):
    """Refuses while as many requests are open as a limit that follows congestion.

    Congestion is a wait before prefill that is longer than the target. The length of
    the whole answer plays no part: it says how much was asked for, not how full it is.
    A cut is by as many as wait too long, by Little's law: the ends a second times the
    seconds over the target.
    """

    name = "aimd"

    target_ms: Annotated[
        float,
        Param(
            "wait before prefill over which the limit is cut, in milliseconds",
            above=0.0,
            high=3.6e6,
            origin="plain choice: a third of a first token within 1.5 s",
        ),
    ] = 500.0
    step: Annotated[
        float,
        Param(
            "open requests by which a growth raises the limit",
            above=0.0,
            high=1e6,
            origin="Netflix's AIMD",
        ),
    ] = 1.0
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
        self._over_s = -inf  # when more than the limit were last open
        self._window.step, self._window.cool_s = self.step, self.cool_s

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
