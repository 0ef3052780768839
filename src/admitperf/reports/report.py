"""The first report: one run at a time, each number with its denominator.

`Report` holds numbers; `render` writes them as text, `to_dict` as JSON. Both show the
same ones.
"""

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from admitperf.core.signals import ALL
from admitperf.reports.answers import Answers
from admitperf.reports.cost import Cost, Share, cost
from admitperf.reports.decisions import Decisions
from admitperf.reports.finding import Evidence, Finding, finding
from admitperf.reports.gates import Gate, held_together, summarise
from admitperf.reports.log import Files, read
from admitperf.reports.quantile import Spread
from admitperf.reports.run import Run
from admitperf.reports.slo import Slo
from admitperf.reports.tally import SCHEMA, Tally
from admitperf.reports.times import Times

_UNITS = {signal.name: signal.unit for signal in ALL}


@dataclass(frozen=True, slots=True)
class Movement:
    """How one signal moved over the decisions of a run.

    Attributes:
        name, unit: unit is "" for a signal this version does not know.
        spread: its values on decision lines, which leave out what had gone stale.
    """

    name: str
    unit: str
    spread: Spread


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


@dataclass(frozen=True, slots=True)
class RunReport:
    """One run, all five questions.

    Attributes:
        ids: one per process.
        header: policy, version, params and so on, as the log says; empty without one.
        when: the first decision and the last.
        span_s: from the first decision to the last.
        finding: 1, could it have fired.
        gates: 1, its comparisons.
        together: 1, how often all gates held at once; None when it cannot be said.
        signals: 2, which signals moved.
        facts: 2, how many decisions carried each request fact.
        answers: 3, what it did.
        wait_kinds: 3, how the waits it gave came about.
        cost: 4, what it cost.
        faults: 5, faults of the instrument.
    """

    ids: tuple[str, ...]
    header: dict[str, Any]
    when: Times
    span_s: float | None
    finding: Finding
    gates: tuple[Gate, ...]
    together: Share | None
    signals: tuple[Movement, ...]
    facts: dict[str, int]
    answers: Answers
    wait_kinds: dict[str, int]
    cost: Cost
    faults: Faults


@dataclass(frozen=True, slots=True)
class Report:
    """Every run of some files."""

    runs: tuple[RunReport, ...]
    files: Files

    def to_dict(self) -> dict[str, Any]:
        """The report as plain dicts and lists, ready for JSON."""
        plain: dict[str, Any] = _finite(asdict(self))
        return plain


def _finite(value: Any) -> Any:  # noqa: ANN401  whatever a report holds
    """The value with None for each number that JSON cannot hold."""
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def report(paths: Iterable[str], slo: Slo | None = None) -> Report:
    """Reads logs and reports on every run in them.

    Args:
        paths: files, plain or gzip; "-" is standard input.
        slo: takes the place of the headers' own.

    Raises:
        LogError: no file can be used, as in `read`.
    """
    found, files = read(paths)
    return Report(tuple(report_run(run, slo) for run in found), files)


def report_run(run: Run, slo: Slo | None = None) -> RunReport:
    """The report on one run."""
    tally, decisions = run.tally, run.tally.decisions
    answers, moved = Answers.of(decisions), _movements(decisions)
    gates = summarise(decisions.gates, decisions.columns, decisions.sighted)
    together = held_together(gates, decisions.columns, decisions.sighted)
    paid = cost(decisions, tally.outcomes, slo or Slo.declared(run.said("slo")))
    spreads = {movement.name: movement.spread for movement in moved}
    seen = Evidence(run, answers, gates, together, spreads, paid)
    return RunReport(
        ids=run.ids,
        header={name: run.header[name] for name in _NAMED if name in run.header},
        when=decisions.when.times,
        span_s=decisions.when.seconds,
        finding=finding(seen),
        gates=gates,
        together=None if together is None else Share.part(*together),
        signals=moved,
        facts=dict(sorted(decisions.facts.items())),
        answers=answers,
        wait_kinds=dict(decisions.wait_kinds.most_common()),
        cost=paid,
        faults=_faults(tally, answers, paid),
    )


_NAMED = (
    "policy",
    "class",
    "version",
    "params",
    "provenance",
    "taxonomy",
    "requires",
    "slo",
    "enforce",
    "on_blind",
    "preset",
    "experiment",
    "name",
    "notes",
    "config",
    "schema",
)


def _movements(decisions: Decisions) -> tuple[Movement, ...]:
    """Every signal of the catalogue, in its order, then those only the log knows."""
    columns = decisions.columns
    names = [*_UNITS, *sorted(set(columns) - set(_UNITS))]
    return tuple(
        Movement(name, _UNITS.get(name, ""), Spread.of(columns.get(name, ())))
        for name in names
    )


def _faults(tally: Tally, answers: Answers, paid: Cost) -> Faults:
    schema = (tally.header or {}).get("schema", SCHEMA)
    lost = tally.lost["decision"]
    return Faults(
        lost=dict(tally.lost),
        lost_why=dict(tally.lost_why),
        lost_decisions=Share.part(lost, answers.offered + lost),
        blind=Share.part(answers.blind_total, answers.offered),
        blind_when=tally.decisions.blind_when.times,
        policy_errors=answers.blind.get("policy_error", 0),
        events=dict(sorted(tally.events.items())),
        repeated=dict(tally.repeated),
        dangling=tally.dangling,
        without_decision=paid.without_decision,
        newer_schema=schema if schema > SCHEMA else None,
        signals_left_out=tally.decisions.signals_left_out,
        age_ms=Spread.of(tally.decisions.age_ms),
        decide_us=Spread.of(tally.decisions.decide_us),
    )
