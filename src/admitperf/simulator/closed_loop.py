"""A closed loop: so many clients, each asking again as soon as it has its answer.

It keeps an engine busy with a queue that neither empties nor grows, which is how its
capacity is measured.
"""

from collections.abc import Iterator, Sequence

from admitperf.simulator.arrival import Arrival
from admitperf.simulator.engine import End, Engine
from admitperf.simulator.model import EngineModel


def closed_loop(
    model: EngineModel,
    standing: Sequence[Arrival],
    asked: Iterator[Arrival],
    clients: int,
    span_s: tuple[float, float],
) -> list[End]:
    """The ends of what the clients asked, in the order of time.

    Args:
        model: the engine.
        standing: what was sent to it before, in the order of time.
        asked: what the clients ask, one after the other; their times do not count.
        clients: how many there are.
        span_s: when they begin and when they stop, in seconds from the start.

    Raises:
        ValueError: a request can never fit into the engine.
    """
    engine, own, ends = Engine(model), set[str](), list[End]()

    def ask() -> None:
        arrival = next(asked)
        own.add(arrival.id)
        engine.submit(arrival)

    def wait(until_s: float) -> None:
        for event in engine.run_to(until_s):
            if isinstance(event, End) and event.arrival.id in own:
                ends.append(event)
                ask()

    begin_s, until_s = span_s
    for arrival in standing:
        wait(arrival.at_s)
        engine.submit(arrival)
    wait(begin_s)
    for _ in range(clients):
        ask()
    wait(until_s)
    return ends
