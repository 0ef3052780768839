"""Sessions that begin at Poisson times, drawn from a pool."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from admitperf.bench.workloads.divisor import Fit, fitted
from admitperf.bench.workloads.workload import Noun, Recorded
from admitperf.core.notes import Note
from admitperf.reports.wording import number
from admitperf.simulator.traffic.sessions import (
    Beginning,
    Session,
    beginnings,
    drawn,
    longest_s,
    under_way,
)
from admitperf.simulator.traffic.workload import Phase, poisson

SCALING = (
    "Load is made by how often sessions begin, at Poisson times, each drawn once before"
    " any is drawn again; no pause within a session is scaled."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pooled:
    """Sessions to draw from, whose beginnings depend on nothing.

    Attributes:
        name: as it was asked for.
        recorded: the sessions and what is known of them.
        divisor: of token counts; None = what makes most calls fit.
        at_once: sessions that begin side by side, those of one tenant.
        fit: what was done to make them fit.
        fits: the sessions that do; None = as recorded.
    """

    name: str
    recorded: Recorded
    divisor: int | None = None
    at_once: int = 1
    fit: Fit = field(default_factory=Fit)
    fits: Sequence[Session] | None = None

    noun: Noun = field(default="session", init=False)

    @property
    def synthetic(self) -> bool:
        """Whether nothing of it was measured."""
        return self.recorded.synthetic

    def pool(self) -> Sequence[Session]:
        """All of them."""
        return self.recorded.pool if self.fits is None else self.fits

    def begun(
        self, rate_per_s: float, lasts_s: float, seed: int
    ) -> Sequence[Beginning]:
        """Sessions over this time, and those that are under way at its start."""
        pool = self.pool()
        if self.at_once == 1:
            return beginnings(pool, rate_per_s, lasts_s, seed)
        before_s = longest_s(pool)
        starts = Phase(lasts_s=before_s + lasts_s, rate_per_s=rate_per_s / self.at_once)
        times_s = (at_s - before_s for at_s in poisson([starts], seed, "starts"))
        return list(_side_by_side(times_s, drawn(pool, seed), self.at_once))

    def words(self) -> str:
        """What they are, how many begin at once, and what was left out."""
        said = self.recorded.said + self.fit.words()
        if self.at_once > 1:
            said += f"; {number(self.at_once)} of one tenant begin side by side"
        return said

    def scaling(self) -> str:
        """By how often they begin."""
        return SCALING

    def notes(self) -> dict[str, Note]:
        """What was done to them."""
        made: dict[str, Note] = {**self.recorded.notes, **self.fit.notes()}
        if self.at_once > 1:
            made["sessions_at_once"] = self.at_once
        if self.synthetic:
            made["synthetic"] = True
        return made

    def fitting(self, longest_tokens: int | None) -> "Pooled":
        """The same with fewer tokens, or fewer calls."""
        made, fit = fitted(self.recorded.pool, longest_tokens, self.divisor)
        return replace(self, fits=made, fit=fit)


def _side_by_side(
    times_s: Iterator[float], sessions: Iterator[Session], at_once: int
) -> Iterator[Beginning]:
    """So many sessions of one tenant at each time; what is left of those before 0."""
    for place, at_s in enumerate(times_s, 1):
        for session in islice(sessions, at_once):
            one = replace(session, tenant=f"tenant-{place}")
            if at_s >= 0:
                yield at_s, one
            elif left := under_way(one, -at_s):
                yield 0.0, replace(left, begun_before=True)
