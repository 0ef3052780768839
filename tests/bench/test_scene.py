"""The demo's scene is what its page says it is."""

import pytest
from tests.simulator.small import events

from admitperf.bench import scene
from admitperf.simulator.engine import End, Engine


def test_the_documents_are_under_way_from_the_first_question_to_the_last():
    """They hold 0.87 to 0.94 of the cache meanwhile, and nobody else is needed."""
    end_s = scene.BEGIN_S + scene.LASTS_S
    engine = Engine(scene.ENGINE)
    for one in scene.documents(1):
        list(engine.run_to(one.at_s))
        engine.submit(one)
    shares = []
    for at_s in (scene.BEGIN_S, end_s):
        assert not [e for e in engine.run_to(at_s) if isinstance(e, End)]
        shares.append(engine.kv_tokens / scene.ENGINE.kv_tokens)
    assert engine.running == 3
    assert shares == pytest.approx([0.87, 0.94], abs=0.01)


def test_its_arithmetic_is_right():
    """KV, prefill and decode as derived in the module's own words."""
    kv_bytes = 4 * 80e9 * 0.9 - 141e9 - 11e9
    token_bytes = 80 * 8 * 128 * 2 * 2
    assert token_bytes == 327_680
    engine = scene.ENGINE
    assert kv_bytes / token_bytes == pytest.approx(engine.kv_tokens, rel=0.002)
    prefill_ms = 141e9 / (0.5 * 4 * 312e12) * 1e3
    assert engine.prefill_ms_per_token == pytest.approx(prefill_ms, rel=0.002)
    decode_ms = (141e9 + kv_bytes) / (4 * 2.04e12) * 1e3
    assert engine.decode_ms_per_token == pytest.approx(decode_ms, rel=0.02)
    window = scene.DOCUMENT.input_tokens[1] + scene.DOCUMENT.output_tokens[1]
    assert window <= 131_072


def test_every_seed_offers_the_same_load():
    """As many requests, at other times; the load is that of the notes."""
    plans = [scene.traffic(2.0, seed) for seed in range(5)]
    assert {len(plan) for plan in plans} == {3 + 84 + 160 + 228}
    assert len({plan[50].at_s for plan in plans}) == 5
    span_s = plans[0][-1].at_s - plans[0][0].at_s
    assert len(plans[0]) / span_s / 2.0 == pytest.approx(scene.LOAD, rel=0.03)


def test_calm_traffic_has_no_burst():
    """The same time at the calm rate."""
    plan = scene.calm(2.0, 1)
    assert len(plan) == 3 + 360
    ended = [e for e in events(Engine(scene.ENGINE), plan) if isinstance(e, End)]
    assert len(ended) == len(plan)
