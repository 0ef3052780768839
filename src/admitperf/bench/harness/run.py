"""One run: one arm, met by one block at one load, and the folder it leaves.

    manifest.json    what was run, and how far it came
    decisions.jsonl  the policy's log but for its outcomes
    outcomes.jsonl   the outcomes, and a line for each call that was planned
    summary.json     what came of it

A folder has its name only when it is whole; until then the name begins with a dot.
"""

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from pickle import loads
from platform import python_version
from typing import Any

from admitperf._version import __version__
from admitperf.bench.callers.callers import Callers, Plan, planned
from admitperf.bench.callers.client import Client
from admitperf.bench.callers.metrics import installed
from admitperf.bench.callers.records import CallRecord, line
from admitperf.bench.callers.score import score
from admitperf.bench.design.steady import trend
from admitperf.bench.harness.alone import nominal_s
from admitperf.bench.harness.calibrate import Calibration
from admitperf.bench.harness.target import Arm, Target
from admitperf.bench.place import telling
from admitperf.bench.workloads.workload import Workload
from admitperf.core.clock import SYSTEM
from admitperf.core.digest import blake2b
from admitperf.core.notes import Note
from admitperf.core.record import dumps
from admitperf.simulator.streams import stream

MADE_BY = "admitperf bench"
"""A note in each log."""

MANIFEST, SUMMARY = "manifest.json", "summary.json"
DECISIONS, OUTCOMES = "decisions.jsonl", "outcomes.jsonl"

OPENS_S = 0.1
"""What would begin sooner begins then: a host looks at its engine before it takes the
first request. Longer than a look takes; plain choice."""

_FULL = (429, 503)
"""Statuses with which an engine says that it is full."""

_RUN, _OUTCOME = '{"k":"run"', '{"k":"outcome"'


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What all runs of an experiment share. Can be pickled.

    Attributes:
        experiment: its name.
        folder: where its runs go.
        basis: hash of what the calibration follows from.
        target, workload, client: what is driven, what is asked, by whom.
        calibration: what the runs go by.
        claims: what the experiment is to show; part of every plan's hash.
        baseline: name of the arm the others are held against.
        deadlines: callers send their deadline along.
        gpu_cost_per_hour: of one engine; None = not given.
        seed: of the experiment.
    """

    experiment: str
    folder: Path
    basis: str
    target: Target
    workload: Workload
    client: Client
    calibration: Calibration
    claims: tuple[str, ...]
    baseline: str
    deadlines: bool
    gpu_cost_per_hour: float | None
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One run to do. Can be pickled.

    Attributes:
        arm: the policy.
        load: multiple of the capacity, as stated.
        rate_per_s: beginnings a second.
        block: from 1.
        position: from 0, among the arms of its block.
        order: from 0, among all runs of the experiment.
        name: of the run in its log; differs between arms of one policy.
        twin: whether it is the baseline a second time, before an engine whose noise and
            whose scraper's delays are others: two runs of the same, not one twice.
    """

    arm: Arm
    load: float
    rate_per_s: float
    block: int
    position: int
    order: int
    name: str
    twin: bool = False

    @property
    def place(self) -> str:
        """Its folder's name within its arm's."""
        return f"x{self.load:g}-b{self.block}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What a run says to whoever waits for it. Can be pickled.

    Attributes:
        job: which.
        again: it was there already, from an earlier start.
        plan: hash of what was offered.
        seconds: wall time; of one that was there already, what it took then.
        goodput: as a fraction; None = it cannot be asked.
    """

    job: Job
    again: bool
    plan: str
    seconds: float
    goodput: float | None


def run_one(setup: Setup, job: Job) -> Done:
    """Does one run, unless its folder is there and was made the same way.

    Raises:
        AdmitPerfError: a policy cannot be had so, a folder cannot be written, or the
            engine cannot be driven.
        ValueError: a call can never fit into the engine, or nothing begins.
    """
    plan = _plan(setup, job)
    folder = setup.folder / job.arm.name / job.place
    config = _config(setup, job)
    if there := _there(folder, plan.hash, config):
        return _done(job, there, again=True)
    part = folder.with_name(f".{job.place}.part")
    with telling(part):
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
    manifest = _Running(setup, job, plan, config, part).manifest()
    with telling(folder):
        shutil.rmtree(folder, ignore_errors=True)
        part.rename(folder)
    return _done(job, manifest, again=False)


def _done(job: Job, manifest: Mapping[str, Any], *, again: bool) -> Done:
    told = manifest["plan"], manifest["seconds"], manifest["goodput"]
    plan, seconds, goodput = told
    return Done(job=job, again=again, plan=plan, seconds=seconds, goodput=goodput)


def _there(folder: Path, plan: str, config: str) -> dict[str, Any] | None:
    """The manifest of a whole run made the same way; None = there is none."""
    try:
        told = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        same = told["complete"] and (told["plan"], told["config"]) == (plan, config)
        return dict(told) if same and (folder / SUMMARY).is_file() else None
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _config(setup: Setup, job: Job) -> str:
    """What, with the plan, makes two runs runs of the same thing."""
    arm = job.arm
    text = dumps(
        {
            "basis": setup.basis,
            "calibration": setup.calibration.document(),
            "arm": [arm.policy, dict(arm.parameters), dict(arm.provenance), arm.url],
            "target": setup.target.notes(),
            "name": job.name,
            "cost": setup.gpu_cost_per_hour,
            "version": __version__,
        }
    )
    return blake2b(text.encode(), digest_size=8).hexdigest()


# --------------------------------------------------------------------------- plan


def _plan(setup: Setup, job: Job) -> Plan:
    """What all arms of a block meet; the arms come one after the other."""
    wanted = (job.rate_per_s, job.block)
    if _latest.get("setup") is not setup or _latest["wanted"] != wanted:
        _latest.update(plan=plan(setup, *wanted), setup=setup, wanted=wanted)
    found: Plan = _latest["plan"]
    return found


_latest: dict[str, Any] = {}


def plan(setup: Setup, rate_per_s: float, block: int) -> Plan:
    """What one block offers at one rate.

    Args:
        setup: of the experiment.
        rate_per_s: beginnings a second.
        block: from 1; 0 is the one that is looked at before the experiment.

    Raises:
        ValueError: nothing begins.
    """
    told = setup.calibration
    begun = setup.workload.begun(rate_per_s, told.lasts_s, _seed(setup.seed, block))
    made = planned(
        ((max(at_s, OPENS_S), session) for at_s, session in begun),
        told.lasts_s,
        told.scored_s,
        setup.client,
        told.classes,
        setup.claims,
        noun=setup.workload.noun,
    )
    if not made.offered:
        rate = f"{rate_per_s:g} {setup.workload.noun}s a second"
        first_s, end_s = told.scored_s
        said = f"nothing begins from {first_s:g} to {end_s:g} s at {rate}"
        raise ValueError(f"{said}: make runs longer, by --for or --calls")
    return made


def _seed(seed: int, block: int) -> int:
    return stream(seed, f"block/{block}").getrandbits(48)


def _engine_seed(seed: int, job: Job) -> int:
    """Of the engine's noise and the scraper's delays: the arms', and the twin's own."""
    if not job.twin:
        return _seed(seed, job.block)
    return stream(seed, f"block/{job.block}/twin").getrandbits(48)


def callers(setup: Setup, made: Plan, block: int) -> Callers:
    """Who asks what is planned."""
    told = setup.calibration
    return Callers(
        made,
        setup.client,
        _seed(setup.seed, block),
        told.classes,
        told.deadlines_s if setup.deadlines else None,
    )


# ---------------------------------------------------------------------------- run


@dataclass(frozen=True, slots=True)
class _Running:
    """A run under way in its unfinished folder."""

    setup: Setup
    job: Job
    plan: Plan
    config: str
    part: Path

    def manifest(self) -> dict[str, Any]:
        """Runs it, writes its files, and says what was run."""
        began_ns = SYSTEM.monotonic_ns()
        setup, job = self.setup, self.job
        probe_ms = setup.target.probe()
        asking = callers(setup, self.plan, job.block)
        log = self.part / DECISIONS
        driven = setup.target.drive(
            job.arm,
            log,
            asking,
            seed=_engine_seed(setup.seed, job),
            notes=self._notes(),
            slo=setup.calibration.log_slo,
            run=job.name,
            experiment=setup.experiment,
            until_s=setup.calibration.until_s,
        )
        records = asking.records()
        with telling(log):
            _split(log, self.part / OUTCOMES, records)
        summary = self._summary(records, driven.decide_ns, driven.seconds)
        manifest = {
            **self._identity(),
            "probe_ms": probe_ms,
            "restarts": getattr(driven, "restarts", None),  # of wall time only
            "instrument": dict(getattr(driven, "facts", {})),
            "trend": _trend(records),
            "sessions": dict(asking.tally()),
            "goodput": summary["goodput"],
            "ran_s": driven.seconds,
            "complete": True,
            "seconds": round((SYSTEM.monotonic_ns() - began_ns) / 1e9, 3),
        }
        write(self.part / SUMMARY, summary)
        write(self.part / MANIFEST, manifest)
        return manifest

    def _notes(self) -> dict[str, Note]:
        """What the log says of the run; answers all seven items of a report."""
        setup, job = self.setup, self.job
        capacity = setup.calibration.capacity
        # the rate in a log is that of calls, and a refusal ends a session
        load = "session_load" if setup.workload.noun == "session" else "load"
        return {
            "made_by": MADE_BY,
            **setup.target.notes(),
            "workload": setup.workload.words(),
            "scaling": setup.workload.scaling(),
            **setup.workload.notes(),
            "client": setup.client.words(setup.workload.noun),
            "baseline": setup.baseline,
            "arm": job.arm.name,
            "block": job.block,
            "plan": self.plan.hash,
            "seed": setup.seed,
            "capacity_per_s": round(capacity.calls_per_s, 4),
            load: round(job.load, 3),
            "slo_from": setup.calibration.said(),
        }

    def _identity(self) -> dict[str, Any]:
        setup, job, told = self.setup, self.job, self.setup.calibration
        return {
            "schema": 1,
            "made_by": MADE_BY,
            "version": __version__,
            "python": python_version(),
            "experiment": setup.experiment,
            "run": job.name,
            "arm": job.arm.name,
            "policy": job.arm.policy,
            "parameters": dict(job.arm.parameters),
            "provenance": dict(job.arm.provenance),
            "url": job.arm.url,
            "load": job.load,
            "block": job.block,
            "position": job.position,
            "order": job.order,
            "rate_per_s": job.rate_per_s,
            "load_reached": _reached(self.plan, told),
            "plan": self.plan.hash,
            "config": self.config,
            "calls_planned": sum(len(one.calls) for _, one in self.plan.begun),
            "calls_offered": self.plan.offered,
            "client": asdict(setup.client),
            "slo": {"from": told.slo_from, "classes": told.document()["slo"]},
            "warmup_s": told.warmup_s,
            "scored_s": list(told.scored_s),
            "lasts_s": told.lasts_s,
            "until_s": told.until_s,
            "notes": self._notes(),
            "simulated": setup.target.simulated,
        }

    def _summary(
        self, records: Sequence[CallRecord], decide_ns: Sequence[int], seconds: float
    ) -> dict[str, Any]:
        setup, told = self.setup, self.setup.calibration
        notes = setup.target.notes()
        replicas = notes.get("replicas")
        unloaded_s = {
            session.name: nominal_s(session, told.classes, told.alone)
            for _, session in self.plan.begun
        }
        summary = score(
            records,
            told.slo,
            unloaded_s=unloaded_s if told.alone else None,
            decide_ns=decide_ns,
            seconds=seconds,
            gpu_cost_per_hour=setup.gpu_cost_per_hour,
            replicas=replicas if isinstance(replicas, int) else 1,
            metrics=tuple(installed().values()),
            scored_s=told.scored_s,
        )
        return {
            **summary.document(),
            "errors": _errors(records),
            "short": _short(records),
        }


def _reached(made: Plan, told: Calibration) -> float:
    """What began in the run, as a multiple of the capacity."""
    count = sum(not session.begun_before for _, session in made.begun)
    return round(count / made.lasts_s / told.capacity.per_s, 4)


def _errors(records: Sequence[CallRecord]) -> dict[str, int]:
    """Calls that neither the policy nor a limit of the engine kept from an answer."""
    scored = [record for record in records if record.scored]
    failed = [one for one in scored if one.ended == "failed"]
    n = sum(one.status not in _FULL for one in failed)
    return {"n": n, "of": len(scored)}


def _short(records: Sequence[CallRecord]) -> dict[str, int]:
    """Whole answers with fewer tokens than the plan says they have."""
    whole = [one for one in records if one.ended == "answered"]
    return {
        "n": sum(one.got_tokens < one.output_tokens for one in whole),
        "of": len(whole),
    }


def _trend(records: Sequence[CallRecord]) -> dict[str, float] | None:
    """Of the time to first token over the calls that are scored."""
    seen = [
        (record.due_s, record.ttft_ms)
        for record in records
        if record.scored and record.due_s is not None and record.ttft_ms is not None
    ]
    if not seen:
        return None
    at_s, ttft_ms = zip(*seen, strict=True)
    return asdict(trend(at_s, ttft_ms))


# -------------------------------------------------------------------------- files


def write(path: Path, told: Mapping[str, Any]) -> None:
    """Writes a JSON file whole, or not at all.

    Raises:
        DemoError: it cannot be written.
    """
    new = path.with_name(f".{path.name}.new")
    with telling(path):
        text = json.dumps(told, indent=2, allow_nan=False) + "\n"
        new.write_text(text, encoding="utf-8")
        new.replace(path)


def _split(log: Path, outcomes: Path, records: Sequence[CallRecord]) -> None:
    """Moves outcomes into a file of their own, behind the run's header."""
    kept = log.with_name(f".{log.name}.new")
    with (
        log.open(encoding="utf-8") as whole,
        kept.open("w", encoding="utf-8") as decisions,
        outcomes.open("w", encoding="utf-8") as moved,
    ):
        first = True
        for text in whole:
            if text.startswith(_OUTCOME):
                moved.write(text)
                continue
            decisions.write(text)
            if first and text.startswith(_RUN):
                moved.write(text)
                first = False
        moved.writelines(_lines(records))
    kept.replace(log)


def _lines(records: Sequence[CallRecord]) -> Iterator[str]:
    for one in records:
        yield dumps(line(one)) + "\n"


# ------------------------------------------------------------- in another process


@dataclass(frozen=True, slots=True)
class Task:
    """A run for another process: where the setup lies, and which run.

    Attributes:
        setup: a file of this session's, with the pickled setup.
        job: which run.
    """

    setup: str
    job: Job


def run_task(task: Task) -> Done:
    """Does a run in a process that reads the setup once."""
    return run_one(_read(task.setup), task.job)


@lru_cache(maxsize=1)
def _read(path: str) -> Setup:
    made: Setup = loads(Path(path).read_bytes())  # noqa: S301  our own, of this session
    return made
