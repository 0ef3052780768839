"""The sessions of a host, between their calls too."""

import os
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from admitperf import Policy
from admitperf.core.ledger import LEASE_S
from admitperf.core.request import Request
from admitperf.policies.parts.live.sessions import (
    HELPERS_MOST,
    SESSIONS_MOST,
    TURNS_LEAST,
    Sessions,
)
from admitperf.testing import FakeClock

LEASE = 60.0


class Keeper(Policy):
    """Refuses what has a negative priority, and keeps sessions."""

    name = "keeper"

    def __init__(self, **given):
        super().__init__(**given)
        self.sessions = Sessions(self.name, LEASE, "slots")

    def decide(self, metrics):
        """By priority alone."""
        if metrics.request.priority == -1:
            return self.defer("slots")
        return self.defer("queue_depth") if metrics.request.priority else self.admit()

    def decided(self, metrics, d):
        """What a policy with sessions does."""
        return self.sessions.decided(metrics, d)

    def observe(self, metrics, outcome):
        """What a policy with sessions does."""
        self.sessions.observe(metrics, outcome)


class Host:
    """A host of one policy, with a clock."""

    def __init__(self):
        self.clock = FakeClock()
        self.policy = Keeper(clock=self.clock, reports_outcomes=True)
        self.sessions = self.policy.sessions
        self.readings = 1

    def call(self, session, tokens=None, **facts):
        """A call that comes; its id."""
        d = self.policy({"running": 1.0}, session=session, input_tokens=tokens, **facts)
        return d.request_id

    def whole(self, session, tokens=None, output=0, **facts):
        """A call that comes and ends."""
        self.policy.outcome(self.call(session, tokens, **facts), output_tokens=output)

    def refused(self, session, **facts):
        """A call that is refused."""
        self.call(session, priority=-1, **facts)

    def passes(self, seconds):
        """Time, then a new reading."""
        self.clock.advance(seconds)
        self.readings += 1
        self.policy.ask({"running": float(self.readings)}, priority=-2)

    def find(self, session, **facts):
        """The session a request would belong to."""
        return self.sessions.find(Request({"session": session, **facts}))

    def roots(self):
        """The live sessions' names."""
        return [session.root for session in self.sessions.live()]


def test_a_session_lives_on_between_its_calls():
    """An agent that runs a tool has no call open, and is there with its context."""
    host = Host()
    first = host.call("s", 1000)
    assert (host.sessions.active, host.sessions.tokens(busy=True)) == (1, 1000)
    host.policy.outcome(first, output_tokens=50)
    assert host.policy.ledger.in_flight == 0
    assert (host.sessions.active, host.sessions.tokens(busy=False)) == (1, 1050)
    host.passes(LEASE - 1)
    assert host.roots() == ["s"]


def test_the_context_is_what_the_last_call_left():
    """The engine's count goes before ours, and a context that shrank is shorter."""
    host = Host()
    host.policy.outcome(host.call("s", 1000), input_tokens=1200, output_tokens=300)
    assert host.find("s").tokens == 1500
    host.policy.outcome(host.call("s", 400), output_tokens=100)
    assert host.find("s").tokens == host.sessions.tokens() == 500
    host.whole("s")
    assert host.find("s").tokens == 500


def test_a_call_without_known_tokens_is_a_session_all_the_same():
    """Counting sessions needs no counting of tokens."""
    host = Host()
    host.whole("s")
    host.whole("helper", parent_session="s")
    host.whole("helpers-own", parent_session="helper")
    assert (host.sessions.active, host.sessions.tokens()) == (1, 0)


def test_a_request_without_a_session_is_nobodys():
    """It has no later calls, so there is nothing to keep."""
    host = Host()
    host.whole(None, 100)
    host.refused(None)
    assert (host.sessions.active, host.sessions.waiting) == (0, 0)
    assert host.find(None, parent_session="s") is None


def test_helpers_are_charged_to_their_root():
    """One family: one session, all its contexts, busy while any of it is."""
    host = Host()
    host.call("root", 1000)
    helper = host.call("helper", 200, parent_session="root")
    host.call("helpers-own", 30, parent_session="helper")
    assert (host.sessions.active, host.sessions.tokens()) == (1, 1230)
    assert host.find("helper") is host.find("helpers-own") is host.find("root")
    assert host.policy.ledger.charges(("keeper", "session", "root")) == 3
    host.policy.outcome(helper, output_tokens=20)
    assert (host.find("root").busy, host.sessions.tokens()) == (True, 1250)


def test_a_helper_of_nobody_known_is_a_root():
    """A parent that was never met, or is gone, cannot be charged."""
    host = Host()
    host.whole("helper", 200, parent_session="never met")
    assert host.roots() == ["helper"]


def test_a_helper_that_is_done_takes_its_context_along():
    """By its last call, or by a lease of its own; the root goes on."""
    host = Host()
    host.whole("root", 1000)
    host.whole("one", 100, parent_session="root", session_final=True)
    assert host.sessions.tokens() == 1000
    host.whole("two", 100, parent_session="root")
    host.passes(LEASE - 1)
    host.whole("root", 1000)
    assert host.sessions.tokens() == 1100
    host.passes(2)
    host.whole("root", 1000)
    assert (host.sessions.tokens(), host.find("two")) == (1000, None)


def test_a_helpers_long_call_ends_where_it_began():
    """Also when it was let go meanwhile, and calls on its own account by now."""
    host = Host()
    host.call("root", 1000)
    long_call = host.call("helper", 100, parent_session="root")
    host.passes(LEASE + 1)
    assert (host.sessions.tokens(), host.find("helper")) == (1000, None)
    host.call("helper", 70)
    host.policy.outcome(long_call, output_tokens=900)
    assert host.roots() == ["helper", "root"]
    assert host.sessions.tokens() == 1070
    charges = host.policy.ledger.charges
    assert charges(("keeper", "session", "root")) == 1
    assert charges(("keeper", "session", "helper")) == 1


def test_a_session_with_no_sign_of_life_leaves_by_its_lease():
    """A client that vanished holds nothing for ever."""
    host = Host()
    host.whole("s", 1000)
    host.passes(LEASE - 0.001)
    assert host.sessions.active == 1
    host.passes(0.001)
    assert (host.sessions.active, host.sessions.tokens()) == (0, 0)
    assert host.find("s") is None


def test_a_refused_call_is_a_sign_of_life():
    """Who asks again in vain is there."""
    host = Host()
    host.whole("s", 1000)
    for _ in range(5):
        host.passes(LEASE - 1)
        host.refused("s", tokens=1500)
    assert (host.sessions.active, host.sessions.tokens()) == (1, 1500)


def test_a_session_with_an_open_call_never_leaves_by_lease():
    """A long answer is no silence; the lease begins when it ends."""
    host = Host()
    request_id = host.call("s", 1000)
    for _ in range(5):
        host.passes(2 * LEASE)
        assert host.roots() == ["s"]
    host.policy.outcome(request_id)
    host.passes(LEASE - 1)
    assert host.roots() == ["s"]
    host.passes(1)
    assert host.roots() == []


def test_a_call_whose_end_is_never_told_holds_for_a_bounded_time():
    """The ledger's lease and at most two of its own: no outcome, no leak."""
    host = Host()
    host.call("s", 1000)
    waited = 0.0
    while host.sessions.active:
        host.passes(LEASE / 4)
        waited += LEASE / 4
        assert waited <= LEASE_S + 2 * LEASE + 1
    assert waited >= LEASE_S


def test_the_last_calls_end_ends_the_session():
    """At once, and not before the calls beside it have ended."""
    host = Host()
    beside, last = host.call("s", 1000), host.call("s", 1100, session_final=True)
    host.policy.outcome(last)
    assert host.sessions.active == 1
    host.policy.outcome(beside)
    assert (host.sessions.active, host.sessions.tokens(), host.find("s")) == (
        0,
        0,
        None,
    )


def test_a_session_that_goes_on_after_its_last_call_goes_on():
    """What a client says of itself may be wrong."""
    host = Host()
    host.call("s", 1000, session_final=True)
    host.whole("s", 1000)
    assert host.sessions.active == 1


def test_who_is_refused_waits_since_the_first_time():
    """Known from the first refusal until it is let in or its lease runs out."""
    host = Host()
    host.clock.advance(5)
    host.refused("s", tokens=700)
    host.clock.advance(5)
    host.refused("s", tokens=800)
    waits = host.find("s")
    assert (host.sessions.active, host.sessions.waiting) == (0, 1)
    assert (waits.refused_ns, waits.tokens) == (5_000_000_000, 800)
    host.call("s", 800)
    assert (host.sessions.active, host.sessions.waiting) == (1, 0)
    assert host.find("s").refused_ns is None
    host.refused("t")
    host.passes(LEASE)
    assert (host.sessions.waiting, host.find("t")) == (0, None)


def test_who_is_refused_for_another_reason_does_not_wait_here():
    """A quota or another rule said no: that is nobody's place in this queue."""
    host = Host()
    host.call("s", priority=-2)
    assert host.sessions.waiting == 0


def test_a_place_can_be_given_before_the_call_comes_back():
    """It counts from then on, and leaves by lease if the call never comes."""
    host = Host()
    host.refused("s", tokens=700)
    host.sessions.let_in(host.find("s"), host.clock.monotonic_ns())
    assert (host.sessions.active, host.sessions.waiting) == (1, 0)
    assert host.sessions.tokens(busy=False) == 700
    host.passes(LEASE)
    assert host.sessions.active == 0


def test_asking_changes_nothing():
    """A gateway asks many times for one request; only the answer counts."""
    host = Host()
    for _ in range(10):
        host.policy.ask({}, session="s", priority=-1, input_tokens=5)
    assert (host.sessions.active, host.sessions.waiting, host.find("s")) == (0, 0, None)


def test_the_turn_is_the_middle_of_what_turns_took():
    """From the start of a call to that of the next one, with the tool in between."""
    host = Host()
    for turn_s in (9.0, 2.0, 4.0):
        host.whole("s", 10)
        host.clock.advance(turn_s)
        assert host.sessions.turn_s is None
    host.whole("s", 10)
    assert host.sessions.turn_s == 4.0
    assert TURNS_LEAST == 3


def test_calls_beside_each_other_are_no_turns():
    """Forty calls at once say nothing about how long a turn takes."""
    host = Host()
    for _ in range(9):
        host.call("s", 10)
    assert host.sessions.turn_s is None


def test_many_names_cost_a_bounded_number_of_entries():
    """Invented sessions push out the oldest, waiting ones never a live one."""
    host = Host()
    host.whole("first", 7)
    for n in range(2 * SESSIONS_MOST):
        host.refused(f"w{n}")
    assert (host.sessions.waiting, host.roots()) == (SESSIONS_MOST, ["first"])
    for n in range(2 * SESSIONS_MOST):
        host.whole(f"s{n}", 7)
    assert (host.sessions.active, host.find("first")) == (SESSIONS_MOST, None)
    assert host.sessions.tokens() == 7 * SESSIONS_MOST
    host.whole("root", 7)
    for n in range(10 * HELPERS_MOST):
        host.whole(f"h{n}", 7, parent_session="root")
    assert host.find("root").tokens == 7 * (HELPERS_MOST + 1)
    assert len(host.sessions._named) == 2 * SESSIONS_MOST + HELPERS_MOST


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_forgets_sessions_that_call_elsewhere():
    """It goes on with a copy; calls of the parent's are not its own to wait for."""
    host = Host()
    host.call("s", 1000)
    child = os.fork()
    if child == 0:
        kept = host.sessions.active
        host.passes(LEASE)
        os._exit(10 * kept + host.sessions.active)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 10


NAMES = st.sampled_from(["a", "b", "c", None])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("call"), NAMES, NAMES, st.booleans()),
        st.tuples(st.just("refuse"), NAMES, NAMES, st.booleans()),
        st.tuples(st.just("end"), st.integers(0, 30), st.integers(0, 900), st.none()),
        st.tuples(
            st.just("wait"), st.sampled_from([0.1, 20.0, 61.0]), *2 * [st.none()]
        ),
        st.tuples(st.just("pause"), NAMES, st.none(), st.none()),
    ),
    max_size=50,
)


def _do(host, opened, step):
    """One step of a host's life; `opened` has the open calls and their sessions."""
    what, first, second, third = step
    if what == "call":
        d_id = host.call(first, 100, parent_session=second, session_final=third)
        if first is not None:
            opened[d_id] = host.find(first).root
    elif what == "refuse":
        host.refused(first, parent_session=second, tokens=50)
    elif what == "end" and opened:
        ended = sorted(opened)[first % len(opened)]
        del opened[ended]
        host.policy.outcome(ended, output_tokens=second)
    elif what == "wait":
        host.passes(first)
    elif what == "pause":
        _toggle(host, first)


def _toggle(host, name):
    """Holds a session back, or lets it go on."""
    session = host.find(name)
    if session is not None and session.live:
        if session.paused_ns is None:
            host.sessions.pause(session, host.clock.monotonic_ns())
        else:
            host.sessions.resume(session)


def _recount(host):
    """What the running sums have to be, the long way round."""
    counts, tokens = Counter(), Counter()
    for session in host.sessions.live():
        key = (session.paused_ns is not None, session.busy)
        counts[key] += 1
        tokens[key] += session.own + sum(held for held, _ in session.helpers.values())
    return counts, tokens


@settings(deadline=None, max_examples=100)
@given(steps=STEPS)
def test_the_running_sums_are_what_a_recount_would_give(steps):
    """In any order of events; who has a call open is live and busy; nothing stays."""
    host, opened = Host(), {}
    for step in steps:
        _do(host, opened, step)
        counts, tokens = _recount(host)
        for key in ((p, b) for p in (False, True) for b in (False, True)):
            told = dict(zip(("paused", "busy"), key, strict=True))
            assert host.sessions.count(**told) == counts[key]
            assert host.sessions.tokens(**told) == tokens[key]
        busy = {session.root for session in host.sessions.live() if session.busy}
        assert busy == set(opened.values())
        assert host.sessions.active == sum(counts.values()) == host.sessions.count()
    for request_id in list(opened):
        host.policy.outcome(request_id)
    for _ in range(3):
        host.passes(LEASE)
    assert host.sessions.tokens() == host.sessions.active == host.sessions.waiting == 0
    assert (len(host.sessions._named), len(host.sessions.paused)) == (0, 0)
    assert host.policy.ledger._accounts == {}
