"""Good is what came in time and did not stall, on the caller's clock."""

from dataclasses import replace

import pytest
from tests.bench.callers.test_records import ONE

from admitperf.bench.callers.slo import Slo

ANSWERED = replace(
    ONE, ended="answered", due_s=0.0, ttft_ms=500.0, max_gap_ms=80.0, e2e_ms=900.0
)
SLO = Slo(classes={"": {"ttft_ms": 500, "stall_ms": 80, "e2e_ms": 900}})


def test_on_the_limit_is_in_time():
    """And a hair over it is not, of each of the three."""
    assert SLO.good(ANSWERED)
    for late in ({"ttft_ms": 500.1}, {"max_gap_ms": 80.1}, {"e2e_ms": 900.1}):
        assert not SLO.good(replace(ANSWERED, **late))


def test_no_first_token_is_never_in_time_and_one_token_never_stalls():
    """Absence is no zero."""
    assert not SLO.good(replace(ANSWERED, ttft_ms=None))
    assert SLO.good(replace(ANSWERED, max_gap_ms=None))


@pytest.mark.parametrize("ended", ["refused", "failed", "never_sent", "unfinished"])
def test_what_did_not_end_properly_is_not_good_however_fast(ended):
    """A stream that died looks fast."""
    assert not SLO.good(replace(ANSWERED, ended=ended))
    assert not Slo().good(replace(ANSWERED, ended=ended))


def test_without_limits_an_answer_is_enough():
    """However late."""
    assert Slo().good(replace(ANSWERED, ttft_ms=1e9))


def test_a_class_has_its_own_limits_and_the_rest_those_of_no_name():
    """A class that nobody set a limit for is a fault, not a pass."""
    slow = replace(ANSWERED, slo_class="long", ttft_ms=2000.0)
    both = Slo(classes={"long": {"ttft_ms": 2000}, "": {"ttft_ms": 500}})
    assert both.good(slow)
    assert not both.good(replace(slow, slo_class="other"))
    with pytest.raises(ValueError, match=r"no objective for class 'other'; .* long"):
        Slo(classes={"long": {"ttft_ms": 2000}}).good(replace(slow, slo_class="other"))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"classes": {"a": {"tpot_ms": 5}}}, "class a: tpot_ms is not one of ttft_ms"),
        ({"classes": {"a": {"ttft_ms": -1}}}, "ttft_ms = -1 is no positive number"),
        ({"task_factor": 0.0}, "task_factor = 0.0 is not over 0"),
        ({"task_factor": float("nan")}, "task_factor = nan is not over 0"),
    ],
)
def test_a_limit_that_makes_no_sense_is_refused(given, said):
    """In one line."""
    with pytest.raises(ValueError, match=said):
        Slo(**given)
