"""Dividing a host among processes makes no request impossible."""

import pytest
from tests.policies.verdicts import needed

from admitperf import Reading
from admitperf.policies import available, load
from admitperf.testing import FakeClock

PROCESSES = 8
IDLE = {
    "running": 0.0,
    "queue_depth": 0.0,
    "kv_pressure": 0.0,
    "kv_capacity_tokens": 100_000.0,
    "prefix_hit_rate": 0.5,
    "pool_load": 0.0,
}
LARGE = {
    "input_tokens": 20_000,
    "max_output_tokens": 1_000,
    "deadline_s": 600.0,
    "tenant": "t",
    "session": "large",
    "slo_class": "chat",
    "stream": True,
}
TOKENS = {"cost": "tokens", "rate_per_s": 8_000.0, "burst": 40_000}
PARTS = "thunder_inspired; chronos_inspired; fluid_wait_inspired; in_flight_cap"


def divides(name):
    """Whether any parameter of a policy bounds what one process does."""
    return any(one.param.per_process for one in load(name).declared().values())


CASES = [
    *((name, needed(name)) for name in sorted(available()) if divides(name)),
    ("rate_limit", TOKENS),
    ("prefill_backlog", {"max_tokens": 30_000}),
    ("front_door", {"max_per_session": 4}),
    ("first_of", {"policies": PARTS}),
    ("all_of", {"policies": PARTS}),
]


def reads(policy, clock):
    """A reading of the idle engine, now."""
    reading = Reading(IDLE, taken_ns=clock.monotonic_ns())
    policy.look(reading)
    return reading


def served_after_s(policy, clock, **facts):
    """Seconds until a request is let in that asks once a second; None = not in 60."""
    for waited_s in range(61):
        d = policy(reads(policy, clock), **facts)
        if d.admitted:
            clock.advance(1.0)
            policy.outcome(d.request_id, output_tokens=100)
            return waited_s
        clock.advance(1.0)
    return None


@pytest.mark.parametrize(("name", "whole"), CASES, ids=lambda one: str(one)[:40])
@pytest.mark.parametrize("before", [(), (100,), (100, 100, 100)])
def test_an_idle_engine_serves_a_large_request_within_a_minute(name, whole, before):
    """Also after small ones of another caller, whose session is not over."""
    clock = FakeClock(start_s=1000.0)
    shares = load(name).divided(whole, PROCESSES)
    policy = load(name)(**shares, clock=clock, reports_outcomes=True)
    for tokens in before:
        small = {**LARGE, "session": "small", "input_tokens": tokens}
        assert served_after_s(policy, clock, **small) is not None
    assert served_after_s(policy, clock, **LARGE) is not None


@pytest.mark.parametrize(("name", "whole"), CASES, ids=lambda one: str(one)[:40])
def test_and_goes_on_serving_it(name, whole):
    """Call after call of one session, each within a minute."""
    clock = FakeClock(start_s=1000.0)
    shares = load(name).divided(whole, PROCESSES)
    policy = load(name)(**shares, clock=clock, reports_outcomes=True)
    for turn in range(5):
        facts = {**LARGE, "input_tokens": 20_000 + 200 * turn}
        assert served_after_s(policy, clock, **facts) is not None
