"""What a report says: one run at a time, each number with its denominator.

`Report` holds numbers; `render` writes them as text, `to_dict` as JSON. Both show the
same ones.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any

from admitperf.reports.ratio import Share
from admitperf.reports.runs import duplicates
from admitperf.reports.runs.answers import Answers, answers, counted_by
from admitperf.reports.runs.carried import carried
from admitperf.reports.runs.cost import Cost, costs
from admitperf.reports.runs.faults import Faults, faults, recorded
from admitperf.reports.runs.finding import Evidence, Finding, finding
from admitperf.reports.runs.gates import Gate, gates
from admitperf.reports.runs.joint import Joint, joint
from admitperf.reports.runs.load import Load, loads
from admitperf.reports.runs.log import Files, Log, opened
from admitperf.reports.runs.movement import Movement, movements
from admitperf.reports.runs.planned import Planned, ownerless, planned
from admitperf.reports.runs.repair import Repair
from admitperf.reports.runs.run import Basis, Run, runs
from admitperf.reports.runs.run_notices import notices, odd, sizes, unasked, unwhole
from admitperf.reports.runs.slo import Slo
from admitperf.reports.runs.undated import drop_times
from admitperf.reports.runs.warmup import Cut, Warmup
from admitperf.reports.times import Times
from admitperf.reports.wording import plural


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
        together: 1, how often all gates were true at once; None when it cannot be said.
        joint: 1, the decision at which all gates came nearest to holding at once; None
            when that cannot be said.
        signals: 2, which signals moved.
        facts: 2, how many decisions carried each request fact.
        answers: 3, what it did.
        wait_kinds: 3, how the waits it gave came about.
        cost: 4, what it cost.
        faults: 5, faults of the instrument.
        load: what was offered: how much, how fast, how big.
        planned: 4, what a benchmark's plan offered and what became of it; None without
            call lines.
        warmup: what was left out at its beginning; None when nothing was asked to be.
        notices: what a reader should know before believing the numbers, in sentences.
        basis: "requests"; "samples" when a policy only watched an engine's metrics,
            with no request behind its decisions.
        paths: the files its lines came from.
    """

    ids: tuple[str, ...]
    header: dict[str, Any]
    when: Times
    span_s: float | None
    finding: Finding
    gates: tuple[Gate, ...]
    together: Share | None
    joint: Joint | None
    signals: tuple[Movement, ...]
    facts: dict[str, int]
    answers: Answers
    wait_kinds: dict[str, int]
    cost: Cost
    faults: Faults
    load: Load
    planned: Planned | None
    warmup: Warmup | None
    notices: tuple[str, ...]
    basis: Basis
    paths: tuple[str, ...]

    @property
    def goodput(self) -> Share | None:
        """The headline: of calls, on the user's clock, where logical ids exist.

        Of the planned calls where the log says what was planned; without logical ids of
        attempts. None without outcomes.
        """
        if self.planned is not None:
            return self.planned.goodput
        calls = self.cost.requests
        return self.cost.goodput if calls is None else calls.goodput


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


def report(
    paths: Iterable[str],
    slo: Slo | None = None,
    *,
    warmup: str | None = None,
    memory_limit: str | None = None,
) -> Report:
    """Reads logs and reports on every run in them.

    Args:
        paths: files, plain or packed, and folders; "-" is standard input.
        slo: takes the place of the headers' own.
        warmup: what to leave out at the beginning of each run: "10" requests, or "30s".
        memory_limit: how much memory reading may take, such as "2GB"; None = 1 GB.

    Raises:
        LogError: no file can be used; it has one argument for each, which says why.
        ConfigError: the warm-up or the memory limit makes no sense.
        MissingExtra: DuckDB is not installed.
    """
    with reported(paths, slo, warmup=warmup, memory_limit=memory_limit) as (_, made):
        return made


@contextmanager
def reported(
    paths: Iterable[str],
    slo: Slo | None = None,
    *,
    warmup: str | None = None,
    memory_limit: str | None = None,
) -> Iterator[tuple[Log, Report]]:
    """The report, beside the log it was made from, for who asks more of the same log.

    Its tables are there until the block ends; run n of the report is `run_n` n. Takes
    and raises what `report` does.
    """
    cut = None if warmup is None else Cut.parsed(warmup)
    with opened(paths, memory_limit) as log:
        repeated = duplicates.drop(log.store)
        drop_times(log.store)
        found = runs(log)
        left_out = {} if cut is None else cut.apply(log.store, len(found))
        made = _Asked(log, found, slo).reports(repeated, left_out)
        if lost := ownerless(log.store):
            log.files.notices.append(
                f"{plural(lost, 'call line')} name no run, and their file holds none or"
                " several: they are in no number"
            )
        yield log, Report(_sized(made), log.files)


class _Asked:
    """What was asked of the tables, about all runs at once."""

    def __init__(self, log: Log, found: Sequence[Run], slo: Slo | None) -> None:
        store, by_number = log.store, {run.number: run for run in found}
        self.log, self.runs = log, found
        self.columns = {
            name: f"s{place}" for place, name in enumerate(log.names.signals)
        }
        self.when = {
            run: moments
            for run, *moments in store.rows(
                "SELECT run_n, min(t_us), max(t_us) FROM decisions GROUP BY run_n"
            )
        }
        self.answers = answers(store, by_number)
        self.waits = counted_by(
            store,
            "coalesce(nullif(wait, ''), 'not said')",
            "retry_after_ms IS NOT NULL AND NOT gone",
        )
        self.signals = movements(store, self.columns)
        self.gates = gates(store, self.columns, self._known())
        self.facts = carried(store, log.names.facts)
        self.recorded = recorded(store, by_number)
        self.costs = costs(
            store,
            {run.number: slo or Slo.declared(run.said("slo")) for run in found},
        )
        self.loads = loads(store, by_number, self.columns)
        self.planned = planned(store)
        self.odd = odd(store)

    def reports(
        self, repeated: Mapping[str, Counter[str]], left_out: Mapping[int, Warmup]
    ) -> list[RunReport]:
        """The report on each run.

        Args:
            repeated: records dropped because they stood in the log twice, by `run` id.
            left_out: what was left out as warm-up, by the number of the run.
        """
        return [
            self._report(
                run,
                sum((repeated.get(one, Counter()) for one in run.ids), Counter()),
                left_out.get(run.number),
            )
            for run in self.runs
        ]

    def _paid(self, run: int) -> Cost:
        """What a run cost; how long answers should be is the plan's to say."""
        paid, plan = self.costs[run], self.planned.get(run)
        return paid if plan is None else replace(paid, output=plan.output)

    def _known(self) -> dict[int, set[str]]:
        """The signals that each run has values of."""
        return {
            run.number: {
                moved.name for moved in self.signals[run.number] if moved.spread.n
            }
            for run in self.runs
        }

    def _report(
        self, run: Run, repeated: Counter[str], warmup: Warmup | None
    ) -> RunReport:
        log, number = self.log, run.number
        store = log.store
        said, paid, load = self.answers[number], self._paid(number), self.loads[number]
        compared = self.gates.get(number, ())
        together, nearest = joint(store, number, compared, self.columns) or (None, None)
        seen = Evidence(
            run=run,
            answers=said,
            gates=compared,
            together=together,
            signals={moved.name: moved.spread for moved in self.signals[number]},
            facts=self.facts.get(number, {}),
            cost=paid,
            recorded=self.recorded[number],
            repair=Repair(self.log, run),
            left_out=warmup.left_out if warmup else 0,
        )
        return RunReport(
            ids=run.ids,
            header={name: run.header[name] for name in _NAMED if name in run.header},
            when=Times.between(*self.when.get(number, (None, None))),
            span_s=load.span_s,
            finding=finding(seen),
            gates=compared,
            together=together,
            joint=nearest,
            signals=self.signals[number],
            facts=self.facts.get(number, {}),
            answers=said,
            wait_kinds=self.waits[number],
            cost=paid,
            faults=replace(
                faults(run, self.recorded[number], said, paid, repeated),
                ends_early=tuple(one for one in run.paths if one in log.files.cut),
            ),
            load=load,
            planned=self.planned.get(number),
            warmup=warmup,
            notices=(
                *unwhole(run.paths, log.files.cut, repeated),
                *notices(number, self.odd, store, load, paid),
                *unasked(self.planned.get(number), warmup, run.said("notes")),
            ),
            basis=run.basis,
            paths=run.paths,
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
    "basis",
    "config",
    "schema",
)


def _sized(made: Sequence[RunReport]) -> tuple[RunReport, ...]:
    """The reports, with a notice where runs of one policy differ in size."""
    repeats: dict[tuple[Any, Any, Any], list[RunReport]] = {}
    for run in made:
        if run.header.get("experiment") is not None:
            notes = run.header.get("notes")
            load = notes.get("load") if isinstance(notes, dict) else None
            key = (run.header["experiment"], run.header.get("policy"), load)
            repeats.setdefault(key, []).append(run)
    said = {
        id(run): sizes([one.answers.offered for one in group])
        for group in repeats.values()
        for run in group
    }
    return tuple(
        replace(run, notices=(*run.notices, notice))
        if (notice := said.get(id(run)))
        else run
        for run in made
    )
