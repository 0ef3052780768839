"""What the policy cost: over what was offered, never over what was let in."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from admitperf.reports.quantile import Spread, spread_of
from admitperf.reports.ratio import Share
from admitperf.reports.runs.calls import Requests, requests
from admitperf.reports.runs.histogram import Histogram, histograms
from admitperf.reports.runs.served import serve
from admitperf.reports.runs.slo import Slo
from admitperf.reports.runs.store import Store, by_run


@dataclass(frozen=True, slots=True)
class Output:
    """Whether answers were as long as was asked for.

    Attributes:
        n: ok outcomes that say how many tokens were asked for and how many came.
        asked_tokens, got_tokens: their sums.
        share: got over asked; None when nothing was asked for.
    """

    n: int
    asked_tokens: int
    got_tokens: int
    share: float | None

    @classmethod
    def of(cls, n: int, asked: int | None, got: int | None) -> "Output | None":
        """Of `n` answers; None = there are none."""
        if not n:
            return None
        return cls(n, asked or 0, got or 0, (got or 0) / asked if asked else None)


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
        left: those whose caller left before the end, of those reported.
        engine_refused: those the engine refused, of those reported: it was asked for
            more than it takes, so let in by us is not taken by it.
        failed: the others, of those reported.
        errors: what ended the failed.
        truncated: ok ones that ended at their limit of tokens and not by themselves,
            of the ok ones.
        ttft_ms: time to first token of the ok ones.
        ttft_mean_ms: its mean; None when no ok outcome carries it.
        completed_s: from the first arrival to the last end of an ok one; None when
            there is none, or times are not known.
        completed_per_s: ok ones a second of that.
        ttft_due_ms: the same from the time a request was due, `late_ms` + `ttft_ms`;
            n counts those that carry both.
        ttft_histogram: of the ok ones, in ms; None when none carries it.
        stall_histogram: of their longest gaps, in ms; None when none carries it.
        output: how long the answers were, of a plan by its calls; None when no ok
            outcome has both numbers.
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
    left: Share
    engine_refused: Share
    failed: Share
    errors: dict[str, int]
    truncated: Share
    ttft_ms: Spread
    ttft_mean_ms: float | None
    completed_s: float | None
    completed_per_s: float | None
    ttft_due_ms: Spread
    ttft_histogram: Histogram | None
    stall_histogram: Histogram | None
    output: Output | None
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


MOST_ERRORS = 200
"""Plain choice: texts kept apart; an id inside the text makes each its own."""

OTHER_ERRORS = "other errors"

LEFT, ENGINE_REFUSED = "client_closed", "upstream_refused"
"""The errors of outcomes that are no failures: see docs/reference/host.md."""

_OFFERED = """
SELECT run_n, count(*), count(*) FILTER (admitted), min(t_us)
FROM decisions GROUP BY run_n"""

_SERVED = f"""
SELECT run_n, count(*), count(*) FILTER (NOT admitted), count(*) FILTER (ok),
    count(*) FILTER (ok AND missed IS NULL), count(*) FILTER (ok AND NOT bounded),
    count(*) FILTER (ok AND whole AND ttft_bound_ms IS NOT NULL),
    {spread_of("ttft_ms", "ok")}, {spread_of("late_ms + ttft_ms", "ok")},
    count(*) FILTER (ok AND asked_tokens IS NOT NULL AND output_tokens IS NOT NULL),
    sum(asked_tokens) FILTER (ok AND output_tokens IS NOT NULL),
    sum(output_tokens) FILTER (ok AND asked_tokens IS NOT NULL),
    favg(ttft_ms) FILTER (ok), max(ended_us) FILTER (ok AND t_us IS NOT NULL),
    count(*) FILTER (error = '{LEFT}'), count(*) FILTER (error = '{ENGINE_REFUSED}'),
    count(*) FILTER (ok AND truncated)
FROM judged GROUP BY run_n"""

_MISSED = """
SELECT run_n, missed, count(*) AS n FROM judged
WHERE ok AND missed IS NOT NULL GROUP BY ALL ORDER BY n DESC, missed"""

_ERRORS = f"""
WITH ranked AS (
    SELECT run_n, error, count(*) AS n, row_number() OVER (
        PARTITION BY run_n ORDER BY count(*) DESC, error) AS place
    FROM served WHERE NOT ok AND error NOT IN ('{LEFT}', '{ENGINE_REFUSED}')
    GROUP BY run_n, error)
SELECT run_n, CASE WHEN place <= {MOST_ERRORS} THEN error ELSE '{OTHER_ERRORS}' END,
    sum(n)::BIGINT FROM ranked GROUP BY ALL ORDER BY 3 DESC, min(place)"""


def costs(store: Store, slos: Mapping[int, Slo]) -> dict[int, Cost]:
    """The cost of every run.

    Args:
        store: with the views `decisions` and `outcomes`.
        slos: what goodput is judged by, by the number of the run.
    """
    serve(store, slos)
    counts = _counts(store, slos)
    missed, errors = by_run(store.rows(_MISSED)), by_run(store.rows(_ERRORS))
    calls = requests(
        store,
        {run: one.offered - one.let_in for run, one in counts.items()},
        {run for run, one in counts.items() if one.ended},
    )
    shapes = histograms(store)
    return {
        run: _cost(
            counts[run],
            slo,
            calls.get(run),
            dict(missed[run]),
            dict(errors[run]),
            (shapes.get((run, "ttft_ms")), shapes.get((run, "max_gap_ms"))),
        )
        for run, slo in slos.items()
    }


def _counts(store: Store, runs: Iterable[int]) -> dict[int, "_Counts"]:
    offered = by_run(store.rows(_OFFERED))
    ended = by_run(store.rows("SELECT run_n, count(*) FROM outcomes GROUP BY run_n"))
    served = by_run(store.rows(_SERVED))
    return {
        run: _Counts._make(
            (
                *(offered[run] or [(0, 0, None)])[0],
                *(ended[run] or [(0,)])[0],
                *(served[run] or [_NOTHING])[0],
            )
        )
        for run in runs
    }


_NOTHING = (0, 0, 0, 0, 0, 0, None, None, 0, None, None, None, None, 0, 0, 0)


class _Counts(NamedTuple):
    """What was counted of one run; see `Cost`."""

    offered: int
    admitted: int
    first_us: int | None
    ended: int
    reported: int
    refused_but_served: int
    ok: int
    good: int
    ok_alone: int
    by_e2e: int
    ttft_ms: Mapping[str, Any] | None
    ttft_due_ms: Mapping[str, Any] | None
    outputs: int
    asked_tokens: int
    got_tokens: int
    ttft_mean_ms: float | None
    last_us: int | None
    left: int
    engine_refused: int
    truncated: int

    @property
    def failed(self) -> int:
        """Ended badly, and neither by the caller nor by a refusal."""
        return self.reported - self.ok - self.left - self.engine_refused

    @property
    def completed_s(self) -> float | None:
        """From the first arrival to the last end of an ok one."""
        if self.first_us is None or self.last_us is None:
            return None
        return max(self.last_us - self.first_us, 0) / 1e6

    @property
    def let_in(self) -> int:
        """Attempts that were let in, or served all the same."""
        return self.admitted + self.refused_but_served


def _cost(
    counts: _Counts,
    slo: Slo,
    calls: Requests | None,
    missed: dict[str, int],
    errors: dict[str, int],
    shapes: tuple[Histogram | None, Histogram | None],
) -> Cost:
    let_in, took_s = counts.let_in, counts.completed_s
    good = counts.good if counts.ended else None
    return Cost(
        offered=counts.offered,
        let_in=Share.part(let_in, counts.offered),
        refused_but_served=counts.refused_but_served,
        requests=calls,
        reported=Share.part(counts.reported, let_in),
        without_decision=counts.ended - counts.reported,
        ok=Share.part(counts.ok, counts.reported),
        left=Share.part(counts.left, counts.reported),
        engine_refused=Share.part(counts.engine_refused, counts.reported),
        failed=Share.part(counts.failed, counts.reported),
        errors=errors,
        truncated=Share.part(counts.truncated, counts.ok),
        ttft_ms=Spread.read(counts.ttft_ms),
        ttft_mean_ms=counts.ttft_mean_ms,
        completed_s=took_s,
        completed_per_s=counts.ok / took_s if took_s else None,
        ttft_due_ms=Spread.read(counts.ttft_due_ms),
        ttft_histogram=shapes[0],
        stall_histogram=shapes[1],
        output=Output.of(counts.outputs, counts.asked_tokens, counts.got_tokens),
        slo=slo.text,
        slo_origin=slo.origin,
        goodput=None if good is None else Share.part(good, counts.offered),
        attained=None if good is None else Share.part(good, counts.reported),
        missed={why: n for why, n in missed.items() if not why.startswith("no ")},
        unjudged={why: n for why, n in missed.items() if why.startswith("no ")},
        ok_alone=counts.ok_alone,
        by_e2e=counts.by_e2e,
    )
