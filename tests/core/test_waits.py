"""The wait is the time until the gate that fired has room, and it is spread."""

import math

import pytest
from tests.core.rules import defers, reading, rejects, rule

from admitperf import Reason
from admitperf.core.estimate import _fired
from admitperf.core.gate import Gate
from admitperf.core.signals import KV_PRESSURE, QUEUE_DEPTH, SESSION_IN_FLIGHT
from admitperf.core.wait import spread_ms, unit_interval
from admitperf.policies.in_flight_cap import InFlightCap

IDS = [f"id-{n}" for n in range(400)]


def above(signal, bound, reason="queue_depth", **hints):
    """A rule that waits while a signal is over a bound."""

    def decide(policy, metrics):
        if metrics.above(signal, bound):
            return policy.defer(reason, **hints)
        return policy.admit()

    return decide


def driven(policy, clock, values, key="queue_depth", step_s=1.0, **facts):
    """The last decision after readings that follow each other."""
    for n, value in enumerate(values):
        if n:
            clock.advance(step_s)
        d = policy(reading(clock, {key: value}), **facts)
    return d


# What is estimated.


@pytest.mark.parametrize(
    ("values", "estimate_ms"),
    [
        # 6 fell in 3 s: 2 per second; 2 over the bound: 1 s.
        ([40, 38, 36, 34], 1000),
        # 7 fell in 4 s: 1.75 per second; 1 over the bound: 572 ms.
        ([40, 36, 34, 34, 33], 572),
        # What came in does not slow what went out: 3 + 3 in 3 s; 6 over: 3 s.
        ([40, 37, 41, 38], 3000),
        # 1 fell in 4 s: a quarter per second; 8 over the bound: 32 s.
        ([41, 40, 40, 40, 40], 32000),
    ],
)
def test_the_wait_is_the_excess_over_the_drain(values, estimate_ms, clock, log):
    """Worked by hand: how much too much, by how fast it falls."""
    d = driven(rule(above(QUEUE_DEPTH, 32), clock=clock, log=log), clock, values)
    assert d.estimate_ms == estimate_ms
    assert estimate_ms <= d.retry_after_ms <= math.ceil(estimate_ms * 1.25)
    assert (d.verdict, d.admitted, d.status) == ("defer", False, 503)
    line = log.decisions[-1]
    assert (line["wait"], line["estimate_ms"]) == ("measured", estimate_ms)
    assert line["retry_after_ms"] == d.retry_after_ms


def test_the_drain_of_a_fraction_is_measured_alike(clock):
    """KV falls by 0.04 in the 2 s since it last rose: 0.05 too much takes 2.5 s."""
    policy = rule(above(KV_PRESSURE, 0.90, "kv_pressure"), clock=clock)
    d = driven(policy, clock, [0.97, 0.99, 0.95, 0.95], key="kv_pressure")
    assert d.estimate_ms == 2500


def test_a_bound_that_is_reached_needs_one_more_to_end(clock):
    """At `>=` 32 with 32 waiting, room for one is one request's end: 2 per second."""

    def decide(policy, metrics):
        return (
            policy.defer("queue_depth") if metrics.at_least(QUEUE_DEPTH, 32) else None
        )

    d = driven(rule(decide, clock=clock), clock, [38, 36, 34, 32])
    assert d.estimate_ms == 500


def test_only_the_last_ten_seconds_count(clock):
    """A drain of half a minute ago is no drain."""
    policy = rule(above(QUEUE_DEPTH, 32), clock=clock)
    d = driven(policy, clock, [400, 200] + [40] * 5 + [39] + [39] * 9)
    assert d.estimate_ms == 70_000


def test_the_gate_that_fired_is_the_reasons_own(clock):
    """With two gates that hold, the wait is that of the one the refusal speaks of."""

    def decide(policy, metrics):
        metrics.above(KV_PRESSURE, 0.9)
        metrics.above(QUEUE_DEPTH, 32)
        return policy.defer("queue_depth")

    policy = rule(decide, clock=clock)
    for queue, kv in ((40, 0.99), (38, 0.98), (36, 0.98), (34, 0.98)):
        d = policy(reading(clock, {"queue_depth": queue, "kv_pressure": kv}))
        clock.advance(1.0)
    assert d.estimate_ms == 1000


def test_each_replica_drains_by_itself(clock):
    """A full and an empty engine in turn are no queue that rises and falls."""
    policy = rule(above(QUEUE_DEPTH, 32), clock=clock)
    for _ in range(22):
        full = policy(reading(clock, {"queue_depth": 40}, replica="a"))
        policy(reading(clock, {"queue_depth": 3}, replica="b"))
        clock.advance(0.5)
    assert (full.verdict, full.estimate_ms, full.wait) == ("reject", None, "measured")


def test_own_requests_drain_by_the_ends_this_host_saw(clock):
    """Two ends a second at a full pool: the next place is free in half a second."""
    policy = InFlightCap(max_in_flight=4, clock=clock, reports_outcomes=True)
    ids = [policy({}).request_id for _ in range(4)]
    for _ in range(8):
        clock.advance(0.5)
        policy.outcome(ids.pop(0))
        ids.append(policy({}).request_id)
    d = policy({})
    assert d.reason == "in_flight_cap"
    assert d.estimate_ms == 500
    assert d.wait == "measured"


def test_a_callers_bound_drains_by_its_part_of_the_ends(clock):
    """Of four open two are the caller's: of two ends a second, one is its own."""
    policy = InFlightCap(
        max_in_flight=None, max_per_tenant=2, clock=clock, reports_outcomes=True
    )
    ids = [policy({}, tenant=t).request_id for t in "abab"]
    for turn in range(8):
        clock.advance(0.5)
        policy.outcome(ids.pop(0))
        ids.append(policy({}, tenant="ab"[turn % 2]).request_id)
    d = policy({}, tenant="a")
    assert (d.reason, d.status) == ("caller_in_flight", 429)
    assert (d.estimate_ms, d.wait) == (1000, "measured")


def test_a_session_waits_until_one_of_its_calls_should_end(clock):
    """The mean time a call takes, less the age of the session's oldest one."""

    def decide(policy, metrics):
        if metrics.at_least(SESSION_IN_FLIGHT, 1):
            return policy.defer("session_in_flight")
        return policy.admit()

    policy = rule(decide, clock=clock, reports_outcomes=True)
    assert policy({}, session="s", request_id="a").admitted
    assert policy({}, session="s").wait == "default"
    clock.advance(8.0)
    policy.outcome("a")
    policy({}, session="s", request_id="b")
    clock.advance(3.0)
    d = policy({}, session="s")
    assert (d.estimate_ms, d.wait) == (5000, "measured")


# Until it is measured, and when nothing drains.


def test_until_a_drain_is_measured_the_wait_is_one_second(clock, log):
    """It is recorded as a default, and the verdict stays defer."""
    policy = rule(above(QUEUE_DEPTH, 32), clock=clock, log=log)
    d = driven(policy, clock, [40, 40], step_s=0.25)
    assert (d.verdict, d.estimate_ms, d.wait) == ("defer", 1000, "default")
    assert 1000 <= d.retry_after_ms <= 1250
    assert log.decisions[-1]["wait"] == "default"


def test_a_refusal_without_a_gate_waits_one_second():
    """Nothing tells what it waits for."""
    d = rule(defers("slots"))({})
    assert (d.estimate_ms, d.wait, d.verdict) == (1000, "default", "defer")


def test_a_burst_after_a_quiet_time_is_no_standstill(clock):
    """An empty queue cannot fall: the first burst is deferred, not sent off."""
    policy = rule(above(QUEUE_DEPTH, 32), clock=clock)
    d = driven(policy, clock, [0] * 120 + [40], step_s=0.5)
    assert (d.verdict, d.wait) == ("defer", "default")
    assert d.retry_after_ms <= 1250


def test_a_burst_on_an_idle_host_is_no_standstill(clock):
    """Nobody ended in the last ten seconds because nobody was there."""
    policy = InFlightCap(max_in_flight=4, clock=clock, reports_outcomes=True)
    policy.outcome(policy({}).request_id)
    clock.advance(120.0)
    decisions = [policy({}) for _ in range(5)]
    assert (decisions[4].verdict, decisions[4].wait) == ("defer", "default")


def test_nothing_drains_and_defer_becomes_an_honest_reject(clock, log):
    """A queue that stands still: Retry-After at the cap, and the estimate not known."""
    policy = rule(above(QUEUE_DEPTH, 32), clock=clock, log=log)
    d = driven(policy, clock, [40] * 12)
    assert (d.verdict, d.reason, d.status) == ("reject", "queue_depth", 503)
    assert d.estimate_ms is None
    assert 48_000 <= d.retry_after_ms <= 60_000
    assert d.should_retry is True
    assert "estimate_ms" not in d.body()["error"]
    assert "estimate_ms" not in log.decisions[-1]
    assert log.decisions[-1]["wait"] == "measured"


def test_answers_of_some_seconds_are_no_standstill(clock):
    """That none of them ended in the first seconds says nothing yet."""
    policy = rule(above(QUEUE_DEPTH, 32), clock=clock)
    d = driven(policy, clock, [40] * 9)
    assert (d.verdict, d.wait) == ("defer", "default")


def test_a_pool_of_which_nothing_ends_is_a_standstill_too(clock):
    """All places taken for a while and no end seen: the next is told the truth."""
    policy = InFlightCap(max_in_flight=2, clock=clock, reports_outcomes=True)
    for _ in range(2):
        policy({})
    clock.advance(30.0)
    d = policy({})
    assert (d.verdict, d.estimate_ms) == ("reject", None)
    assert d.retry_after_ms >= 48_000


def test_a_reject_stays_a_reject(clock):
    """Only a defer is turned; a policy that rejects means it."""

    def decide(policy, metrics):
        return policy.reject("kv_pressure") if metrics.above(QUEUE_DEPTH, 32) else None

    d = driven(rule(decide, clock=clock), clock, [40, 38, 36, 34])
    assert d.verdict == "reject"


@pytest.mark.parametrize(
    ("estimate_ms", "verdict"),
    [(1, "defer"), (59_999, "defer"), (60_000, "defer"), (60_001, "reject"),
     (3_600_000, "reject")],
)  # fmt: skip
def test_an_estimate_past_a_minute_is_a_reject_with_the_truth(estimate_ms, verdict):
    """The estimate counts before the spread; the body carries it as it is."""
    d = rule(defers("kv_pressure", estimate_ms=estimate_ms))({})
    assert d.verdict == verdict
    assert d.status == 503
    assert d.estimate_ms == estimate_ms
    error = d.body()["error"]
    assert (error["estimate_ms"], error["capped"]) == (estimate_ms, verdict == "reject")
    assert d.retry_after_ms <= 60_000


def test_a_measured_estimate_past_a_minute_is_a_reject_too(clock):
    """One a second over a bound of 32 with 132 waiting is 100 s."""
    d = driven(rule(above(QUEUE_DEPTH, 32), clock=clock), clock, [135, 134, 133, 132])
    assert (d.verdict, d.estimate_ms) == ("reject", 100_000)


@pytest.mark.parametrize(
    ("cap_s", "estimate_ms", "verdict"),
    [(5.0, 5_000, "defer"), (5.0, 5_001, "reject"), (120.0, 100_000, "defer")],
)
def test_max_defer_s_moves_the_limit(cap_s, estimate_ms, verdict):
    """A host whose callers wait longer, or shorter, says so."""
    policy = rule(defers("slots", estimate_ms=estimate_ms), max_defer_s=cap_s)
    d = policy({})
    assert d.verdict == verdict
    assert d.retry_after_ms <= cap_s * 1000


@pytest.mark.parametrize(
    ("deadline_s", "verdict"),
    [(None, "defer"), (2.1, "defer"), (2.0, "defer"), (1.9, "reject"), (0.0, "reject"),
     (-5.0, "reject")],
)  # fmt: skip
def test_an_estimate_past_the_callers_deadline_is_a_reject(deadline_s, verdict):
    """Waiting 2 s helps nobody who has 1.9 s left."""
    d = rule(defers("slots", estimate_ms=2_000))({}, deadline_s=deadline_s)
    assert (d.verdict, d.reason, d.estimate_ms) == (verdict, "slots", 2_000)


def test_a_default_wait_does_not_turn_a_defer(clock):
    """What was not measured is not held against the caller's deadline."""
    d = rule(defers("slots"))({}, deadline_s=0.5)
    assert (d.verdict, d.wait) == ("defer", "default")


def test_an_own_estimate_is_spread_and_capped_like_ours():
    """A policy that knows better says how long, not what to send."""
    policy = rule(rejects("rate_limit", estimate_ms=4_000))
    sent = [policy({}, request_id=i).retry_after_ms for i in IDS]
    assert 4_000 <= min(sent) < 4_100
    assert 4_900 < max(sent) <= 5_000


# How it is spread.


def u_of(request_id):
    """Where in the spread an id falls."""
    return unit_interval(request_id, b"spread")


@pytest.mark.parametrize("estimate_ms", [1, 100, 1_000, 12_345, 48_000])
def test_the_spread_is_the_wait_times_one_plus_a_quarter_u(estimate_ms):
    """Keyed by the request id, upwards only."""
    policy = rule(defers("slots", estimate_ms=estimate_ms))
    for request_id in IDS:
        sent = policy({}, request_id=request_id).retry_after_ms
        assert sent == pytest.approx(estimate_ms * (1 + 0.25 * u_of(request_id)), abs=1)
        assert estimate_ms <= sent <= math.ceil(estimate_ms * 1.25)


@pytest.mark.parametrize(
    ("estimate_ms", "low_ms"),
    [(48_001, 48_001), (50_000, 50_000), (55_000, 55_000), (58_000, 55_000),
     (60_000, 55_000), (10**9, 55_000)],
)  # fmt: skip
def test_near_the_cap_the_spread_is_from_the_estimate_to_sixty_seconds(
    estimate_ms, low_ms
):
    """Over 48 s it is from max(48, estimate), at most 55, up to 60 s."""
    policy = rule(rejects("slots", estimate_ms=estimate_ms))
    for request_id in IDS:
        sent = policy({}, request_id=request_id).retry_after_ms
        expected = low_ms + (60_000 - low_ms) * u_of(request_id)
        assert sent == pytest.approx(expected, abs=1)
        assert low_ms <= sent <= 60_000


def test_an_endless_wait_is_spread_to_the_cap_too(clock):
    """Nothing drains: from 55 to 60 s."""
    policy = rule(above(QUEUE_DEPTH, 32), clock=clock)
    driven(policy, clock, [40] * 12)
    sent = [policy(reading(clock, {"queue_depth": 40}), request_id=i).retry_after_ms
            for i in IDS]  # fmt: skip
    assert min(sent) >= 48_000
    assert max(sent) <= 60_000
    assert len(set(sent)) > 350


def test_u_fills_the_unit_interval_evenly():
    """400 ids fall everywhere: each tenth holds between 4 and 16 percent of them."""
    tenths = [0] * 10
    for request_id in IDS:
        tenths[int(u_of(request_id) * 10)] += 1
    assert all(16 <= tenth <= 64 for tenth in tenths)


def test_the_same_id_is_told_the_same_wait_by_every_policy():
    """Two hosts and a restart agree."""
    policies = [rule(defers("slots", estimate_ms=9_000), name=n) for n in ("a", "b")]
    for request_id in IDS[:50]:
        one, other = (p({}, request_id=request_id).retry_after_ms for p in policies)
        assert one == other


@pytest.mark.parametrize("cap_s", [1.0, 2.0, 7.5, 60.0, 600.0])
@pytest.mark.parametrize("u", [0.0, 0.25, 0.5, 0.999999])
def test_no_estimate_is_ever_sent_past_the_cap(cap_s, u):
    """Whatever it is."""
    for estimate_ms in (0, 1, 800 * cap_s, 801 * cap_s, 1000 * cap_s, 1e18, math.inf):
        assert 0 <= spread_ms(estimate_ms, cap_s, u) <= cap_s * 1000


# What a policy gives is sent as given.


@pytest.mark.parametrize(
    ("hint_ms", "seconds", "milliseconds"),
    [
        (0, "1", None), (1, "1", "1"), (200, "1", "200"), (999, "1", "999"),
        (1000, "1", "1000"), (1001, "2", "1001"), (59_999, "60", "59999"),
        (0.5, "1", "1"), (1500.2, "2", "1501"), (120_000, "120", "120000"),
    ],
)  # fmt: skip
def test_a_hint_is_sent_as_given(hint_ms, seconds, milliseconds, log):
    """Neither spread nor capped: whole seconds rounded up, and exact milliseconds."""
    policy = rule(defers("slots", retry_after_ms=hint_ms), log=log)
    for request_id in IDS[:5]:
        d = policy({}, request_id=request_id)
        assert d.retry_after_ms == hint_ms
        assert d.verdict == "defer"
        assert d.headers()["Retry-After"] == seconds
        assert d.headers().get("retry-after-ms") == milliseconds
    assert log.decisions[0]["retry_after_ms"] == hint_ms
    assert log.decisions[0]["wait"] == "policy"


class Oddly(float):
    """A float of another library, which shows itself in its own way."""

    def __repr__(self):
        return f"np.float64({float(self)})"


def test_a_hint_of_another_librarys_float_is_a_number_in_the_log(log):
    """The line stays JSON."""
    rule(defers("slots", retry_after_ms=Oddly(200)), log=log)({})
    assert log.decisions[0]["retry_after_ms"] == 200


@pytest.mark.parametrize(
    "hint_ms",
    [-1, -0.001, math.nan, math.inf, -math.inf, "200", True, b"1", object(), 10**400,
     1e300, [200]],
)  # fmt: skip
@pytest.mark.parametrize("which", ["retry_after_ms", "estimate_ms"])
def test_a_hint_that_is_no_wait_is_computed_instead(which, hint_ms, log):
    """A policy's slip becomes a default, never a header that no client can read."""
    d = rule(defers("slots", **{which: hint_ms}), log=log)({})
    assert (d.verdict, d.reason, d.wait) == ("defer", "slots", "default")
    assert 1000 <= d.retry_after_ms <= 1250
    assert d.headers()["Retry-After"] in ("1", "2")
    assert len(log.decisions) == 1


# Reasons with waits of their own.


def test_a_saturated_pool_asks_for_15_to_60_seconds(clock):
    """Whatever was estimated."""
    for estimate_ms in (None, 0, 1, 20_000, 59_000, 10**7):
        policy = rule(rejects("pool_saturated", estimate_ms=estimate_ms))
        sent = [policy({}, request_id=i).retry_after_ms for i in IDS]
        assert min(sent) >= 15_000
        assert max(sent) <= 60_000
        assert len(set(sent)) > 350
        assert policy({}).should_retry


def test_a_misfit_is_never_asked_back():
    """What can never fit has no wait, no estimate and no retry."""
    d = rule(rejects("too_large"))({})
    assert (d.retry_after_ms, d.estimate_ms, d.wait) == (None, None, "none")
    headers = d.headers()
    assert "Retry-After" not in headers
    assert "retry-after-ms" not in headers
    assert headers["x-should-retry"] == "false"


@pytest.mark.parametrize(
    "reason", ["tenant_share", "rate_limit", "caller_in_flight", "session_quota"]
)
@pytest.mark.parametrize("which", ["estimate_ms", "retry_after_ms"])
def test_a_caller_over_its_share_past_a_minute_is_not_to_retry(reason, which):
    """Up to 60 s: yes; past it: no, whoever worked the time out."""
    for wait_ms, retry in ((59_000, True), (60_000, True), (60_001, False)):
        d = rule(rejects(reason, **{which: wait_ms}))({})
        assert d.should_retry is retry
        assert d.headers()["x-should-retry"] == str(retry).lower()


def test_a_late_request_is_not_to_be_retried_but_told_when_one_would_fit():
    """A deadline that cannot be met: no retry of this call, a time for the next."""
    d = rule(rejects("deadline_unmeetable", estimate_ms=7_000))({})
    assert d.status == 503
    assert d.headers()["x-should-retry"] == "false"
    assert 7 <= int(d.headers()["Retry-After"]) <= 9


def test_an_own_reason_may_bound_its_wait():
    """`least_s` and `most_s` hold for whoever sets them."""
    own = {"acme": Reason(503, least_s=10.0, most_s=20.0)}
    for estimate_ms, low, high in ((1, 10, 12.5), (15_000, 15, 18.75), (10**6, 20, 25)):
        d = rule(rejects("acme", estimate_ms=estimate_ms), reasons=own)({})
        assert low * 1000 <= d.retry_after_ms <= high * 1000


def test_a_wait_beyond_any_number_is_still_an_answer(clock):
    """A gauge of 1e308 over a drain of almost nothing does not overflow the answer."""
    policy = rule(above(QUEUE_DEPTH, 32), clock=clock)
    d = driven(policy, clock, [1.7e308, 1.6e308, 1e308, 1e308])
    assert d.reason == "queue_depth"
    assert d.retry_after_ms <= 60_000
    small = rule(above(QUEUE_DEPTH, 1), clock=clock)
    d = driven(small, clock, [1e300, 1e300 - 1e284, 1e300 - 2e284, 1e300 - 2e284])
    assert d.retry_after_ms <= 60_000


def test_a_derived_number_has_no_drain_and_waits_its_default(clock):
    """What no reading carries cannot be seen to fall."""

    def decide(policy, metrics):
        return policy.defer("queue_age") if metrics.gate("mine", 2.0, 1.0) else None

    policy = rule(decide, clock=clock)
    for _ in range(10):
        d = policy({})
        clock.advance(1.0)
    assert (d.wait, d.verdict) == ("default", "defer")


def test_a_small_roll_out_still_spreads_its_callers():
    """Who is governed says nothing about who waits how long."""
    policy = rule(defers("queue_depth"), enforce=0.1)
    sent = [policy({}, request_id=f"r{i}") for i in range(5000)]
    waits = [d.retry_after_ms for d in sent if not d.admitted]
    assert 400 < len(waits) < 600
    assert min(waits) < 1025
    assert max(waits) > 1225


def test_the_bound_that_was_passed_is_the_one_that_must_have_room():
    """Of two bounds on one signal, the one that held counts, not the last one asked."""
    gates = [Gate("queue_depth", 30, ">=", 10), Gate("queue_depth", 30, ">=", 100)]
    assert _fired("queue_depth", gates) is gates[0]
    assert _fired("queue_depth", gates[1:]) is gates[1]
    assert _fired("queue_depth", []) is None
