"""Agent sessions before a real vLLM 0.32 on a processor, through the gateway.

    python benchmarks/bench_vllm_sessions.py                runs it, writes the page
    python benchmarks/bench_vllm_sessions.py --blocks 1     a trial: no page
    python benchmarks/bench_vllm_sessions.py --page FOLDER  the page of runs made before

One server with prefix caching, whose cache holds about four agents' contexts, and in
front of it, for each run, an `admitperf gateway` of its own with one policy. Agents ask
with a prompt that grows, at 1.5 times what the server carries without a policy. Each
arm meets the same blocks of sessions in random order.

Needs what `infra/vllm/build.sh` installs, and two quiet cores for about 20 minutes.
"""

import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from bench_vllm import BUILT, RESULTS, end, free_port, served, wait_for
from machine import machine

from admitperf.bench.callers.callers import Callers, Plan, planned
from admitperf.bench.callers.client import client
from admitperf.bench.callers.records import CallRecord
from admitperf.bench.callers.score import Summary, score
from admitperf.bench.callers.slo import TASK_FACTOR, Slo
from admitperf.bench.design.design import Design
from admitperf.bench.design.results import EXPERIMENT
from admitperf.bench.harness.alone import Classes, Unloaded, nominal_s, unloaded
from admitperf.bench.harness.capacity import Capacity, capacity
from admitperf.bench.harness.executors import Here
from admitperf.bench.harness.http import HttpTarget
from admitperf.bench.harness.http_run import WallDriven
from admitperf.bench.harness.target import Arm
from admitperf.bench.workloads.agents import Agents
from admitperf.bench.workloads.pooled import Pooled
from admitperf.bench.workloads.workload import Recorded
from admitperf.core.clock import SYSTEM
from admitperf.core.errors import PolicyNotFound
from admitperf.policies import load
from admitperf.reports.comparison.statistics import least_sign_flip_p
from admitperf.reports.comparison.verdict import Paired, in_family
from admitperf.reports.report import RunReport, report
from admitperf.reports.wording import counted, number, plural

NAME = "vllm-sessions"
BLOCKS, LOAD, LASTS_S, SEED = 4, 1.5, 18.0, 1
WARM_S = 4.0
"""Sessions that begin sooner are not scored: each gateway is new and has to learn. By
plain choice about as long as one session."""

MARGIN = 0.02
"""The smallest gain that matters; that of the protocol of the simulated evidence."""

SLOTS, KV_BLOCKS, BLOCK_SIZE = 16, 201, 32  # vLLM keeps one block for itself
ENGINE = (
    *("--max-model-len", "4096", "--max-num-seqs", str(SLOTS)),
    *("--num-gpu-blocks-override", str(KV_BLOCKS), "--enable-prefix-caching"),
)
"""Beside what `bench_vllm` serves with, whose own words these come after."""

AGENTS = Agents(
    name="agent",
    calls=(4, 30),
    first_tokens=(600, 1_200),
    new_tokens=(10, 60),
    output_tokens=(4, 12),
    max_output_tokens=16,
    gap_s=0.15,
    shared_tokens=256,
)
"""Contexts of 1,300 tokens on average. Plain choices: so that a call takes 0.15 s with
its prefix in the cache and three times that without, and a session a few seconds."""

POOL = 400  # more sessions than all blocks begin
LONG_CALLS = 15
"""Sessions with more calls are told apart, as in the protocol."""

FASTER = 10.0
"""These agents' tools take a tenth of what real ones' do (0.15 s for 1.5 s), and so all
waits of clients and of policies are a tenth of their defaults."""

CLIENT = client("patient", first_wait_s=1 / FASTER, most_wait_s=30 / FASTER)

LEASE = {"lease_s": 120 / FASTER}
LEDGER = {"half_life_s": 30 / FASTER, "longest_wait_s": 10 / FASTER, **LEASE}
NOBODY = Arm(name="no_admission", policy="no_admission")
ARMS = (
    NOBODY,
    Arm(name="kv_threshold", policy="kv_threshold", parameters={"threshold": 0.7}),
    Arm(name="in_flight_cap", policy="in_flight_cap", parameters={"max_in_flight": 4}),
    Arm(
        name="thunder",
        policy="thunder_inspired",
        parameters={"tick_s": 5 / FASTER, **LEASE},
    ),
    Arm(
        name="protect",
        policy="session_ledger",
        parameters={"mode": "protect", **LEDGER},
    ),
    Arm(name="shed", policy="session_ledger", parameters={"mode": "shed", **LEDGER}),
    Arm(
        name="aimd",
        policy="session_aimd",
        parameters={
            "period_s": 2 / FASTER,
            "cool_down_s": 8 / FASTER,
            "ttft_ms": 30_000 / FASTER,
            **LEASE,
        },
    ),
)
"""The threshold and the cap by plain choice: the cap is as many agents as the server
carries best. Nothing was tuned on this server."""

CLAIMED = {"protect": "work", "shed": "count", "aimd": "work"}
"""The metric that each new arm is for, set before any run; on it, it is held against
each of the others."""

CALL = "from admitperf.cli import main; main()"
READY_S = 30.0
LOOK_S = 1.0
"""Seconds between the instrument's own looks at the server, which take 10 ms of a core
each. The gateway looks four times as often."""

LATE_MS = 50.0
"""p99 of how late calls were sent, or the most of a few calls, above which a run is no
evidence; as in `admitperf bench`."""

RUNS, LOG = "runs.jsonl", "decisions.jsonl"
COUNTERS = {
    "queried": "vllm:prefix_cache_queries_total",
    "hit": "vllm:prefix_cache_hits_total",
}
"""Prompt tokens that vLLM looked up in its cache, and those it found."""


# ----------------------------------------------------------------------- the gateway


@contextmanager
def gateway(url: str, arm: Arm, folder: Path) -> Iterator[str]:
    """Address of a new gateway with an arm's policy; its log lies in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    port, config = free_port(), folder / "gateway.yaml"
    config.write_text(json.dumps(document(url, port, arm, folder)), encoding="utf-8")
    command = [sys.executable, "-c", CALL, "gateway", "--config", str(config)]
    with (folder / "gateway.txt").open("wb") as out:
        child = subprocess.Popen(
            command, stdout=out, stderr=subprocess.STDOUT, start_new_session=True
        )
    with suppress(OSError):  # first like the instrument, or the server holds it up
        os.sched_setscheduler(child.pid, os.SCHED_RR, os.sched_param(1))
    try:
        wait_for(child, port, folder / "gateway.txt", "/ready", READY_S)
        yield f"http://127.0.0.1:{port}"
    finally:
        end(child)


def document(url: str, port: int, arm: Arm, folder: Path) -> dict[str, Any]:
    """A gateway's file, which may as well be JSON."""
    pool = {
        "upstreams": [{"url": url, "slots": SLOTS}],
        "policy": {"name": arm.policy, "params": dict(arm.parameters)},
        "log": str(folder / LOG),
    }
    return {
        "listen": f"127.0.0.1:{port}",
        "pools": [pool],
        "server": {"drain_s": 1},
    }


class Front(HttpTarget):
    """The server behind a gateway, which is looked at past the gateway.

    Args:
        front: the gateway's address.
        url: the server's.
    """

    def __init__(self, front: str, url: str) -> None:
        super().__init__(front, f"{url}/metrics", scrape_interval_s=LOOK_S)

    def counters(self) -> dict[str, float]:
        """What the server has counted so far."""
        page = self.reading().raw
        return {name: total(page, key) for name, key in COUNTERS.items()}


def total(page: Mapping[str, object], name: str) -> float:
    """A counter of a metrics page, over its labels."""
    return sum(
        value
        for key, value in page.items()
        if key.partition("{")[0] == name and isinstance(value, float)
    )


# ------------------------------------------------------------- what is measured first


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What the server does without a policy.

    Attributes:
        workload: what is offered.
        classes: calls whose whole prompt is new, and the others.
        alone: how fast those are when nothing else runs.
        per_s: sessions a second that it carries.
    """

    workload: Pooled
    classes: Classes
    alone: Mapping[str, Unloaded]
    per_s: float

    def plan(self, block: int, lasts_s: float) -> Plan:
        """The sessions of a block, and when they begin."""
        begun = self.workload.begun(LOAD * self.per_s, lasts_s, SEED + block)
        return planned(begun, lasts_s, (WARM_S, lasts_s), CLIENT)

    def unloaded_s(self, plan: Plan) -> dict[str, float]:
        """How long each session would last with nobody else there."""
        return {
            session.name: nominal_s(session, self.classes, self.alone)
            for _, session in plan.begun
        }

    def until_s(self, plan: Plan) -> float:
        """When the last one that counts can no longer be good."""
        took_s = self.unloaded_s(plan)
        ends_s = (
            at_s + TASK_FACTOR * took_s[session.name]
            for at_s, session in plan.begun
            if plan.scores(at_s, session)
        )
        return max(ends_s, default=plan.lasts_s)

    def document(self) -> dict[str, Any]:
        """Its latency without load, as plain data."""
        took_s = [
            nominal_s(one, self.classes, self.alone) for one in self.workload.pool()
        ]
        return {
            "alone": {name: asdict(one) for name, one in self.alone.items()},
            "median_s": statistics.median(took_s),
        }


def offered() -> Pooled:
    """The agents, as a workload."""
    pool = tuple(AGENTS.sessions(POOL, SEED))
    made = Recorded(
        name="agents", begun=None, pool=pool, said=AGENTS.words(), synthetic=True
    )
    return Pooled(name="agents", recorded=made)


def measured(url: str, folder: Path, per_s: float | None) -> tuple[Known, Capacity]:
    """Measures the server through a gateway that refuses nothing.

    Args:
        url: the server's.
        folder: for that gateway.
        per_s: sessions a second that are taken for its capacity; None = measure it.
    """
    workload = offered()
    classes = Classes.of(workload.pool())
    with gateway(url, NOBODY, folder) as front:
        target = Front(front, url)
        alone = unloaded(target, workload.pool(), classes, SEED)
        found = carried(target, workload, per_s)
    known = Known(workload=workload, classes=classes, alone=alone, per_s=found.per_s)
    return known, found


def carried(target: Front, workload: Pooled, per_s: float | None) -> Capacity:
    """The capacity in sessions a second, measured or given."""
    if per_s is None:
        return capacity(target, workload, Here(), None)
    return Capacity(
        unit="session",
        per_s=per_s,
        low=per_s,
        high=per_s,
        calls=1.0,
        clients=0,
        n=0,
        answers=0,
    )


# ----------------------------------------------------------------------------- a run


def ran(url: str, known: Known, arm: Arm, plan: Plan, folder: Path) -> dict[str, Any]:
    """One run: an arm meets a plan. What came of it, as plain data."""
    callers = Callers(plan, CLIENT, SEED)
    with gateway(url, arm, folder) as front:
        target = Front(front, url)
        before = target.counters()
        made = drive(target, callers, folder.name, known.until_s(plan))
        after = target.counters()
    records = callers.records()
    took_s = known.unloaded_s(plan)
    summary = score(records, Slo(), unloaded_s=took_s, scored_s=plan.scored_s)
    return {
        "arm": arm.name,
        "policy": arm.policy,
        "parameters": dict(arm.parameters),
        "load": LOAD,
        "plan": plan.hash,
        **scored(summary, records, took_s),
        "hit_share": share_of(before, after),
        **told(made),
        **logged(folder),
    }


def drive(target: Front, callers: Callers, name: str, until_s: float) -> WallDriven:
    """Lets the callers ask; the policy is the gateway's, here is none."""
    return target.drive(
        NOBODY,
        None,
        callers,
        seed=SEED,
        notes={},
        slo=None,
        run=name,
        experiment=NAME,
        until_s=until_s,
    )


def scored(
    summary: Summary, records: Sequence[CallRecord], took_s: Mapping[str, float]
) -> dict[str, Any]:
    """What a run was worth, over the sessions that the plan offered."""
    sessions, work = summary.sessions, summary.work
    return {
        "offered": sessions["offered"],
        "good": sessions["good"],
        "count": summary.session_goodput,
        "work": summary.session_work_goodput,
        "offered_work": work["offered"],
        **{fate: sessions[fate] for fate in FATES},
        "wasted_share": summary.wasted_share,
        "short": by_length(records, took_s, long=False),
        "long": by_length(records, took_s, long=True),
        "ttft_p95_ms": summary.ttft_served_ms["p95"],
        "ttft_offered_p95_ms": summary.ttft_offered_ms["p95"],
        "calls": {"offered": summary.offered, "answered": summary.answered},
        "failed": summary.ended["failed"],
        "attempts": summary.attempts,
        "refusals": summary.refusals,
        "outside": summary.outside,
    }


FATES = ("completed", "refused_at_start", "killed", "unfinished")


def by_length(
    records: Sequence[CallRecord], took_s: Mapping[str, float], *, long: bool
) -> list[int]:
    """Good and offered sessions of at most `LONG_CALLS` calls, or of more."""
    counts = Counter(one.session for one in records)
    some = [one for one in records if (counts[one.session] > LONG_CALLS) == long]
    sessions = score(some, Slo(), unloaded_s=took_s).sessions
    return [sessions["good"] or 0, sessions["offered"] or 0]


def share_of(before: Mapping[str, float], after: Mapping[str, float]) -> float | None:
    """Prompt tokens that the server found in its cache, of those it looked up."""
    queried = after["queried"] - before["queried"]
    return (after["hit"] - before["hit"]) / queried if queried else None


def told(made: WallDriven) -> dict[str, Any]:
    """What the instrument saw of itself and of the server."""
    late: Any = made.facts["late_ms"]
    return {
        "late_ms": late["max"] if late["p99"] is None else late["p99"],
        "seconds": round(made.seconds, 3),
        "preemptions": made.facts.get("preemptions"),
        "restarts": made.restarts,
        "quiet_before": made.facts.get("quiet_before"),
        "first_goes": made.facts.get("realtime"),
    }


def logged(folder: Path) -> dict[str, Any]:
    """What the gateway's log says: whether the policy fired, and which gates held."""
    found = report([str(folder / LOG)]).runs
    if len(found) != 1:
        return {"finding": "UNKNOWN", "gates": {}, "refused": {}, "sessions_named": 0}
    return {
        "finding": found[0].finding.word,
        "says": list(found[0].finding.says[:2]),
        "gates": gates(found[0]),
        "refused": refused(found[0]),
        "sessions_named": found[0].facts.get("session", 0),
    }


def gates(run: RunReport) -> dict[str, list[int]]:
    """Decisions that asked for each, and those in which it held, over its bounds."""
    told = dict[str, list[int]]()
    for gate in run.gates:
        asked, held_ = told.get(gate.signal, [0, 0])
        told[gate.signal] = [asked + gate.evaluated, held_ + gate.true]
    return told


def refused(run: RunReport) -> dict[str, int]:
    """Attempts that were turned away, by reason."""
    rows = run.answers.rows
    counts = Counter[str]()
    for row in rows:
        counts[row.reason] += row.turned_away
    return {reason: n for reason, n in counts.items() if n}


# ----------------------------------------------------------------------- all of them


def run(arms: Sequence[Arm], asked: argparse.Namespace, root: Path) -> Path:
    """Runs all of it; the folder with what came of it."""
    began_ns = SYSTEM.monotonic_ns()
    root.mkdir(parents=True, exist_ok=True)
    print("starting a server", flush=True)
    with served(root / "vllm.log", *ENGINE) as url:
        notes = HttpTarget(url).notes()
        known, before = measured(url, root / "before", asked.capacity)
        print(f"carries {before.per_s:.3f} sessions a second", flush=True)
        with (root / RUNS).open("w", encoding="utf-8") as out:
            for record in runs(url, known, arms, asked, root):
                out.write(json.dumps(record, allow_nan=False) + "\n")
                out.flush()
        after = None if asked.capacity else again(url, known, before, root / "after")
    about = {
        "target": notes,
        "config": {"root": None},  # where it was run is nobody else's folder
        "blocks": asked.blocks,
        "lasts_s": asked.seconds,
        "capacity": before.document(),
        "after": after and after.document(),
        **known.document(),
        "seconds": (SYSTEM.monotonic_ns() - began_ns) / 1e9,
        "machine": machine(),
    }
    (root / EXPERIMENT).write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
    return root


def runs(
    url: str,
    known: Known,
    arms: Sequence[Arm],
    asked: argparse.Namespace,
    root: Path,
) -> Iterator[dict[str, Any]]:
    """Block by block, the arms of each in an order of its own."""
    design = Design(
        arms=tuple(arm.name for arm in arms), loads=(LOAD,), blocks=asked.blocks
    )
    by_name, n = {arm.name: arm for arm in arms}, 0
    for block in range(1, asked.blocks + 1):
        plan = known.plan(block, asked.seconds)
        for position, name in enumerate(design.order(LOAD, block)):
            n += 1
            found = ran(url, known, by_name[name], plan, root / f"{name}-b{block}")
            print(f"{n} of {design.runs}  {line(found, block)}", flush=True)
            yield {"block": block, "position": position, **found}


def line(found: Mapping[str, Any], block: int) -> str:
    """What came of a run, for whoever waits."""
    fates = " ".join(f"{fate} {found[fate]}" for fate in FATES)
    return (
        f"b{block} {found['arm']}: good {found['good']} of {found['offered']}, work"
        f" {shown(found['work'])}; {fates}; hits {shown(found['hit_share'])},"
        f" {found['finding']}, {found['seconds']:.0f} s"
    )


def again(url: str, known: Known, before: Capacity, folder: Path) -> Capacity:
    """The capacity once more, to see whether the server is still the same."""
    with gateway(url, NOBODY, folder) as front:
        return capacity(Front(front, url), known.workload, Here(), before)


def shown(value: float | None) -> str:
    """A share, to two digits."""
    return "--" if value is None else f"{value:.2f}"


# ------------------------------------------------------------------------- judgement


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What was run.

    Attributes:
        about: of all of it.
        runs: as they came.
    """

    about: Mapping[str, Any]
    runs: Sequence[Mapping[str, Any]]

    @classmethod
    def read(cls, folder: Path) -> "Evidence":
        """From the two files of a folder."""
        lines = (folder / RUNS).read_text(encoding="utf-8").splitlines()
        about = json.loads((folder / EXPERIMENT).read_text(encoding="utf-8"))
        return cls(about=about, runs=[json.loads(one) for one in lines])

    @property
    def arms(self) -> list[str]:
        """Their names, in the order of `ARMS`."""
        there = {one["arm"] for one in self.runs}
        return [arm.name for arm in ARMS if arm.name in there]

    def of(self, arm: str) -> list[Mapping[str, Any]]:
        """The runs of an arm, by block."""
        mine = (one for one in self.runs if one["arm"] == arm)
        return sorted(mine, key=lambda one: int(one["block"]))

    def values(self, arm: str, name: str) -> list[float]:
        """A number of each of them; one that is not known counts as 0."""
        return [float(one[name] or 0.0) for one in self.of(arm)]

    def sum(self, arm: str, name: str) -> int:
        """The same over all blocks."""
        return round(sum(self.values(arm, name)))

    def middle(self, arm: str, name: str) -> float | None:
        """Median over the blocks in which it is known."""
        known = [one[name] for one in self.of(arm) if one[name] is not None]
        return statistics.median(known) if known else None


Claim = tuple[str, str, str, Paired]
"""Arm, metric, the arm it is held against, and what their blocks say."""


def claims(seen: Evidence) -> list[Claim]:
    """Each arm of `CLAIMED` against each of the others, on the metric that it is for.

    One family: the p of all that came out above 0 are raised together.
    """
    pairs = [
        (arm, metric, other)
        for arm, metric in CLAIMED.items()
        for other in seen.arms
        if arm in seen.arms and other not in CLAIMED
    ]
    found = in_family(
        [
            Paired.of(seen.values(arm, metric), seen.values(other, metric), MARGIN)
            for arm, metric, other in pairs
        ]
    )
    return [(*pair, one) for pair, one in zip(pairs, found, strict=True)]


def broken(seen: Evidence) -> Iterator[str]:
    """Why this is no evidence, in sentences; none = nothing is known against it."""
    for one in seen.runs:
        yield from (f"{where(one)}: {said}." for said in faults(one))
    plans = {(one["block"], one["plan"]) for one in seen.runs}
    if len(plans) > len({block for block, _ in plans}):
        yield "Not all arms of a block met the same plan."
    yield from asleep(seen)
    yield from drifted(seen.about)


def faults(one: Mapping[str, Any]) -> Iterator[str]:
    """What was wrong with a run."""
    if one["failed"]:
        yield f"{plural(one['failed'], 'call')} failed that nobody had refused"
    if one["restarts"]:
        yield "the server began anew"
    if one["late_ms"] > LATE_MS:
        yield f"calls were sent {one['late_ms']:.0f} ms late (p99)"
    if not one["sessions_named"]:
        yield "the gateway was told of no session"
    if one["finding"] == "UNKNOWN":
        yield "whether its policy fired is not known"


def asleep(seen: Evidence) -> Iterator[str]:
    """Arms that could not have done anything."""
    for arm in seen.arms:
        words = Counter(one["finding"] for one in seen.of(arm))
        if words["INERT"]:
            yield f"`{arm}` never fired in {plural(words['INERT'], 'run')} (INERT)."


def drifted(about: Mapping[str, Any]) -> Iterator[str]:
    """Whether the server was another one at the end."""
    before, after = about["capacity"], about["after"]
    if after is None:
        yield "The capacity was not measured, or not again at the end."
    elif before["high"] < after["low"] or after["high"] < before["low"]:
        yield (
            f"The capacity was {before['per_s']:.3f} sessions a second at first, and"
            f" {after['per_s']:.3f} at the end: the intervals do not overlap."
        )


def where(one: Mapping[str, Any]) -> str:
    """A run's name."""
    return f"`{one['arm']}` in block {one['block']}"


# --------------------------------------------------------------------------- the page


def written(folder: Path) -> Path:
    """Writes the page and the runs it rests on; the page."""
    seen = Evidence.read(folder)
    name = f"{seen.about['machine']['date']}-{NAME}"
    place = RESULTS / name
    if place.resolve() != folder.resolve():
        place.mkdir(parents=True, exist_ok=True)
        for file in (RUNS, EXPERIMENT):
            shutil.copyfile(folder / file, place / file)
    found = RESULTS / f"{name}.md"
    found.write_text("\n".join(lines(seen, name)) + "\n", encoding="utf-8")
    return found


def lines(seen: Evidence, name: str) -> Iterator[str]:
    """The page, line by line."""
    target = seen.about["target"]
    yield f"# Whole agent sessions before a real vLLM {target['engine_version']}"
    head = "<!-- written by benchmarks/bench_vllm_sessions.py, nothing by hand -->"
    yield from ("", head, "", *setting(seen))
    against = [f"- {said}" for said in broken(seen)]
    for title, told_lines in (
        ("What came out", table(seen)),
        ("What the server did", inside(seen)),
        ("What can be claimed", claimed(seen)),
        ("What does not hold", against or ["No check fails."]),
        ("Cannot see", unseen(seen)),
        ("How to reproduce it", again_by(seen, name)),
    ):
        yield from ("", f"## {title}", "", *told_lines)


def setting(seen: Evidence) -> Iterator[str]:
    """What was measured, on what."""
    target, own = seen.about["target"], seen.about["machine"]
    first = all(one["first_goes"] for one in seen.runs)
    yield (
        f"{own['date']}. {target['engine']} {target['engine_version']}, its build for"
        " processors, with a model of 19.3 million random weights and prefix caching,"
        f" on {target['hardware']}; AdmitPerf {own['admitperf']}, Python"
        f" {own['python']}. Before it, for each run, a new `admitperf gateway` with one"
        " policy. Gateway and instrument run on the same cores"
        f"{', and go first' if first else ''}. No time here carries over to a GPU."
    )
    yield ""
    yield (
        f"The KV cache holds {(KV_BLOCKS - 1) * BLOCK_SIZE:,} tokens, and what is"
        " offered are made-up"
        f" {AGENTS.words()}; {AGENTS.shared_tokens} tokens of all prompts are the same."
        " Prompts are token ids, and each holds the one before it and its answer, so"
        " that the cache is hit or missed for real; no two runs share a prompt."
    )
    yield ""
    yield from loaded(seen)


def loaded(seen: Evidence) -> Iterator[str]:
    """What it carries, what it was offered, and what counts as good."""
    about, carried_ = seen.about, seen.about["capacity"]
    per_run = seen.sum(seen.arms[0], "offered") / max(1, len(seen.of(seen.arms[0])))
    yield (
        f"Measured first, without a policy: {carried_['per_s']:.3f} sessions a second"
        f" (95 % interval {carried_['low']:.3f} to {carried_['high']:.3f}) with"
        f" {carried_['clients']} agents at once, and {about['median_s']:.1f} s for the"
        f" median session with nobody else there. Sessions begin at {LOAD:g} times that"
        f" rate for {about['lasts_s']:g} s; those of the first {WARM_S:g} s are not"
        f" scored, and about {per_run:.0f} of a run are. It ends when none of them can"
        " be good any more. A session is good when all its calls were"
        f" answered within {TASK_FACTOR:g} times its unloaded duration."
    )
    yield ""
    yield (
        f"The client {CLIENT.words()}. It names its session and says which call is the"
        " last. Tools take a tenth of the time here that the simulated evidence gives"
        " them, so the client's waits, and leases and ticks of policies, are a tenth of"
        f" their defaults. {plural(about['blocks'], 'block')} of"
        f" {plural(len(seen.arms), 'arm')}, {about['seconds'] / 60:.0f} minutes in all."
    )


def table(seen: Evidence) -> Iterator[str]:
    """A row for each arm: what came of the sessions it was offered."""
    yield (
        "| arm | count | work | completed | refused at start | killed | unfinished |"
        f" good of at most {LONG_CALLS} calls | of more | wasted |"
        " TTFT p95 of those offered | TTFT p95 of those served |"
    )
    yield f"|---|{'---|' * 11}"
    for arm in seen.arms:
        offered_ = seen.sum(arm, "offered")
        fates = " | ".join(f"{seen.sum(arm, fate)} of {offered_}" for fate in FATES)
        yield (
            f"| {called(seen, arm)} | {spread(seen, arm, 'count')} |"
            f" {spread(seen, arm, 'work')} | {fates} | {parts(seen, arm, 'short')} |"
            f" {parts(seen, arm, 'long')} | {percent(seen.middle(arm, 'wasted_share'))}"
            f" | {' | '.join(tails(seen, arm))} |"
        )
    yield ""
    yield (
        "count: good sessions of those offered, mean of the blocks and their range;"
        " work: the same weighted by new prompt tokens and answers. killed: refused"
        " after it had begun; unfinished: under way when no session could be good any"
        " more. wasted: tokens computed for sessions that were not completed. The last"
        " three columns are of the middle run; the time to a first token counts waits"
        " and refusals, and a call that was not served is infinite among those offered."
    )


def inside(seen: Evidence) -> Iterator[str]:
    """A row for each arm: what the server and the gateway's log say."""
    heads = "refused | refused of those not scored | finding | gates that held"
    yield f"| arm | prefix hits | preempted | {heads} |"
    yield f"|---|{'---|' * 6}"
    for arm in seen.arms:
        of = seen.of(arm)
        findings = counted(Counter(one["finding"] for one in of))
        yield (
            f"| `{arm}` | {spread(seen, arm, 'hit_share')} |"
            f" {seen.sum(arm, 'preemptions')} |"
            f" {seen.sum(arm, 'refusals')} of {seen.sum(arm, 'attempts')} |"
            f" {outside(of)} |"
            f" {findings} | {held(of)} |"
        )
    yield ""
    yield (
        "prefix hits: of the prompt tokens that vLLM looked up in its cache, by its own"
        " counters. preempted: requests that lost their place in it. refused: attempts;"
        " those of sessions that are not scored stand apart, since an arm that refuses"
        " mostly these clears its own way. finding: of each run, by the gateway's log;"
        " gates: decisions in which it held, of those that asked."
    )


def outside(of: Iterable[Mapping[str, Any]]) -> str:
    """Refusals of attempts of sessions that are not scored, over the runs of an arm."""
    told = [one["outside"] for one in of]
    refusals = sum(one["refusals"] for one in told)
    return f"{refusals} of {sum(one['attempts'] for one in told)}"


def held(of: Iterable[Mapping[str, Any]]) -> str:
    """Gates over the runs of an arm."""
    asked, true = Counter[str](), Counter[str]()
    for one in of:
        for name, (evaluated, held_) in one["gates"].items():
            asked[name] += evaluated
            true[name] += held_
    return ", ".join(f"{name} {true[name]} of {asked[name]}" for name in asked) or "--"


def claimed(seen: Evidence) -> Iterator[str]:
    """What the blocks show, and what they could have shown."""
    found, blocks = claims(seen), seen.about["blocks"]
    yield (
        "The arms of `session_ledger` and `session_aimd` were each held, on the metric"
        " that it is for and no other, against each of the others. Less than 6 blocks"
        f" cannot give a sign-flip p under 0.05 (with {blocks} the least is"
        f" {number(least_sign_flip_p(blocks))}), so none is given. An arm is called"
        " better when the 95 % interval lies above 0, no block of one arm lies within"
        f" the range of the other, the mean is at least {MARGIN:g}, and the p of the t"
        " test is under 0.05 after Holm's procedure over all that came out above 0."
    )
    yield ""
    heads = "difference | 95 % interval | apart | p | MDE | verdict"
    yield f"| arm | metric | against | {heads} |"
    yield f"|---|{'---|' * 8}"
    for arm, metric, other, one in found:
        yield f"| `{arm}` | {metric} | `{other}` | {judged(one)} |"
    yield ""
    yield (
        "apart: whether the ranges are. p: of the t test, after Holm. MDE: the smallest"
        " true difference that this spread would show with 80 % power."
    )


def judged(one: Paired) -> str:
    """The last six cells of a row."""
    mean = "--" if one.mean is None else f"{one.mean:+.3f}"
    if one.interval is None:
        return f"{mean} | -- | -- | -- | -- | not asked"
    raised = one.t_p if one.family_p is None else one.family_p
    return (
        f"{mean} | {one.interval.low:+.3f} to {one.interval.high:+.3f} |"
        f" {'yes' if one.ranges_apart else 'no'} | {number(raised)} |"
        f" {number(one.smallest_effect)} | {one.word if one.asked else 'not asked'}"
    )


def unseen(seen: Evidence) -> Iterator[str]:
    """What this cannot show, whatever came out."""
    yield "- How fast anything is on a GPU, or with a model that is of use."
    yield (
        f"- Small differences: {plural(seen.about['blocks'], 'block')} of a few"
        " sessions each show those above the MDE, and no others."
    )
    yield f"- Whether an arm does harm below capacity: {LOAD:g}x was run, and no other."
    yield (
        "- What the arms could do when tuned: all parameters here are plain choices, or"
        " defaults, with times divided by ten. The simulated evidence tunes them."
    )
    yield (
        "- Real agents: these are made up, of one kind and one tenant, and share"
        " little. Nor more than one server, a cache on several levels, or clients who"
        " name no session."
    )
    yield (
        "- Policies at their own pace: bounds of theirs that are no parameters, such as"
        " the least wait of `session_aimd`, are for tasks that take minutes."
    )
    yield "- Policies that guess the length of an answer: here its bound is its length."
    yield (
        "- What the gateway costs where it has a core of its own: here all share two."
    )


def again_by(seen: Evidence, name: str) -> Iterator[str]:
    """How to make it again."""
    yield (
        "`make bench-vllm-sessions` installs vLLM, runs it, and writes this page; it"
        f" takes two quiet cores and {seen.about['seconds'] / 60:.0f} minutes."
        f" All {len(seen.runs)} runs are in `{name}/{RUNS}`, a line each, with the plan"
        " they met, every parameter, and what their logs say."
    )


def called(seen: Evidence, arm: str) -> str:
    """An arm with its policy and its parameters."""
    one = seen.of(arm)[0]
    given = ", ".join(f"{key}={value}" for key, value in one["parameters"].items())
    policy = "" if one["policy"] == arm else f" {one['policy']}"
    return f"`{arm}`{policy}{f' {given}' if given else ''}"


def spread(seen: Evidence, arm: str, name: str) -> str:
    """Mean and range over the blocks."""
    values = seen.values(arm, name)
    mean, low, high = statistics.fmean(values), min(values), max(values)
    return f"{mean:.3f} ({low:.2f} to {high:.2f})"


def parts(seen: Evidence, arm: str, name: str) -> str:
    """Good of offered over all blocks."""
    pairs = [one[name] for one in seen.of(arm)]
    return f"{sum(good for good, _ in pairs)} of {sum(of for _, of in pairs)}"


def percent(share: float | None) -> str:
    """A share in percent."""
    return "--" if share is None else f"{100 * share:.1f} %"


def tails(seen: Evidence, arm: str) -> Iterator[str]:
    """The time to a first token of the middle run, among those offered and served."""
    offered_ = seen.middle(arm, "ttft_offered_p95_ms")
    known = sum(one["ttft_offered_p95_ms"] is not None for one in seen.of(arm))
    often = 2 * known > len(seen.of(arm))
    yield milliseconds(offered_) if often else "infinite"
    yield milliseconds(seen.middle(arm, "ttft_p95_ms"))


def milliseconds(value: float | None) -> str:
    """A time; too few calls were served when there is none."""
    return "--" if value is None else f"{value:.0f} ms"


# ------------------------------------------------------------------------------ main


def installed(names: Sequence[str] | None) -> list[Arm]:
    """The arms that were asked for, and whose policies are there."""
    chosen = [arm for arm in ARMS if not names or arm.name in names]
    found = list[Arm]()
    for arm in chosen:
        try:
            load(arm.policy)
        except PolicyNotFound as error:
            print(f"without {arm.name}: {error}", flush=True)
        else:
            found.append(arm)
    return found


def options() -> argparse.Namespace:
    """What was asked for on the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--blocks", type=int, default=BLOCKS, help="fewer: a trial")
    parser.add_argument("--seconds", type=float, default=LASTS_S, help="of a run")
    parser.add_argument("--arms", nargs="+", help="some only: a trial")
    parser.add_argument("--capacity", type=float, help="sessions a second: a trial")
    parser.add_argument("--root", type=Path, help="where runs go; a new folder")
    parser.add_argument("--page", type=Path, help="write the page of this folder")
    given = parser.parse_args()
    if not (BUILT / "venv" / "ready").exists() and not given.page:
        parser.error("there is no vLLM: sh infra/vllm/build.sh")
    return given


def main() -> None:
    """Runs it, and writes the page."""
    asked = options()
    folder = asked.page
    if folder is None:
        root = asked.root or Path(mkdtemp(prefix=f"admitperf-{NAME}-"))
        print(f"runs go to {root}", flush=True)
        folder = run(installed(asked.arms), asked, root)
    if asked.page is None and (asked.blocks < BLOCKS or asked.arms or asked.capacity):
        print("\n".join(lines(Evidence.read(folder), folder.name)))
        return
    print(f"wrote {written(folder)}")


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    main()
