"""Where the instrument failed during a run."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from admitperf.core.record import SCHEMA
from admitperf.reports.quantile import Spread, spread_of
from admitperf.reports.ratio import Share
from admitperf.reports.runs.answers import Answers
from admitperf.reports.runs.cost import Cost
from admitperf.reports.runs.run import Run
from admitperf.reports.runs.store import Store, by_run
from admitperf.reports.times import Times

LOSABLE = ("decision", "outcome", "reading", "control")


@dataclass(frozen=True, slots=True)
class Faults:
    """Where the instrument failed during a run.

    Attributes:
        lost: records the writer could not write, by kind.
        lost_why: the same by why.
        lost_decisions: of all decisions, written and lost.
        blind: decisions made blind, of all.
        blind_when: the first and the last of them.
        policy_errors: decisions where `decide` failed.
        events: control lines by event.
        repeated: decisions and outcomes that stood in the log twice, counted once.
        dangling: decisions that refer to a reading the log does not hold.
        without_decision: outcomes whose decision the log does not hold.
        newer_schema: the log's schema number when this reader knows only older ones.
        signals_left_out: values of more signals than a report keeps.
        age_ms: age of the reading a decision was made on.
        decide_us: time a decision took.
        ends_early: its files whose reading ended before they did.
    """

    lost: dict[str, int]
    lost_why: dict[str, int]
    lost_decisions: Share
    blind: Share
    blind_when: Times
    policy_errors: int
    events: dict[str, int]
    repeated: dict[str, int]
    dangling: int
    without_decision: int
    newer_schema: int | None
    signals_left_out: int
    age_ms: Spread
    decide_us: Spread
    ends_early: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a run's own lines say of the instrument.

    Attributes:
        lost, lost_why, events, dangling, signals_left_out, age_ms, decide_us,
            blind_when: as in `Faults`.
        whys: the first explanation given for each reason to be blind.
    """

    lost: Mapping[str, int]
    lost_why: Mapping[str, int]
    events: Mapping[str, int]
    dangling: int
    signals_left_out: int
    age_ms: Spread
    decide_us: Spread
    blind_when: Times
    whys: Mapping[str, str]


def recorded(store: Store, runs: Iterable[int]) -> dict[int, Recorded]:
    """What the lines of every run say of the instrument.

    Args:
        store: with the views `decisions` and `outcomes`, and the table `process`.
        runs: their numbers.
    """
    lost, lost_why = _lost(store)
    events = by_run(store.rows(_EVENTS))
    dangling: dict[int, int] = dict(store.rows(_DANGLING))
    timings, whys = by_run(store.rows(_TIMINGS)), by_run(store.rows(_WHYS))
    return {
        run: _recorded(
            lost[run],
            lost_why[run],
            dict(events[run]),
            dangling.get(run, 0),
            (timings[run] or [(0, None, None, None, None)])[0],
            dict(whys[run]),
        )
        for run in runs
    }


def _recorded(
    lost: Mapping[str, int],
    lost_why: Mapping[str, int],
    events: Mapping[str, int],
    dangling: int,
    timings: tuple[Any, ...],
    whys: Mapping[str, str],
) -> Recorded:
    left_out, age_ms, decide_us, first_us, last_us = timings
    return Recorded(
        lost=lost,
        lost_why=lost_why,
        events=events,
        dangling=dangling,
        signals_left_out=left_out,
        age_ms=Spread.read(age_ms),
        decide_us=Spread.read(decide_us),
        blind_when=Times.between(first_us, last_us),
        whys=whys,
    )


_LOST = f"""
WITH counted AS (
    SELECT run_n, other.rowid AS row, unnest(from_json(line,
        '{json.dumps(dict.fromkeys(LOSABLE, "BIGINT") | {"why": "VARCHAR"})}'))
    FROM other JOIN process USING (run) WHERE k = 'lost')
SELECT run_n, coalesce(nullif(why, ''), 'not said') AS why,
    {", ".join(f"coalesce(sum({kind}), 0)" for kind in LOSABLE)}
FROM counted GROUP BY run_n, 2 ORDER BY min(row)"""

_EVENTS = """
SELECT run_n, json_extract_string(line, '$.event') AS event, count(*)
FROM other JOIN process USING (run) WHERE k = 'control' GROUP BY run_n, event
ORDER BY event"""

_DANGLING = """
SELECT run_n, count(*) FROM decisions WHERE reading IS NOT NULL
AND (run, reading) NOT IN (SELECT (run, id) FROM reading) GROUP BY run_n"""

_WHYS = """
SELECT run_n, blind, arg_min(why, row) FROM decisions
WHERE blind <> '' AND why <> '' GROUP BY run_n, blind"""

_TIMINGS = f"""
SELECT run_n, sum(left_out), {spread_of("age_ms")}, {spread_of("decide_us")},
    min(t_us) FILTER (blind <> ''), max(t_us) FILTER (blind <> '')
FROM decisions GROUP BY run_n"""


def _lost(
    store: Store,
) -> tuple[defaultdict[int, Counter[str]], defaultdict[int, Counter[str]]]:
    """Lost records by kind, and by why."""
    lost: defaultdict[int, Counter[str]] = defaultdict(Counter)
    lost_why: defaultdict[int, Counter[str]] = defaultdict(Counter)
    for run, why, *counts in store.rows(_LOST):
        said = {kind: n for kind, n in zip(LOSABLE, counts, strict=True) if n}
        lost[run].update(said)
        lost_why[run][why] += sum(said.values())
    return lost, lost_why


def faults(
    run: Run, seen: Recorded, answers: Answers, cost: Cost, repeated: Counter[str]
) -> Faults:
    """The faults of one run.

    Args:
        run: the run.
        seen: what its lines say.
        answers, cost: the rest of its report.
        repeated: records dropped because they stood in the log twice, by kind.
    """
    schema, lost = run.header.get("schema", SCHEMA), seen.lost.get("decision", 0)
    return Faults(
        lost=dict(seen.lost),
        lost_why=dict(seen.lost_why),
        lost_decisions=Share.part(lost, answers.offered + lost),
        blind=Share.part(answers.blind_total, answers.offered),
        blind_when=seen.blind_when,
        policy_errors=answers.blind.get("policy_error", 0),
        events=dict(seen.events),
        repeated=dict(repeated),
        dangling=seen.dangling,
        without_decision=cost.without_decision,
        newer_schema=schema if schema > SCHEMA else None,
        signals_left_out=seen.signals_left_out,
        age_ms=seen.age_ms,
        decide_us=seen.decide_us,
    )
