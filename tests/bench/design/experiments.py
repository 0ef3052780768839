"""Experiments as `bench` leaves them, their logs written by real policies."""

import json
import random
from functools import cache

from tests.cases.mapping import EPOCH_S

from admitperf.bench.design.results import read_experiment
from admitperf.core.errors import AdmitPerfError
from admitperf.policies import load as policy_class
from admitperf.testing import FakeClock

BLOCKS = 6
LOADS = (0.8, 1.2, 1.5)
OFFERED = 60
SLO = {"from": "unloaded", "classes": {"": {"ttft_ms": 1500}}}
CLIENT = {"name": "none", "tries": 1}

# What arms come to: goodput by load. A block adds its own, the same to every arm.
GOOD = {
    "no_admission": {0.8: 0.95, 1.2: 0.5, 1.5: 0.3},
    "bounded": {0.8: 0.95, 1.2: 0.8, 1.5: 0.7},
    "inert": {0.8: 0.95, 1.2: 0.5, 1.5: 0.3},
    "refuses_all": {0.8: 0.0, 1.2: 0.0, 1.5: 0.0},
    "harms_below": {0.8: 0.7, 1.2: 0.8, 1.5: 0.7},
    "no_admission_again": {0.8: 0.95, 1.2: 0.5, 1.5: 0.3},
}
POLICIES = {
    "no_admission": ("no_admission", {}),
    "bounded": ("queue_depth", {"max_waiting": 8}),
    "inert": ("kv_threshold", {"threshold": 0.9}),
    "refuses_all": ("queue_depth", {"max_waiting": 0}),
    "harms_below": ("queue_depth", {"max_waiting": 3}),
    "no_admission_again": ("no_admission", {}),
}


ARMS = tuple(name for name in POLICIES if name != "no_admission")


def made(root, arms, loads=LOADS, blocks=BLOCKS, **stated):
    """Write an experiment with these arms beside the baseline; its folder."""
    folder = root / "made"
    every = ("no_admission", *arms)
    n = 0
    for block in range(1, blocks + 1):
        for load in loads:
            for position, arm in enumerate(every):
                run = folder / arm / f"x{load:g}-b{block}"
                run.mkdir(parents=True)
                _log(run, arm, load, block)
                _write(run / "manifest.json", manifest(arm, load, block, position, n))
                _write(run / "summary.json", summary(arm, load, block))
                n += 1
    _write(folder / "experiment.json", experiment(every, loads, blocks) | stated)
    return folder


@cache
def every(root):
    """An experiment with an arm of each kind, read; written once a session."""
    return read_experiment(made(root, ARMS))


def planned_first(arms, loads=LOADS, blocks=BLOCKS):
    """What was planned before the first run."""
    return {
        "arms": list(arms),
        "loads": list(loads),
        "blocks": blocks,
        "baseline": "no_admission",
        "metric": "goodput",
        "margin": 0.01,
        "hash": "0123456789abcdef",
    }


def experiment(arms, loads, blocks):
    """What stands in experiment.json."""
    return {
        "planned_first": planned_first(arms, loads, blocks),
        "schema": 1,
        "experiment": "made",
        "workload": "made up",
        "metric": "goodput",
        "design": {
            "arms": list(arms),
            "loads": list(loads),
            "blocks": blocks,
            "baseline": "no_admission",
            "margin": 0.01,
            "seed": 1,
            "aa": "no_admission_again" in arms,
        },
        "capacity": {
            "unit": "request",
            "per_s": 10.0,
            "low": 9.8,
            "high": 10.2,
            "after": {"per_s": 10.1, "low": 9.9, "high": 10.3},
        },
        "slo": SLO,
        "left_out": ["For the budget, load 2x is left out."],
        "partial": False,
        "simulated": True,
        "seconds": 1.0,
    }


def manifest(arm, load, block, position, order):
    """What stands in a run's manifest.json."""
    policy, parameters = POLICIES[arm]
    return {
        "schema": 1,
        "experiment": "made",
        "run": f"x{load:g}-b{block}",
        "arm": arm,
        "policy": policy,
        "parameters": parameters,
        "provenance": dict.fromkeys(parameters, "fitted"),
        "url": None,
        "load": load,
        "block": block,
        "position": position,
        "order": order,
        "complete": True,
        "plan": f"plan-{load:g}-{block}",
        "client": CLIENT,
        "slo": SLO,
        "warmup_s": 5.0,
        "scored_s": [5.0, 60.0],
        "load_reached": load * (1 + 0.01 * (-1) ** block),
        "probe_ms": None,
        "restarts": 0,
        "trend": {"p": 0.5, "slope": 0.0, "bins": 6},
        "simulated": True,
    }


def summary(arm, load, block):
    """What stands in a run's summary.json."""
    goodput = min(GOOD[arm][load] * (1 + 0.02 * (block % 3 - 1)), 1.0)
    if arm != "no_admission" and goodput:  # a pair differs a little, as real ones do
        goodput += 0.001 * (-1) ** (block // 2)
    everything = arm == "refuses_all"
    fires = arm in {"bounded", "harms_below"}
    refused = OFFERED if everything else fires * OFFERED // 6
    return {
        "offered": OFFERED,
        "attempts": OFFERED,
        "refusals": refused,
        "ended": {
            "answered": OFFERED - refused, "refused": refused, "failed": 0,
            "cancelled": 0, "never_sent": 0, "unfinished": 0,
        },
        "goodput": goodput,
        "session_goodput": None,
        "wasted_share": 1 - goodput,
        "late_ms": {"n": OFFERED, "p50": 0.0, "p99": None, "max": 0.0},
        "errors": {"n": 0, "of": OFFERED},
        "ttft_served_ms": {"n": OFFERED, "p50": 100, "p95": 9000 * (1 - goodput) + 50},
        "extra": {"acme": 0.5},
    }  # fmt: skip


def _log(run, arm, load, block):
    """Both files of a log: waiting grows with load, and KV pressure moves a little."""
    chance = random.Random(f"{arm}/{load}/{block}")
    policy, parameters = POLICIES[arm]
    name = f"x{load:g}-b{block}" + "-again" * (arm == "no_admission_again")
    clock = FakeClock(wall_s=EPOCH_S + 3600 * block)
    most = 6 if load < 1 else 24
    with policy_class(policy)(
        **parameters, log=run / "decisions.jsonl", clock=clock, experiment="made",
        run=name, slo={"ttft_ms": 1500}, reports_outcomes=True,
        provenance=dict.fromkeys(parameters, "fitted"),
    ) as made:  # fmt: skip
        for n in range(OFFERED):
            metrics = {
                "vllm:num_requests_waiting": chance.randrange(most + 1),
                "vllm:num_requests_running": 4,
                "vllm:kv_cache_usage_perc": 0.1 + 0.2 * chance.random(),
            }
            answer = made(metrics, input_tokens=100 + n, max_output_tokens=8)
            clock.advance(0.1)
            if answer.admitted:
                made.outcome(
                    answer.request_id, ttft_ms=200, e2e_ms=400, output_tokens=8
                )


def _write(path, told):
    path.write_text(json.dumps(told), encoding="utf-8")


def message(raised):
    """What a person is told, in one line."""
    assert isinstance(raised.value, AdmitPerfError)
    text = str(raised.value)
    assert "\n" not in text
    return text
