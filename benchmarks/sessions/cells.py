"""The engines, what they carry, and the cells in which arms are compared."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from benchmarks.sessions.mix import workload

from admitperf.bench.callers.client import Client, client
from admitperf.bench.harness.alone import Classes, Unloaded, nominal_s, unloaded
from admitperf.bench.harness.virtual import VirtualTarget
from admitperf.bench.workloads.pooled import Pooled
from admitperf.core.digest import blake2b
from admitperf.simulator.capacity import with_agents
from admitperf.simulator.profile import profile
from admitperf.simulator.traffic.sessions import Session, sessions_hash

PROFILE = "a100-40-qwen2.5-7b"
ENGINES: Mapping[str, Mapping[str, object]] = {
    "kv": {"max_num_seqs": 64, "max_model_len": None},
    "slots": {"max_num_seqs": 6, "kv_blocks": 250_000, "max_model_len": None},
    "prefill": {
        "max_num_seqs": 64,
        "kv_blocks": 250_000,
        "max_model_len": None,
        "ms_per_prefill_token": 0.4,
    },
}
"""What differs from the profile, by what binds; PROTOCOL.md says why."""

CLIENTS = ("patient", "impatient")
LOADS = (0.8, 1.2, 1.5, 2.0)
LOAD = 1.5
"""At which is screened, and at which controls run."""

CALIBRATION_SEED = 1
AGENTS = (2, 4, 6, 8, 12, 16, 24, 32)
DRAWS = (1, 2, 3, 4)
"""With which capacity is measured."""

CAPACITIES = Path(__file__).parent / "records" / "capacity.json"
"""What was measured so far, which takes some seconds each: by engine and mix, with a
digest of all that it follows from."""

POLL_S = 2.0
"""How often `polls` asks again."""


class Cell(NamedTuple):
    """Where arms meet the same tasks.

    Attributes:
        mix: of the tasks, as in the records.
        engine: one of `ENGINES`.
        client: patient, impatient, deaf or polls.
        load: of the measured capacity.
    """

    mix: str
    engine: str
    client: str
    load: float

    @property
    def label(self) -> str:
        """Its name in a table."""
        return f"{self.mix}/{self.engine}/{self.client}/{self.load:g}"


class Calibrated(NamedTuple):
    """What one engine does with one mix when no policy stands before it.

    Attributes:
        work: the mix, as it fits the engine.
        per_s: tasks it ends a second under full load.
        classes: of calls.
        alone: latency without load, by class.
    """

    work: Pooled
    per_s: float
    classes: Classes
    alone: Mapping[str, Unloaded]

    def task_s(self, session: Session) -> float:
        """How long a task takes when nothing else runs."""
        return nominal_s(session, self.classes, self.alone)


def target(engine: str, **changed: object) -> VirtualTarget:
    """An engine; `changed` are further sizes."""
    return VirtualTarget(
        profile=profile(PROFILE), engine={**ENGINES[engine], **changed}
    )


@cache
def calibrated(engine: str, mix: str) -> Calibrated:
    """Measures an engine with a mix, once a process."""
    alike = "final" if mix in ("burst", "no_final") else mix
    if alike != mix:  # the same tasks; only when they begin differs
        work = workload(mix, target(engine).longest_tokens())
        return calibrated(engine, alike)._replace(work=work)
    one = target(engine)
    work = workload(mix, one.longest_tokens())
    pool = work.pool()
    classes = Classes.of(pool)
    begun = [(0.0, session) for session in pool]
    said = f"{one.model} {sessions_hash(begun)} {classes} {AGENTS} {DRAWS}"
    key = f"{engine}/{mix} {blake2b(said.encode(), digest_size=8).hexdigest()}"
    known = _kept().get(key) or _measure(key, one, pool, classes)
    alone = {name: Unloaded(**one) for name, one in known["alone"].items()}
    return Calibrated(work, known["per_s"], classes, alone)


def _kept() -> dict[str, Any]:
    read: dict[str, Any] = {}
    if CAPACITIES.exists():
        read = json.loads(CAPACITIES.read_text())
    return read


def _measure(
    key: str, one: VirtualTarget, pool: Sequence[Session], classes: Classes
) -> dict[str, Any]:
    """Measures, and keeps it in the file; another process may do so meanwhile."""
    alone = unloaded(one, pool, classes, CALIBRATION_SEED)
    plain = {name: asdict(one) for name, one in alone.items()}
    found = {"per_s": capacity_per_s(one, pool), "alone": plain}
    text = json.dumps({**_kept(), key: found}, indent=2, sort_keys=True)
    CAPACITIES.parent.mkdir(exist_ok=True)
    whole = CAPACITIES.with_suffix(f".{os.getpid()}")
    whole.write_text(text + "\n")
    whole.replace(CAPACITIES)
    return found


def capacity_per_s(one: VirtualTarget, pool: Sequence[Session]) -> float:
    """Tasks an engine ends a second for agents without end and without a policy.

    Of as many agents as get most, on average over some draws: one draw alone hangs on
    when the longest tasks come.
    """
    calls = fmean(len(session.calls) for session in pool)
    return (
        max(
            fmean(with_agents(one.model, pool, agents, seed)[0] for seed in DRAWS)
            for agents in AGENTS
        )
        / calls
    )


def caller(name: str) -> Client:
    """A client model by its name in the records."""
    if name != "polls":
        return client(name)
    every = {"first_wait_s": POLL_S, "most_wait_s": POLL_S, "factor": 1.0}
    return client("patient", tries=1 + int(patient_s() / POLL_S), **every)


def patient_s() -> float:
    """How long a patient client waits in all at a call, in seconds, on average.

    Its own waits and no Retry-After that is longer.
    """
    one = client("patient")
    waits = (one.first_wait_s * one.factor**n for n in range(one.tries - 1))
    own_s = sum(min(one.most_wait_s, wait_s) for wait_s in waits)
    return own_s * (1 + one.jitter / 2)
