"""The page is the real engine's, as far as it goes."""

import math

import pytest
from tests.simulator.small import arrival, model

from admitperf import Reading
from admitperf.core.signals import (
    KV_CAPACITY_TOKENS,
    KV_PRESSURE,
    QUEUE_DEPTH,
    RUNNING,
)
from admitperf.engines.exposition import parse
from admitperf.simulator.engine import Engine
from admitperf.simulator.page import page


@pytest.fixture
def engine():
    """One request decodes, one is prefilled, one waits; 355 ms have passed."""
    made = Engine(model())
    for n in range(3):
        made.submit(arrival(n, input_tokens=100 + n, output_tokens=400))
    list(made.run_to(0.355))
    return made


def test_every_name_stands_on_the_page_of_a_real_vllm(engine, data):
    """vLLM 0.32.0 under load, as recorded."""
    recorded = parse((data / "fixtures/real-vllm-0.32.0-load.prom").read_text("utf-8"))
    real = {name.partition("{")[0] for name in recorded}
    assert {name.partition("{")[0] for name in page(engine)} <= real


def test_the_signals_are_those_of_the_engine(engine):
    """Read as a policy would read them."""
    reading = Reading(page(engine))
    assert RUNNING.read(reading) == engine.running == 2
    assert QUEUE_DEPTH.read(reading) == engine.waiting == 1
    # 100 and 101 tokens of prompts, and 15.5 of 155 ms of decode.
    assert KV_PRESSURE.read(reading) == pytest.approx((100 + 101 + 15.5) / 1_000)
    assert KV_CAPACITY_TOKENS.read(reading) == 1_000


def test_counters_count_what_has_happened(engine):
    """At 355 ms one request has had its first token and 15 more."""
    now = page(engine)
    assert now["vllm:generation_tokens_total"] == 16
    assert now["vllm:prompt_tokens_total"] == 100
    assert now["vllm:time_to_first_token_seconds_count"] == 1
    assert now["vllm:time_to_first_token_seconds_sum"] == pytest.approx(0.2)
    assert now["vllm:request_success_total"] == 0
    list(engine.run_to(math.inf))
    then = page(engine)
    assert then["vllm:generation_tokens_total"] == 1_200
    assert then["vllm:request_success_total"] == 3
    assert then["vllm:kv_cache_usage_perc"] == pytest.approx(0, abs=1e-9)
