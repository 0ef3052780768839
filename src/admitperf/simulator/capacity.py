"""What an engine can carry, measured in virtual time with nothing before it.

Its own limits on the queue are lifted meanwhile: they say what it refuses.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf

from admitperf.simulator.engine.engine import Engine
from admitperf.simulator.engine.events import End, Refused
from admitperf.simulator.engine.model import EngineModel
from admitperf.simulator.traffic.arrival import Arrival
from admitperf.simulator.traffic.sessions import Session, Standing
from admitperf.simulator.traffic.traffic import (
    BUSY,
    Answer,
    ClosedLoop,
    Coming,
    Traffic,
    answer_to,
)

CLIENTS = 2
"""Clients of the closed loop, in slots of the engine: half of them always wait."""

ANSWERS_LEAST = 2_000
ANSWERS_A_CLIENT = 4
"""Answers a closed loop is measured over: the greater of the two. Plain choices."""

SETTLE_S, MEASURE_S = 600.0, 1_200.0
SETTLE_ANSWERS = MEASURE_ANSWERS = 4_000
"""Seconds agents are left alone, and then counted, or as many answers if those come
sooner. Plain choices."""

AGENTS_FIRST = 4
AGENTS_MOST = 1 << 14
GAIN = 1.05
"""Agents are doubled as long as that brings so many times the answers. As above."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """What one engine can carry.

    Attributes:
        requests_per_s: requests that end a second while there is always one waiting.
        clients: who asked meanwhile.
        answers: how many ended while that was counted.
        calls: of a session, on average; 1 where there are no sessions.
    """

    requests_per_s: float
    clients: int
    answers: int
    calls: float = 1.0

    @property
    def sessions_per_s(self) -> float:
        """The same in sessions; in requests where there are none."""
        return self.requests_per_s / self.calls


def of_requests(model: EngineModel, asked: Iterator[Arrival]) -> Capacity:
    """The capacity for requests, by clients who ask again when they have an answer.

    Args:
        model: the engine.
        asked: what they ask, without end; its times do not count.
    """
    clients = CLIENTS * model.max_num_seqs
    counted = max(ANSWERS_LEAST, ANSWERS_A_CLIENT * clients)
    count = counted + 3 * clients  # two rounds to settle, one that dies away
    traffic = ClosedLoop(asked, clients, count)
    ended = list(answered(traffic, _unlimited(model), told=_served))
    at_s = [end.at_s for end in ended[2 * clients : len(ended) - clients]]
    span_s = at_s[-1] - at_s[0]
    return Capacity((len(at_s) - 1) / span_s, clients, len(at_s))


def of_sessions(model: EngineModel, sessions: Sequence[Session], seed: int) -> Capacity:
    """The capacity for agents: the most calls a second, however many agents ask.

    With few the engine has pauses; with very many they drive each other's prefixes out
    of the cache, and it computes them again.

    Args:
        model: the engine.
        sessions: what the agents do, at least one.
        seed: of the draw.
    """
    mean = sum(len(session.calls) for session in sessions) / len(sessions)
    best, agents = Capacity(0.0, 0, 0, mean), AGENTS_FIRST
    while agents <= AGENTS_MOST:
        per_s, answers = with_agents(model, sessions, agents, seed)
        if per_s < best.requests_per_s * GAIN:
            break
        best = Capacity(per_s, agents, answers, mean)
        agents *= 2
    return best


def with_agents(
    model: EngineModel, sessions: Sequence[Session], agents: int, seed: int
) -> tuple[float, int]:
    """What so many agents get without end.

    Args:
        model: the engine.
        sessions: what they do, at least one.
        agents: how many, each with one session at a time.
        seed: of the draw.

    Returns:
        Answers a second, and how many were counted.
    """
    until_s = SETTLE_S + MEASURE_S
    traffic = Standing(sessions, agents, until_s, seed)
    found = answered(traffic, _unlimited(model), until_s, _served)
    ended = (end.at_s for end in found)
    begin_s, _ = _passed(ended, 0.0, SETTLE_S, SETTLE_ANSWERS)
    end_s, answers = _passed(ended, begin_s, MEASURE_S, MEASURE_ANSWERS)
    return (answers / (end_s - begin_s) if answers else 0.0), answers


def _passed(
    ended_s: Iterator[float], begin_s: float, lasts_s: float, most: int
) -> tuple[float, int]:
    """Goes on for so long or so many; when that was over, and how many there were."""
    until_s, count = begin_s + lasts_s, 0
    for at_s in ended_s:
        if at_s > until_s:
            break
        count += 1
        if count == most:
            return at_s, count
    return until_s, count


def _unlimited(model: EngineModel) -> EngineModel:
    return replace(model, max_num_queued_reqs=None, max_num_queued_tokens=None)


def _served(_end: End) -> Answer:
    """Who measures a capacity looks at no times, and there are very many of them."""
    return _SERVED


_SERVED = Answer(ok=True)


def answered(
    traffic: Traffic,
    model: EngineModel,
    until_s: float = inf,
    told: Callable[[End], Answer] = answer_to,
) -> Iterator[End]:
    """What traffic gets from an engine with nothing before it, in the order of time.

    What the engine's own limits refuse is told to the traffic.

    Args:
        traffic: who asks.
        model: the engine.
        until_s: nothing happens later.
        told: what the traffic is told of an end.

    Raises:
        ValueError: a request can never fit into the engine.
    """
    engine, coming = Engine(model), Coming(traffic.first())
    while True:
        at_s = min(coming.next_s, engine.ahead_s)
        if at_s > until_s or at_s == inf:
            return
        for event in engine.run_to(at_s):
            if isinstance(event, End):
                coming.add(traffic.after(event.arrival, event.at_s, told(event)))
                yield event
            elif isinstance(event, Refused):
                coming.add(traffic.after(event.arrival, event.at_s, BUSY))
        while coming.next_s <= at_s:
            _submit(engine, coming.take(), coming, traffic)


def _submit(engine: Engine, arrival: Arrival, coming: Coming, traffic: Traffic) -> None:
    if not engine.submit(arrival):
        coming.add(traffic.after(arrival, engine.now_s, BUSY))
