"""How full is the emptiest replica of a pool?

A mean or a sum hides the one replica that has room, the largest value hides it too, so
"every replica is full" is asked of each. A pool is read in one of two ways: all
replicas on one page, each with values of its own beside the combined ones, or each
replica on a page of its own.
"""

from collections.abc import Iterator, Mapping

from admitperf.core.series import REPLICA_LABEL
from admitperf.core.signal import Signal
from admitperf.core.signals import KV_PRESSURE, POOL_LOAD, QUEUE_DEPTH, RUNNING
from admitperf.core.snapshot import Snapshot
from admitperf.core.supply import Supply
from admitperf.core.view import View

REPLICAS_MOST = 256
"""Replicas of which a policy remembers anything. Plain choice: more than one host
stands before; at most about 200 KB each, of the policy that learns most of them."""

_MARK = f"{REPLICA_LABEL}="
_EACH_SAYS = (RUNNING, QUEUE_DEPTH, KV_PRESSURE, POOL_LOAD)
"""Where the names of replicas are found: one that says none of what is asked for is a
replica all the same."""


class _Seen:
    """What one reading says of fullness.

    Attributes:
        supplies: of the reading; the same object as long as it is the same reading.
        until_ns: how long it is good, on the policy's clock.
        least: the emptiest of those with values of their own; 0.0 when none has any.
        whole: signals with one value for all, and their bounds.
        full: the emptiest as the reading was taken.
    """

    __slots__ = ("full", "least", "supplies", "until_ns", "whole")

    def __init__(self, view: View, bounds: Mapping[Signal, float]) -> None:
        self.supplies = view.supplies
        self.until_ns = view.good_until_ns
        parted = {s: _each(view.supplies.get(s)) for s in _EACH_SAYS}
        each = dict.fromkeys((name for one in parted.values() for name in one), 0.0)
        for signal, bound in bounds.items():
            for name, value in parted[signal].items():
                each[name] = max(each[name], value / bound)
        self.least = min(each.values(), default=0.0)
        self.whole = tuple(
            (signal, bound)
            for signal, bound in bounds.items()
            if not parted[signal] and _of_all(view.supplies.get(signal), each)
        )
        self.full = self.now(_shown(view))

    def now(self, view: View) -> float:
        """The emptiest, by the view's own values where one of them is for all."""
        values = view.values
        told = (values[s] / bound for s, bound in self.whole if s in values)
        return max(self.least, *told, 0.0)


class Replicas:
    """How full the replicas of a pool are; at 1 a replica is at one of its bounds.

    A replica of several engines is as full as the emptiest of them. One that says
    nothing of what is asked for is not known to be full; one that can no longer be read
    is no replica.

    Args:
        bounds: of `queue_depth` and `pool_load`: the value at which a replica is full,
            above 0, in the signal's unit.
    """

    def __init__(self, bounds: Mapping[Signal, float]) -> None:
        self._bounds = dict(bounds)
        self._seen: dict[str | None, _Seen] = {}

    def observe(self, metrics: Snapshot) -> None:
        """Takes a new reading: of the pool, or of one of its replicas.

        Past `REPLICAS_MOST` all are forgotten and learnt again.
        """
        seen = self._of(metrics)
        if len(self._seen) >= REPLICAS_MOST and metrics.replica not in self._seen:
            self._seen.clear()
        self._seen[metrics.replica] = seen

    def here(self, metrics: Snapshot) -> float:
        """How full the emptiest one is of those that this reading is about.

        With what this host sent since, as far as that is counted.
        """
        return self._of(metrics).now(metrics.view)

    def emptiest(self, metrics: Snapshot) -> float:
        """How full the emptiest of all is, as their readings show it.

        Those that are too old do not count, nor what was sent since: of that it is not
        known whether it waits.
        """
        here = self._of(metrics).now(_shown(metrics.view))
        if metrics.replica is None:
            return here
        return min([here, *self._others(metrics)])

    def _others(self, metrics: Snapshot) -> Iterator[float]:
        for name, seen in self._seen.items():
            if name not in (None, metrics.replica) and seen.until_ns >= metrics.now_ns:
                yield seen.full

    def _of(self, metrics: Snapshot) -> _Seen:
        """Of this reading; it is remembered by `observe` alone."""
        seen = self._seen.get(metrics.replica)
        if seen is not None and seen.supplies is metrics.view.supplies:
            return seen
        return _Seen(metrics.view, self._bounds)


def _shown(view: View) -> View:
    """A view as its reading was, without what this host sent since."""
    return view.base or view


def _of_all(supply: Supply | None, each: Mapping[str, float]) -> bool:
    """Whether one value speaks for all: not a lone series where others have several."""
    return supply is None or not each or supply.source.formula is not None


def _each(supply: Supply | None) -> dict[str, float]:
    """The least value of each replica, by its label; "" where engines have none."""
    least: dict[str, float] = {}
    for part, value in supply.found.parts.items() if supply else ():
        labels = part.split(",")
        name = next((one for one in labels if one.startswith(_MARK)), "")
        least[name] = min(value, least.get(name, value))
    return least
