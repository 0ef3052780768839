"""Conversations whose turns come at instants of their own, made from measures."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random

from admitperf.bench.workloads.arrivals import Swells
from admitperf.bench.workloads.grown import Growth
from admitperf.simulator.streams import stream
from admitperf.simulator.traffic.sessions import Beginning, Session


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversations:
    """A source of requests without end: the turns of conversations, each for itself.

    Attributes:
        name: begins their names; those of one conversation are alike up to a dot.
        rate_per_s: turns, on average.
        starts: when conversations begin.
        lasts_s: over how long a conversation goes at most: what was measured.
        growth: of them; a pause is the time from turn to turn.
    """

    name: str
    rate_per_s: float
    starts: Swells
    lasts_s: float
    growth: Growth

    def stretch(
        self, lasts_s: float, chance: Random
    ) -> Iterator[tuple[int, Beginning]]:
        """Turns of those that begin, and of those that began before."""
        seed = chance.getrandbits(32)
        times_s = self.starts.times_s(self.lasts_s + lasts_s, chance)
        for number, begins_s in enumerate(times_s, 1):
            at_s = begins_s - self.lasts_s
            if at_s < 0 and self._length(number, seed) == 1:
                continue  # most of them: it is over, and costs nothing more
            for due_s, turn in self._turns(number, seed):
                if 0 <= at_s + due_s < lasts_s and due_s < self.lasts_s:
                    yield 0, (at_s + due_s, turn)

    def pool(self, count: int, seed: int) -> tuple[Session, ...]:
        """So many conversations' turns to draw from."""
        return tuple(
            turn
            for number in range(1, count + 1)
            for _, turn in self._turns(number, seed)
        )

    def _length(self, number: int, seed: int) -> int:
        return self.growth.length(self._chance(number, seed))

    def _turns(self, number: int, seed: int) -> Iterator[tuple[float, Session]]:
        chance = self._chance(number, seed)
        return turns(self.growth.session(self.name, number, chance))

    def _chance(self, number: int, seed: int) -> Random:
        return stream(seed, f"{self.name}/{number}")


def turns(session: Session) -> Iterator[tuple[float, Session]]:
    """Its calls each for itself, and when they come after the first."""
    at_s = 0.0
    for place, call in enumerate(session.calls, 1):
        at_s += call.gap_s
        prefix = tuple(
            (chain if isinstance(chain, str) else f"{session.name}/{chain}", tokens)
            for chain, tokens in call.prefix
        )
        alone = replace(call, after=None, gap_s=0.0, prefix=prefix)
        yield at_s, replace(session, name=f"{session.name}.{place}", calls=(alone,))
