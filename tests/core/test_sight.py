"""How long a reading is believed, and when it is not."""

import pytest
from tests.core.rules import QUIET, reading, rule

from admitperf import Source
from admitperf.core.signals import KV_PRESSURE, QUEUE_DEPTH

FROZEN = {
    "vllm:kv_cache_usage_perc": 0.97,
    "vllm:num_requests_running": 0.0,
    "vllm:num_requests_waiting": 0.0,
}


def needs(signal, clock, **given):
    """A rule that reads one signal and starts everything."""
    return rule(
        lambda p, m: p.admit() if signal.read(m) is not None else None,
        requires=(signal,), clock=clock, **given,
    )  # fmt: skip


def believed_for(policy, clock, raw, step_s=0.1, **given):
    """Seconds for which one reading is believed."""
    once = reading(clock, raw, **given)
    steps = 0
    while policy(once).reason is None and steps < 1_000:
        clock.advance(step_s)
        steps += 1
    return round(steps * step_s, 3)


@pytest.mark.parametrize(
    ("interval_s", "refresh_s", "limit_s"),
    [
        (None, 0.0, 1.5),
        (0.25, 0.0, 1.5),
        (0.5, 0.0, 1.5),
        (1.0, 0.0, 3.0),
        (5.0, 0.0, 15.0),
        (None, 10.0, 10.0),
        (5.0, 10.0, 15.0),
        (0.25, 1.0, 1.5),
    ],
)
def test_the_age_limit_is_the_largest_of_three(interval_s, refresh_s, limit_s, clock):
    """1.5 s, three scrape intervals, or as long as the engine takes to refresh."""
    own = {KV_PRESSURE: [Source("gauge", refresh_s=refresh_s)]}
    policy = needs(KV_PRESSURE, clock, sources=own)
    lasted = believed_for(policy, clock, {"gauge": 0.5}, interval_s=interval_s)
    assert lasted == pytest.approx(limit_s + 0.1)


@pytest.mark.parametrize("limit_s", [0.3, 40.0])
def test_the_host_may_set_the_age_limit(limit_s, clock):
    """`max_age_s` takes the place of the computed one, shorter or longer."""
    policy = needs(KV_PRESSURE, clock, max_age_s=limit_s)
    lasted = believed_for(policy, clock, QUIET, interval_s=5.0)
    assert lasted == pytest.approx(limit_s + 0.1)


def test_the_limit_is_each_signals_own(clock, log):
    """A gauge that its engine refreshes slowly outlives one that moves fast."""
    own = {KV_PRESSURE: [Source("slow", refresh_s=10.0)]}
    policy = rule(lambda p, m: p.admit(), clock=clock, log=log, sources=own)
    once = reading(clock, {"slow": 0.5, "queue_depth": 3.0})
    for seconds in (1.0, 1.0, 7.0, 2.0):
        clock.advance(seconds)
        policy(once)
    known = [sorted(line["signals"]) for line in log.decisions]
    assert known == [
        ["kv_pressure", "queue_depth"], ["kv_pressure"], ["kv_pressure"], [],
    ]  # fmt: skip


def test_a_reading_that_was_old_when_it_was_handed_over_counts_from_when_it_was_taken(
    clock,
):
    """`age_s` and `taken_ns` are the engine's time, not the call's."""
    policy = needs(KV_PRESSURE, clock)
    once = reading(clock, QUIET)
    clock.advance(1.4)
    assert policy(once).reason is None
    clock.advance(0.2)
    assert policy(once).reason == "signal_stale"


def test_every_decision_on_a_reading_says_how_old_it_was(clock, log):
    """The record shows the age of what was known, in milliseconds."""
    policy = needs(KV_PRESSURE, clock, log=log)
    once = reading(clock, QUIET, replica="r1")
    for _ in range(3):
        policy(once)
        clock.advance(0.7)
    assert [line["age_ms"] for line in log.decisions] == [0, 700, 1400]
    assert {line["replica"] for line in log.decisions} == {"r1"}


def test_a_plain_mapping_carries_no_time_and_does_not_grow_old(clock, log):
    """Who hands in numbers hands in what they are now."""
    policy = needs(KV_PRESSURE, clock, log=log)
    for _ in range(10):
        assert policy(dict(QUIET)).reason is None
        clock.advance(100.0)
    assert all("age_ms" not in line for line in log.decisions)


def test_a_memory_gauge_that_contradicts_an_idle_engine_is_believed_for_five_seconds(
    clock,
):
    """Nothing runs or waits and the cache is full: after 5 s that is stale."""
    policy = needs(KV_PRESSURE, clock)
    reasons = []
    for _ in range(8):
        reasons.append(policy(reading(clock, FROZEN)).reason)
        clock.advance(1.0)
    assert reasons == [None] * 6 + ["signal_stale"] * 2


@pytest.mark.parametrize(
    "change",
    [
        {"vllm:num_requests_running": 1.0},
        {"vllm:num_requests_waiting": 1.0},
        {"vllm:kv_cache_usage_perc": 0.01},
    ],
)
def test_what_does_not_contradict_is_believed(change, clock):
    """One running or waiting request explains a full cache; an empty one needs none."""
    policy = needs(KV_PRESSURE, clock)
    for _ in range(20):
        assert policy(reading(clock, {**FROZEN, **change})).reason is None
        clock.advance(1.0)


def test_an_engine_that_does_not_say_what_runs_does_not_contradict_itself(clock):
    """Unknown is not zero."""
    policy = needs(KV_PRESSURE, clock)
    for _ in range(20):
        raw = {"vllm:kv_cache_usage_perc": 0.97, "vllm:num_requests_waiting": 0.0}
        assert policy(reading(clock, raw)).reason is None
        clock.advance(1.0)


def test_a_contradiction_that_ends_is_forgotten(clock):
    """The five seconds count from the last time it made sense."""
    policy = needs(KV_PRESSURE, clock)
    for second in range(12):
        running = 1.0 if second == 4 else 0.0
        raw = {**FROZEN, "vllm:num_requests_running": running}
        reason = policy(reading(clock, raw)).reason
        assert (reason is None) == (second <= 10)
        clock.advance(1.0)


def test_the_other_signals_of_a_contradicting_page_are_believed(clock):
    """Only the memory gauge is in doubt."""
    policy = needs(QUEUE_DEPTH, clock)
    for _ in range(20):
        assert policy(reading(clock, FROZEN)).reason is None
        clock.advance(1.0)


def test_each_replica_is_judged_by_its_own_readings(clock):
    """A healthy engine's page in between does not make a frozen one believable."""
    policy = needs(KV_PRESSURE, clock)
    reasons = []
    for second in range(7):
        if second < 6:
            assert policy(reading(clock, QUIET, replica="fine")).reason is None
        reasons.append(policy(reading(clock, FROZEN, replica="frozen")).reason)
        clock.advance(1.0)
    assert reasons == [None] * 6 + ["signal_stale"]
