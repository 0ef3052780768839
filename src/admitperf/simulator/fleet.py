"""Several engines of one kind, and who sends which request where.

Routing is a router's job: what is here is what a plain one does, so that policies can
be tried in front of more than one replica.
"""

from collections import deque
from collections.abc import Iterator
from math import inf
from typing import Literal

from admitperf.core.digest import blake2b
from admitperf.simulator.engine.engine import Engine
from admitperf.simulator.engine.events import Event, Gone
from admitperf.simulator.engine.model import EngineModel
from admitperf.simulator.streams import stream
from admitperf.simulator.traffic.arrival import Arrival

Routing = Literal["least", "turns", "session"]
"""To the one with the fewest requests; in turns; each session always to the same."""


class Fleet:
    """Engines of one kind with nothing to do.

    Args:
        model: each of them.
        replicas: how many.
        routing: who gets a request; one without a session goes to the least busy.
        seed: of the noise; each engine has its own.

    Attributes:
        engines: all of them.
        now_s: seconds since the start.
    """

    def __init__(
        self,
        model: EngineModel,
        replicas: int = 1,
        routing: Routing = "least",
        seed: int = 0,
    ) -> None:
        self.engines = [Engine(model, _seed(seed, place)) for place in range(replicas)]
        self.now_s = 0.0
        self._routing = routing
        self._turn = 0
        self._late: deque[Event] = deque()  # told while an engine caught up

    @property
    def ahead_s(self) -> float:
        """Until when nothing will happen; inf = nothing will."""
        return self.now_s if self._late else min(map(_ahead_s, self.engines))

    def become(self, model: EngineModel) -> None:
        """Has all of them change, now (`Engine.become`).

        Raises:
            ValueError: the model differs in what cannot change.
        """
        for engine in self.engines:
            self._late.extend(engine.run_to(self.now_s))
            engine.become(model)

    def submit(self, arrival: Arrival) -> bool:
        """Sends a request to one of them, now; False = that one refused it.

        Raises:
            ValueError: it can never fit, or one of its id is inside.
        """
        engine = self._route(arrival)
        self._late.extend(engine.run_to(self.now_s))
        return engine.submit(arrival)

    def cancel(self, request_id: str) -> Gone | None:
        """A caller went away; what its request had, None = it is nowhere inside."""
        for engine in self.engines:
            self._late.extend(engine.run_to(self.now_s))
            if gone := engine.cancel(request_id):
                return gone
        return None

    def run_to(self, until_s: float) -> Iterator[Event]:
        """Lets time pass everywhere, and tells what happens in its order."""
        while True:
            while self._late:
                yield self._late.popleft()
            engine = min(self.engines, key=_ahead_s)
            if engine.ahead_s > until_s or engine.ahead_s == inf:
                break
            self.now_s = engine.ahead_s
            yield from engine.run_to(engine.ahead_s)
        if until_s != inf:
            self.now_s = until_s
            for engine in self.engines:
                yield from engine.run_to(until_s)

    def _route(self, arrival: Arrival) -> Engine:
        engines = self.engines
        if len(engines) == 1:
            return engines[0]
        if self._routing == "turns":
            self._turn += 1
            return engines[(self._turn - 1) % len(engines)]
        if self._routing == "session" and arrival.session is not None:
            digest = blake2b(arrival.session.encode(), digest_size=8).digest()
            return engines[int.from_bytes(digest, "big") % len(engines)]
        return min(engines, key=lambda engine: engine.inside)


def _ahead_s(engine: Engine) -> float:
    return engine.ahead_s


def _seed(seed: int, place: int) -> int:
    """The first has the seed of the run; no other has that of another run."""
    if not place:
        return seed
    return stream(seed, f"replica {place}").getrandbits(64)
