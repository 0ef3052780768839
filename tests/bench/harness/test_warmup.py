"""What is left out at the start of each run."""

from tests.bench.harness.test_calibrate import calibration

from admitperf.bench.harness.calibrate import scoring
from admitperf.bench.harness.warmup import _under_way


def test_calls_under_way_are_counted_in_the_middle_of_each_second():
    """One that begins and ends between two middles is not seen."""
    spans = [(0.0, 2.0), (1.6, 1.9), (1.0, 9.0), (2.4, 2.6)]
    assert _under_way(spans, 4.0) == [1, 2, 2, 1]


def test_at_least_half_of_a_run_is_scored():
    """However long deadlines are."""
    whole = calibration(lasts_s=60.0)
    assert scoring(whole, 5.0, 10.0).scored_s == (5.0, 50.0)
    assert scoring(whole, 20.0, 50.0).scored_s == (20.0, 50.0)
    assert scoring(whole, 0.0, 90.0).scored_s == (0.0, 30.0)
