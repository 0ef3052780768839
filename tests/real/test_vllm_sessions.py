"""Agent sessions through a gateway to a real vLLM, as the benchmark sends them.

Needs what `tests/real/test_vllm_probe.py` needs.
"""

import json

import pytest
from tests.real.test_bench_llamacpp import call
from tests.real.test_bench_vllm import BLOCK, vllm  # noqa: F401  a fixture
from tests.scripts import script

from admitperf.bench.callers.callers import Callers, planned
from admitperf.bench.harness.target import Arm
from admitperf.simulator.traffic.sessions import Session

pytestmark = pytest.mark.real_vllm

SIZES = (100, 160, 230)
ANSWER = 40


@pytest.fixture(scope="module")
def benchmark_of_sessions(request):
    """The benchmark, as a module."""
    return script(request.config.rootpath, "bench_vllm_sessions")


@pytest.fixture(scope="module")
def driven(benchmark_of_sessions, vllm, tmp_path_factory):  # noqa: F811
    """Three sessions one after the other: their records, and the gateway's log."""
    bench, folder = benchmark_of_sessions, tmp_path_factory.mktemp("run")
    begun = [(1.5 * n, Session(f"s{n}", _calls(), 50)) for n in range(3)]
    plan = planned(begun, 10.0, (0.0, 10.0), bench.CLIENT)
    callers = Callers(plan, bench.CLIENT, 1)
    arm = Arm(
        name="cap", policy="concur_inspired", parameters={"start": 8, "lease_s": 60.0}
    )
    with bench.gateway(f"http://{vllm}", arm, folder) as front:
        target = bench.Front(front, f"http://{vllm}")
        before = target.counters()
        bench.drive(target, callers, "run", 60.0)
        share = bench.share_of(before, target.counters())
    lines = (folder / bench.LOG).read_text(encoding="utf-8").splitlines()
    return callers.records(), [json.loads(one) for one in lines], share


def _calls():
    return tuple(
        call(
            after=place - 1 if place else None,
            gap_s=0.05,
            input_tokens=tokens,
            output_tokens=ANSWER,
            prefix=((0, tokens),),
        )
        for place, tokens in enumerate(SIZES)
    )


def _of(lines, kind):
    return [one for one in lines if one["k"] == kind]


def test_the_policy_is_told_of_sessions_and_of_their_last_calls(driven):
    """By heads that agents send."""
    records, lines, _ = driven
    assert {one.ended for one in records} == {"answered"}
    facts = [one["facts"] for one in _of(lines, "decision")]
    assert {one["session"] for one in facts} == {"s0", "s1", "s2"}
    last = [one["input_tokens"] for one in facts if one.get("session_final")]
    assert last == [SIZES[-1]] * 3


def test_the_policy_is_told_what_the_cache_gave(driven):
    """In whole blocks, without the last token of an answer, as the caller is told."""
    records, lines, share = driven
    held = [n // BLOCK * BLOCK for n in (0, *(n + ANSWER - 1 for n in SIZES[:-1]))]
    told = [one["cached_tokens"] for one in _of(lines, "outcome")]
    assert sorted(told) == sorted(held * 3)
    asked = [one.input_tokens + ANSWER - one.computed_tokens for one in records]
    assert asked == held * 3
    assert share == pytest.approx(sum(held) / sum(SIZES))
