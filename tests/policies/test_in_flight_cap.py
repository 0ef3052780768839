"""Three bounds on what is open at once."""

import logging

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from admitperf import ConfigError, MissingSignal
from admitperf.policies.in_flight_cap import InFlightCap
from admitperf.testing import FakeClock, MemoryLog

RAW = {"running": 1.0}


def capped(**bounds):
    """A policy whose host promises outcomes; only the given bounds hold."""
    return InFlightCap(
        **{"max_in_flight": None, "clock": FakeClock(), **bounds},
        reports_outcomes=True,
    )


def said(d):
    """What a decision says, in short."""
    return (d.reason, d.status, str(d.verdict))


@pytest.mark.parametrize(
    ("bounds", "facts", "says"),
    [
        ({"max_in_flight": 2}, {}, ("in_flight_cap", 503, "defer")),
        ({"max_per_tenant": 2}, {"tenant": "a"}, ("caller_in_flight", 429, "reject")),
        (
            {"max_per_session": 2},
            {"session": "a"},
            ("session_in_flight", 503, "defer"),
        ),
    ],
)
def test_at_most_as_many_as_the_bound_are_open(bounds, facts, says):
    """The one that would be too many is refused, with the code of its own reason."""
    policy = capped(**bounds)
    first, second, third = (policy(RAW, **facts) for _ in range(3))
    assert first.admitted
    assert second.admitted
    assert said(third) == says
    policy.outcome(first.request_id)
    assert policy(RAW, **facts).admitted
    assert said(policy(RAW, **facts)) == says


def test_the_narrowest_bound_is_told_first():
    """A caller over its own bound hears that, not that the pool is full."""
    policy = capped(max_in_flight=2, max_per_tenant=1, max_per_session=1)
    assert policy(RAW, tenant="a", session="s").admitted
    assert policy(RAW, tenant="b", session="u").admitted
    assert policy(RAW, tenant="a", session="s").reason == "caller_in_flight"
    assert policy(RAW, tenant="c", session="s").reason == "session_in_flight"
    assert policy(RAW, tenant="c", session="v").reason == "in_flight_cap"
    assert policy(RAW).reason == "in_flight_cap"


def test_callers_do_not_share_each_others_bound():
    """What one tenant or session holds open is no reason to refuse another."""
    policy = capped(max_per_tenant=1, max_per_session=1)
    for name in ("a", "b", "c"):
        assert policy(RAW, tenant=name, session=name).admitted
    assert not policy(RAW, tenant="a", session="new").admitted
    assert not policy(RAW, tenant="new", session="a").admitted


def test_who_names_nobody_is_held_by_the_pool_alone():
    """Leaving the tenant out is no way around the pool's bound, and not blind."""
    policy = capped(max_in_flight=3, max_per_tenant=1, max_per_session=1)
    verdicts = [policy(RAW) for _ in range(5)]
    assert [d.admitted for d in verdicts] == [True, True, True, False, False]
    assert {d.reason for d in verdicts[3:]} == {"in_flight_cap"}
    assert all(d.blind is None for d in verdicts)


def test_without_any_bound_there_is_no_policy():
    """A cap that caps nothing is a mistake, told when it is made."""
    with pytest.raises(ConfigError, match="at least one of max_in_flight, max_per_ten"):
        InFlightCap(max_in_flight=None)


@pytest.mark.parametrize("bound", [0, -1, 1.5, True, "3"])
def test_a_bound_is_a_whole_number_from_one(bound):
    """A bound of 0 would close the door for good."""
    for name in ("max_in_flight", "max_per_tenant", "max_per_session"):
        with pytest.raises(ConfigError, match=name):
            InFlightCap(**{name: bound})


@pytest.mark.parametrize(
    ("bounds", "facts"),
    [
        ({}, ()),
        ({"max_per_tenant": 1}, ("tenant",)),
        ({"max_per_session": 1}, ("session",)),
        ({"max_per_session": 1, "max_per_tenant": 1}, ("tenant", "session")),
    ],
)
def test_it_requires_the_facts_of_the_bounds_it_was_given(bounds, facts):
    """A host learns which facts to supply, and no more than those."""
    ledger, *rest = InFlightCap(**bounds).requires
    assert ledger.name == "in_flight"
    assert tuple(rest) == facts


def test_a_host_that_reports_no_outcomes_stops_at_start_up():
    """Without outcomes the count only grows: said before the first request."""
    policy = InFlightCap(max_per_tenant=1)
    with pytest.raises(MissingSignal, match="reports_outcomes=True"):
        policy.check(RAW)
    capped(max_per_tenant=1).check(RAW)


def test_without_outcomes_it_is_blind_and_not_full(caplog):
    """No outcomes means no ledger, never a full one."""
    caplog.set_level(logging.ERROR)
    policy = InFlightCap(max_in_flight=1, max_per_tenant=1, clock=FakeClock())
    for _ in range(5):
        d = policy(RAW, tenant="a")
        assert (d.admitted, d.reason) == (True, "signal_absent")
    policy.outcome(d.request_id)
    assert policy(RAW, tenant="a").reason == "caller_in_flight"


def test_a_refused_request_holds_nothing():
    """Being refused, and ending after that, changes no count."""
    policy = capped(max_in_flight=1)
    first = policy(RAW)
    for _ in range(10):
        refused = policy(RAW)
        assert not refused.admitted
        policy.outcome(refused.request_id, ok=False)
    assert policy.ledger.in_flight == 1
    policy.outcome(first.request_id)
    assert policy.ledger.in_flight == 0


def test_a_second_outcome_and_an_unknown_one_free_nothing():
    """What ends twice is counted once, and a stranger's end is nobody's."""
    log = MemoryLog()
    policy = capped(max_in_flight=2, log=log)
    first, _second = policy(RAW), policy(RAW)
    for request_id in (first.request_id, first.request_id, "stranger"):
        policy.outcome(request_id)
    assert policy(RAW).admitted
    assert not policy(RAW).admitted
    assert [line["event"] for line in log.controls] == [
        "outcome_repeated",
        "outcome_unknown",
    ]


def test_a_caller_waits_for_one_of_its_own_to_end():
    """The wait is computed from the endings that free this caller's bound."""
    clock = FakeClock()
    policy = capped(max_per_tenant=1, clock=clock)
    for _ in range(10):
        d = policy(RAW, tenant="a")
        clock.advance(0.5)
        policy.outcome(d.request_id)
    policy(RAW, tenant="a")
    refused = policy(RAW, tenant="a")
    assert refused.wait == "measured"
    assert 400 <= refused.estimate_ms <= 600


def test_a_session_waits_until_its_oldest_call_should_end():
    """The wait comes from how long calls take and how old this one is."""
    clock = FakeClock()
    policy = capped(max_per_session=1, clock=clock)
    first = policy(RAW, session="s")
    clock.advance(10.0)
    policy.outcome(first.request_id)
    policy(RAW, session="s")
    clock.advance(4.0)
    refused = policy(RAW, session="s")
    assert (refused.wait, refused.estimate_ms) == ("measured", 6000)


STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("open"),
            st.sampled_from([None, "", "a"]),
            st.sampled_from([None, "", "s"]),
        ),
        st.tuples(st.just("close"), st.integers(0, 30), st.booleans()),
        st.tuples(st.just("again"), st.integers(0, 30), st.none()),
        st.tuples(st.just("stranger"), st.none(), st.none()),
        st.tuples(st.just("token"), st.integers(0, 30), st.none()),
        st.tuples(st.just("wait"), st.floats(0, 5), st.none()),
    ),
    max_size=60,
)
BOUND = st.none() | st.integers(1, 3)


class Host:
    """A host that keeps its own books beside the policy's."""

    def __init__(self, pool, tenant, session):
        self.bounds = {"pool": pool, "tenant": tenant, "session": session}
        self.clock = FakeClock()
        self.policy = capped(
            max_in_flight=pool,
            max_per_tenant=tenant,
            max_per_session=session,
            clock=self.clock,
        )
        self.open = {}
        self.ended = []

    def counts(self, tenant, session):
        """Open requests by the bound they count for."""
        held = self.open.values()
        return {
            "pool": len(held),
            "tenant": None if tenant is None else [t for t, _ in held].count(tenant),
            "session": None if session is None else [s for _, s in held].count(session),
        }

    def expected(self, tenant, session):
        """The reason that must be given now, by the books."""
        counts, bounds = self.counts(tenant, session), self.bounds
        for what, reason in (
            ("tenant", "caller_in_flight"),
            ("session", "session_in_flight"),
            ("pool", "in_flight_cap"),
        ):
            known = bounds[what] is not None and counts[what] is not None
            if known and counts[what] >= bounds[what]:
                return reason
        return None

    def do(self, what, first, second):
        """One step."""
        some = sorted(self.open)
        if what == "open":
            expected = self.expected(first, second)
            d = self.policy(RAW, tenant=first, session=second)
            assert d.reason == expected
            if d.admitted:
                self.open[d.request_id] = (first, second)
        elif what == "close" and some:
            request_id = some[first % len(some)]
            self.policy.outcome(request_id, ok=second)
            del self.open[request_id]
            self.ended.append(request_id)
        elif what == "again" and self.ended:
            self.policy.outcome(self.ended[first % len(self.ended)])
        elif what == "stranger":
            self.policy.outcome("stranger")
        elif what == "token" and some:
            self.policy.first_token(some[first % len(some)])
        elif what == "wait":
            self.clock.advance(first)


@settings(deadline=None, max_examples=200)
@given(steps=STEPS, pool=BOUND, tenant=BOUND, session=st.integers(1, 3))
def test_no_order_of_events_gets_past_a_bound_or_leaks_a_place(
    steps, pool, tenant, session
):
    """Refused exactly when a bound is reached, and every lease is given back once."""
    host = Host(pool, tenant, session)
    for step in steps:
        host.do(*step)
        assert host.policy.ledger.in_flight == len(host.open)
    for request_id in list(host.open):
        host.policy.outcome(request_id)
    assert host.policy.ledger.in_flight == 0
    for name in ("", "a", "s"):
        assert host.policy.ledger.tenant_in_flight(name) == 0
        assert host.policy.ledger.session_in_flight(name) == 0
