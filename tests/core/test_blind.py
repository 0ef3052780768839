"""A policy that cannot see answers by its posture, and says so."""

import pytest
from tests.core.rules import FULL, QUIET, admits, defers, reading, rule, wall

from admitperf.core.signals import IN_FLIGHT, KV_PRESSURE, PREFIX_HIT_RATE, QUEUE_DEPTH

BLIND = {"signal_absent", "signal_stale", "policy_error"}


def kv_rule(policy, metrics):
    """Refuses at 0.9 of the memory."""
    if KV_PRESSURE.read(metrics) >= 0.9:
        return policy.defer("kv_pressure")
    return policy.admit()


def kv(**given):
    """A policy that requires the memory's pressure."""
    return rule(kv_rule, requires=(KV_PRESSURE,), **given)


def blind_lines(log):
    """The decision lines that were made blind."""
    return [line for line in log.decisions if "blind" in line]


def serve(policy, raw, times, held=0):
    """Requests one after another while `held` of them stay open."""
    for n in range(held):
        policy(raw, request_id=f"held{n}")
    for _ in range(times):
        policy.outcome(policy(raw).request_id)


# Why.


def test_a_required_signal_that_nothing_supplies_makes_it_blind(log):
    """It is not asked: a missing signal is never headroom."""
    asked = []
    policy = rule(
        lambda p, m: asked.append(1) or p.admit(), requires=(KV_PRESSURE,), log=log
    )
    d = policy({"queue_depth": 3})
    assert d.reason == "signal_absent"
    assert asked == []
    assert "kv_pressure" in log.decisions[0]["why"]


def test_a_required_signal_that_is_zero_is_seen():
    """Zero is a value: an idle engine is not an absent one."""
    assert kv()({"kv_pressure": 0.0}).reason is None


def test_a_failure_after_reading_a_signal_that_was_none_is_absence(log):
    """Comparing None raises inside `decide`: the signal is to blame."""
    policy = wall(log=log)
    d = policy({"kv_pressure": 0.2})
    assert (d.reason, d.admitted) == ("signal_absent", True)
    assert "queue_depth" in log.decisions[0]["why"]


@pytest.mark.parametrize("method", ["at_least", "above", "at_most", "below"])
def test_a_gate_on_a_signal_that_is_none_is_absence(method):
    """The methods fail like the operators."""
    policy = rule(lambda p, m: getattr(m, method)(KV_PRESSURE, 0.9) and p.admit())
    assert policy({}).reason == "signal_absent"


def test_a_failure_of_its_own_is_a_policy_error(log):
    """Nothing was missing: the rule is to blame."""
    policy = rule(
        lambda p, m: p.admit() if KV_PRESSURE.read(m) > 1 / 0 else None, log=log
    )
    d = policy(QUIET)
    assert d.reason == "policy_error"
    assert "ZeroDivisionError" in log.decisions[0]["why"]


def test_a_rule_that_copes_with_none_is_not_blind(log):
    """Reading None and going on is a rule's own right."""

    def decide(policy, metrics):
        return policy.admit() if PREFIX_HIT_RATE.read(metrics) is None else None

    assert rule(decide, log=log)(QUIET).reason is None
    assert blind_lines(log) == []


def test_a_stale_reading_is_told_apart_from_an_absent_signal(clock, log):
    """`signal_stale` was there and grew old; `signal_absent` was not there."""
    policy = kv(clock=clock, log=log)
    old = reading(clock, QUIET)
    assert policy(old).reason is None
    clock.advance(1.6)
    assert policy(old).reason == "signal_stale"
    assert policy(reading(clock, {"queue_depth": 1})).reason in BLIND
    assert kv(clock=clock)({"queue_depth": 1}).reason == "signal_absent"


def test_a_failure_after_a_stale_signal_is_staleness(clock):
    """A rule that declares nothing and compares a signal that grew old is stale too."""
    policy = wall(clock=clock)
    old = reading(clock, QUIET)
    clock.advance(1.6)
    assert policy(old).reason == "signal_stale"


# What then.


@pytest.mark.parametrize(
    ("posture", "verdict", "admitted"),
    [("degrade", "admit", True), ("admit", "admit", True), ("defer", "defer", False),
     ("reject", "reject", False), ("hold_last", "admit", True)],
)  # fmt: skip
@pytest.mark.parametrize(
    ("decide", "reason"),
    [(kv_rule, "signal_absent"), (lambda p, m: 1 / 0, "policy_error")],
)
def test_each_posture_answers_in_its_way(
    posture, verdict, admitted, decide, reason, log
):
    """Under a blind reason, never a capacity reason, and with the reason's status."""
    d = rule(decide, on_blind=posture, log=log)({})
    assert (d.verdict, d.reason, d.admitted) == (verdict, reason, admitted)
    assert d.status == (200 if admitted else 503)
    assert d.blind
    assert log.decisions[0]["blind"] == reason


def test_degrade_is_the_posture_of_who_chose_none():
    """It is the default."""
    assert kv().settings.on_blind == "degrade"


def test_degrade_caps_the_hosts_own_requests_at_blind_cap():
    """Up to the cap they start, beyond it they are refused, and an end makes room."""
    policy = kv(blind_cap=3, reports_outcomes=True)
    opened = [policy({}) for _ in range(5)]
    assert [d.admitted for d in opened] == [True, True, True, False, False]
    assert {d.reason for d in opened} == {"signal_absent"}
    assert opened[3].status == 503
    policy.outcome(opened[0].request_id)
    assert policy({}).admitted
    assert not policy({}).admitted


def test_a_blind_cap_of_zero_refuses_everything():
    """It is a cap like any other."""
    assert not kv(blind_cap=0, reports_outcomes=True)({}).admitted


def test_degrade_without_a_cap_or_a_past_admits():
    """With neither figure it is an open door, and never an outage."""
    policy = kv(reports_outcomes=True)
    assert all(policy({}).admitted for _ in range(300))


def test_degrade_learns_the_95th_percentile_of_what_was_open():
    """With seven open at once in good times, seven may be open while blind."""
    policy = kv(reports_outcomes=True)
    serve(policy, QUIET, 150, held=6)
    assert policy.ledger.in_flight == 6
    admitted = [policy({}).admitted for _ in range(3)]
    assert admitted == [True, False, False]


def test_a_rare_peak_does_not_set_the_cap():
    """One moment in a hundred with twenty open is above the 95th percentile."""
    policy = kv(reports_outcomes=True)
    serve(policy, QUIET, 500, held=2)
    peak = [policy(QUIET).request_id for _ in range(18)]
    for request_id in peak:
        policy.outcome(request_id)
    assert policy.ledger.in_flight == 2
    assert [policy({}).admitted for _ in range(3)] == [True, False, False]


@pytest.mark.parametrize(("good", "capped"), [(99, False), (100, True)])
def test_a_past_of_fewer_than_100_decisions_is_no_past(good, capped):
    """At 99 decisions on good readings the door is open, at 100 it has a cap."""
    policy = kv(reports_outcomes=True)
    serve(policy, QUIET, good)
    assert all(policy({}).admitted for _ in range(30)) is not capped


def test_a_host_that_serves_one_at_a_time_is_not_shut_out():
    """Its 95th percentile is one request, and one request may start."""
    policy = kv()
    serve(policy, QUIET, 200)
    for _ in range(5):
        d = policy({})
        assert d.admitted
        policy.outcome(d.request_id)


def test_blind_decisions_are_no_part_of_the_past():
    """What was open while blind teaches nothing."""
    policy = kv(reports_outcomes=True)
    serve(policy, {}, 200)
    assert all(policy({}).admitted for _ in range(30))


def test_degrade_without_a_ledger_admits():
    """A host that reports no ends has no count to cap: no outcomes means no ledger."""
    policy = kv(blind_cap=1)
    assert all(policy({}).admitted for _ in range(5))


def test_blind_cap_goes_before_the_past():
    """What the operator said is not overruled by what was seen."""
    policy = kv(blind_cap=2, reports_outcomes=True)
    serve(policy, QUIET, 150, held=0)
    assert [policy({}).admitted for _ in range(3)] == [True, True, False]


# hold_last.


def held(clock, **given):
    """A policy that holds on to what it saw last."""
    return kv(on_blind="hold_last", clock=clock, **given)


@pytest.mark.parametrize(("raw", "verdict"), [(QUIET, "admit"), (FULL, "defer")])
def test_hold_last_decides_on_the_last_good_reading(raw, verdict, clock, log):
    """For `hold_last_s` the rule goes on with what it knew, under the blind reason."""
    policy = held(clock, log=log)
    policy(reading(clock, raw))
    for _ in range(5):
        clock.advance(1.0)
        d = policy({})
        assert (d.verdict, d.reason) == (verdict, "signal_absent")
    assert len(blind_lines(log)) == 5


def test_hold_last_degrades_after_its_time(clock):
    """A reading that is too old to hold is not held."""
    policy = held(clock, hold_last_s=3.0)
    policy(reading(clock, FULL))
    clock.advance(3.0)
    assert not policy({}).admitted
    clock.advance(0.1)
    assert policy({}).admitted


def test_hold_last_without_a_good_reading_degrades(clock):
    """There is nothing to hold."""
    policy = held(clock, blind_cap=1, reports_outcomes=True)
    assert [policy({}).admitted for _ in range(2)] == [True, False]


def test_hold_last_holds_a_reading_that_grew_stale(clock):
    """A scraper that stopped 2 s ago left a reading that was good."""
    policy = held(clock)
    last = reading(clock, FULL)
    policy(last)
    clock.advance(2.0)
    d = policy(last)
    assert (d.admitted, d.reason) == (False, "signal_stale")


def test_hold_last_counts_from_when_a_plain_mapping_was_last_handed_in(clock):
    """A gauge that did not move for a minute was read a moment ago."""
    policy = held(clock, hold_last_s=5.0)
    for _ in range(60):
        policy(dict(FULL))
        clock.advance(1.0)
    assert not policy({}).admitted


def test_hold_last_of_a_rule_that_fails_on_it_too_degrades(clock):
    """A broken rule is broken on any reading."""
    answers = iter([True])

    def decide(policy, _metrics):
        return policy.admit() if next(answers) else None

    policy = rule(decide, on_blind="hold_last", clock=clock)
    assert policy(QUIET).reason is None
    assert policy(QUIET).reason == "policy_error"
    assert policy(QUIET).admitted


# Said, counted and left.


def test_a_change_is_said_once_each_way(caplog, log):
    """Loudly when it goes blind, again when it sees, and not for every request."""
    policy = kv(log=log)
    for raw in (QUIET, {}, {}, {}, QUIET, QUIET, {}, {}):
        policy(raw)
    said = [record.getMessage() for record in caplog.records]
    assert ["blind" in text for text in said] == [True, False, True]
    assert all(record.levelname == "WARNING" for record in caplog.records)
    assert all("rule" in text for text in said)
    assert [line["event"] for line in log.controls] == ["blind", "sighted", "blind"]
    assert log.controls[0]["reason"] == "signal_absent"


def test_a_change_is_said_also_while_the_reading_stays_the_same(log):
    """A rule that fails now and then on one reading is heard each time it changes."""
    fails = iter([False, True, True, False, True])
    policy = rule(lambda p, m: 1 / 0 if next(fails) else p.admit(), log=log)
    for _ in range(5):
        policy(QUIET)
    events = [line["event"] for line in log.controls]
    assert events == ["blind", "sighted", "blind"]


def test_another_reason_is_another_change(caplog):
    """From absent to a policy error is news."""
    fails = iter([False, True])

    def decide(policy, metrics):
        return 1 / 0 if next(fails) else KV_PRESSURE.read(metrics) > 0.5

    policy = rule(decide)
    policy({})
    policy({})
    assert len(caplog.records) == 2


def test_blind_decisions_are_counted_apart(log):
    """Each carries the reason and what could not be seen."""
    policy = kv(log=log)
    for raw in (QUIET, {}, QUIET, {}):
        policy(raw)
    assert ["blind" in line for line in log.decisions] == [False, True, False, True]
    for line in blind_lines(log):
        assert line["reason"] == line["blind"] == "signal_absent"
        assert "kv_pressure" in line["why"]


def test_an_absent_signal_that_is_back_is_seen_at_once():
    """Absence is a matter of the page, and the next page ends it."""
    policy = kv()
    assert [policy(raw).reason for raw in ({}, QUIET)] == ["signal_absent", None]


def test_staleness_is_left_after_three_good_readings(clock):
    """One page after an outage proves little; the third is believed."""
    policy = kv(clock=clock, on_blind="reject")
    last = reading(clock, QUIET)
    policy(last)
    clock.advance(2.0)
    assert policy(last).reason == "signal_stale"
    reasons = []
    for _ in range(4):
        clock.advance(0.25)
        reasons.append(policy(reading(clock, QUIET)).reason)
    assert reasons == ["signal_stale", "signal_stale", None, None]


def test_one_good_reading_handed_in_three_times_is_one_reading(clock):
    """Requests do not make readings."""
    policy = kv(clock=clock, on_blind="reject")
    last = reading(clock, QUIET)
    clock.advance(2.0)
    policy(last)
    again = reading(clock, QUIET)
    assert {policy(again).reason for _ in range(10)} == {"signal_stale"}


def test_a_reading_that_is_old_when_it_comes_is_no_good_reading(clock):
    """Three stale pages do not make a fresh one."""
    policy = kv(clock=clock, on_blind="reject")
    last = reading(clock, QUIET)
    clock.advance(2.0)
    policy(last)
    for _ in range(5):
        late = reading(clock, QUIET)
        clock.advance(2.0)
        assert policy(late).reason == "signal_stale"


def test_another_signal_that_stays_stale_keeps_nobody_blind(clock):
    """A queue rule sees again although the memory gauge contradicts itself."""
    policy = rule(
        lambda p, m: p.admit() if QUEUE_DEPTH.read(m) < 5 else p.defer("queue_depth"),
        requires=(QUEUE_DEPTH,),
        clock=clock,
        on_blind="reject",
    )
    frozen = {
        "vllm:kv_cache_usage_perc": 0.97, "vllm:num_requests_running": 0,
        "vllm:num_requests_waiting": 0,
    }  # fmt: skip
    last = reading(clock, frozen)
    policy(last)
    clock.advance(10.0)
    assert policy(last).reason == "signal_stale"
    reasons = []
    for _ in range(4):
        clock.advance(0.25)
        reasons.append(policy(reading(clock, frozen)).reason)
    assert reasons[-1] is None


@pytest.mark.parametrize("posture", ["defer", "reject"])
def test_a_blind_refusal_asks_for_one_to_five_seconds(posture):
    """Sensors come back sooner than a minute; a retry is invited."""
    policy = kv(on_blind=posture)
    waits = [policy({}, request_id=f"r{n}").retry_after_ms for n in range(200)]
    assert 1_000 <= min(waits) < 1_500
    assert 4_500 < max(waits) <= 5_000
    d = policy({})
    assert d.headers()["x-should-retry"] == "true"
    assert d.headers()["x-admitperf-reason"] == "signal_absent"


def test_a_rule_on_the_ledger_alone_is_not_blind_without_metrics():
    """What it needs is here: a page it does not read cannot blind it."""

    def decide(policy, metrics):
        if metrics.at_least(IN_FLIGHT, 1):
            return policy.defer("in_flight_cap")
        return policy.admit()

    policy = rule(decide, requires=(IN_FLIGHT,), reports_outcomes=True)
    assert [policy({}).reason for _ in range(2)] == [None, "in_flight_cap"]


def test_raw_metrics_of_no_kind_supply_nothing():
    """None, text or a number in place of a mapping is an empty page, not a crash."""
    policy = kv(on_blind="reject")
    for nothing in (None, 7, "kv_pressure 0.5", [], object()):
        assert policy(nothing).reason == "signal_absent"
    assert rule(admits)(None).admitted
    assert rule(defers("slots"))(7).reason == "slots"
