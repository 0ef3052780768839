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
from admitperf.simulator import Engine
from admitperf.simulator.engine.page import histograms, page


@pytest.fixture
def engine():
    """Two of three requests decode: 100 and 101 tokens, first tokens at 210, 221 ms.

    At 355 ms 13 steps of 10 ms are over and the 14th is under way, for which each holds
    115 tokens, in 12 blocks.
    """
    made = Engine(model(max_num_seqs=2))
    for n in range(3):
        made.submit(arrival(n, input_tokens=100 + n, output_tokens=400))
    list(made.run_to(0.355))
    return made


def test_every_name_stands_on_the_page_of_a_real_vllm(engine, data):
    """vLLM 0.32.0 under load, as recorded."""
    recorded = parse((data / "fixtures/real-vllm-0.32.0-load.prom").read_text("utf-8"))
    real = {name.partition("{")[0] for name in recorded}
    assert {name.partition("{")[0] for name in page(engine)} <= real


def test_its_buckets_are_those_of_a_real_vllm(engine, data):
    """By their bounds, but for the one without."""
    recorded = parse((data / "fixtures/real-vllm-0.32.0-load.prom").read_text("utf-8"))
    for name, histogram in histograms(engine):
        bounds = {
            float(key.partition('le="')[2].partition('"')[0])
            for key in recorded
            if key.startswith(f"{name}_bucket")
        }
        assert bounds - {math.inf} == set(histogram.bounds)


def test_the_signals_are_those_of_the_engine(engine):
    """Read as a policy would read them."""
    reading = Reading(page(engine))
    assert RUNNING.read(reading) == engine.running == 2
    assert QUEUE_DEPTH.read(reading) == engine.waiting == 1
    assert KV_PRESSURE.read(reading) == pytest.approx(24 / 100)
    assert KV_CAPACITY_TOKENS.read(reading) == 1_000


def test_what_the_prefix_cache_keeps_of_others_is_free(engine):
    """Nobody runs any more: the gauge is at 0, and the next finds it all the same."""
    list(engine.run_to(math.inf))
    engine.remember("known", 300)
    assert page(engine)["vllm:kv_cache_usage_perc"] == pytest.approx(0, abs=1e-12)


def test_counters_count_what_has_happened(engine):
    """At 355 ms 15 tokens and 14; two first ones, and no end."""
    now = page(engine)
    assert now["vllm:generation_tokens_total"] == 29
    assert now["vllm:prompt_tokens_total"] == 201
    assert now["vllm:time_to_first_token_seconds_count"] == 2
    assert now["vllm:time_to_first_token_seconds_sum"] == pytest.approx(0.431)
    assert now["vllm:request_success_total"] == 0
    list(engine.run_to(math.inf))
    then = page(engine)
    assert then["vllm:generation_tokens_total"] == 1_200
    assert then["vllm:inter_token_latency_seconds_count"] == 1_197
    assert then["vllm:request_success_total"] == 3


def test_a_requests_time_is_queue_prefill_and_decode():
    """r2 waits for the one slot until 210 ms; then 110 ms and ten steps of 10 ms."""
    engine = Engine(model(max_num_seqs=1))
    for n in (1, 2):
        engine.submit(arrival(n, prefix=(("known", 60), (f"r{n}", 0))))
    list(engine.run_to(math.inf))
    made = page(engine)
    for name, first, second in (
        ("request_queue_time", 0, 0.21),
        ("request_prefill_time", 0.11, 0.05),
        ("request_decode_time", 0.1, 0.1),
        ("e2e_request_latency", 0.21, 0.36),
    ):
        assert made[f"vllm:{name}_seconds_count"] == 2
        assert made[f"vllm:{name}_seconds_sum"] == pytest.approx(first + second)
    assert made["vllm:prefix_cache_queries_total"] == 200
    assert made["vllm:prefix_cache_hits_total"] == 60


def test_several_engines_are_told_apart_as_vllms_are(engine):
    """One idles: requests add up, and the fuller cache is the one that counts."""
    made = page(engine, Engine(model()))
    assert made['vllm:num_requests_running{engine="0"}'] == 2
    assert made['vllm:num_requests_running{engine="1"}'] == 0
    reading = Reading(made)
    assert RUNNING.read(reading) == 2
    assert QUEUE_DEPTH.read(reading) == 1
    assert KV_PRESSURE.read(reading) == pytest.approx(24 / 100)
    assert KV_CAPACITY_TOKENS.read(reading) == 2_000


def test_gaps_between_tokens_are_counted_up_to_now():
    """A leap of many steps is no reason to show none of them."""
    engine = Engine(model())
    engine.submit(arrival(1, input_tokens=4, output_tokens=100))
    list(engine.run_to(0.5))
    shown = page(engine)
    count = shown["vllm:inter_token_latency_seconds_count"]
    assert count == shown["vllm:generation_tokens_total"] - 1
    assert count > 10


def test_gauges_are_those_of_the_last_step_end():
    """Who came meanwhile is not on the page yet, and neither is who began."""
    engine = Engine(model())
    engine.submit(arrival(1, input_tokens=100, output_tokens=2))
    list(engine.run_to(0.001))
    assert (engine.running, page(engine)["vllm:num_requests_running"]) == (1, 0)
    list(engine.run_to(engine.next_s))
    assert page(engine)["vllm:num_requests_running"] == 1
    list(engine.run_to(engine.next_s))
    assert page(engine)["vllm:num_requests_running"] == 0
