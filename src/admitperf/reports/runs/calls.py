"""Calls and their attempts: what a caller met, on the caller's clock."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from admitperf.reports.quantile import Spread, spread_of
from admitperf.reports.ratio import Share
from admitperf.reports.runs.served import missed
from admitperf.reports.runs.store import Store


@dataclass(frozen=True, slots=True)
class Requests:
    """Calls, each of one or more attempts that share a logical id.

    A call's clock starts at the arrival of its first attempt: its time to first token
    is (arrival of the served attempt - arrival of the first attempt) + `late_ms` of the
    first attempt + `ttft_ms` of the served one.

    Attributes:
        offered: distinct logical ids, and every attempt that carries none.
        let_in: of those, how many had an attempt that was let in.
        goodput: of those, how many met their SLO on the call's clock; None as for
            attempts.
        goodput_last: of those, how many had an attempt that met its SLO on its own
            clock, which starts anew with each attempt; None as for attempts.
        attempts: decisions.
        refused_attempts: attempts that were turned away, of all.
        without_id: attempts that carry no logical id and stand for a call each.
        ttft_user_ms: time to first token on the call's clock, of calls that ended well.
        ttft_last_ms: the same on the served attempt's own clock.
    """

    offered: int
    let_in: Share
    goodput: Share | None
    goodput_last: Share | None
    attempts: int
    refused_attempts: Share
    without_id: int
    ttft_user_ms: Spread
    ttft_last_ms: Spread


_LATER = "coalesce((served.t_us - first_us) / 1000.0, 0.0) + first_late_ms"

_FIRST = """
CREATE OR REPLACE TABLE calls AS
SELECT run_n, call, min(t_us) AS first_us, bool_or(admitted) AS admitted,
    arg_min(coalesce(late_ms, 0.0), {'t_us': t_us, 'row': row}) AS first_late_ms
FROM decisions WHERE run_n IN (SELECT run_n FROM named) GROUP BY run_n, call"""

_ENDED = f"""
WITH answered AS (
    SELECT served.*, {_LATER} AS later_ms,
        ok AND {missed("0.0")} IS NULL AS met_last,
        ok AND {missed(_LATER)} IS NULL AS met
    FROM served JOIN calls USING (run_n, call)
    LEFT JOIN slo bounds ON bounds.slo_n = served.slo_n),
ended AS (
    SELECT run_n, call, bool_or(met) AS met, bool_or(met_last) AS met_last,
        min({{'t_us': t_us, 'row': row, 'user_ms': ttft_ms + later_ms,
            'last_ms': ttft_ms}}) FILTER (ok AND ttft_ms IS NOT NULL) AS first
    FROM answered GROUP BY run_n, call)
SELECT run_n, count(*), count(*) FILTER (admitted OR met IS NOT NULL),
    count(*) FILTER (met), count(*) FILTER (met_last),
    {spread_of("first.user_ms")}, {spread_of("first.last_ms")}
FROM calls LEFT JOIN ended USING (run_n, call) GROUP BY run_n"""


def requests(
    store: Store, away: Mapping[int, int], judged: Collection[int]
) -> dict[int, Requests]:
    """The calls of every run whose decisions carry a logical id.

    Args:
        store: with the view `decisions` and the table `served`; gets the table `calls`.
        away: attempts that were turned away, by the number of the run.
        judged: the numbers of the runs that have outcomes.
    """
    store.rows(
        """CREATE OR REPLACE TABLE named AS
        SELECT run_n, count(*) AS n, count(*) FILTER (NOT named) AS without
        FROM decisions
        GROUP BY run_n HAVING bool_or(named)"""
    )
    store.rows(_FIRST)
    attempts = {run: (n, without) for run, n, without in store.rows("FROM named")}
    if not attempts:
        return {}
    return {
        run: Requests(
            offered=offered,
            let_in=Share.part(let_in, offered),
            goodput=Share.part(met, offered) if run in judged else None,
            goodput_last=Share.part(met_last, offered) if run in judged else None,
            attempts=attempts[run][0],
            refused_attempts=Share.part(away[run], attempts[run][0]),
            without_id=attempts[run][1],
            ttft_user_ms=Spread.read(user),
            ttft_last_ms=Spread.read(last),
        )
        for run, offered, let_in, met, met_last, user, last in store.rows(_ENDED)
    }
