"""Capacity, deadlines and the bound are measured and derived, not chosen."""

import pytest

from admitperf.bench.demo import scene
from admitperf.bench.demo.calibration import CLIENTS, Calibration
from admitperf.bench.demo.calm import Calm
from admitperf.simulator import End, serve

CHUNK = scene.ENGINE.max_num_batched_tokens


@pytest.fixture(scope="module")
def measured():
    """The scene's engine, measured once."""
    return Calibration.measured(1)


def alone_ms(tokens):
    """First token of a question alone, without noise: its steps and its tokens."""
    engine, steps = scene.ENGINE, -(-tokens // CHUNK)
    resident = sum(range(0, tokens, CHUNK))
    return (
        steps * (engine.step_ms + engine.ms_per_sequence)
        + resident * engine.ms_per_resident_token
        + tokens * engine.ms_per_prefill_token
    )


def test_unloaded_latency_is_that_of_a_request_alone(measured):
    """Between the fastest question there is and the slowest; p95 near the latter."""
    low, high = (alone_ms(tokens) for tokens in scene.QUESTION.input_tokens)
    noise = 3 * scene.ENGINE.noise
    assert low * (1 - noise) < measured.unloaded_ms < high * (1 + noise)
    assert measured.unloaded_ms > (low + high) / 2


def test_a_token_alone_takes_a_step(measured):
    """With one sequence and 2,000 tokens in it."""
    engine = scene.ENGINE
    step_ms = engine.step_ms + engine.ms_per_sequence
    step_ms += 2_000 * engine.ms_per_resident_token
    assert measured.token_ms == pytest.approx(step_ms, rel=0.02)


def test_capacity_is_what_full_steps_allow(measured):
    """Prefill binds: every step is full, beside the documents and who decodes.

    By hand: a step of 512 tokens, with the cache nearly full, takes about 17.3 + 15.3 +
    0.05 x 18 + 0.226 x 494 = 145 ms, and a question is 2,000 of them and 39 tokens.
    """
    engine = scene.ENGINE
    step_ms = (
        engine.step_ms
        + 0.92 * engine.kv_tokens * engine.ms_per_resident_token
        + CLIENTS * engine.ms_per_sequence
        + (CHUNK - CLIENTS) * engine.ms_per_prefill_token
    )
    questions_a_step = (CHUNK - len(scene.DOCUMENTS_AT_S)) / (2_000 + 39)
    by_hand_per_s = questions_a_step / step_ms * 1e3
    assert measured.capacity_per_s == pytest.approx(by_hand_per_s, rel=0.03)
    assert measured.answers > 400


def test_deadlines_and_bound_by_hand():
    """5 x 600 ms; less 600 and less 500 leaves 1,900 ms, in which 3.8 are taken."""
    by_hand = Calibration(
        unloaded_ms=600.0, token_ms=20.0, capacity_per_s=2.0, answers=1
    )
    assert by_hand.slo == {"ttft_ms": 3_000.0, "stall_ms": 500.0}
    assert by_hand.left_ms == 1_900.0
    assert by_hand.max_waiting == 3


def test_a_slow_engine_may_stall_for_ten_tokens():
    """Where that is more than half a second."""
    slow = Calibration(unloaded_ms=600.0, token_ms=80.0, capacity_per_s=2.0, answers=1)
    assert slow.slo["stall_ms"] == 800.0


def test_no_time_left_is_no_queue_and_not_less():
    """A deadline shorter than the age of a reading leaves no room to wait."""
    by_hand = Calibration(
        unloaded_ms=100.0, token_ms=20.0, capacity_per_s=2.0, answers=1
    )
    assert by_hand.left_ms < 0
    assert by_hand.max_waiting == 0


def test_who_waits_within_the_bound_has_its_token_in_time(measured):
    """So many at once, behind one that is being served: the last is within the SLO."""
    count = measured.max_waiting + 1
    at_once = list(scene.QUESTION.at([0.0] * count, 1))
    ends = serve(at_once, scene.ENGINE, 1)
    assert all(isinstance(end, End) for end in ends)
    assert max(end.ttft_ms for end in ends) < measured.slo["ttft_ms"]
    assert max(end.ttft_ms for end in ends) > measured.slo["ttft_ms"] / 2


def test_the_cache_is_full_where_all_is_well(measured):
    """The reason of the demo: below capacity, KV is at 0.90 and the SLO is met."""
    for seed in range(3):
        calm = Calm.measured(measured, seed)
        assert calm.offered > 250
        assert calm.full / calm.offered > 0.7
        assert calm.good / calm.offered > 0.95
