"""A snapshot made by hand."""

import math

import pytest

from admitperf import Signal
from admitperf.core.signals import (
    IN_FLIGHT,
    INPUT_TOKENS,
    KV_PRESSURE,
    QUEUE_DEPTH,
    TENANT_SHARE,
)
from admitperf.policies.kv_threshold import KvThreshold
from admitperf.testing import snapshot


def test_it_feeds_decide():
    """One line calls a rule without a host, an engine or a log."""
    policy = KvThreshold(threshold=0.9)
    assert policy.decide(snapshot({KV_PRESSURE: 0.95})).reason == "kv_pressure"
    assert policy.decide(snapshot({"kv_pressure": 0.85})).reason is None


@pytest.mark.parametrize("signal", [KV_PRESSURE, IN_FLIGHT, TENANT_SHARE, INPUT_TOKENS])
def test_any_signal_can_be_given_whoever_would_supply_it(signal):
    """Engine, ledger and request signals alike, by constant or by name."""
    assert signal.read(snapshot({signal: 1.0})) == 1.0
    assert signal.read(snapshot({signal.name: 1.0})) == 1.0


def test_what_is_not_given_is_not_known():
    """Nothing defaults to 0."""
    metrics = snapshot()
    assert KV_PRESSURE.read(metrics) is None
    assert IN_FLIGHT.read(metrics) is None
    assert metrics.request.tenant is None


def test_raw_metrics_are_read_as_a_policy_would():
    """Raw names go through the signals' own sources; a given value goes first."""
    raw = {"queue_depth": 7.0, "kv_pressure": 0.2}
    metrics = snapshot({KV_PRESSURE: 0.9}, raw=raw)
    assert QUEUE_DEPTH.read(metrics) == 7.0
    assert KV_PRESSURE.read(metrics) == 0.9
    assert metrics.raw == raw


def test_none_takes_a_signal_away():
    """The same raw page can be tried without one signal."""
    metrics = snapshot({KV_PRESSURE: None}, raw={"kv_pressure": 0.2, "queue_depth": 1})
    assert KV_PRESSURE.read(metrics) is None
    assert QUEUE_DEPTH.read(metrics) == 1.0


def test_facts_and_time_are_there():
    """Facts are attributes and signals; time is the policy's own."""
    metrics = snapshot(now_s=12.5, tenant="t", input_tokens=512)
    assert (metrics.now_s, metrics.request.tenant) == (12.5, "t")
    assert INPUT_TOKENS.read(metrics) == 512


def test_comparisons_are_recorded():
    """A test can see the gates of a rule."""
    metrics = snapshot({KV_PRESSURE: 0.95})
    KvThreshold().decide(metrics)
    assert [(g.name, g.op, g.bound, g.held) for g in metrics._gates] == [
        ("kv_pressure", ">=", 0.9, True)
    ]


def test_a_signal_of_ones_own_can_be_given():
    """A plug-in's signal needs no place in our list."""
    own = Signal(
        "acme_temperature", unit="celsius", low=-50.0, high=150.0, combine="max",
        origin="engine", serves="too hot: wait", fails_when="no sensor",
    )  # fmt: skip
    assert own.read(snapshot({own: 80.0})) == 80.0


@pytest.mark.parametrize("value", [-0.1, 1.1, math.nan, math.inf, -math.inf])
def test_a_value_that_never_reaches_a_rule_is_refused(value):
    """A test cannot rest on what a policy would have skipped."""
    with pytest.raises(ValueError, match="kv_pressure"):
        snapshot({KV_PRESSURE: value})


def test_an_infinite_count_is_refused():
    """An open range ends before infinity."""
    with pytest.raises(ValueError, match="queue_depth = inf is outside"):
        snapshot({QUEUE_DEPTH: math.inf})


@pytest.mark.parametrize("facts", [{"input_tokens": -1}, {"nobodys": 1}])
def test_a_fact_that_a_policy_would_not_believe_is_refused(facts):
    """A misspelt or impossible fact is the test's fault."""
    with pytest.raises(ValueError, match=next(iter(facts))):
        snapshot(**facts)


def test_an_unknown_name_is_refused():
    """A misspelt signal is not a signal that is absent."""
    with pytest.raises(KeyError, match="kv_presure"):
        snapshot({"kv_presure": 0.5})
