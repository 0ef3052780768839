"""Runs: one policy before one engine, and the line that is kept of it.

A record is the same for the same job, but for `cpu_s` and `decide_us`. All arms that
meet the same tasks stand in one group, which one process runs in order: what an arm
takes from another (`thin_protect`) is there when it comes.
"""

import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from functools import cache
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.sessions.cells import (
    Calibrated,
    Cell,
    calibrated,
    caller,
    patient_s,
    target,
)
from benchmarks.sessions.controls import CONTROLS, share_for

from admitperf.bench.callers.callers import Callers, planned
from admitperf.bench.callers.records import CallRecord
from admitperf.bench.callers.score import Summary, score
from admitperf.bench.callers.slo import Slo
from admitperf.bench.callers.under_way import OpenCall
from admitperf.bench.demo.demo import WALL_S
from admitperf.bench.harness.virtual import SCRAPE_INTERVAL_S
from admitperf.core.decision import Decision
from admitperf.core.notice import hushed
from admitperf.core.policy import Policy
from admitperf.core.snapshot import Snapshot
from admitperf.reports.quantile import nearest_rank
from admitperf.simulator import Answer, Arrival, Scraping, Setting, VirtualClock, run

Record = dict[str, Any]
"""One line: where and what was run, and what came of it; `run_one` has its members."""

Place = tuple[Cell, int]
"""A cell and a block: jobs of one place meet the same tasks."""

RECORDS = Path(__file__).parent / "records"
CPU = RECORDS / "cpu.jsonl"

LASTS_S = 1_400.0
"""For how long tasks begin; PROTOCOL.md says why."""

LASTS = {"weka": 7_200.0, "fan-out": 300.0, "short": 600.0, "polls": 900.0}
"""The same by mix and by client, where tasks are so large that few would begin, or so
many, or asked for so often, that a run would take over 3 s."""

FIRST_SEED = {"train": 100}
FINAL_SEED = 2_000
"""Before the first block's, by mix. Those from 1,001 went into trials of this harness,
in which results were seen, and are used up."""

SHORT_CALLS = 15
"""Most calls of a task that is reported as a short one."""

BLIND_MOST = 0.01
"""Share of decisions that may be blind. Origin: the product brief, 9."""

LOOKED_UP_S = 0.05
"""A calibration that takes less processor time was known already."""

PROCESSES = 2


class Job(NamedTuple):
    """One run.

    Attributes:
        stage: screen, final, shift or extra.
        cell: where.
        block: from 1; it decides which tasks begin when.
        arm: its name in the records.
        policy: its class's name, installed or of `controls`.
        parameters: the policy's.
        engine: sizes of the engine that are this arm's own.
        like: the arm whose number of tasks it lets in; None = it takes nothing.
        lasts_s: for how long tasks begin; None = as the mix has it.
    """

    stage: str
    cell: Cell
    block: int
    arm: str
    policy: str
    parameters: Mapping[str, object] = {}
    engine: Mapping[str, object] = {}
    like: str | None = None
    lasts_s: float | None = None

    @property
    def seed(self) -> int:
        """Of everything that is drawn in it."""
        return FIRST_SEED.get(self.cell.mix, FINAL_SEED) + self.block

    @property
    def place(self) -> Place:
        """Where it is run."""
        return self.cell, self.block

    @property
    def key(self) -> str:
        """What makes it the run it is."""
        said = (self.parameters, self.engine, self.lasts_s)
        text = json.dumps(said, sort_keys=True)
        where = f"{self.stage} {self.cell.label} {self.block}"
        return f"{where} {self.arm} {self.policy} {text}"


# ------------------------------------------------------------------------ policies


class Tally:
    """Mixed into a policy: counts its comparisons and the reasons it refused for."""

    def decided(self, metrics: Snapshot, d: Decision) -> object:
        """Counts an answer, and hands it on."""
        gates: dict[str, list[int]] = vars(self).setdefault("tally_gates", {})
        for gate in d.gates:
            count = gates.setdefault(gate.name, [0, 0])
            count[0] += 1
            count[1] += gate.held
        refused: Counter[str] = vars(self).setdefault("tally_refused", Counter())
        if not d.admitted:
            refused[d.reason or ""] += 1
        if d.blind is not None:
            vars(self).setdefault("tally_blind", Counter())[d.blind] += 1
        return super().decided(metrics, d)  # type: ignore[misc]


@cache
def found(name: str) -> type[Policy]:
    """A policy's class by its name, of `controls` or of the package.

    Raises:
        ModuleNotFoundError: there is none.
    """
    if name in CONTROLS:
        return CONTROLS[name]
    module = import_module(f"admitperf.policies.{name}")
    return next(
        one
        for one in vars(module).values()
        if isinstance(one, type) and issubclass(one, Policy) and one.name == name
    )


@cache
def _tallied(name: str) -> type[Policy]:
    cls = found(name)
    return type(cls.__name__, (Tally, cls), {"__doc__": cls.__doc__})


def made(name: str, parameters: Mapping[str, object], clock: VirtualClock) -> Policy:
    """A policy that counts what it compares.

    Raises:
        ConfigError: it has no such parameters.
    """
    reserved: dict[str, Any] = {"clock": clock, "reports_outcomes": True}
    return _tallied(name)(**reserved, **parameters)


# ----------------------------------------------------------------------------- one run


class Polling(Callers):
    """Callers who give up when a patient one would have, whatever they were told."""

    def _wait_s(
        self, call: OpenCall, arrival: Arrival, at_s: float, answer: Answer
    ) -> float | None:
        wait_s = super()._wait_s(call, arrival, at_s, answer)
        if wait_s is None or at_s + wait_s - call.due_s > patient_s():
            return None
        return wait_s


class Silent(Callers):
    """Callers of whom none says that a call is its task's last."""

    def first(self) -> Iterator[Arrival]:
        """What begins each task."""
        return map(_unmarked, super().first())

    def after(self, arrival: Arrival, at_s: float, answer: Answer) -> Iterable[Arrival]:
        """What an answer leads to."""
        return map(_unmarked, super().after(arrival, at_s, answer))


def _unmarked(arrival: Arrival) -> Arrival:
    return replace(arrival, session_final=False)


def _callers(cell: Cell) -> type[Callers]:
    if cell.mix == "no_final":
        return Silent
    return Polling if cell.client == "polls" else Callers


def place_of(record: Record) -> Place:
    """Where a record was made."""
    where = (record[name] for name in Cell._fields)
    return Cell(*where), record["block"]


def run_one(job: Job, let_in: int | None = None) -> Record:
    """Runs a job.

    Args:
        job: which.
        let_in: tasks that are to be let in; None = the policy decides.

    Returns:
        Where it was (`stage` to `parameters`) and the hash of its plan. Of the scored
        tasks: how many were offered, good, completed, refused at the start, killed and
        let in; `count` and `work`, good of offered; `short` and `long`, good and
        offered of at most 15 calls and of more; `jain` over tenants, None = there are
        none; `wasted_share` of computed tokens; TTFT p95 of served calls in ms, None =
        too few; attempts and refusals. Of all calls: how often each gate was asked and
        held, refusals by reason, decisions, and what one took in microseconds (p50,
        p99). Its virtual seconds, the capacity that its load is of, its processor
        time, and LIVE, INERT (it refused nothing) or BASELINE.

    Raises:
        RuntimeError: the policy failed in a hook, or refused because it was blind.
    """
    cell, seed = job.cell, job.seed
    engine = _calibrated(cell)
    begin_s = time.process_time()
    lasts_s = job.lasts_s or LASTS.get(cell.mix) or LASTS.get(cell.client, LASTS_S)
    begun = engine.work.begun(cell.load * engine.per_s, lasts_s, seed)
    client = caller(cell.client)
    plan = planned(begun, lasts_s, (0.0, lasts_s), client)
    callers = _callers(cell)(plan, client, seed)
    parameters = dict(job.parameters)
    alone_s = {s.name: engine.task_s(s) for at_s, s in begun if plan.scores(at_s, s)}
    if let_in is not None:
        parameters |= {"seed": seed, "share": share_for(seed, alone_s, let_in)}
    clock = VirtualClock(WALL_S)
    with hushed(), made(job.policy, parameters, clock) as policy:
        setting = Setting(
            model=target(cell.engine, **job.engine).model,
            scraping=Scraping(interval_s=SCRAPE_INTERVAL_S),
            seed=seed,
        )
        driven = run(policy, clock, callers, setting)
    _refuse_failed(job, policy, len(driven.decide_ns))
    records = callers.records()
    summary = score(records, Slo(), unloaded_s=alone_s)
    return {
        **_where(job, parameters),
        "plan": plan.hash,
        **_worth(summary),
        **_tasks([one for one in records if one.scored], alone_s),
        **_tallies(policy),
        "decisions": len(driven.decide_ns),
        "decide_us": [
            round(nearest_rank(sorted(driven.decide_ns), share) / 1e3, 1)
            for share in (0.5, 0.99)
        ],
        "seconds": round(driven.seconds, 3),
        "capacity_per_s": round(engine.per_s, 6),
        "cpu_s": round(time.process_time() - begin_s, 3),
    }


def _calibrated(cell: Cell) -> Calibrated:
    """As `cells.calibrated`; the time it takes is no run's, and counted by itself."""
    begin_s = time.process_time()
    engine = calibrated(cell.engine, cell.mix)
    took_s = time.process_time() - begin_s
    if took_s > LOOKED_UP_S:
        _spent({"stages": ["calibration"], "runs": 0, "cpu_s": round(took_s, 3)})
    return engine


def _refuse_failed(job: Job, policy: Policy, decisions: int) -> None:
    """A policy whose hook raised goes on, and nobody would hear of it.

    Nor of one that was blind; before the first reading all are.
    """
    said = [one for one in policy._said if one.endswith("_failed")]  # noqa: SLF001
    blind: Counter[str] = vars(policy).get("tally_blind", Counter())
    if said or blind.total() > BLIND_MOST * decisions:
        raise RuntimeError(f"{job.key}: {'; '.join((*said, *blind))}")


def _where(job: Job, parameters: Mapping[str, object]) -> Record:
    return {
        "stage": job.stage,
        **job.cell._asdict(),
        "block": job.block,
        "seed": job.seed,
        "arm": job.arm,
        "policy": job.policy,
        "parameters": {**parameters, **job.engine},
    }


def _worth(summary: Summary) -> Record:
    tasks, work = summary.sessions, summary.work
    return {
        "offered": tasks["offered"],
        "good": tasks["good"],
        "count": summary.session_goodput,
        "work": summary.session_work_goodput,
        "offered_work": work["offered"],
        "completed": tasks["completed"],
        "refused_at_start": tasks["refused_at_start"],
        "killed": tasks["killed"],
        "let_in": (tasks["offered"] or 0) - (tasks["refused_at_start"] or 0),
        "wasted_share": summary.wasted_share,
        "ttft_p95_ms": summary.ttft_served_ms["p95"],
        "refusals": summary.refusals,
        "attempts": summary.attempts,
    }


def _tasks(records: Iterable[CallRecord], alone_s: Mapping[str, float]) -> Record:
    """Good tasks and all, of few calls and of more, and how even tenants fared."""
    tasks: dict[str, list[CallRecord]] = {name: [] for name in alone_s}
    for one in records:
        tasks[one.session].append(one)
    good = {name for name, calls in tasks.items() if _good(calls, alone_s[name])}
    small = {name for name, calls in tasks.items() if len(calls) <= SHORT_CALLS}
    tenants: dict[str | None, list[str]] = {}
    for name, calls in tasks.items():
        tenants.setdefault(calls[0].tenant, []).append(name)
    shares = [len(good & {*names}) / len(names) for names in tenants.values()]
    return {
        "short": [len(good & small), len(small)],
        "long": [len(good - small), len(tasks) - len(small)],
        "jain": None if None in tenants else _jain(shares),
    }


def _good(calls: Sequence[CallRecord], alone_s: float) -> bool:
    if not all(one.served for one in calls):
        return False
    begun_s = min(one.due_s for one in calls if one.due_s is not None)
    ended_s = max(one.ended_s for one in calls if one.ended_s is not None)
    return ended_s - begun_s <= Slo().task_factor * alone_s


def _jain(shares: Sequence[float]) -> float | None:
    squares = sum(share**2 for share in shares)
    return float(sum(shares) ** 2 / len(shares) / squares) if squares else None


def _tallies(policy: Policy) -> Record:
    counted = vars(policy)
    refused = dict(sorted(counted.get("tally_refused", {}).items()))
    finding = "LIVE" if refused else "INERT"
    if policy.baseline:
        finding = "BASELINE"
    gates = dict(sorted(counted.get("tally_gates", {}).items()))
    return {"gates": gates, "refused": refused, "finding": finding}


# ------------------------------------------------------------------------- many runs


def run_group(jobs: Sequence[Job], known: Sequence[Record] = ()) -> list[Record]:
    """Jobs that meet the same tasks, in their order.

    One that is another's under a second name is run once, and the second time costs
    nothing.

    Args:
        jobs: of one place.
        known: records of the place that were made before.
    """
    made = list(known)
    for job in jobs:
        twin = None if job.like else _twin(job, made)
        if twin is not None:
            made.append({**twin, "stage": job.stage, "arm": job.arm, "cpu_s": 0.0})
        else:
            made.append(run_one(job, _let_in(job, made)))
    return made[len(known) :]


def _twin(job: Job, made: Sequence[Record]) -> Record | None:
    same = (job.policy, {**job.parameters, **job.engine})
    alike = (one for one in made if (one["policy"], one["parameters"]) == same)
    return next(alike, None)


def _let_in(job: Job, made: Sequence[Record]) -> int | None:
    if job.like is None:
        return None
    return next(int(one["let_in"]) for one in made if one["arm"] == job.like)


def groups(jobs: Iterable[Job]) -> list[list[Job]]:
    """Jobs by place, in the order in which places come first."""
    places: dict[Place, list[Job]] = {}
    for job in jobs:
        places.setdefault(job.place, []).append(job)
    return list(places.values())


class Group(NamedTuple):
    """Jobs of one place, and what came of them.

    Attributes:
        jobs: as they were given.
        records: theirs; none where one of them failed.
        error: of the one that failed; None = all went well.
    """

    jobs: Sequence[Job]
    records: Sequence[Record]
    error: BaseException | None


def run_all(
    jobs: Iterable[Job],
    known: Mapping[Place, Sequence[Record]] | None = None,
    processes: int = PROCESSES,
) -> Iterator[Group]:
    """Runs jobs in processes; what came of a place as soon as it is done.

    What they took is added to the ledger of processor time.
    """
    context = get_context("spawn")
    known = known or {}
    with ProcessPoolExecutor(processes, mp_context=context) as pool:
        waiting = {
            pool.submit(run_group, group, known.get(group[0].place, ())): group
            for group in groups(jobs)
        }
        for one in as_completed(waiting):
            error = one.exception()
            records = [] if error else one.result()
            if records:
                spent(records)
            yield Group(waiting[one], records, error)


def spent(records: Sequence[Record]) -> None:
    """Adds what runs took to the ledger of processor time."""
    total = sum(one["cpu_s"] for one in records)
    stages = sorted({one["stage"] for one in records})
    _spent({"stages": stages, "runs": len(records), "cpu_s": round(total, 3)})


def _spent(line: Mapping[str, object]) -> None:
    RECORDS.mkdir(exist_ok=True)
    with CPU.open("a") as file:
        file.write(json.dumps(line) + "\n")
