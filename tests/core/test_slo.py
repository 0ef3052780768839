"""Served on time: what counts, and when nobody can say."""

import pytest

from admitperf import ConfigError
from admitperf.core.slo import Slo, parse

BOTH = {"ttft_ms": 1500, "stall_ms": 500}


def met(slo, *, ok=True, ttft_ms=None, max_gap_ms=None, e2e_ms=None):
    """Whether an answer met the objective of the only class."""
    return parse(slo)[""].met(
        ok=ok, ttft_ms=ttft_ms, max_gap_ms=max_gap_ms, e2e_ms=e2e_ms
    )


def test_no_slo_is_no_objective():
    """Then `ok` alone counts."""
    assert parse(None) == {}
    assert parse({}) == {}


def test_one_objective_holds_for_every_class():
    """It stands under the empty name."""
    assert parse(BOTH) == {"": Slo(ttft_ms=1500.0, stall_ms=500.0)}


def test_there_may_be_one_objective_per_class():
    """A chat and a batch job are judged by their own."""
    parsed = parse({"chat": BOTH, "batch": {"e2e_ms": 60_000}})
    assert parsed["chat"].ttft_ms == 1500
    assert parsed["batch"] == Slo(e2e_ms=60_000.0)


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({"ttft_ms": 1500, "max_gap_ms": 500}, True),
        ({"ttft_ms": 1500.1, "max_gap_ms": 500}, False),
        ({"ttft_ms": 1500, "max_gap_ms": 501}, False),
        ({"ttft_ms": 100, "max_gap_ms": 0}, True),
        ({"ttft_ms": 100}, None),
        ({"ttft_ms": 1501}, False),
        ({"max_gap_ms": 501}, False),
        ({"max_gap_ms": 10}, None),
        ({}, None),
    ],
)
def test_an_answer_must_start_on_time_and_never_stall_too_long(told, expected):
    """Both limits hold, and what was not reported is not known."""
    assert met(BOTH, **told) is expected


@pytest.mark.parametrize("told", [{}, {"ttft_ms": 1, "max_gap_ms": 1}, {"e2e_ms": 1}])
def test_an_answer_that_did_not_end_properly_met_nothing(told):
    """However fast it failed."""
    assert met(BOTH, ok=False, **told) is False


@pytest.mark.parametrize(
    ("slo", "e2e_ms", "expected"),
    [
        ({"e2e_ms": 5000}, 5000, True),
        ({"e2e_ms": 5000}, 5001, False),
        ({"e2e_ms": 5000}, None, None),
        ({**BOTH, "e2e_ms": 5000}, 4000, True),
        ({**BOTH, "e2e_ms": 5000}, 6000, False),
        (BOTH, 1400, True),
        (BOTH, 1600, False),
    ],
)
def test_an_answer_that_was_not_streamed_is_judged_by_its_end(slo, e2e_ms, expected):
    """All of it comes at once: its end is its first token."""
    assert met(slo, e2e_ms=e2e_ms) is expected


def test_a_limit_that_was_not_set_does_not_count():
    """With only a first-token limit a stall is no miss."""
    assert met({"ttft_ms": 1500}, ttft_ms=100, max_gap_ms=10**6) is True


@pytest.mark.parametrize(
    ("slo", "faults"),
    [
        ({"ttft": 1500}, 1),
        ({"ttft_ms": -1, "stall_ms": "x", "what": 1}, 3),
        ({"chat": {"ttft_ms": 0}, "batch": {"nope": 1}}, 2),
        ({"ttft_ms": True}, 1),
        ({"ttft_ms": float("nan")}, 1),
        ({"chat": BOTH, "ttft_ms": 1500}, 1),
    ],
)
def test_all_faults_of_an_slo_are_told_at_once(slo, faults):
    """Unknown limits, and limits that are no positive numbers."""
    with pytest.raises(ConfigError) as caught:
        parse(slo)
    assert len(caught.value.faults) == faults
