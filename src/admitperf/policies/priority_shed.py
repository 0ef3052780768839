"""As load rises, the lower priorities are turned away first."""

from bisect import bisect_right
from collections.abc import Mapping
from itertools import pairwise
from math import inf
from typing import Annotated

from admitperf.core.decision import Decision
from admitperf.core.errors import ConfigError
from admitperf.core.outcome import Outcome
from admitperf.core.param import Param
from admitperf.core.policy import Policy
from admitperf.core.signal import Signal
from admitperf.core.signals import KV_PRESSURE, OLDEST_WAIT_S, QUEUE_DEPTH
from admitperf.core.snapshot import Snapshot
from admitperf.policies.parts.stuck import Stuck

LEVELS_MOST = 64
"""Levels that `levels` may name. Plain choice: more than anybody tells apart."""

LATELY_S = 60.0
"""Seconds for which a level that was asked for is one of the traffic's. Plain choice:
longer than who is refused is told to wait, and short enough that a level which is used
no more stops shutting out the others."""

_BOUNDS: dict[str, tuple[Signal, str]] = {
    "max_kv": (KV_PRESSURE, "kv_pressure"),
    "max_waiting": (QUEUE_DEPTH, "queue_depth"),
    "max_wait_s": (OLDEST_WAIT_S, "queue_age"),
}
"""A parameter, the signal it bounds, and the reason of a refusal for it."""


_NEEDS: Mapping[str, tuple[Signal | str, ...]] = {
    name: (signal,) for name, (signal, _) in _BOUNDS.items()
}
"""What each adds to what is read."""


class PriorityShed(Policy):
    """Refuses requests under a cut-off that rises with load and falls slowly.

    Load is the largest of the signals, each as a part of its bound. While it is 1 or
    more the cut-off rises, a level at a time; when it has been under `calm` for
    `fall_s` it comes down by one; in between it stays. The highest level that was asked
    for lately is refused at the hard bound alone, and so is everybody there: nobody is
    turned away for the sake of those who do not come.

    Raises:
        ConfigError: no bound is given, or `levels` are not whole numbers that rise.
    """

    name = "priority_shed"
    signal_quantity = "kv_pressure"
    signal_structure = "dual-gate"
    metadata_assumed = ("priority",)
    refuses_with = (
        "kv_pressure",
        "queue_depth",
        "queue_age",
    )
    requires = (KV_PRESSURE, QUEUE_DEPTH, "priority")
    needs = _NEEDS

    levels: Annotated[
        str,
        Param(
            "priorities that are told apart, rising, with commas between them",
            origin="plain choice: the priority of who names none, and two over it",
        ),
    ] = "0,1,2"
    max_kv: Annotated[
        float | None,
        Param(
            "KV cache in use at which load is 1, as a fraction; None = not used",
            above=0.0,
            high=1.0,
            origin="plain choice: room for what runs to grow before 1.0",
        ),
    ] = 0.90
    max_waiting: Annotated[
        float | None,
        Param(
            "requests waiting, over all engines, at which load is 1; None = not used",
            above=0.0,
            high=1e6,
            origin="llm-d's utilisation detector: a queue of 5",
        ),
    ] = 5.0
    max_wait_s: Annotated[
        float | None,
        Param(
            "seconds of the oldest wait at which load is 1; None = not used",
            above=0.0,
            high=3600.0,
            origin="off: it needs a host that reports first tokens and outcomes",
        ),
    ] = None
    hard: Annotated[
        float,
        Param(
            "load at which the highest level is refused too",
            low=1.0,
            high=1e6,
            origin="plain choice: twice the queue; a KV cache cannot get there",
        ),
    ] = 2.0
    calm: Annotated[
        float,
        Param(
            "load under which the cut-off may come down",
            above=0.0,
            high=1.0,
            origin="plain choice: well under the bound, or it would flap",
        ),
    ] = 0.7
    rise_s: Annotated[
        float,
        Param(
            "seconds, at least, between two rises of the cut-off",
            low=0.0,
            high=3600.0,
            origin="plain choice: four readings of a gateway that looks each 0.25 s",
        ),
    ] = 1.0
    fall_s: Annotated[
        float,
        Param(
            "seconds of calm before the cut-off comes down by a level",
            low=0.0,
            high=3600.0,
            origin="plain choice: slower than it rises, as DAGOR's",
        ),
    ] = 5.0

    def __init__(self, **given: object) -> None:
        super().__init__(**given)
        self._levels = _levels(self.name, self.levels)
        bounds = {name: getattr(self, name) for name in _BOUNDS}
        self._bounds = [
            (*_BOUNDS[name], bound) for name, bound in bounds.items() if bound
        ]
        if not self._bounds:
            raise ConfigError(
                f"policy {self.name}", [f"give at least one of {', '.join(_BOUNDS)}"]
            )
        self.require(*(signal for signal, _, _ in self._bounds), "priority")
        self._stuck = Stuck(self.max_wait_s) if self.max_wait_s else None
        self._cut_off = 0  # a level's place
        self._risen_s = -inf
        self._calm_s: float | None = None  # since when
        self._asked_s = [-inf] * len(self._levels)  # when each was last asked for

    def decide(self, metrics: Snapshot) -> Decision:
        """Ask all gates, so that all are recorded; then refuse whom they hold."""
        load, reason = 0.0, ""
        for signal, why, bound in self._bounds:
            metrics.at_least(signal, bound)
            part = self._part(metrics, signal, bound) or 0.0
            if not reason or part > load:
                load, reason = part, why
        full = metrics.gate("shed_load", load, self.hard)
        cut_off = self._cut_off_at(metrics.now_s)
        under = metrics.gate("priority_level", self._place(metrics), cut_off, "<")
        probes = self._stuck is not None and self._stuck.probe_is_due(metrics)
        if not (full or under) or (probes and reason == "queue_age"):
            return self.admit()
        return self.defer(
            reason, estimate_ms=None if load >= 1.0 else self._falls_ms(metrics)
        )

    def decided(self, metrics: Snapshot, d: Decision) -> None:
        """Note that there is traffic of this level, and when one was let in."""
        if self._stuck is not None:
            self._stuck.decided(metrics, d)
        self._asked_s[self._place(metrics)] = metrics.now_s

    def observe(self, metrics: Snapshot, outcome: Outcome | None) -> None:
        """Move the cut-off, up with load and down with lasting calm."""
        if self._stuck is not None:
            self._stuck.observe(metrics, outcome)
        parts = [self._part(metrics, s, bound) for s, _, bound in self._bounds]
        loads = [part for part in parts if part is not None]
        if len(loads) < len(parts):
            return
        load, now_s = max(loads), metrics.now_s
        if load >= 1.0:
            self._rise(now_s)
        if load >= self.calm:
            self._calm_s = None
        elif self._calm_s is None:
            self._calm_s = now_s
        elif now_s - self._calm_s >= self.fall_s:
            self._cut_off = max(0, self._cut_off - 1)
            self._calm_s = now_s

    def _part(self, metrics: Snapshot, signal: Signal, bound: float) -> float | None:
        """What a signal makes of the load; a wait that is nobody else's makes none."""
        value = metrics.read(signal)
        if value is None:
            return None
        if signal is OLDEST_WAIT_S and self._stuck and self._stuck.overtaken(metrics):
            return 0.0
        return value / bound

    def _rise(self, now_s: float) -> None:
        if now_s - self._risen_s >= self.rise_s and self._cut_off < self._top(now_s):
            self._cut_off += 1
            self._risen_s = now_s

    def _top(self, now_s: float) -> int:
        """The highest level that was asked for lately; the lowest when none was."""
        places = range(len(self._levels) - 1, -1, -1)
        lately = (at for at in places if now_s - self._asked_s[at] <= LATELY_S)
        return next(lately, 0)

    def _cut_off_at(self, now_s: float) -> int:
        """The level's place under which is refused; never over all that come."""
        return min(self._cut_off, self._top(now_s)) if self._cut_off else 0

    def _place(self, metrics: Snapshot) -> int:
        """A request's level: the highest it reaches, or the lowest of all."""
        return max(0, bisect_right(self._levels, metrics.request.priority) - 1)

    def _falls_ms(self, metrics: Snapshot) -> float:
        """Until the cut-off has come down to this request's level, at the soonest."""
        calm_s = 0.0 if self._calm_s is None else metrics.now_s - self._calm_s
        levels = max(1, self._cut_off_at(metrics.now_s) - self._place(metrics))
        return 1000 * max(0.0, levels * self.fall_s - calm_s)


def _levels(policy: str, text: str) -> list[int]:
    try:
        levels = [int(part) for part in text.split(",")]
    except ValueError:
        levels = []
    rising = all(a < b for a, b in pairwise(levels))
    if not (rising and 0 < len(levels) <= LEVELS_MOST):
        told = (
            f"levels = {text[:60]!r} is not 1 to {LEVELS_MOST} whole numbers that rise"
        )
        raise ConfigError(f"policy {policy}", [told])
    return levels
