"""Capacity, deadlines and the bound are measured and derived, not chosen."""

import pytest

from admitperf.bench import scene
from admitperf.bench.calibration import Calibration
from admitperf.bench.calm import Calm


@pytest.fixture(scope="module")
def measured():
    """The scene's engine, measured once."""
    return Calibration.measured(1)


def test_unloaded_latency_is_that_of_a_request_alone(measured):
    """Between the fastest question there is and the slowest; p95 near the latter."""
    low, high = (
        scene.ENGINE.prefill_ms + scene.ENGINE.prefill_ms_per_token * tokens
        for tokens in scene.QUESTION.input_tokens
    )
    jitter = scene.QUESTION.jitter
    assert low * (1 - jitter) < measured.unloaded_ms < high * (1 + jitter)
    assert measured.unloaded_ms > (low + high) / 2


def test_capacity_is_what_prefill_allows(measured):
    """Prefill binds here: one question after the other, 2,000 tokens on average."""
    mean_ms = scene.ENGINE.prefill_ms + scene.ENGINE.prefill_ms_per_token * 2_000
    assert measured.capacity_per_s == pytest.approx(1e3 / mean_ms, rel=0.05)
    assert measured.answers > 500


def test_deadlines_and_bound_by_hand():
    """5 x 600 ms; less 600 and less 500 leaves 1,900 ms, in which 3.8 are taken."""
    by_hand = Calibration(unloaded_ms=600.0, capacity_per_s=2.0, answers=1)
    assert by_hand.slo == {"ttft_ms": 3_000.0, "stall_ms": 500.0}
    assert by_hand.left_ms == 1_900.0
    assert by_hand.max_waiting == 3


def test_no_time_left_is_no_queue_and_not_less():
    """A deadline shorter than the age of a reading leaves no room to wait."""
    by_hand = Calibration(unloaded_ms=100.0, capacity_per_s=2.0, answers=1)
    assert by_hand.left_ms < 0
    assert by_hand.max_waiting == 0


def test_the_cache_is_full_where_all_is_well(measured):
    """The reason of the demo: below capacity, KV is at 0.90 and the SLO is met."""
    for seed in range(3):
        calm = Calm.measured(measured, seed)
        assert calm.offered > 300
        assert calm.full / calm.offered > 0.8
        assert calm.good / calm.offered > 0.95
