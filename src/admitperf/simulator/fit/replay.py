"""A recorded run sent through the simulated engine: same requests, same looks at it.

What was given is what each request will be given. In a closed loop a client asks as
soon as it has its answer; a session's next turn comes as long after the last one's end
as it did.
"""

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from admitperf.simulator.engine.engine import Engine, Gauges
from admitperf.simulator.engine.events import End
from admitperf.simulator.engine.model import EngineModel
from admitperf.simulator.fit.recorded import Asked, Recorded, Sight
from admitperf.simulator.traffic.arrival import Arrival


@dataclass(frozen=True, slots=True)
class Played:
    """What became of a run.

    Attributes:
        ends: of its requests, in the order of time.
        sights: what its scrapes would have shown.
        refused: requests the engine's own limits turned away, or that never fit.
    """

    ends: tuple[End, ...]
    sights: tuple[Sight, ...]
    refused: int


def engine_of(model: EngineModel, run: Recorded) -> EngineModel:
    """The costs of a model in the engine that a run says it was recorded on."""
    sizes: dict[str, object] = dict(run.engine)
    return replace(model, **sizes)  # type: ignore[arg-type]


def replay(run: Recorded, model: EngineModel, seed: int) -> Played:
    """Sends a run through the engine.

    Args:
        run: what was recorded.
        model: the engine.
        seed: of its noise.
    """
    return _Replay(run, model, seed).played()


class _Replay:
    def __init__(self, run: Recorded, model: EngineModel, seed: int) -> None:
        self._engine = Engine(model, seed)
        self._run = run
        self._due: list[tuple[float, int]] = []
        self._next: dict[int, int] = {}  # by place: the request that an end sets off
        self._place = {one.id: place for place, one in enumerate(run.asked)}
        self._ends: list[End] = []
        self._refused = 0
        self._plan()

    def _plan(self) -> None:
        """What comes at its time, and what comes when something else has ended."""
        clients, asked = self._run.clients, self._run.asked
        for place, one in enumerate(asked):
            if one.after in self._place:
                self._next[self._place[one.after]] = place
            elif clients is None or place < clients:
                heapq.heappush(self._due, (one.sent_s, place))
        self._waiting = [
            place
            for place in range(len(asked) if clients is not None else 0)
            if place >= (clients or 0) and asked[place].after not in self._place
        ]
        self._waiting.reverse()

    def played(self) -> Played:
        sights = []
        for sight in self._run.sights:
            self._go_to(sight.at_s)
            sights.append(self._look(sight.at_s))
        self._go_to(math.inf)
        return Played(tuple(self._ends), tuple(sights), self._refused)

    def _go_to(self, until_s: float) -> None:
        while True:
            due_s = self._due[0][0] if self._due else math.inf
            at_s = min(due_s, self._engine.next_s)
            if at_s > until_s or at_s == math.inf:
                break
            self._pass(at_s)
            if due_s <= at_s:
                self._send(heapq.heappop(self._due)[1])
        if until_s != math.inf:
            self._pass(until_s)

    def _pass(self, until_s: float) -> None:
        for event in tuple(self._engine.run_to(until_s)):
            if isinstance(event, End):
                self._ends.append(event)
                self._ended(self._place[event.arrival.id], event.at_s)

    def _ended(self, place: int, at_s: float) -> None:
        """What an end sets off: a session's next turn, or a free client's next."""
        if (follower := self._next.get(place)) is not None:
            think_s = self._run.asked[follower].think_s
            heapq.heappush(self._due, (at_s + think_s, follower))
        elif self._waiting:
            heapq.heappush(self._due, (at_s, self._waiting.pop()))

    def _send(self, place: int) -> None:
        one = self._run.asked[place]
        try:
            taken = self._engine.submit(_arrival(one, self._engine.now_s))
        except ValueError:
            taken = False
        if not taken:
            self._refused += 1
            self._ended(place, self._engine.now_s)

    def _look(self, at_s: float) -> Sight:
        engine = self._engine
        shown = engine.gauges if self._run.shows_steps else _seated(engine)
        return Sight(
            at_s=at_s,
            running=float(shown.running),
            waiting=float(shown.waiting),
            kv_fraction=shown.kv_fraction,
            preemptions=float(engine.tally.preempted),
        )


def _seated(engine: Engine) -> Gauges:
    """For an engine whose page waits for the step under way, which is llama.cpp's way.

    By then who has come has a slot, if one is free.
    """
    seated = min(engine.waiting, engine.model.max_num_seqs - engine.running)
    return Gauges(engine.running + seated, engine.waiting - seated, engine.kv_fraction)


def _arrival(one: Asked, at_s: float) -> Arrival:
    return Arrival(
        id=one.id,
        at_s=at_s,
        input_tokens=one.input_tokens,
        max_output_tokens=one.max_output_tokens,
        output_tokens=one.output_tokens,
        prefix=one.prefix,
        session=one.session,
        priority=one.priority,
    )


def drained_per_s(asked: Sequence[Asked], model: EngineModel) -> float:
    """Requests a second the engine ends when all of a run's are there at once.

    It is what a load is measured by when nobody has measured a capacity. What shares a
    prefix is taken as it is; the noise is left out.
    """
    engine = Engine(replace(model, noise=0.0))
    for one in asked:
        engine.submit(_arrival(one, 0.0))
    last_s = 0.0
    for event in engine.run_to(math.inf):
        last_s = event.at_s
    return len(asked) / last_s if last_s else math.inf
