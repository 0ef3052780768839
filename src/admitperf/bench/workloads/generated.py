"""Requests that are made from what was measured of some."""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Protocol

from admitperf.bench.workloads.tables import Table, drawn
from admitperf.simulator.streams import stream
from admitperf.simulator.traffic.sessions import Beginning, Call, Session


class Arrivals(Protocol):
    """When requests come."""

    @property
    def rate_per_s(self) -> float:
        """Of them, on average."""
        ...

    def times_s(self, lasts_s: float, chance: Random) -> Iterator[float]:
        """Times in order, from 0."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Lengths in tokens; prompt and answer are drawn each for itself.

    Attributes:
        input_tokens, output_tokens: prompts and answers.
        max_output_tokens: the bound callers set.
    """

    input_tokens: Table
    output_tokens: Table
    max_output_tokens: int

    def request(self, name: str, chance: Random, tenant: str | None = None) -> Session:
        """One request, as a session of one call."""
        call = Call(
            after=None,
            gap_s=0.0,
            input_tokens=max(1, round(drawn(self.input_tokens, chance))),
            output_tokens=max(1, round(drawn(self.output_tokens, chance))),
        )
        return Session(name, (call,), self.max_output_tokens, tenant)


@dataclass(frozen=True, slots=True, kw_only=True)
class Generated:
    """A source of requests without end.

    Attributes:
        name: begins their names.
        arrivals: when they come.
        sizes: how long they are.
    """

    name: str
    arrivals: Arrivals
    sizes: Sizes

    @property
    def rate_per_s(self) -> float:
        """As measured."""
        return self.arrivals.rate_per_s

    def stretch(
        self, lasts_s: float, chance: Random
    ) -> Iterator[tuple[int, Beginning]]:
        """Some of it; there is no round to go through twice."""
        sizes = stream(chance.getrandbits(32), f"{self.name}/sizes")
        for number, at_s in enumerate(self.arrivals.times_s(lasts_s, chance), 1):
            yield 0, (at_s, self.sizes.request(f"{self.name}-{number}", sizes))

    def pool(self, count: int, seed: int) -> tuple[Session, ...]:
        """So many requests to draw from."""
        chance = stream(seed, f"{self.name}/pool")
        return tuple(
            self.sizes.request(f"{self.name}-{number}", chance)
            for number in range(1, count + 1)
        )
