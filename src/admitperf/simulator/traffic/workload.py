"""Traffic: which requests arrive when, drawn once and the same for every policy."""

import heapq
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from operator import attrgetter

from admitperf.core.digest import blake2b
from admitperf.simulator.streams import stream
from admitperf.simulator.traffic.arrival import Arrival, Prefix

_FIRST = 9
"""Attributes an `Arrival` had when its hash was first stated in a log."""

_DEFAULTS = tuple(field.default for field in fields(Arrival)[_FIRST:])
_NAMES = tuple(field.name for field in fields(Arrival))
_EARLY, _LATER = attrgetter(*_NAMES[:_FIRST]), attrgetter(*_NAMES[_FIRST:])


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """Requests of one kind. Sizes are drawn evenly between two bounds, included.

    Attributes:
        name: begins the ids of its requests.
        input_tokens: prompt, from and to.
        output_tokens: answer, from and to.
        max_output_tokens: the bound its callers set.
        prefix_tokens: of each prompt, how much it shares with all others of its kind.
    """

    name: str
    input_tokens: tuple[int, int]
    output_tokens: tuple[int, int]
    max_output_tokens: int
    prefix_tokens: int = 0

    def at(self, times_s: Iterable[float], seed: int) -> Iterator[Arrival]:
        """Requests of this kind at these times."""
        sizes = stream(seed, f"{self.name}/sizes")
        for number, at_s in enumerate(times_s, 1):
            name = f"{self.name}-{number}"
            yield Arrival(
                id=name,
                at_s=at_s,
                input_tokens=sizes.randint(*self.input_tokens),
                max_output_tokens=self.max_output_tokens,
                output_tokens=sizes.randint(*self.output_tokens),
                prefix=self._prefix(name),
            )

    def _prefix(self, name: str) -> Prefix:
        if not self.prefix_tokens:
            return ()
        return (self.name, self.prefix_tokens), (name, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """A while of arrivals at one rate.

    Attributes:
        lasts_s: how long.
        rate_per_s: requests a second.
    """

    lasts_s: float
    rate_per_s: float


def poisson(phases: Iterable[Phase], seed: int, name: str) -> Iterator[float]:
    """Times of Poisson arrivals in seconds, one phase after the other.

    Their number is the rate times the time, so that every seed offers the same load;
    given its number, a Poisson process is so many times drawn evenly.
    """
    chance = stream(seed, f"{name}/arrivals")
    start_s = 0.0
    for phase in phases:
        count = round(phase.lasts_s * phase.rate_per_s)
        drawn = sorted(chance.random() for _ in range(count))
        yield from (start_s + one * phase.lasts_s for one in drawn)
        start_s += phase.lasts_s


def together(*streams: Iterable[Arrival]) -> tuple[Arrival, ...]:
    """Several streams of requests, each in the order of time, as one."""
    return tuple(heapq.merge(*streams, key=attrgetter("at_s")))


def plan_hash(arrivals: Iterable[Arrival]) -> str:
    """What two runs share that met the same traffic."""
    digest, between = blake2b(digest_size=8), "["
    for arrival in arrivals:  # one at a time: the text of all would be large
        digest.update(f"{between}{json.dumps(_values(arrival))}".encode())
        between = ", "
    digest.update(b"]" if between == ", " else b"[]")
    return digest.hexdigest()


def _values(arrival: Arrival) -> list[object]:
    """All that is said of a request; what came later only where it is said.

    So plans keep the hash that logs of earlier versions state.
    """
    early, later = _EARLY(arrival), _LATER(arrival)
    if later == _DEFAULTS:
        return [*early]
    said = zip(_NAMES[_FIRST:], later, _DEFAULTS, strict=True)
    return [*early, {name: value for name, value, usual in said if value != usual}]
