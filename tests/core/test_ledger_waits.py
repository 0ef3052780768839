"""Waits of refusals that rest on the ledger, worked out by hand."""

import pytest
from tests.core.rules import QUIET

from admitperf import MissingSignal, Policy, Reading
from admitperf.core.signals import (
    INPUT_TOKENS,
    KV_PRESSURE,
    OLDEST_WAIT_S,
    QUEUE_DEPTH,
    TENANT_SHARE,
)
from admitperf.policies.in_flight_cap import InFlightCap
from admitperf.testing import FakeClock, MemoryLog


class Shared(Policy):
    """A share of the pool, and an age of the queue."""

    name = "shared"
    share: float = 1.0
    oldest_s: float = 1e9

    def decide(self, metrics):
        """The rule."""
        if TENANT_SHARE.read(metrics) > self.share:
            return self.reject("tenant_share")
        if OLDEST_WAIT_S.read(metrics) > self.oldest_s:
            return self.defer("queue_age")
        return self.admit()


def busy(policy, clock, *, mine=6, others=2):
    """One request a second ends for 10 s; then `mine` + `others` wait for a token."""
    for i in range(10):
        policy({}, request_id=f"past{i}", tenant="past")
        policy.first_token(f"past{i}")
        clock.advance(1.0)
        policy.outcome(f"past{i}")
    for i in range(mine):
        policy({}, request_id=f"a{i}", tenant="a")
    for i in range(others):
        policy({}, request_id=f"b{i}", tenant="b")


def test_a_tenant_over_its_share_waits_until_enough_of_its_calls_end():
    """(share - bound) x open requests, at the part of all endings that is its own."""
    clock = FakeClock()
    policy = Shared(share=0.5, clock=clock, reports_outcomes=True, enforce=0.0)
    busy(policy, clock)
    d = policy({}, tenant="a")
    share, bound, in_flight, per_s = 7 / 9, 0.5, 8, 1.0
    expected_s = (share - bound) * in_flight / (per_s * 6 / 8)
    assert d.reason == "tenant_share"
    assert d.wait == "measured"
    assert d.estimate_ms == pytest.approx(1000 * expected_s, rel=0.15)


def test_a_queue_too_old_waits_for_the_part_of_it_that_is():
    """Waiting requests x the part of the age past its target, at the rate of ends."""
    clock = FakeClock()
    policy = Shared(oldest_s=2.0, clock=clock, reports_outcomes=True)
    busy(policy, clock)
    clock.advance(3.0)
    d = policy({}, tenant="c")
    expected_s = 8 * (3.0 - 2.0) / 3.0 / (7 / 10)
    assert d.reason == "queue_age"
    assert d.wait == "measured"
    assert d.estimate_ms == pytest.approx(1000 * expected_s, rel=0.25)


def test_the_start_up_check_names_everything_that_is_missing():
    """One stop at start-up tells all of it."""

    class Needs(Shared):
        name = "needs"
        requires = (KV_PRESSURE, QUEUE_DEPTH)

    with pytest.raises(MissingSignal) as caught:
        Needs().check({"unrelated": 1.0})
    assert caught.value.signal == "kv_pressure"
    assert caught.value.also == ["queue_depth"]
    assert "also missing: queue_depth" in str(caught.value)


def test_a_signal_reads_a_scrapers_reading_too():
    """`SIGNAL.read` takes what a scraper hands over."""
    reading = Reading({"vllm:kv_cache_usage_perc": 0.42})
    assert KV_PRESSURE.read(reading) == 0.42
    assert QUEUE_DEPTH.read(reading) is None


def test_a_fact_that_only_some_requests_carry_is_no_change_of_sight():
    """Each such request is decided blind; nobody is told once per request."""

    class Sized(Shared):
        name = "sized"
        requires = (INPUT_TOKENS,)

        def decide(self, metrics):
            return self.admit()

    log = MemoryLog()
    policy = Sized(log=log)
    for i in range(10):
        policy({}, **({"input_tokens": 5} if i % 2 else {}))
    blind = [line.get("blind") for line in log.decisions]
    assert blind == ["signal_absent", None] * 5
    assert log.controls == []


def test_long_answers_are_no_standstill(clock):
    """Of answers of 20 s none may end in 10: the wait is the rest of the oldest."""
    policy = InFlightCap(max_in_flight=1, clock=clock, reports_outcomes=True)
    for _ in range(3):
        d = policy(QUIET)
        clock.advance(20.0)
        policy.outcome(d.request_id)
        clock.advance(1.0)
    policy(QUIET)
    clock.advance(12.0)
    d = policy(QUIET)
    assert (str(d.verdict), d.wait, d.estimate_ms) == ("defer", "measured", 8000)


def test_an_answer_that_is_much_too_old_is_one(clock):
    """Twice as old as answers become: nothing is known to end."""
    policy = InFlightCap(max_in_flight=1, clock=clock, reports_outcomes=True)
    d = policy(QUIET)
    clock.advance(20.0)
    policy.outcome(d.request_id)
    policy(QUIET)
    clock.advance(41.0)
    d = policy(QUIET)
    assert (str(d.verdict), d.estimate_ms, d.capped) == ("reject", None, True)
