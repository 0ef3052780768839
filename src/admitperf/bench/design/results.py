"""What a benchmark left on disk, read back: whole, or as far as it got.

    ROOT/EXPERIMENT/experiment.json
    ROOT/EXPERIMENT/ARM/x1.2-b3/manifest.json, summary.json, decisions.jsonl, ...

Folders whose name begins with a dot are unfinished runs and are not read. These keys
are read, and no others; a key that is absent is a fact that is not known, and what
needs it cannot be asked. A number is one that a float holds exactly, to 2**53 either
side of 0. A run that says a number which is none, a count below 0 or a share outside
0 to 1 is not used, and a sentence says so.

experiment.json:

- `experiment`: its name. `workload`, `metric`: a line, and what is compared; `metric`
  is "goodput" when absent.
- `design`: `{loads, blocks, arms, baseline, margin, seed, aa}`, the fields of
  `design.Design`: what was planned, after `--budget`.
- `capacity`: `{unit, per_s, low, high, after}`, a 95 % interval around `per_s`;
  `after` is `{per_s, low, high}` measured again at the end, null = it was not.
- `slo`: `{from, classes}`; `from` is "unloaded" or "given".
- `planned_first`: `{loads, blocks, arms, baseline, metric, margin, hash}` as they were
  before the first run, whatever a later start changed; absent = it is not known.
- `findings`: by run, as `ARM/x1.5-b1`, what its log showed: `{word, refused, says}`;
  read where a run has no log.
- `left_out`: sentences. `notices`: sentences. `partial`: whether it was ended early.
- `simulated`: whether no number was measured on an engine. `seconds`: it took.

manifest.json of a run:

- `arm`, `load`, `block`: which cell; needed. `load` is the stated multiple, `block` is
  counted from 1.
- `position`: from 0, its place among the arms of its block. `order`: from 0, its place
  among all runs of the experiment.
- `complete`: false = it was ended early, and it is left out.
- `policy`, `parameters`, `provenance`, `url`: of the arm; `url` null = the target's
  engine. Arms with the same policy, parameters and url are one policy twice: an A/A
  pair.
- `plan`: hash. `client`: its fields. `slo`: as above. `warmup_s`: the cut.
  `scored_s`: `[from, to]`.
- `load_reached`: what was offered, as a multiple of the capacity. `rate_per_s`,
  `lasts_s`: of its beginnings, as planned, and for how long.
- `probe_ms`: of the probe before the run; null = nothing can drift.
- `restarts`: of the engine during the run; null = it is not known.
- `trend`: `{p, slope, bins}` of the time to first token, `steady.trend` over due times
  in s and ms; null = too short.

summary.json of a run, as `callers.score` makes it, of the scored calls:

- the metric by its name: `goodput`, `session_goodput` and so on, also under `extra`; a
  number; null = cannot be asked.
- `offered`, `attempts`, `refusals`, `ended`: counts; `ended` by how calls ended.
- `late_ms`: `{p50, p99, max}`; null or absent = nothing was sent late, or virtual time.
- `short`: `{n, of}`: whole answers with fewer tokens than planned, of all whole ones.
- `errors`: `{n, of}`: calls that failed, though neither the policy nor a limit of the
  engine refused them, of those offered. What else failed, the engine refused.
- `ttft_served_ms`: `{p50, p95}` of those served.

What a run's log says (finding, gates, signals, faults) comes from one call of
`admitperf.reports.report` over the experiment's folder, and is joined by the folder
that a run's lines came from. A report takes runs of one policy, configuration,
parameters, experiment and *name* for one run of several processes: so where two arms
are the same policy with the same parameters, the log's `run` name must tell them apart.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from admitperf.bench.design.design import Design
from admitperf.bench.design.measures import METRICS
from admitperf.core.errors import AdmitPerfError, LogError
from admitperf.reports.report import RunReport, report
from admitperf.reports.wording import plural, printable

EXPERIMENT, MANIFEST, SUMMARY = "experiment.json", "manifest.json", "summary.json"
GOODPUT = "goodput"
PLANNED_FIRST = "planned_first"
FINDINGS = ("LIVE", "INERT", "UNKNOWN", "BASELINE", "SHADOW")

LARGEST = 2.0**53
"""The most a number of a file may be, either way: a float holds each whole number up to
it, and sums and squares of some stay finite."""

MOST_BLOCKS = 1000
"""As many as a benchmark's config may ask for."""

_DEEPEST = 64  # plain choice: what runs write is nested 6 deep


class ResultsError(AdmitPerfError, ValueError):
    """A folder holds no experiment that could be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One arm, met by one block at one load.

    Attributes:
        arm: its name.
        load: the stated multiple of capacity.
        block: from 1.
        position: from 0, among the arms of its block; None = not known.
        folder: where it lies.
        manifest, summary: as they stand there.
        finding: LIVE, INERT, UNKNOWN, BASELINE or SHADOW; None = it has no log.
        log: the report on its log; None = it has none.
        refused: attempts the policy refused, as its log or the experiment says; None =
            that is not known.
        says: what the finding goes by, in sentences.
    """

    arm: str
    load: float
    block: int
    position: int | None
    folder: Path
    manifest: Mapping[str, Any]
    summary: Mapping[str, Any]
    finding: str | None = None
    log: RunReport | None = None
    refused: int | None = None
    says: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """`queue_depth x1.2-b3`, as sentences name it."""
        return f"{self.arm} x{self.load:g}-b{self.block}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """All runs of an experiment.

    Attributes:
        folder: where it lies.
        stated: experiment.json; empty when it cannot be read.
        design: what was planned; made of the runs that are there when it is not said.
        runs: those that are whole, by load, block and arm.
        problems: what could not be used, in sentences.
        beside: arm, load and block of whole runs that the design does not hold.
    """

    folder: Path
    stated: Mapping[str, Any]
    design: Design
    runs: tuple[Run, ...]
    problems: tuple[str, ...]
    beside: tuple[tuple[str, float, int], ...] = ()

    @property
    def name(self) -> str:
        """As stated, else the folder's."""
        return printable(str(self.stated.get("experiment") or self.folder.name))

    @property
    def metric(self) -> str:
        """What is compared."""
        return str(self.stated.get("metric") or GOODPUT)

    @property
    def first(self) -> Design | None:
        """What was planned before the first run; None = it is not known."""
        return _first(self.stated.get(PLANNED_FIRST))

    @property
    def declared(self) -> str:
        """What the claims were set on, before the first run where that is known."""
        first = _mapping(self.stated.get(PLANNED_FIRST)).get("metric")
        return str(first or self.metric)

    @property
    def partial(self) -> bool:
        """Whether it was ended early, or runs that were planned are not there."""
        return bool(self.stated.get("partial")) or len(self.runs) < self.design.runs

    @property
    def simulated(self) -> bool:
        """Whether any number comes from a simulated engine."""
        if self.stated.get("simulated") is True:
            return True
        return any(run.manifest.get("simulated") is True for run in self.runs)

    def of(self, arm: str) -> tuple[Run, ...]:
        """The runs of an arm."""
        return tuple(run for run in self.runs if run.arm == arm)

    def at(self, load: float, block: int) -> tuple[Run, ...]:
        """The runs that met one block at one load."""
        same = (load, block)
        return tuple(run for run in self.runs if (run.load, run.block) == same)


def value(run: Run, metric: str = GOODPUT) -> float | None:
    """A number of a run's summary; None = it has none, or not as a finite number."""
    found = run.summary.get(metric)
    if found is None:
        found = (_mapping(run.summary.get("extra"))).get(metric)
    return finite(found)


def finite(
    given: object, least: float = -LARGEST, most: float = LARGEST
) -> float | None:
    """A number of a file; None when it is none, or not from `least` to `most`."""
    if isinstance(given, bool) or not isinstance(given, int | float):
        return None
    return float(given) if least <= given <= most else None


def whole(given: object, least: float = 0, most: float = LARGEST) -> int | None:
    """A whole number of a file; None when it is none, or not from `least` to `most`."""
    found = finite(given, least, most)
    return None if found is None or not isinstance(given, int) else given


def number_at(given: object, *names: str) -> float | None:
    """A number inside nested objects; None when there is none."""
    for name in names:
        given = _mapping(given).get(name)
    return finite(given)


def _mapping(given: object) -> Mapping[str, Any]:
    return given if isinstance(given, dict) else {}


# -------------------------------------------------------------------------- read


def read_experiment(folder: Path, *, logs: bool = True) -> Experiment:
    """Reads an experiment, whole or as far as it got.

    Args:
        folder: that of one experiment.
        logs: whether the runs' logs are read too, which takes a second or more.

    Raises:
        ResultsError: there is no whole run in it.
    """
    problems: list[str] = []
    stated = _object(folder / EXPERIMENT, problems)
    runs = [*_runs(folder, problems)]
    if not runs:
        raise ResultsError(_nothing(folder, problems))
    runs.sort(key=lambda run: (run.load, run.block, run.arm))
    design = _design(stated, runs, problems)
    kept = [*_planned(design, runs, problems)]
    beside = tuple((r.arm, r.load, r.block) for r in runs if r not in kept)
    if logs:
        kept = [*_with_logs(folder, kept, problems)]
        kept = [*_with_findings(folder, kept, stated, problems)]
    return Experiment(
        folder=folder,
        stated=stated,
        design=design,
        runs=tuple(kept),
        problems=tuple(problems),
        beside=beside,
    )


def _nothing(folder: Path, problems: Sequence[str]) -> str:
    where = printable(str(folder))
    if not folder.is_dir():
        return f"{where}: there is no such folder"
    why = f": {problems[0]}" if problems else ""
    return f"{where}: no whole run of a benchmark is in it{why}"


def _object(path: Path, problems: list[str]) -> Mapping[str, Any]:
    """A JSON object of a file; empty, and a problem, when there is none."""
    where = printable(str(path))
    try:
        found = json.loads(path.read_bytes())
    except OSError as error:
        why = (error.strerror or type(error).__name__).lower()
        problems.append(f"{where}: {why}.")
    except (ValueError, RecursionError):
        problems.append(f"{where}: not JSON.")
    else:
        if isinstance(found, dict) and _is_shallow(found, _DEEPEST):
            return found
        what = "nested too deep" if isinstance(found, dict) else "no JSON object"
        problems.append(f"{where}: {what}.")
    return {}


def _is_shallow(given: object, depth: int) -> bool:
    if not isinstance(given, dict | list):
        return True
    inside = given.values() if isinstance(given, dict) else given
    return depth > 0 and all(_is_shallow(one, depth - 1) for one in inside)


def _runs(folder: Path, problems: list[str]) -> Iterator[Run]:
    seen: dict[tuple[str, float, int], Path] = {}
    for path in sorted(folder.glob(f"*/*/{MANIFEST}")):
        if any(part.startswith(".") for part in path.relative_to(folder).parts):
            continue
        run = _run(path.parent, problems)
        if run is None:
            continue
        cell = run.arm, run.load, run.block
        if cell in seen:
            problems.append(f"{run.name} is there twice: {printable(str(run.folder))}.")
            continue
        seen[cell] = run.folder
        yield run


def _run(folder: Path, problems: list[str]) -> Run | None:
    """A run; None, and a problem, when it is not whole."""
    where, before = printable(str(folder)), len(problems)
    manifest = _object(folder / MANIFEST, problems)
    if len(problems) > before:
        return None
    load = finite(manifest.get("load"), 0)
    block = whole(manifest.get("block"), 1, MOST_BLOCKS)
    if not load or block is None or not manifest.get("arm"):
        problems.append(f"{where}: its manifest does not say arm, load and block.")
        return None
    if manifest.get("complete") is False:
        problems.append(f"{where}: the run was ended early and is left out.")
        return None
    summary = _object(folder / SUMMARY, problems)
    wrong = [*unreadable(manifest, _OF_MANIFEST), *unreadable(summary, _OF_SUMMARY)]
    problems.extend(f"{where}: {why}: the run is not used." for why in wrong[:1])
    if len(problems) > before:
        return None
    return Run(
        arm=printable(str(manifest["arm"])),
        load=load,
        block=block,
        position=whole(manifest.get("position")),
        folder=folder,
        manifest=manifest,
        summary=summary,
    )


# ----------------------------------------------------------------------- numbers


Range = tuple[float, float]
_ANY, _FROM_0, _SHARE = (-LARGEST, LARGEST), (0.0, LARGEST), (0.0, 1.0)
_WORDS = {_ANY: "that a float holds", _FROM_0: "from 0", _SHARE: "from 0 to 1"}


_NO_OBJECT = ""  # stands where a number is asked of what holds none


def _paths(words: str, own: Range) -> dict[tuple[str, ...], Range]:
    return {tuple(word.split(".")): own for word in words.split()}


_OF_MANIFEST: Mapping[tuple[str, ...], Range] = {
    **_paths("load_reached rate_per_s lasts_s warmup_s probe_ms restarts", _FROM_0),
    **_paths("trend.p", _SHARE),
}
_OF_SUMMARY: Mapping[tuple[str, ...], Range] = {
    **{
        (*where, name): _SHARE if measure.share else _ANY
        for where in ((), ("extra",))
        for name, measure in METRICS.items()
    },
    **_paths("half.goodput", _SHARE),
    **_paths("offered attempts refusals good errors.n errors.of short.n", _FROM_0),
    **_paths("short.of outside.attempts outside.refusals", _FROM_0),
    **_paths("ended.answered ended.refused ended.failed ended.cancelled", _FROM_0),
    **_paths("late_ms.p50 late_ms.p99 late_ms.max", _ANY),
    **_paths("ttft_served_ms.p50 ttft_served_ms.p95", _FROM_0),
}
OF_CAPACITY: Mapping[tuple[str, ...], Range] = _paths(
    "per_s low high after.per_s after.low after.high", _FROM_0
)


def unreadable(
    given: object, expected: Mapping[tuple[str, ...], Range]
) -> Iterator[str]:
    """What is said and is no number in its range, in words; null is not said."""
    for names, (least, most) in expected.items():
        found = given
        for name in names:
            if found is not None:
                found = found.get(name) if isinstance(found, dict) else _NO_OBJECT
        if found is not None and finite(found, least, most) is None:
            yield f"{'.'.join(names)} is no number {_WORDS[least, most]}"


def _with_logs(folder: Path, runs: Sequence[Run], problems: list[str]) -> Iterator[Run]:
    """The runs with what their logs say; as they are when no log can be read."""
    try:
        made = report([str(folder)])
    except LogError as error:
        problems.extend(printable(str(said)) for said in error.args)
        yield from runs
        return
    problems.extend(printable(said) for said in made.files.unread)
    found: dict[Path, RunReport] = {}
    for log in made.runs:
        places = {Path(path).parent.resolve() for path in log.paths}
        if len(places) > 1:
            names = ", ".join(sorted(place.name for place in places))
            problems.append(
                f"{plural(len(places), 'run')} cannot be told apart by their logs"
                f" ({printable(names)}): same policy, parameters and name."
            )
            continue
        found[places.pop()] = log
    for run in runs:
        log_of = found.get(run.folder.resolve())
        yield replace(run, log=log_of, **_shown_by(log_of)) if log_of else run


def _shown_by(log: RunReport) -> dict[str, Any]:
    return {
        "finding": log.finding.word,
        "refused": log.answers.refused_enforced,
        "says": log.finding.says,
    }


def findings(runs: Iterable[Run]) -> dict[str, dict[str, Any]]:
    """What each run's log shows, by the run's folder: what `experiment.json` keeps."""
    return {
        f"{run.folder.parent.name}/{run.folder.name}": {
            "word": run.finding,
            "refused": run.refused,
            "says": list(run.says),
        }
        for run in runs
        if run.log is not None
    }


def _with_findings(
    folder: Path, runs: Sequence[Run], stated: Mapping[str, Any], problems: list[str]
) -> Iterator[Run]:
    """Those without a log with what the experiment kept of it."""
    kept, taken = _mapping(stated.get("findings")), 0
    for run in runs:
        told = _mapping(kept.get(run.folder.relative_to(folder).as_posix()))
        word, refused, says = (told.get(one) for one in ("word", "refused", "says"))
        if run.log is not None or word not in FINDINGS:
            yield run
            continue
        taken += 1
        yield replace(
            run,
            finding=word,
            refused=whole(refused),
            says=tuple(map(str, says)) if isinstance(says, list) else (),
        )
    if taken:
        problems.append(
            f"{plural(taken, 'run')} without a log: whether they fired is taken from"
            f" {EXPERIMENT}."
        )


# ------------------------------------------------------------------------ design


def _design(
    stated: Mapping[str, Any], runs: Sequence[Run], problems: list[str]
) -> Design:
    """As stated; where it is not, what the runs show."""
    said = _mapping(stated.get("design"))
    shown = _shown(runs)
    try:
        return Design(
            arms=tuple(map(str, said.get("arms", shown.arms))),
            loads=tuple(map(_above_0, said.get("loads", shown.loads))),
            blocks=_count(said.get("blocks", shown.blocks), 1, MOST_BLOCKS),
            baseline=str(said.get("baseline", shown.baseline)),
            margin=_above_0(said.get("margin", shown.margin), 1),
            seed=_count(said.get("seed", shown.seed)),
            aa=bool(said.get("aa", shown.aa)),
        )
    except (TypeError, ValueError):
        problems.append(f"{EXPERIMENT}: the design makes no sense; the runs' is taken.")
        return shown


def _first(given: object) -> Design | None:
    """The design that was planned first; None = not said, or not whole."""
    said = _mapping(given)
    try:
        return Design(
            arms=tuple(map(str, said["arms"])),
            loads=tuple(map(_above_0, said["loads"])),
            blocks=_count(said["blocks"], 1, MOST_BLOCKS),
            baseline=str(said["baseline"]),
            margin=_above_0(said["margin"], 1),
        )
    except (KeyError, TypeError, ValueError):
        return None


def _above_0(given: object, most: float = LARGEST) -> float:
    found = finite(given, 0, most)
    if not found:
        raise ValueError
    return found


def _count(given: object, least: float = -LARGEST, most: float = LARGEST) -> int:
    found = whole(given, least, most)
    if found is None:
        raise ValueError
    return found


def _planned(design: Design, runs: Sequence[Run], problems: list[str]) -> Sequence[Run]:
    """The runs of planned cells; an earlier design may have left others."""
    cells, arms = set(design.cells()), set(design.arms)
    kept = [run for run in runs if run.arm in arms and (run.load, run.block) in cells]
    if not kept:
        problems.append(f"{EXPERIMENT}: no run is of its design; the runs' is taken.")
        return runs
    if more := len(runs) - len(kept):
        problems.append(f"{plural(more, 'run')} of no planned cell: left out.")
    return kept


def _shown(runs: Sequence[Run]) -> Design:
    return Design(
        arms=tuple(dict.fromkeys(run.arm for run in runs)),
        loads=tuple(sorted({run.load for run in runs})),
        blocks=max(run.block for run in runs),
    )
