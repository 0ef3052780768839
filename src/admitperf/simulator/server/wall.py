"""The engine driven by the clock on the wall."""

import asyncio
from collections.abc import Callable
from math import inf
from typing import Protocol

from admitperf.core.clock import Clock
from admitperf.simulator.engine.events import End, FirstToken
from admitperf.simulator.server.paced import PacedEngine
from admitperf.simulator.traffic.arrival import Arrival


class Listener(Protocol):
    """Who hears what becomes of a request."""

    def started(self) -> None:
        """It has its first token."""

    def given(self, tokens: int) -> None:
        """It has given so many tokens by now."""

    def ended(self, end: End) -> None:
        """It has its last token."""

    def refused(self) -> None:
        """The engine's own limit held when it had reached the queue."""

    def died(self) -> None:
        """The engine is gone."""


class Wall:
    """An engine in wall-clock time: it moves when its timer says so, or it is asked.

    Args:
        build: makes an engine that nothing has been asked of.
        clock: to drive it by.

    Attributes:
        engine: the one that lives now.
        born_wall_s: when it began, in seconds since the Unix epoch.
        counted_wall_s: since when its counters count, likewise.
    """

    def __init__(self, build: Callable[[], PacedEngine], clock: Clock) -> None:
        self._build = build
        self._clock = clock
        self._inside: dict[str, Listener] = {}
        self._talking: dict[str, Listener] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._due_s = inf
        self._factor = 1.0
        self._held = False
        self._begin()

    def _begin(self) -> None:
        self.engine = self._build()
        self._zero_ns = self._clock.monotonic_ns()
        self.born_wall_s = self.counted_wall_s = self._clock.wall_ns() / 1e9
        if self._factor != 1.0:
            self.engine.slow(self._factor)

    @property
    def inside(self) -> int:
        """Requests that somebody still listens to."""
        return len(self._inside)

    def submit(self, arrival: Arrival, listener: Listener) -> bool:
        """Gives a request to the engine, now.

        Returns:
            False: one of the engine's own limits refuses it.

        Raises:
            ValueError: it can never fit.
        """
        self.catch_up()
        if not self.engine.submit(arrival):
            return False
        self._inside[arrival.id] = listener
        self._arm()
        return True

    def leave(self, request_id: str) -> None:
        """Nobody wants this one any more; one that is over is nobody's concern."""
        if self._inside.pop(request_id, None) is None:
            return
        self._talking.pop(request_id, None)
        self.catch_up()
        self.engine.cancel(request_id)
        self._arm()

    def catch_up(self) -> None:
        """Brings the engine up to now, and tells everybody what happened."""
        now_s = (self._clock.monotonic_ns() - self._zero_ns) / 1e9
        if self._held:
            self.engine.hold(now_s)
            return
        for event in self.engine.run_to(now_s):
            self._tell(event)
        given = self.engine.given
        for name, listener in self._talking.items():
            listener.given(given(name))

    def _tell(self, event: object) -> None:
        match event:
            case FirstToken(arrival=arrival):
                listener = self._inside.get(arrival.id)
                if listener:
                    self._talking[arrival.id] = listener
                    listener.started()
            case End(arrival=arrival):
                self._talking.pop(arrival.id, None)
                if listener := self._inside.pop(arrival.id, None):
                    listener.ended(event)
            case _:
                name: str = event.arrival.id  # type: ignore[attr-defined]
                if listener := self._inside.pop(name, None):
                    listener.refused()

    def slow(self, factor: float) -> None:
        """Steps take this many times what the model says, from the next on."""
        self.catch_up()
        self._factor = factor
        self.engine.slow(factor)
        self._arm()

    def hold(self, *, held: bool) -> None:
        """Stops the engine in the middle of a step, or lets it go on."""
        self.catch_up()
        self._held = held
        self._arm()

    def forget_counts(self) -> None:
        """Its counters begin at 0 again."""
        self.catch_up()
        self.engine.forget_counts()
        self.counted_wall_s = self._clock.wall_ns() / 1e9

    def restart(self) -> None:
        """Puts a new engine in its place; whoever was inside is told."""
        dead, self._inside, self._talking = self._inside, {}, {}
        self._begin()
        self._arm()
        for listener in dead.values():
            listener.died()

    def stop(self) -> None:
        """No timer is left behind."""
        if self._timer:
            self._timer.cancel()
        self._timer, self._due_s = None, inf

    def _tick(self) -> None:
        self._timer, self._due_s = None, inf
        try:
            self.catch_up()
        finally:  # one request's trouble is not all requests'
            self._arm()

    def _arm(self) -> None:
        due_s = inf if self._held else self.engine.next_s
        if due_s == self._due_s:
            return
        self.stop()
        if due_s == inf:
            return
        self._due_s = due_s
        now_s = (self._clock.monotonic_ns() - self._zero_ns) / 1e9
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(max(0.0, due_s - now_s), self._tick)
