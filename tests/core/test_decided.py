"""A policy learns once of each final answer, and what it charged is given back."""

import logging

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.rules import FULL, QUIET, admits, defers, rule, wall

from admitperf import Reading
from admitperf.core.charge import Charge, charges
from admitperf.core.signals import KV_PRESSURE
from admitperf.testing import FakeClock

DAY_S = 86_400.0


def told(seen, decide=None, charge=None, **given_):
    """A policy that notes its final answers and charges what it is told to."""

    def decided(policy, metrics, d):
        seen.append((metrics.request.tenant, d.verdict, d.reason, d.admitted))
        return charge

    return rule(decide or admits, decided=decided, reports_outcomes=True, **given_)


def by_pressure(policy, metrics):
    """The sample's first gate."""
    full = metrics.at_least(KV_PRESSURE, 0.9)
    return policy.defer("kv_pressure") if full else policy.admit()


def test_each_answer_is_told_once_and_in_order(clock):
    """Admitted or refused, by a call."""
    seen = []
    policy = told(seen, by_pressure, clock=clock)
    policy(QUIET, tenant="a")
    policy(FULL, tenant="b")
    assert seen == [("a", "admit", None, True), ("b", "defer", "kv_pressure", False)]


def test_a_held_request_is_told_when_it_has_its_answer(clock):
    """Asking again and again charges nothing; the answer does, once."""
    seen = []
    policy = told(seen, by_pressure, Charge("held"), clock=clock)
    d = policy.ask(FULL, tenant="a")
    for _ in range(5):
        d = policy.ask(FULL, request_id=d.request_id, held_ms=1.0, tenant="a")
    assert seen == []
    policy.ask(QUIET, request_id=d.request_id, held_ms=9.0, tenant="a")
    assert seen == [("a", "admit", None, True)]
    assert policy.ledger.charges("held") == 1


def test_an_open_refusal_is_told_when_it_becomes_the_answer(clock):
    """And a probe is a refusal that was started all the same."""
    seen = []
    policy = told(seen, by_pressure, clock=clock)
    policy.answer(policy.ask(FULL, tenant="a"))
    policy.answer(policy.ask(FULL, tenant="b"), probe=True)
    assert seen == [
        ("a", "defer", "kv_pressure", False),
        ("b", "defer", "kv_pressure", True),
    ]


def test_a_hosts_own_refusal_and_a_posture_are_told_too(clock):
    """Whoever answered, the policy learns of the demand."""
    seen = []
    policy = told(seen, by_pressure, requires=(KV_PRESSURE,), clock=clock)
    policy.refuse({}, "rate_limit", why="quota", tenant="a")
    policy({}, tenant="b")
    assert seen == [
        ("a", "reject", "rate_limit", False),
        ("b", "admit", "signal_absent", True),
    ]


def test_what_is_not_governed_is_started_and_may_be_charged(clock):
    """In shadow a refused request runs: the policy sees both sides and chooses."""
    seen = []
    policy = told(
        seen, defers("kv_pressure"), Charge("on paper"), enforce=0.0, clock=clock
    )
    policy(QUIET)
    assert seen == [(None, "defer", "kv_pressure", True)]
    assert policy.ledger.charges("on paper") == 1


def test_a_charge_lasts_until_the_end_of_its_request(clock):
    """Sum and count by account; the outcome carries the charge back."""
    back = []
    charge = (Charge(("p", "a"), 3.0), (Charge("all"), None, Charge("all", 0.5)))
    policy = told(
        [], charge=charge, observe=lambda p, m, o: back.append(o), clock=clock
    )
    d = policy(QUIET)
    ledger = policy.ledger
    assert (ledger.charged(("p", "a")), ledger.charges(("p", "a"))) == (3.0, 1)
    assert (ledger.charged("all"), ledger.charges("all")) == (1.5, 2)
    policy.outcome(d.request_id)
    assert back[-1].charge is charge
    assert (ledger.charged("all"), ledger.charges("all")) == (0.0, 0)
    assert ledger.charged(("p", "a")) == 0.0


def test_a_refused_request_holds_nothing(clock):
    """Whatever `decided` returned for it, and also when its end is reported."""
    policy = told([], defers("kv_pressure"), Charge("x"), clock=clock)
    d = policy(QUIET)
    assert policy.ledger.charges("x") == 0
    policy.outcome(d.request_id, ok=False)
    assert policy.ledger.charges("x") == 0


def test_a_lease_that_runs_out_gives_the_charge_back_and_a_late_sign_takes_it(clock):
    """What is held follows the ledger, not the policy's memory."""
    policy = told([], charge=Charge("x", 2.0), clock=clock)
    d = policy(QUIET)
    clock.advance(901.0)
    policy.outcome("nobody")
    policy(QUIET)
    assert policy.ledger.charged("x") == 2.0  # the second one's
    policy.first_token(d.request_id)
    assert policy.ledger.charged("x") == 4.0
    policy.outcome(d.request_id)
    assert policy.ledger.charged("x") == 2.0


def test_a_hook_that_fails_costs_nobody(clock, log, caplog):
    """The answer stands, and the failure is said once."""
    caplog.set_level(logging.ERROR)

    def decided(policy, metrics, d):
        raise ValueError("broken")

    policy = rule(admits, decided=decided, clock=clock, log=log)
    assert all(policy(QUIET).admitted for _ in range(3))
    assert [line["event"] for line in log.controls] == ["decided_failed"]


@pytest.mark.parametrize("wrong", [7, "x", object(), [], ()])
def test_what_is_no_charge_charges_nothing(clock, wrong):
    """Only charges count, in a sequence too."""
    assert list(charges(wrong)) == []
    policy = told([], charge=wrong, clock=clock)
    policy.outcome(policy(QUIET).request_id)


@pytest.mark.parametrize(
    "wrong",
    [Charge("a", "x"), Charge([], 1.0), Charge("a", float("nan")), Charge("a", None)],
)
def test_a_charge_that_is_none_takes_nothing_and_breaks_nothing(clock, caplog, wrong):
    """Neither at once, nor at the end, nor when the lease runs out."""
    caplog.set_level(logging.ERROR)
    policy = told([], charge=(Charge("good"), wrong), clock=clock)
    policy.outcome(policy(QUIET).request_id)
    assert policy.ledger.in_flight == 0
    policy(QUIET)
    clock.advance(901.0)
    assert policy(QUIET).reason is None
    assert policy.ledger.charges("good") == 0


def test_a_charge_is_what_it_was_when_it_was_told(clock):
    """A list that its policy goes on with changes nothing that is held."""
    charge = [Charge("a", 2.0)]
    policy = told([], charge=charge, clock=clock)
    d = policy(QUIET)
    charge[0].amount = 9.0
    charge.append(Charge("b"))
    assert policy.ledger.charged("a") == 2.0
    policy.outcome(d.request_id)
    assert (policy.ledger.charged("a"), policy.ledger.charges("b")) == (0.0, 0)


def test_what_was_held_is_told_at_the_time_of_its_answer(clock):
    """Not at that of the ask, however long ago."""
    times = []

    def decided(policy, metrics, d):
        times.append(metrics.now_s)

    policy = rule(by_pressure, decided=decided, clock=clock)
    d = policy.ask(FULL)
    clock.advance(20.0)
    policy.answer(d)
    assert times == [1020.0]


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("open"), st.sampled_from("ab"), st.floats(0.0, 9.0)),
        st.tuples(st.just("close"), st.integers(0, 20), st.booleans()),
        st.tuples(st.just("first"), st.integers(0, 20), st.none()),
        st.tuples(st.just("wait"), st.sampled_from([0.5, 500.0, 1000.0]), st.none()),
    ),
    max_size=40,
)


@given(steps=STEPS)
@settings(deadline=None, max_examples=80)
def test_what_is_charged_is_what_is_open(steps):
    """In any order of starts, first tokens, ends and silence the sums follow."""
    clock = FakeClock()

    def decided(policy, metrics, d):
        return Charge(metrics.request.tenant, metrics.request.input_tokens or 0)

    policy = rule(admits, decided=decided, reports_outcomes=True, clock=clock)
    ids = []
    for what, which, more in steps:
        if what == "open":
            d = policy(QUIET, tenant=which, input_tokens=int(more))
            ids.append(d.request_id)
        elif what == "wait":
            clock.advance(which)
        elif ids and what == "first":
            policy.first_token(ids[which % len(ids)])
        elif ids:
            policy.outcome(ids[which % len(ids)], ok=more)
    for name in "ab":
        mine = [e for e in policy.ledger.opened.values() if e.request.tenant == name]
        assert policy.ledger.charges(name) == len(mine)
        assert policy.ledger.charged(name) == sum(
            e.request.input_tokens or 0 for e in mine
        )


def test_a_callers_bound_stands_in_the_refusal(clock):
    """Limit and used, as numbers and in words."""

    def decide(policy, metrics):
        return policy.reject("rate_limit", estimate_ms=30_000, limit=2, used=2)

    d = rule(decide, clock=clock)(QUIET)
    error = d.body()["error"]
    assert (error["limit"], error["used"]) == (2, 2)
    assert "(rate_limit: limit 2, used 2)" in error["message"]
    own = wall(clock=clock).refuse(
        QUIET, "rate_limit", why="quota", estimate_ms=10, limit=3, used=4
    )
    assert "limit 3, used 4" in own.body()["error"]["message"]
    assert "limit" not in wall(clock=clock)(FULL).body()["error"]


def test_requirements_may_follow_from_parameters(clock):
    """What `require` names is what the start-up check and the posture go by."""

    def init(self, **given_):
        super(cls, self).__init__(**given_)
        self.require(KV_PRESSURE, "tenant")

    cls = type(rule(admits, clock=clock))
    cls.__init__ = init
    policy = cls(clock=clock)
    assert policy.requires == (KV_PRESSURE, "tenant")
    assert policy({}).reason == "signal_absent"
    assert policy(Reading(QUIET, taken_ns=clock.monotonic_ns())).reason is None
