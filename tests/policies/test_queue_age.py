"""The standing queue."""

import math
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from admitperf import ConfigError
from admitperf.core.reading import Reading
from admitperf.policies.queue_age import QUIET_INTERVALS, QueueAge
from admitperf.testing import FakeClock, MemoryLog

RAW = {"running": 1.0}


def watching(clock=None, **given):
    """A policy whose host reports first tokens and ends, and its clock."""
    clock = clock or FakeClock(start_s=1000.0)
    return QueueAge(clock=clock, reports_outcomes=True, **given), clock


def ask(policy):
    """What a request would hear now, without being counted or charged."""
    return policy.ask(RAW).reason


def standing(**given):
    """A policy before which a queue has just begun to be refused.

    One request a second is let in and none has a first token.
    """
    policy, clock = watching(**given)
    waiting = []
    for _ in range(60):
        d = policy(RAW)
        if not d.admitted:
            return policy, clock, waiting
        waiting.append(d.request_id)
        clock.advance(0.5)
    raise AssertionError("nothing was refused")


def test_a_queue_that_stands_for_the_interval_is_refused():
    """The oldest is over the target of 1 s from 1 s on, and for 4 s from 5 s on."""
    policy, clock, waiting = standing()
    assert clock.monotonic_ns() / 1e9 == 1005.0
    assert len(waiting) == 10
    d = policy(RAW)
    assert (str(d.verdict), d.reason, d.status) == ("defer", "queue_age", 503)


def test_one_old_request_for_a_moment_is_no_standing_queue():
    """Over the target for less than the interval: nothing is refused."""
    policy, clock = watching()
    for _ in range(10):
        first = policy(RAW).request_id
        for _ in range(9):
            clock.advance(0.5)
            assert policy(RAW).admitted
        for rid in list(policy.ledger.opened):
            policy.first_token(rid)
        assert policy.ledger.oldest_wait_s(clock.monotonic_ns()) == 0.0
        policy.outcome(first)


def test_a_queue_of_many_that_each_wait_over_the_target_stands_too():
    """No single wait is as long as target and interval together, but none is short."""
    policy, clock = watching()
    waiting, refused_at = [], None
    for step in range(40):
        d = policy(RAW)
        if d.admitted:
            waiting.append(d.request_id)
        elif refused_at is None:
            refused_at = step * 0.5
        if step >= 4 and waiting:
            policy.first_token(waiting.pop(0))
        clock.advance(0.5)
        assert policy.ledger.oldest_wait_s(clock.monotonic_ns()) < 2.6
    assert refused_at == 5.0


def test_a_fall_under_the_target_between_two_looks_is_noticed():
    """Nobody looked while the queue was short; the age of the oldest tells it."""
    policy, clock = watching()
    old = policy(RAW).request_id
    clock.advance(4.5)
    policy(RAW)
    clock.advance(0.4)
    policy.first_token(old)
    clock.advance(3.0)
    assert policy(RAW).admitted


def test_a_queue_that_nobody_looked_at_is_judged_by_its_oldest():
    """It has been waiting all the time, whether or not there was anyone to see it."""
    policy, clock = watching()
    policy(RAW)
    clock.advance(4.9)
    policy(RAW)
    clock.advance(0.1)
    assert ask(policy) == "queue_age"


def test_it_lets_in_again_once_the_oldest_is_young():
    """Under the target, at once; the next one in a row is met with less patience."""
    policy, clock, waiting = standing()
    for rid in waiting[:-1]:
        policy.first_token(rid)
    assert policy(RAW).admitted
    patience_s = 4.0 / math.sqrt(2)
    clock.advance(0.5 + patience_s - 0.01)
    policy(RAW)
    assert ask(policy) is None
    clock.advance(0.02)
    assert ask(policy) == "queue_age"


def test_after_a_long_quiet_the_whole_patience_is_back():
    """A queue of an hour ago is no reason to be quick."""
    policy, clock, waiting = standing()
    for rid in waiting:
        policy.first_token(rid)
    policy.first_token(policy(RAW).request_id)
    clock.advance(QUIET_INTERVALS * 4.0)
    policy(RAW)
    clock.advance(4.9)
    policy(RAW)
    assert ask(policy) is None
    clock.advance(0.11)
    assert ask(policy) == "queue_age"


def test_one_each_interval_is_let_in_while_it_stands():
    """A policy that refuses everything would learn nothing more."""
    policy, clock, _ = standing()
    admitted = 0
    for _ in range(200):
        clock.advance(0.1)
        admitted += policy(RAW).admitted
    assert admitted == 5


def test_one_stuck_request_among_quick_ones_keeps_nobody_out():
    """Who came later and was served in time did not wait in its queue."""
    policy, clock = watching()
    policy(RAW)
    refused = 0
    for _ in range(600):
        d = policy(RAW)
        clock.advance(0.2)
        if d.admitted:
            policy.first_token(d.request_id)
            policy.outcome(d.request_id, ttft_ms=200, e2e_ms=200)
        refused += not d.admitted
    assert policy.ledger.oldest_wait_s(clock.monotonic_ns()) > 100
    assert refused == 0


def test_one_that_was_served_before_the_queue_stood_proves_nothing():
    """It ends late, but it began before the oldest was over the target."""
    policy, clock = watching()
    policy(RAW)
    clock.advance(0.5)
    quick = policy(RAW).request_id
    policy.first_token(quick)
    clock.advance(4.0)
    policy.outcome(quick, ttft_ms=100, e2e_ms=4000)
    policy(RAW)
    clock.advance(0.5)
    assert ask(policy) == "queue_age"


def test_a_queue_drains_without_a_new_request_or_an_end():
    """First tokens alone open it again, when the oldest that is left is young."""
    policy, _, waiting = standing()
    for rid in waiting[:8]:
        assert ask(policy) == "queue_age"
        policy.first_token(rid)
    policy.first_token(waiting[8])
    assert ask(policy) is None


def test_asking_changes_nothing():
    """Fifty asks and none lead to the same answers afterwards."""
    answers = []
    for asks in (0, 50):
        policy, clock, waiting = standing()
        told = []
        for _ in range(30):
            clock.advance(0.37)
            held = policy.ask(RAW)
            if not held.admitted:
                for _ in range(asks):
                    held = policy.ask(RAW, request_id=held.request_id)
                policy.answer(held)
            told.append(held.reason)
            if waiting:
                policy.first_token(waiting.pop(0))
        answers.append(told)
    assert answers[0] == answers[1]
    assert set(answers[0]) == {None, "queue_age"}


def test_the_wait_comes_from_how_fast_requests_end():
    """It is the estimator's, from the gate on the oldest wait."""
    policy, clock = watching()
    for _ in range(20):
        d = policy(RAW)
        clock.advance(0.25)
        policy.first_token(d.request_id)
        policy.outcome(d.request_id, ttft_ms=250, e2e_ms=250)
    for _ in range(20):
        policy(RAW)
        clock.advance(0.25)
    d = policy(RAW)
    assert (d.reason, d.wait) == ("queue_age", "measured")
    assert d.gates[0].name == "oldest_wait_s"


def test_the_gates_are_there_when_they_do_not_hold_too():
    """The log tells how long the oldest waits and how long it has been too long."""
    log = MemoryLog()
    policy, clock = watching(log=log)
    policy(RAW)
    clock.advance(3.0)
    policy(RAW)
    assert log.decisions[-1]["gates"] == [
        ["oldest_wait_s", 3.0, ">=", 1.0, True],
        ["over_target_s", 2.0, ">=", 4.0, False],
        ["last_let_in_s", 3.0, "<", 4.0, True],
    ]


@pytest.mark.parametrize(("reads", "reason"), [(True, "queue_age"), (False, None)])
def test_it_looks_at_each_reading(reads, reason):
    """A gateway reads its engine while nobody comes: then no stretch is missed."""
    policy, clock = watching(interval_s=5.0)
    waiting = {}
    for quarter in range(28):
        if quarter in (0, 4, 8, 12):
            waiting[quarter] = policy(RAW).request_id
        if quarter in (10, 14, 18):
            policy.first_token(waiting[quarter - 10])
        clock.advance(0.25)
        if reads:
            policy.look(Reading(RAW, taken_ns=clock.monotonic_ns()))
    assert ask(policy) == reason


def test_a_host_that_reports_no_first_tokens_makes_it_blind():
    """Without them the age of the oldest request says nothing about a queue."""
    policy, clock = watching(on_blind="admit")
    policy.outcome(policy(RAW).request_id)
    clock.advance(60.0)
    d = policy(RAW)
    assert (d.admitted, d.reason) == (True, "signal_absent")


def test_a_step_of_the_wall_clock_changes_nothing():
    """Time is the monotonic clock's."""
    policy, clock, _ = standing()
    clock.set_wall(4e9)
    assert ask(policy) == "queue_age"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_does_not_refuse_for_its_parents_queue():
    """It has none of its parent's requests; the parent goes on as before."""
    policy, _, _ = standing()
    child = os.fork()
    if child == 0:
        os._exit(ask(policy) is not None)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert ask(policy) == "queue_age"


@pytest.mark.parametrize(
    "wrong", [{"target_s": 0.0}, {"interval_s": 0.0}, {"interval_s": 1e9}, {"age": 1}]
)
def test_a_wrong_parameter_stops_at_construction(wrong):
    """No policy starts with a number that was not meant."""
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        QueueAge(**wrong)


STEPS = st.lists(
    st.one_of(
        st.just(("open", 0.0)),
        st.just(("open", 0.0)),
        st.just(("ask", 0.0)),
        st.tuples(st.just("token"), st.integers(0, 3)),
        st.tuples(st.just("end"), st.integers(0, 3)),
        st.tuples(st.just("wait"), st.sampled_from([0.1, 0.3, 0.5, 1.1, 3.0, 70.0])),
    ),
    max_size=80,
)


class Host:
    """A host that keeps its own books of who waits, at every moment."""

    def __init__(self):
        self.policy, self.clock = watching(target_s=1.0, interval_s=2.0)
        self.opened = {}
        self.over_ns = None
        self.times = 0
        self.let_in_ns = None

    @property
    def now_ns(self):
        """The time."""
        return self.clock.monotonic_ns()

    def left(self, rid):
        """One no longer waits: the next is the oldest, as old as it is."""
        was = self.over_ns
        del self.opened[rid]
        oldest = min(self.opened.values(), default=None)
        over_ns = None if oldest is None else oldest + 10**9
        if over_ns is None or over_ns > self.now_ns:
            self.times += was is not None and was <= self.now_ns
            self.over_ns = over_ns

    def request(self, call):
        """One request, whose refusal must be right."""
        d = call(RAW)
        if d.admitted:
            self.let_in_ns = self.now_ns
            self.opened[d.request_id] = self.now_ns
            if self.over_ns is None:
                self.over_ns = self.now_ns + 10**9
            return
        patience_ns = 2e9 / math.sqrt(1 + self.times)
        assert self.over_ns is not None
        assert self.now_ns - self.over_ns >= patience_ns - 1
        assert self.now_ns - self.let_in_ns < 2e9

    def do(self, what, number):
        """One step."""
        some = sorted(self.opened)
        if what in ("open", "ask"):
            self.request(self.policy if what == "open" else self.policy.ask)
        elif what == "wait":
            self.clock.advance(number)
        elif some:
            rid = some[number % len(some)]
            if what == "token":
                self.policy.first_token(rid)
            self.left(rid)
            self.policy.outcome(rid, ok=False)


@settings(deadline=None, max_examples=100)
@given(steps=STEPS)
def test_in_no_order_of_events_is_a_queue_refused_that_did_not_stand(steps):
    """A refusal means over the target without a break, and one let in lately."""
    host = Host()
    for step in steps:
        host.do(*step)
