"""The demo's scene is what its page says it is."""

import pytest
from tests.simulator.small import events

from admitperf.bench.demo import scene
from admitperf.simulator import End


def test_the_documents_are_under_way_from_the_first_question_to_the_last():
    """Alone they are fastest; they hold 0.88 of the cache at first, 0.94 at last."""
    end_s = scene.BEGIN_S + scene.LASTS_S
    (engine,) = scene.setting(1).fleet().engines
    for one in scene.documents(1):
        list(engine.run_to(one.at_s))
        engine.submit(one)
    shares = []
    for at_s in (scene.BEGIN_S, end_s):
        assert not [e for e in engine.run_to(at_s) if isinstance(e, End)]
        shares.append(engine.kv_fraction)
    assert engine.running == 3
    assert shares == pytest.approx([0.884, 0.944], abs=0.005)


def test_the_documents_are_known_to_the_cache_when_they_come():
    """All but 1,500 to 2,000 tokens, each by a chain of its own."""
    (engine,) = scene.setting(1).fleet().engines
    assert engine.kv_fraction == 0
    asked = list(scene.documents(1))
    for one in asked:
        list(engine.run_to(one.at_s))
        engine.submit(one)
    list(engine.run_to(scene.BEGIN_S))
    found = [engine.cached(one.id) for one in asked]
    assert found == [scene.KNOWN_TOKENS // 16 * 16] * 3
    left = {one.input_tokens - scene.KNOWN_TOKENS for one in asked}
    assert min(left) >= 1_500
    assert max(left) <= 2_000
    assert engine.tally.started == 3


def test_its_arithmetic_is_right():
    """KV, steps and prefill as derived in the module's own words."""
    kv_bytes = 4 * 80e9 * 0.9 - 141e9 - 11e9
    token_bytes = 80 * 8 * 128 * 2 * 2
    bytes_per_ms = 4 * 2.04e12 / 1e3
    assert token_bytes == 327_680
    engine = scene.ENGINE
    assert kv_bytes / token_bytes == pytest.approx(engine.kv_tokens, rel=0.002)
    assert engine.step_ms == pytest.approx(141e9 / bytes_per_ms, rel=0.002)
    resident_ms = token_bytes / bytes_per_ms
    assert engine.ms_per_resident_token == pytest.approx(resident_ms, rel=0.005)
    prefill_ms = 141e9 / (0.5 * 4 * 312e12) * 1e3
    assert engine.ms_per_prefill_token == pytest.approx(prefill_ms, rel=0.002)
    window = scene.DOCUMENT.input_tokens[1] + scene.DOCUMENT.output_tokens[1]
    assert window <= 131_072


def test_no_step_alone_is_a_stall():
    """With a full cache and as many as run here, no step takes 500 ms.

    With 2,048 tokens a step it would, whenever there is something to prefill.
    """
    engine = scene.ENGINE
    rest_ms = engine.step_ms + engine.kv_tokens * engine.ms_per_resident_token
    longest_ms = [
        rest_ms + tokens * engine.ms_per_prefill_token
        for tokens in (engine.max_num_batched_tokens, 2_048)
    ]
    assert longest_ms[0] * (1 + 4 * engine.noise) < 250
    assert longest_ms[1] * (1 + 2 * engine.noise) > 500


def test_every_seed_offers_the_same_load():
    """As many requests, at other times; the load is that of the notes."""
    plans = [scene.traffic(2.0, seed) for seed in range(5)]
    assert {len(plan) for plan in plans} == {3 + 78 + 140 + 198}
    assert len({plan[50].at_s for plan in plans}) == 5
    span_s = plans[0][-1].at_s - plans[0][0].at_s
    assert len(plans[0]) / span_s / 2.0 == pytest.approx(scene.LOAD, rel=0.03)


def test_calm_traffic_has_no_burst_and_nobody_is_thrown_out():
    """The same time at the calm rate; the cache reads full and is never short."""
    plan = scene.calm(1.7, 1)
    assert len(plan) == 3 + 270
    (engine,) = scene.setting(1).fleet().engines
    ended = [e for e in events(engine, plan) if isinstance(e, End)]
    assert len(ended) == len(plan)
    assert engine.tally.preempted == 0
