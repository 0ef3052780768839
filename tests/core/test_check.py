"""A harness that cannot supply what a policy needs stops at start-up."""

import pytest
from tests.core.rules import admits, reading, rule

from admitperf import AdmitPerfError, ConfigError, MissingSignal, Source
from admitperf.core.signals import (
    DEADLINE_SLACK_S,
    IN_FLIGHT,
    INPUT_TOKENS,
    KV_PRESSURE,
    OLDEST_WAIT_S,
    PREEMPTIONS,
    PREFIX_HIT_RATE,
    QUEUE_DEPTH,
    SESSION_IN_FLIGHT,
    TENANT_SHARE,
)

LEDGER = [IN_FLIGHT, OLDEST_WAIT_S, SESSION_IN_FLIGHT, TENANT_SHARE]


def needs(*required, **given):
    """A policy that cannot do without these."""
    return rule(admits, requires=required, **given)


def test_a_policy_whose_signals_are_there_passes(clock):
    """A mapping or a reading that supplies everything raises nothing."""
    policy = needs(KV_PRESSURE, QUEUE_DEPTH)
    raw = {"vllm:kv_cache_usage_perc": 0.1, "vllm:num_requests_waiting": 0}
    policy.check(raw)
    policy.check(reading(clock, raw))


def test_a_policy_that_requires_nothing_passes_on_nothing():
    """An empty page stops nobody who reads no page."""
    needs().check({})


def test_a_missing_signal_is_named_with_what_was_tried_and_what_is_near():
    """It says what is missing, what was asked, what is near and how to map it."""
    with pytest.raises(MissingSignal) as caught:
        needs(KV_PRESSURE).check({"acme_kv_cache_used": 0.4, "unrelated": 1.0})
    error = caught.value
    assert error.signal == "kv_pressure"
    assert "vllm_kv_cache_usage_perc" in error.tried
    assert error.nearest[0] == "acme_kv_cache_used"
    text = str(error)
    assert "kv_pressure" in text
    assert 'KV_PRESSURE.add_source("acme_kv_cache_used")' in text
    assert isinstance(error, AdmitPerfError)


def test_a_users_own_sources_are_among_those_tried():
    """What was asked first is told first."""
    own = [Source("first.one"), "second.one"]
    with pytest.raises(MissingSignal) as caught:
        needs(KV_PRESSURE, sources={KV_PRESSURE: own}).check({"x": 1.0})
    assert caught.value.tried[:2] == ["first.one", "second.one"]


@pytest.mark.parametrize("value", [-1.0, 43.0, float("nan"), None, "0.5"])
def test_a_value_that_is_not_usable_does_not_pass(value):
    """A metric that is there and out of range supplies nothing."""
    with pytest.raises(MissingSignal):
        needs(KV_PRESSURE).check({"kv_cache_usage_perc": value})


@pytest.mark.parametrize("signal", LEDGER)
def test_a_signal_of_the_ledger_needs_a_host_that_reports_outcomes(signal):
    """Without its word the start-up check stops, and says which word."""
    with pytest.raises(MissingSignal, match="reports_outcomes=True") as caught:
        needs(signal).check({"kv_pressure": 0.1})
    assert caught.value.signal == signal.name
    needs(signal, reports_outcomes=True).check({})


def test_an_outcome_that_was_seen_is_as_good_as_the_word():
    """A host that already reported an end does report them."""
    policy = needs(IN_FLIGHT)
    policy.outcome(policy({}).request_id)
    policy.check({})


@pytest.mark.parametrize("signal", [INPUT_TOKENS, DEADLINE_SLACK_S])
def test_a_signal_of_the_request_cannot_be_missing_at_start_up(signal):
    """Whether requests carry a fact is seen when they come, and reported as a share."""
    needs(signal, "tenant", "deadline_s").check({})


@pytest.mark.parametrize(
    ("signal", "raw"),
    [
        (PREEMPTIONS, {"vllm:num_preemptions_total": 4.0}),
        (PREEMPTIONS, {"vllm:num_preemptions_total": 0.0}),
        (
            PREFIX_HIT_RATE,
            {
                "vllm:prefix_cache_hits_total": 1.0,
                "vllm:prefix_cache_queries_total": 2.0,
            },
        ),
    ],
)
def test_a_rate_counts_as_supplied_when_its_counters_are_there(signal, raw):
    """The first page of an engine has no window yet, and that stops nobody."""
    needs(signal).check(raw)
    with pytest.raises(MissingSignal):
        needs(signal).check({"vllm:kv_cache_usage_perc": 0.1})


def test_the_first_missing_one_is_told_in_the_order_of_requires():
    """One at a time, as they are declared."""
    with pytest.raises(MissingSignal) as caught:
        needs(QUEUE_DEPTH, KV_PRESSURE).check({})
    assert caught.value.signal == "queue_depth"


@pytest.mark.parametrize("thing", ["kv_pressure", "tenants", 7, None])
def test_what_is_neither_signal_nor_fact_cannot_be_required(thing):
    """A misspelt requirement fails at construction."""
    with pytest.raises(ConfigError, match="requires"):
        needs(thing)


def test_a_check_changes_nothing():
    """Asking whether a policy could run is not running it."""
    policy = needs(KV_PRESSURE)
    policy.check({"kv_pressure": 0.5})
    assert policy({"kv_pressure": 0.5}).seq == 1
