"""What the policy cost: over what was offered, never over what was let in."""

from array import array
from collections import Counter
from dataclasses import dataclass
from typing import Self

from admitperf.reports.decisions import Decisions
from admitperf.reports.outcomes import NO_ROW, Outcomes, Served
from admitperf.reports.quantile import Spread
from admitperf.reports.slo import Slo, unmet


@dataclass(frozen=True, slots=True)
class Share:
    """A number with its denominator; `value` is None when that is 0."""

    n: int
    of: int
    value: float | None

    @classmethod
    def part(cls, n: int, of: int) -> Self:
        """`n` of `of`."""
        return cls(n, of, n / of if of else None)


@dataclass(frozen=True, slots=True)
class Requests:
    """Calls, each of one or more attempts that share a logical id.

    Attributes:
        offered: distinct logical ids, and every attempt that carries none.
        let_in: of those, how many had an attempt that was let in.
        goodput: of those, how many had an attempt that met its SLO; None as for
            attempts.
        without_id: attempts that carry no logical id and stand for a call each.
    """

    offered: int
    let_in: Share
    goodput: Share | None
    without_id: int


@dataclass(frozen=True, slots=True)
class Cost:
    """What was offered, let in, served and good.

    Attributes:
        offered: decisions in the log; each is one attempt.
        let_in: attempts that were let in, or that the host served although the answer
            was no.
        refused_but_served: the latter.
        requests: the same by call; None when no line carries a logical id.
        reported: let-in attempts whose outcome is in the log.
        without_decision: outcomes whose decision is not in the log. They are in no
            number here but this one.
        ok: outcomes whose answer ended properly, of those reported.
        errors: what ended the others.
        ttft_ms: time to first token of the ok ones.
        slo: the bounds; "" when there are none, and then ok alone counts.
        slo_origin: "run header" or "--slo"; "" when there are none.
        goodput: attempts that met their SLO, of offered; None without outcomes.
        attained: the same, of those reported; None without outcomes.
        missed: ok outcomes by the first bound they missed.
        unjudged: ok outcomes that lack the number a bound needs. They count as not met.
        ok_alone: ok outcomes of a class without bounds, judged by ok alone.
        by_e2e: ok outcomes that were not streamed, so that e2e_ms stands for ttft_ms.
    """

    offered: int
    let_in: Share
    refused_but_served: int
    requests: Requests | None
    reported: Share
    without_decision: int
    ok: Share
    errors: dict[str, int]
    ttft_ms: Spread
    slo: str
    slo_origin: str
    goodput: Share | None
    attained: Share | None
    missed: dict[str, int]
    unjudged: dict[str, int]
    ok_alone: int
    by_e2e: int

    @property
    def at_least(self) -> bool:
        """Whether goodput could be higher than what the log can show."""
        return self.reported.n < self.reported.of or bool(self.unjudged)


class _Count:
    """One pass over the outcomes."""

    def __init__(self, decisions: Decisions, slo: Slo) -> None:
        self.decisions, self.slo = decisions, slo
        self.without_decision = self.reported = self.ok = 0
        self.refused_but_served = self.ok_alone = self.by_e2e = 0
        self.ttft_ms = array("d")
        self.missed: Counter[str] = Counter()
        self.unjudged: Counter[str] = Counter()
        self.good = array("q")
        self.served = array("q")

    def take(self, served: Served) -> None:
        if served.row == NO_ROW:
            self.without_decision += 1
            return
        self.reported += 1
        if not self.decisions.admitted(served.row):
            self.refused_but_served += 1
            self.served.append(served.row)
        if served.ok:
            self._ok(served)

    def _ok(self, served: Served) -> None:
        self.ok += 1
        self.ttft_ms.append(served.ttft_ms)
        kind = self.decisions.kinds[self.decisions.kind[served.row]]
        bounds = self.slo.bounds(kind.slo_class)
        self.ok_alone += not bounds
        self.by_e2e += "ttft_ms" in bounds and kind.stream is False
        why = unmet(bounds, kind, served)
        if why is None:
            self.good.append(served.row)
        elif why.startswith("no "):
            self.unjudged[why] += 1
        else:
            self.missed[why] += 1


def cost(decisions: Decisions, outcomes: Outcomes, slo: Slo) -> Cost:
    """The cost of one run, with goodput judged by `slo`."""
    count = _Count(decisions, slo)
    for served in outcomes:
        count.take(served)
    let_in = [row for row in range(decisions.n) if decisions.admitted(row)]
    let_in.extend(count.served)
    judged = bool(outcomes.n)
    return Cost(
        offered=decisions.n,
        let_in=Share.part(len(let_in), decisions.n),
        refused_but_served=count.refused_but_served,
        requests=_requests(decisions, let_in, count.good, judged=judged),
        reported=Share.part(count.reported, len(let_in)),
        without_decision=count.without_decision,
        ok=Share.part(count.ok, count.reported),
        errors=dict(outcomes.errors.most_common()),
        ttft_ms=Spread.of(count.ttft_ms),
        slo=slo.text,
        slo_origin=slo.origin,
        goodput=Share.part(len(count.good), decisions.n) if judged else None,
        attained=Share.part(len(count.good), count.reported) if judged else None,
        missed=dict(count.missed),
        unjudged=dict(count.unjudged),
        ok_alone=count.ok_alone,
        by_e2e=count.by_e2e,
    )


def _requests(
    decisions: Decisions, let_in: list[int], good: "array[int]", *, judged: bool
) -> Requests | None:
    logical = decisions.logical
    without = sum(not one for one in logical)
    if without == decisions.n:
        return None
    offered = _calls(decisions, range(decisions.n))
    met = Share.part(_calls(decisions, good), offered) if judged else None
    entered = Share.part(_calls(decisions, let_in), offered)
    return Requests(offered, entered, met, without)


def _calls(decisions: Decisions, rows: "range | list[int] | array[int]") -> int:
    """Distinct calls among some rows; a row without a logical id is its own."""
    named = {decisions.logical[row] for row in rows}
    alone = sum(not decisions.logical[row] for row in rows)
    return len(named - {0}) + alone
