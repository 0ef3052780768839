"""Two arms with every fact a check asks for, written by real policies."""

import random

from tests.cases.mapping import EPOCH_S

from admitperf.policies import load
from admitperf.testing import FakeClock

SLO = {"ttft_ms": 1500}
REPEATS = 6
REQUESTS = 400
EVERY_S = 0.1
HOUR_S = 3600
NOTES = {
    "model": "tiny", "engine": "made up", "engine_version": "1", "hardware": "none",
    "workload": "even", "baseline": "no_admission", "plan": "0f3c", "load": 1.5,
    "capacity_per_s": 6.7, "slo_from": "5x unloaded TTFT", "ignore_eos": True,
}  # fmt: skip


UNLIMITED_WAITING = 40
"""How long the queue gets when nothing bounds it."""


def sound(root):
    """Write a baseline and a bound: `experiments/sound` under `root`.

    The bound keeps the queue short, so it serves more requests within the SLO.
    """
    _arms(root, "sound", max_waiting=8, most_waiting=11)


def inert(root):
    """Write `experiments/inert`: the same with a bound that nothing came near."""
    _arms(root, "inert", max_waiting=900, most_waiting=UNLIMITED_WAITING)


def _arms(root, experiment, max_waiting, most_waiting):
    for n in range(REPEATS):
        at = {"experiment": experiment, "run": f"r{n}"}
        _run(root, "no_admission", {}, at, UNLIMITED_WAITING)
        _run(root, "queue_depth", {"max_waiting": max_waiting}, at, most_waiting)


def _run(root, name, params, at, most_waiting):
    chance = random.Random(f"{name}/{at['run']}")
    path = root / "experiments" / at["experiment"] / name / f"{at['run']}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    clock = FakeClock(wall_s=EPOCH_S + HOUR_S * int(at["run"][1:]))
    made = load(name)(
        **params, **at, log=path, clock=clock, slo=SLO, notes=NOTES,
        provenance=dict.fromkeys(params, "fitted"), reports_outcomes=True,
    )  # fmt: skip
    with made as policy:
        for _ in range(REQUESTS):
            waiting = chance.randrange(most_waiting + 1)
            _ask(policy, clock, waiting, chance)


def _ask(policy, clock, waiting, chance):
    d = policy(
        {"vllm:num_requests_waiting": waiting},
        input_tokens=512,
        max_output_tokens=64,
        late_ms=0.1,
    )
    clock.advance(EVERY_S)
    if d.admitted:
        ttft_ms = 200 + 100 * waiting + chance.uniform(0, 50)
        policy.outcome(
            d.request_id, ttft_ms=ttft_ms, e2e_ms=ttft_ms + 900, output_tokens=64
        )
