"""Requests of many clients, each with a rate, a burstiness and lengths of its own."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from operator import itemgetter
from random import Random
from typing import Literal

from admitperf.bench.workloads.divisor import Fit, divided, fitted
from admitperf.bench.workloads.generated import Sizes
from admitperf.bench.workloads.workload import Noun, Recorded, WorkloadError
from admitperf.core.notes import Note
from admitperf.reports.wording import number, plural
from admitperf.simulator.streams import stream
from admitperf.simulator.traffic.sessions import Beginning, Session, fitting

WINDOW_S = 600.0
"""How long a window of a client's parameters stands."""

LEAST_CV = 0.01
"""Gaps that vary less are even."""

SETTLE = 20
"""Requests a client has sent before the run begins, on average, so that it does not
begin with a request of each. Plain choice."""

SURPLUS = 1.1
TRIES = 60
"""How many requests are drawn over those that are asked for, and how often that is
raised by as much again. Plain choices."""


@dataclass(frozen=True, slots=True)
class Window:
    """How a client asks for `WINDOW_S`.

    Attributes:
        rate_per_s: requests; may be 0.
        cv: coefficient of variation of the gaps between them.
        family: of the gaps: gamma or Weibull.
    """

    rate_per_s: float
    cv: float
    family: Literal["G", "W"]

    def gap(self, chance: Random) -> float:
        """A gap, as a multiple of the mean one."""
        if self.cv < LEAST_CV:
            return 1.0
        if self.family == "G":
            shape = self.cv**-2
            return chance.gammavariate(shape, 1 / shape)
        shape = weibull_shape(self.cv)
        return chance.weibullvariate(1 / math.gamma(1 + 1 / shape), shape)


@cache
def weibull_shape(cv: float) -> float:
    """The shape of the Weibull distribution that has this coefficient of variation."""
    low, high = 0.1, 100.0  # a CV of 430, and one of 0.01
    for _ in range(60):
        shape = math.sqrt(low * high)
        found = math.gamma(1 + 2 / shape) / math.gamma(1 + 1 / shape) ** 2 - 1
        low, high = (shape, high) if found > cv * cv else (low, shape)
    return low


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """One client.

    Attributes:
        name: who; a request's tenant.
        windows: how it asks, one after the other, and round again.
        sizes: its lengths.
    """

    name: str
    windows: Sequence[Window]
    sizes: Sizes

    @property
    def rate_per_s(self) -> float:
        """Over all its windows."""
        return sum(one.rate_per_s for one in self.windows) / len(self.windows)

    def times_s(
        self, first: int, scale: float, lasts_s: float, chance: Random
    ) -> Iterator[float]:
        """Times in order, from 0.

        Args:
            first: the window with which it begins.
            scale: of its rates.
            lasts_s: for how long.
            chance: of the gaps.
        """
        place, begun_s = first, 0.0
        left = -SETTLE * chance.random()  # to the next request, in mean gaps
        while left < 0:
            left += self.windows[place % len(self.windows)].gap(chance)
        while begun_s < lasts_s:
            window = self.windows[place % len(self.windows)]
            rate_per_s, at_s = window.rate_per_s * scale, begun_s
            end_s = begun_s + WINDOW_S
            while rate_per_s and at_s + left / rate_per_s < min(end_s, lasts_s):
                at_s += left / rate_per_s
                yield at_s
                left = window.gap(chance)
            left -= (end_s - at_s) * rate_per_s
            place, begun_s = place + 1, end_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Clients:
    """Requests of many clients: a workload.

    Attributes:
        name: as it was asked for.
        clients: all with as many windows.
        recorded: some of their requests, and what is known of them.
        divisor: of token counts; None = what makes most fit.
        fit: what was done to make them fit.
        fits: the requests of `recorded` that do; None = nobody asked.
    """

    name: str
    clients: Sequence[Client]
    recorded: Recorded
    divisor: int | None = None
    fit: Fit = field(default_factory=Fit)
    fits: Sequence[Session] | None = None

    noun: Noun = field(default="request", init=False)
    synthetic: bool = field(default=False, init=False)

    @property
    def rate_per_s(self) -> float:
        """Of all clients."""
        return sum(one.rate_per_s for one in self.clients)

    def pool(self) -> Sequence[Session]:
        """Some of their requests, as many of each client as is its share."""
        return self.recorded.pool if self.fits is None else self.fits

    def begun(
        self, rate_per_s: float, lasts_s: float, seed: int
    ) -> Sequence[Beginning]:
        """Exactly the rate times the time of them."""
        asked = round(rate_per_s * lasts_s)
        scale = rate_per_s / self.rate_per_s
        for _ in range(TRIES):
            scale *= SURPLUS
            made = list(self._drawn(scale, lasts_s, seed))
            if len(made) >= asked:
                chance = stream(seed, f"{self.name}/surplus")
                kept = sorted(chance.sample(range(len(made)), asked))
                return [made[place] for place in kept]
        raise WorkloadError(f"{self.name}: nothing comes in {number(lasts_s)} s")

    def _drawn(self, scale: float, lasts_s: float, seed: int) -> list[Beginning]:
        windows = len(self.clients[0].windows)
        first = stream(seed, f"{self.name}/window").randrange(windows)
        made = list[Beginning]()
        for client in self.clients:
            chance = stream(seed, f"{self.name}/{client.name}")
            sizes = stream(seed, f"{self.name}/{client.name}/sizes")
            times_s = client.times_s(first, scale, lasts_s, chance)
            for number_of, at_s in enumerate(times_s, 1):
                name = f"{client.name}-{number_of}"
                one = client.sizes.request(name, sizes, client.name)
                made += ((at_s, fits) for fits in self._fitted(one))
        made.sort(key=itemgetter(0))
        return made

    def _fitted(self, session: Session) -> Sequence[Session]:
        made = divided(session, self.fit.divisor)
        if self.fit.longest_tokens is None:
            return (made,)
        return fitting((made,), self.fit.longest_tokens)[0]

    def words(self) -> str:
        """What they are and what was left out."""
        return self.recorded.said + self.fit.words()

    def scaling(self) -> str:
        """By the rates of the clients."""
        return (
            "Load is made by the rate of every client alike, whose gaps stay as uneven"
            f" as they are; measured were {number(self.rate_per_s)} requests a second"
            " together."
        )

    def notes(self) -> dict[str, Note]:
        """What was done to them."""
        return {
            **self.recorded.notes,
            **self.fit.notes(),
            "source_rate_per_s": round(self.rate_per_s, 4),
        }

    def fitting(self, longest_tokens: int | None) -> "Clients":
        """The same with fewer tokens, or fewer requests."""
        made, fit = fitted(self.recorded.pool, longest_tokens, self.divisor)
        return replace(self, fits=made, fit=fit)


POOL = 2_000
"""Requests to draw from. Plain choice."""


def of_clients(
    name: str, clients: Sequence[Client], said: str, notes: dict[str, Note]
) -> Recorded:
    """Some of their requests, as many of each as is its share; at least one.

    Args:
        name: of what it was read from, or will be used as.
        clients: whose.
        said: where their parameters come from.
        notes: what is known of that.
    """
    whole = sum(one.rate_per_s for one in clients)
    pool = tuple(
        client.sizes.request(f"{client.name}-{place}", chance, client.name)
        for client in clients
        for chance in (stream(1, f"{name}/{client.name}/pool"),)
        for place in range(1, 1 + max(1, round(POOL * client.rate_per_s / whole)))
    )
    return Recorded(
        name=name,
        begun=None,
        pool=pool,
        said=f"requests of {plural(len(clients), 'client')}, {said}",
        notes={"clients": len(clients), **notes},
    )
