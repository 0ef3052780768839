"""A closed loop: so many clients, each asking again as soon as it has its answer.

It keeps an engine busy with a queue that neither empties nor grows, which is how its
capacity is measured.
"""

from collections.abc import Iterator, Sequence

from admitperf.simulator.engine.engine import Engine
from admitperf.simulator.engine.events import End, Refused
from admitperf.simulator.traffic.arrival import Arrival


def closed_loop(
    engine: Engine,
    standing: Sequence[Arrival],
    asked: Iterator[Arrival],
    clients: int,
    span_s: tuple[float, float],
) -> list[End]:
    """The ends of what the clients asked, in the order of time.

    Args:
        engine: with nothing to do.
        standing: what was sent to it before, in the order of time.
        asked: what the clients ask, one after the other; their times do not count.
        clients: how many there are.
        span_s: when they begin and when they stop, in seconds from the start.

    Raises:
        ValueError: a request can never fit into the engine, or a limit of the engine's
            own refuses one.
    """
    loop = _Clients(engine, asked)
    begin_s, until_s = span_s
    for arrival in standing:
        loop.wait(arrival.at_s)
        engine.submit(arrival)
    loop.wait(begin_s)
    for _ in range(clients):
        loop.ask()
    loop.wait(until_s)
    return loop.ends


class _Clients:
    """Who asks, and what came back."""

    def __init__(self, engine: Engine, asked: Iterator[Arrival]) -> None:
        self.ends: list[End] = []
        self._engine = engine
        self._asked = asked
        self._own: set[str] = set()

    def ask(self) -> None:
        arrival = next(self._asked)
        self._own.add(arrival.id)
        if not self._engine.submit(arrival):
            raise _refused(arrival)

    def wait(self, until_s: float) -> None:
        for event in self._engine.run_to(until_s):
            if isinstance(event, Refused):
                raise _refused(event.arrival)
            if isinstance(event, End) and event.arrival.id in self._own:
                self.ends.append(event)
                self.ask()


def _refused(arrival: Arrival) -> ValueError:
    return ValueError(f"the engine refused {arrival.id}: it has fewer places")
