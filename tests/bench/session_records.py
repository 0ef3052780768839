"""Synthetic records of the evidence about sessions, for its page's tests."""

from random import Random

from benchmarks.sessions.arms import METRICS
from benchmarks.sessions.cells import CLIENTS, LOAD, LOADS
from benchmarks.sessions.evidence import ARMS, ENGINES, MODES, OF_METRIC, SHIFTED

BLOCKS = range(1, 9)
CONTROLS = (
    "memoryless_protect", "memoryless_shed",
    "vllm_queued_tokens:count", "vllm_queued_tokens:work",
)  # fmt: skip
NAMES = [
    name
    for arm in ARMS
    for name in ([f"{arm}:{m}" for m in METRICS] if arm in OF_METRIC else [arm])
]
ABOUT = {
    "machine": {
        "cpu": "a processor",
        "cores": 2,
        "python": "3.11",
        "admitperf": "0.1.0",
        "date": "2026-11-30",
    },
    "spent": {"try": [6, 3.6], "final": [100, 60.0]},
}

RECORD = {
    "policy": "no_admission",
    "parameters": {},
    "offered": 100,
    "good": 60,
    "offered_work": 1000,
    "completed": 61,
    "refused_at_start": 30,
    "killed": 5,
    "let_in": 66,
    "wasted_share": 0.001,
    "short": [40, 60],
    "long": [20, 40],
    "ttft_p95_ms": 3200.0,
    "refusals": 210,
    "attempts": 1800,
    "jain": 0.98,
    "gates": {
        "ledger_kv": [1000, 100],
        "ledger_slots": [1000, 50],
        "ledger_prefill": [1000, 10],
        "task_wait_s": [1000, 5],
    },
    "refused": {"kv_headroom": 100},
    "decisions": 2000,
    "decide_us": [20.0, 60.0],
    "seconds": 2000.0,
    "capacity_per_s": 0.03,
    "cpu_s": 0.5,
    "finding": "LIVE",
}


def level(arm, load, metric):
    """Each mode far before all on its metric; all alike where nothing binds."""
    if load < 1:
        return 0.9
    if MODES.get(arm) == metric:
        return 0.7
    return 0.6 if arm in MODES else 0.5


def record(arm, block, mix="final", engine="kv", client="patient", load=LOAD):
    """One run whose metrics are their levels and a little noise."""
    noise = Random(f"{arm} {block} {mix} {engine} {client} {load}")
    return {
        **RECORD,
        "stage": "shift" if mix in SHIFTED else "final",
        "mix": mix,
        "engine": engine,
        "client": client,
        "load": load,
        "block": block,
        "seed": 1000 + block,
        "arm": arm,
        "plan": f"{mix} {engine} {client} {load} {block}",
        **{m: level(arm, load, m) + noise.uniform(-0.004, 0.004) for m in METRICS},
    }


def cells():
    """What is run, and the arms that are run there."""
    for engine in ENGINES:
        for client in CLIENTS:
            for load in LOADS:
                controls = CONTROLS if load == LOAD else ()
                yield ("final", engine, client, load), (*NAMES, *controls)
        for client in ("deaf", "polls"):
            yield ("final", engine, client, LOAD), NAMES
        yield ("burst", engine, "patient", LOAD), NAMES
    yield ("no_final", "kv", "patient", LOAD), NAMES
    for mix in (*SHIFTED, "fan-out", "short"):
        for client in CLIENTS:
            yield (mix, "kv", client, LOAD), NAMES


def records():
    """All runs after the screen."""
    return [
        record(arm, block, *where)
        for where, arms in cells()
        for arm in arms
        for block in BLOCKS
    ]
