"""Faults in time: which of them hold now, and what begins and ends when."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf
from random import Random
from typing import Any

from admitperf.simulator.server.faults import MOST_FAULTS, ONCE, Fault
from admitperf.simulator.server.slowness import extremes


@dataclass(slots=True, eq=False)
class _Entry:
    """A fault that was told.

    Attributes:
        fault: as told.
        begin_s, end_s: when it holds, by the loop's clock.
        active: whether it holds.
        timers: that will begin or end it.
    """

    fault: Fault
    begin_s: float
    end_s: float
    active: bool = False
    timers: list[asyncio.TimerHandle] = field(default_factory=list)


def _entry(fault: Fault) -> _Entry:
    begin_s = asyncio.get_running_loop().time() + fault.at_s
    return _Entry(fault, begin_s, begin_s + fault.for_s)


class Trouble:
    """All faults of a server.

    Args:
        chance: decides which requests a share of them meets.
        changed: called when what holds has changed.
        once: called with a fault that happens at one moment.
    """

    def __init__(
        self,
        chance: Random,
        changed: Callable[[], None],
        once: Callable[[Fault], None],
    ) -> None:
        self._chance = chance
        self._changed = changed
        self._once = once
        self._entries: list[_Entry] = []
        self._active: dict[str, list[Fault]] = {}

    def extremes(self, more: Sequence[Fault]) -> tuple[float, float]:
        """The least and the greatest product of slow factors that hold at once.

        Args:
            more: faults that would be told now, beside those that were.
        """
        entries = [*self._entries, *map(_entry, more)]
        slow = [entry for entry in entries if entry.fault.kind == "slow"]
        return extremes(
            (entry.fault.number("factor"), entry.begin_s, entry.end_s) for entry in slow
        )

    def room(self, more: int) -> bool:
        """Whether so many more can be told."""
        return len(self._entries) + more <= MOST_FAULTS

    def tell(self, faults: Sequence[Fault]) -> None:
        """Takes faults in; their times count from now."""
        loop = asyncio.get_running_loop()
        for entry in map(_entry, faults):
            fault = entry.fault
            self._entries.append(entry)
            if fault.at_s:
                entry.timers.append(loop.call_later(fault.at_s, self._begin, entry))
            else:
                self._begin(entry)

    def clear(self) -> None:
        """Ends all of them, and forgets those that were to come."""
        for entry in self._entries:
            for timer in entry.timers:
                timer.cancel()
        self._entries.clear()
        self._update()

    def document(self) -> dict[str, Any]:
        """All that hold or are to come; those that are over are forgotten."""
        states = ("pending", "active")
        told = [
            {**e.fault.document(), "state": states[e.active]} for e in self._entries
        ]
        return {"faults": told}

    def active(self, kind: str) -> Sequence[Fault]:
        """Those of a kind that hold now."""
        return self._active.get(kind, ())

    def struck(self, kind: str) -> Fault | None:
        """One of a kind that meets this request; None = none does."""
        for fault in self.active(kind):
            if self._chance.random() < fault.number("share"):
                return fault
        return None

    def _begin(self, entry: _Entry) -> None:
        fault = entry.fault
        if fault.kind in ONCE:
            self._entries.remove(entry)
            self._once(fault)
            return
        entry.active = True
        if fault.for_s != inf:
            loop = asyncio.get_running_loop()
            entry.timers.append(loop.call_later(fault.for_s, self._end, entry))
        self._update()

    def _end(self, entry: _Entry) -> None:
        self._entries.remove(entry)
        self._update()

    def _update(self) -> None:
        self._active = {}
        for entry in self._entries:
            if entry.active:
                self._active.setdefault(entry.fault.kind, []).append(entry.fault)
        self._changed()
