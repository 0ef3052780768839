"""What a benchmark planned to ask, and what became of it, call by call."""

from collections.abc import Sequence
from dataclasses import dataclass

from admitperf.reports.ratio import Share
from admitperf.reports.runs.cost import Output
from admitperf.reports.runs.store import Store, by_run

NEVER_SENT = "never_sent"


@dataclass(frozen=True, slots=True)
class Planned:
    """The calls of a run's plan, as its call lines say.

    A decision stands in the log only for what was asked. A refusal can end a session,
    and then the rest of its calls are never asked: they are offered all the same, and
    count as not met.

    Attributes:
        calls: of the plan, each once.
        offered: of those, how many count: their session began in the scored window.
        ended: those that count by how they ended, the most frequent first.
        never_asked: those that were never asked, of those that count.
        refused: those that the policy refused in the end, of those that count.
        goodput: those that met their SLO on the caller's clock, of those that count.
        sessions: sessions of which every call was answered, or closed by its own
            caller with a first token, of those that count.
        output: how long the answers were, of what was planned; None when no answered
            call says both.
    """

    calls: int
    offered: int
    ended: dict[str, int]
    never_asked: Share
    refused: Share
    goodput: Share
    sessions: Share
    output: Output | None


_VIEW = """
CREATE OR REPLACE VIEW planned_calls AS
WITH owners AS (
    SELECT file, min(run_n) AS run_n FROM (
        SELECT file, run_n FROM decisions
        UNION ALL SELECT file, run_n FROM other JOIN process USING (run))
    GROUP BY file HAVING count(DISTINCT run_n) = 1),
owned AS (
    SELECT call_line.*, coalesce(process.run_n, owners.run_n) AS run_n
    FROM call_line LEFT JOIN process USING (run) LEFT JOIN owners USING (file))
SELECT * FROM owned
QUALIFY row_number() OVER (PARTITION BY run_n, id ORDER BY counts DESC) = 1"""

_SERVED = "(ended = 'answered' OR ended = 'cancelled' AND c.ttft_ms IS NOT NULL)"

_MET = f"""{_SERVED}
    AND (b.ttft_ms IS NULL OR coalesce(c.ttft_ms <= b.ttft_ms, false))
    AND (b.e2e_ms IS NULL OR coalesce(c.e2e_ms <= b.e2e_ms, false))
    AND coalesce(c.max_gap_ms <= b.stall_ms, true)"""

_WHOLE = "ended = 'answered' AND c.output_tokens IS NOT NULL AND got_tokens IS NOT NULL"

_CALLS = f"""
SELECT c.run_n, count(*), count(*) FILTER (counts),
    count(*) FILTER (counts AND {_MET}),
    count(DISTINCT session) FILTER (counts),
    count(DISTINCT session) FILTER (counts AND NOT {_SERVED}),
    count(*) FILTER ({_WHOLE}), sum(c.output_tokens) FILTER ({_WHOLE})::BIGINT,
    sum(got_tokens) FILTER ({_WHOLE})::BIGINT
FROM planned_calls c
LEFT JOIN slo everyone ON everyone.run_n = c.run_n AND everyone.slo_class IS NULL
LEFT JOIN slo own
    ON own.run_n = c.run_n AND own.slo_class = coalesce(c.slo_class, '')
LEFT JOIN slo rest ON rest.run_n = c.run_n AND rest.slo_class = ''
LEFT JOIN slo b ON b.slo_n = coalesce(everyone.slo_n, own.slo_n, rest.slo_n)
WHERE c.run_n IS NOT NULL GROUP BY c.run_n"""

_ENDED = """
SELECT run_n, ended, count(*) AS n FROM planned_calls
WHERE counts AND run_n IS NOT NULL GROUP BY run_n, ended ORDER BY n DESC, ended"""


def planned(store: Store) -> dict[int, Planned]:
    """The plan of every run that has one, by the run's number.

    A line that names no run belongs to the only run of its file. A call whose line
    stands there twice counts once.

    Args:
        store: with the view `decisions`, and the tables `call_line`, `process` and
            `slo`.
    """
    store.rows(_VIEW)
    ended = by_run(store.rows(_ENDED))
    return {
        run: _planned(counts[:-3], Output.of(*counts[-3:]), dict(ended[run]))
        for run, *counts in store.rows(_CALLS)
    }


def ownerless(store: Store) -> int:
    """Calls that no run can be found for: several share their file.

    Args:
        store: with the view `planned_calls`.
    """
    ((n,),) = store.rows("SELECT count(*) FROM planned_calls WHERE run_n IS NULL")
    return int(n)


def _planned(
    counts: Sequence[int], output: Output | None, ended: dict[str, int]
) -> Planned:
    calls, offered, met, sessions, broken = counts
    return Planned(
        calls=calls,
        offered=offered,
        ended=ended,
        never_asked=Share.part(ended.get(NEVER_SENT, 0), offered),
        refused=Share.part(ended.get("refused", 0), offered),
        goodput=Share.part(met, offered),
        sessions=Share.part(sessions - broken, sessions),
        output=output,
    )
