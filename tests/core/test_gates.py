"""Comparisons leave a trace."""

# ruff: noqa: SIM300  a bound on the left is what some of these tests are about

import math
from decimal import Decimal
from fractions import Fraction

import pytest
from tests.core.rules import QUIET, reading, rule, wall

from admitperf.core.signals import (
    DEADLINE_SLACK_S,
    IN_FLIGHT,
    INPUT_TOKENS,
    KV_PRESSURE,
    QUEUE_DEPTH,
)


def gates_of(decide, raw, log, **facts):
    """What one decision of a rule recorded."""

    def judged(policy, metrics):
        decide(metrics)
        return policy.admit()

    d = rule(judged, log=log)(raw, **facts)
    assert d.reason is None, d.blind
    return log.decisions[-1]["gates"]


def kv(metrics):
    """The value under test."""
    return KV_PRESSURE.read(metrics)


@pytest.mark.parametrize(
    ("compare", "op", "held"),
    [
        (lambda m: kv(m) >= 0.5, ">=", True),
        (lambda m: kv(m) > 0.5, ">", False),
        (lambda m: kv(m) <= 0.5, "<=", True),
        (lambda m: kv(m) < 0.5, "<", False),
        (lambda m: 0.5 <= kv(m), ">=", True),
        (lambda m: 0.5 < kv(m), ">", False),
        (lambda m: 0.5 >= kv(m), "<=", True),
        (lambda m: 0.5 > kv(m), "<", False),
        (lambda m: m.at_least(KV_PRESSURE, 0.5), ">=", True),
        (lambda m: m.above(KV_PRESSURE, 0.5), ">", False),
        (lambda m: m.at_most(KV_PRESSURE, 0.5), "<=", True),
        (lambda m: m.below(KV_PRESSURE, 0.5), "<", False),
    ],
)
def test_each_way_to_compare_records_the_same_gate(compare, op, held, log):
    """Operators, turned round or not, and the four methods are judged alike."""
    answers = []
    gates = gates_of(lambda m: answers.append(compare(m)), {"kv_pressure": 0.5}, log)
    assert gates == [["kv_pressure", 0.5, op, 0.5, held]]
    assert answers == [held]
    assert type(answers[0]) is bool


@pytest.mark.parametrize("bound", [1, True, Fraction(1), Decimal(1)])
def test_a_bound_may_be_any_number(bound, log):
    """An integer, a fraction or a number of another library is a bound like a float."""
    gates = gates_of(lambda m: kv(m) < bound, {"kv_pressure": 0.5}, log)
    assert gates == [["kv_pressure", 0.5, "<", 1.0, True]]


@pytest.mark.parametrize("bound", [1, True, 1.0])
def test_a_bound_may_stand_on_the_left(bound, log):
    """`1 <= value` records what `value >= 1` does."""
    gates = gates_of(lambda m: bound <= kv(m), {"kv_pressure": 0.5}, log)
    assert gates == [["kv_pressure", 0.5, ">=", 1.0, False]]


@pytest.mark.parametrize("bound", [None, "0.9", object(), [0.9]])
def test_what_is_no_number_is_no_bound(bound, log):
    """A comparison that Python would refuse is the policy's error, not absence."""
    policy = rule(lambda p, m: kv(m) < bound and p.admit(), log=log)
    d = policy({"kv_pressure": 0.5})
    assert (d.admitted, d.reason) == (True, "policy_error")
    assert log.decisions[0]["gates"] == []


def test_gates_stand_in_the_order_they_were_asked(log):
    """The record reads like the rule."""

    def decide(m):
        return kv(m) > 0.9 or QUEUE_DEPTH.read(m) > 3 or kv(m) > 0.1

    gates = gates_of(decide, {"kv_pressure": 0.5, "queue_depth": 2}, log)
    assert [(name, op, bound) for name, _, op, bound, _ in gates] == [
        ("kv_pressure", ">", 0.9),
        ("queue_depth", ">", 3.0),
        ("kv_pressure", ">", 0.1),
    ]


def test_a_gate_that_was_skipped_is_not_invented(log):
    """`and` and `or` leave out what they skip; the line has signals to complete it."""
    gates = gates_of(
        lambda m: kv(m) > 0.9 and QUEUE_DEPTH.read(m) > 3,
        {"kv_pressure": 0.5, "queue_depth": 9},
        log,
    )
    assert [gate[0] for gate in gates] == ["kv_pressure"]
    assert log.decisions[0]["signals"]["queue_depth"] == 9


def test_a_derived_number_is_recorded_under_its_own_name(log):
    """`metrics.gate` names what arithmetic made, with the operator it was given."""

    def decide(m):
        projected = kv(m) + m.request.input_tokens / 1000
        assert m.gate("projected_kv", projected, 0.9) is True
        assert m.gate("slack", projected, 0.9, "<") is False

    gates = gates_of(decide, {"kv_pressure": 0.5}, log, input_tokens=500)
    assert gates == [
        ["projected_kv", 1.0, ">=", 0.9, True],
        ["slack", 1.0, "<", 0.9, False],
    ]


def test_arithmetic_gives_a_plain_number(log):
    """A derived number no longer is the signal, so comparing it records nothing."""
    kinds = []

    def decide(m):
        derived = [kv(m) * 2, 1 - kv(m), round(kv(m), 1), abs(kv(m)), kv(m) ** 2]
        kinds.extend(type(value) for value in derived)
        return derived[0] >= 0.1

    assert gates_of(decide, {"kv_pressure": 0.5}, log) == []
    assert set(kinds) == {float}


def test_a_value_behaves_like_the_float_it_is(log):
    """Equality, hashing, truth and formatting are those of the number."""

    def decide(m):
        value = kv(m)
        assert value == 0.5
        assert value != 0.4
        assert hash(value) == hash(0.5)
        assert {0.5: "half"}[value] == "half"
        assert f"{value:.2f}" == "0.50"
        assert isinstance(value, float)

    gates_of(decide, {"kv_pressure": 0.5}, log)


@pytest.mark.parametrize(
    ("signal", "facts", "value"),
    [
        (INPUT_TOKENS, {"input_tokens": 700}, 700.0),
        (DEADLINE_SLACK_S, {"deadline_s": -2.5}, -2.5),
    ],
)
def test_signals_of_the_request_leave_gates_too(signal, facts, value, log):
    """Not only the engine's signals are judged."""
    gates = gates_of(lambda m: signal.read(m) > 5, {}, log, **facts)
    assert gates == [[signal.name, value, ">", 5.0, value > 5]]


def test_signals_of_the_ledger_leave_gates_too(log):
    """What this host has in flight is compared like anything else."""

    def decide(policy, metrics):
        return (
            policy.defer("in_flight_cap")
            if metrics.at_least(IN_FLIGHT, 1)
            else policy.admit()
        )

    policy = rule(decide, log=log, reports_outcomes=True)
    assert [policy({}).admitted for _ in range(2)] == [True, False]
    assert [line["gates"] for line in log.decisions] == [
        [["in_flight", 0.0, ">=", 1.0, False]],
        [["in_flight", 1.0, ">=", 1.0, True]],
    ]


def test_every_decision_on_one_reading_records_its_own_gates(clock, log):
    """The hundredth decision on a reading is as complete as the first."""
    policy = wall(clock=clock, log=log)
    same = reading(clock, QUIET)
    for _ in range(100):
        policy(same)
    assert len({str(line["gates"]) for line in log.decisions}) == 1
    assert len(log.decisions[99]["gates"]) == 2


def test_a_rule_with_very_many_comparisons_keeps_the_ones_it_ended_on(log):
    """A line is bounded, and the comparison that decided is the last one made."""

    def decide(policy, metrics):
        for bound in range(1000):
            if metrics.at_least(QUEUE_DEPTH, 1000 - bound):
                return policy.defer("queue_depth")
        return policy.admit()

    d = rule(decide, log=log)({"queue_depth": 500})
    assert len(d.gates) == 501
    gates = log.decisions[0]["gates"]
    assert gates[-1] == ["queue_depth", 500.0, ">=", 500.0, True]
    assert len(log.texts[0]) < 4_000


def test_gates_do_not_leak_into_the_next_decision(log):
    """A decision holds its own comparisons and no one else's."""
    policy = wall(log=log)
    policy({"kv_pressure": 0.5, "queue_depth": 0})
    policy({"kv_pressure": 0.95, "queue_depth": 0})
    assert [len(line["gates"]) for line in log.decisions] == [2, 1]


def test_a_decision_carries_its_gates(log):
    """A host can look at them without reading the log."""
    d = wall(log=log)({"kv_pressure": 0.95, "queue_depth": 0})
    (gate,) = d.gates
    assert (gate.name, gate.value, gate.op) == ("kv_pressure", 0.95, ">=")
    assert (gate.bound, gate.held) == (0.9, True)


@pytest.mark.parametrize("bound", [math.inf, -math.inf, math.nan])
def test_a_bound_that_is_not_finite_is_null_in_the_log(bound, log):
    """A comparison with infinity is legal, and the line stays JSON."""
    gates = gates_of(lambda m: kv(m) >= bound, {"kv_pressure": 0.5}, log)
    assert gates == [["kv_pressure", 0.5, ">=", None, bound == -math.inf]]


def test_a_derived_number_that_is_not_finite_is_null_in_the_log(log):
    """So is a projected value that went wrong."""
    gates = gates_of(lambda m: m.gate("wrong", math.nan, 0.9), {}, log)
    assert gates == [["wrong", None, ">=", 0.9, False]]


def test_an_operator_that_does_not_exist_is_the_policys_error(log):
    """`metrics.gate(..., "==")` is told at once and never reaches the caller."""
    policy = rule(lambda p, m: m.gate("x", 1, 2, "==") and p.admit())
    assert policy({}).reason == "policy_error"
