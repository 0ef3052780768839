"""Requests at instants of their own: a stretch of a trace, thinned or superposed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import ceil
from operator import itemgetter
from random import Random
from typing import Protocol

from admitperf.bench.workloads.divisor import Fit, divided, fitted
from admitperf.bench.workloads.workload import Noun, Recorded, WorkloadError
from admitperf.core.notes import Note
from admitperf.reports.wording import number
from admitperf.simulator.streams import stream
from admitperf.simulator.traffic.sessions import Beginning, Session, fitting

LEAST_S = 0.001
"""A trace that lasts no longer lasts no time: its rate would be made of rounding."""

MOST_COPIES = 10_000
"""Stretches that are laid over each other at most. Plain choice: far above any use."""


class Source(Protocol):
    """Requests at the rate at which they were recorded, or measured."""

    @property
    def rate_per_s(self) -> float:
        """Requests a second."""
        ...

    def stretch(
        self, lasts_s: float, chance: Random
    ) -> Iterator[tuple[int, Beginning]]:
        """Some of it, from a drawn place, with the number of the round through it."""
        ...


@dataclass(frozen=True, slots=True)
class Trace:
    """A recorded source: a circle that is entered somewhere.

    Attributes:
        begun: in the order of time.
        span_s: once round the circle.
    """

    begun: Sequence[Beginning]
    span_s: float

    @classmethod
    def of(cls, begun: Sequence[Beginning]) -> "Trace":
        """Closes a trace with one mean gap between its last and its first.

        Raises:
            WorkloadError: it lasts no time.
        """
        first_s, last_s = begun[0][0], begun[-1][0]
        if last_s - first_s <= LEAST_S:
            raise WorkloadError("all requests of the trace come at one instant")
        span_s = (last_s - first_s) * len(begun) / (len(begun) - 1)
        return cls([(at_s - first_s, one) for at_s, one in begun], span_s)

    @property
    def rate_per_s(self) -> float:
        """As recorded."""
        return len(self.begun) / self.span_s

    def stretch(
        self, lasts_s: float, chance: Random
    ) -> Iterator[tuple[int, Beginning]]:
        """From a drawn instant on; the end is followed by the beginning."""
        from_s = chance.random() * self.span_s
        for turn in range(ceil((from_s + lasts_s) / self.span_s)):
            shift_s = turn * self.span_s - from_s
            for at_s, session in self.begun:
                if 0 <= at_s + shift_s < lasts_s:
                    yield turn, (at_s + shift_s, session)


@dataclass(frozen=True, slots=True, kw_only=True)
class Requests:
    """Requests that nobody waits for to ask another one; each a session of one call.

    Attributes:
        name: as it was asked for.
        source: of the requests.
        recorded: some of them to draw from, and what is known of them.
        divisor: of token counts; None = what makes most fit.
        fit: what was done to make them fit.
        fits: the requests of `recorded` that do; None = as recorded.
        whole: what is kept or dropped as one: requests whose names are alike up to a
            dot, as the turns of a conversation, so that what they share stays shared.
    """

    name: str
    source: Source
    recorded: Recorded
    divisor: int | None = None
    fit: Fit = field(default_factory=Fit)
    fits: Sequence[Session] | None = None
    whole: bool = False

    noun: Noun = field(default="request", init=False)

    @property
    def synthetic(self) -> bool:
        """Whether nothing of it was measured."""
        return self.recorded.synthetic

    def pool(self) -> Sequence[Session]:
        """Some of its requests."""
        return self.recorded.pool if self.fits is None else self.fits

    def begun(
        self, rate_per_s: float, lasts_s: float, seed: int
    ) -> Sequence[Beginning]:
        """Exactly the rate times the time of them."""
        left, laid = round(rate_per_s * lasts_s), list[Beginning]()
        for copy in range(MOST_COPIES):
            if not left:
                return sorted(laid, key=itemgetter(0))
            layer = list(self._layer(lasts_s, seed, copy))
            if len(layer) > left:
                chance = stream(seed, f"{self.name}/thinning")
                layer = self._thinned(layer, left, chance)
            laid += layer
            left -= len(layer)
        raise WorkloadError(f"{self.name}: nothing comes in {number(lasts_s)} s")

    def _layer(self, lasts_s: float, seed: int, copy: int) -> Iterator[Beginning]:
        chance = stream(seed, f"{self.name}/stretch/{copy}")
        for turn, (at_s, session) in self.source.stretch(lasts_s, chance):
            for fits in self._fitted(session):
                mark = f"~{copy + 1}.{turn + 1}" if copy or turn else ""
                yield at_s, _marked(fits, mark)

    def _fitted(self, session: Session) -> Sequence[Session]:
        made = divided(session, self.fit.divisor)
        if self.fit.longest_tokens is None:
            return (made,)
        return fitting((made,), self.fit.longest_tokens)[0]

    def _thinned(
        self, laid: Sequence[Beginning], asked: int, chance: Random
    ) -> list[Beginning]:
        """So many of them, in their order."""
        kinds = [
            self._kind(session.name, place) for place, (_, session) in enumerate(laid)
        ]
        order = sorted(set(kinds))
        chance.shuffle(order)
        rank = {kind: place for place, kind in enumerate(order)}
        kept = sorted(range(len(laid)), key=lambda place: rank[kinds[place]])[:asked]
        return [laid[place] for place in sorted(kept)]

    def _kind(self, name: str, place: int) -> str:
        if not self.whole:
            return str(place)
        said, _, rest = name.partition(".")
        return said + rest.partition("~")[2]

    def words(self) -> str:
        """What they are and what was left out."""
        return self.recorded.said + self.fit.words()

    def scaling(self) -> str:
        """Thinned or superposed."""
        rate = number(self.source.rate_per_s)
        what = "conversations" if self.whole else "requests"
        return (
            f"Load is made of the {rate} requests a second of the source: stretches of"
            f" it are laid over each other, {what} of the last one are dropped at"
            " random until as many are left as are asked for, each is entered at a"
            " drawn place, and no time within is scaled."
        )

    def notes(self) -> dict[str, Note]:
        """What was done to them."""
        made: dict[str, Note] = {
            **self.recorded.notes,
            **self.fit.notes(),
            "source_rate_per_s": round(self.source.rate_per_s, 4),
        }
        return {**made, "synthetic": True} if self.synthetic else made

    def fitting(self, longest_tokens: int | None) -> "Requests":
        """The same with fewer tokens, or fewer requests."""
        made, fit = fitted(self.recorded.pool, longest_tokens, self.divisor)
        return replace(self, fits=made, fit=fit)


def _marked(session: Session, mark: str) -> Session:
    """A copy that shares nothing with what it was copied from."""
    if not mark:
        return session
    calls = tuple(
        replace(
            call,
            prefix=tuple(
                (f"{chain}{mark}" if isinstance(chain, str) else chain, tokens)
                for chain, tokens in call.prefix
            ),
        )
        for call in session.calls
    )
    return replace(session, name=f"{session.name}{mark}", calls=calls)
