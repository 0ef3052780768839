"""A window of agent sessions that follows what they meet."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.policies.test_pure import of

from admitperf import ConfigError
from admitperf.core.reading import Reading
from admitperf.core.snapshot import Snapshot
from admitperf.policies.session_aimd import (
    FIRSTS,
    PERSISTS_S,
    START_TIMES,
    SessionAimd,
)
from admitperf.testing import FakeClock, MemoryLog

PERIOD = 2.0
COOL = 8.0
LEASE = 120.0
LEAST = 20.0
TASK = 60.0
TTFT_S = 30.0
"""The defaults: a control period, a cool-down, a lease, the least and the longest time
from one growth to the next, and the time to first token aimed at."""


class Host:
    """A gateway: it reads its engine, and its sessions call."""

    def __init__(self, **given):
        self.clock = FakeClock()
        self.log = MemoryLog()
        self.policy = SessionAimd(
            **given,
            clock=self.clock,
            log=self.log,
            reports_outcomes=True,
            max_age_s=1000.0,
        )
        self.reading = None
        self.read()

    def read(self, replica=None, **raw):
        """One new reading, now."""
        raw = {"preemptions": 0.0, **raw}
        self.reading = Reading(raw, taken_ns=self.clock.monotonic_ns(), replica=replica)
        self.policy.look(self.reading)

    def period(self, count=1, seconds=PERIOD, **raw):
        """Control periods that end with this reading."""
        for _ in range(count):
            self.clock.advance(seconds)
            self.read(**raw)

    def call(self, session, **facts):
        """One call; its decision."""
        return self.policy(self.reading, session=session, **facts)

    def turn(self, session, told=None, **facts):
        """A call that is let in and ends; `told` is of its outcome."""
        d = self.call(session, **facts)
        assert d.admitted
        self.policy.first_token(d.request_id)
        self.policy.outcome(d.request_id, **(told or {}))

    def sessions(self, *names, **facts):
        """Sessions that come, call once and then run a tool."""
        for name in names:
            self.turn(name, **facts)

    def lose(self, kept=0.0, count=10, name="lost"):
        """Continuing turns of a session that kept such a part of its context."""
        told = {"cached_tokens": int(kept * 1000), "output_tokens": 0}
        for _ in range(count):
            self.turn(name, told, input_tokens=1000)

    @property
    def window(self):
        """Sessions the window has room for."""
        return self.policy._window.limit

    @property
    def live(self):
        """Names of live sessions."""
        return {session.root for session in self.policy._sessions.live()}


def names(count, kind="s"):
    """Names of that many sessions."""
    return [f"{kind}{n}" for n in range(count)]


def said(d):
    """What a decision says, in short."""
    return (d.reason, d.status, str(d.verdict))


def gates(host):
    """The last decision's gates: name to (value, bound, held)."""
    told = host.log.decisions[-1]["gates"]
    return {name: (value, bound, held) for name, value, _, bound, held in told}


# ------------------------------------------------------------------------ the window


def test_it_grows_by_a_step_in_a_task_time_and_not_in_a_period():
    """Who was let in cannot be sent away for minutes: 60 s while no task has ended."""
    host = Host(step=1.0)
    host.sessions(*names(8))
    host.period(count=int(TASK / PERIOD) - 1)
    assert host.window == 8
    host.period()
    assert host.window == 9
    host.period(count=int(TASK / PERIOD) - 1)
    assert host.window == 9


@pytest.mark.parametrize(("task_s", "least_s"), [(2.0, 20.0), (40.0, 40.0)])
def test_a_task_time_is_the_median_of_those_that_ended_within_bounds(task_s, least_s):
    """At least 20 s, at most 60 s."""
    host = Host(start=4, step=1.0)
    for name in names(5, "ended"):
        host.turn(name)
        host.clock.advance(task_s)
        host.turn(name, session_final=True)
    host.sessions(*names(4))
    host.policy._moved_s = host.clock.monotonic_ns() / 1e9
    host.period(count=int(least_s / PERIOD) - 1)
    assert host.window == 4
    host.period()
    assert host.window == 5


def test_a_window_that_was_not_tried_does_not_grow():
    """With two places free nobody knows whether more would fit."""
    host = Host(start=4)
    host.sessions(*names(2))
    host.period(count=50)
    assert host.window == 4
    host.sessions("third")
    host.period()
    assert host.window > 4


@pytest.mark.parametrize("sign", ["preemptions", "retention", "queue", "stall"])
def test_any_of_four_signs_cuts_it(sign):
    """By 0.7, from who is there; and the next period not again."""
    host = Host(start=20)
    host.sessions(*names(9), "lost")
    more = {}
    if sign == "preemptions":
        more = {"preemptions": 0.5}
    elif sign == "retention":
        host.lose(0.7)
    elif sign == "queue":
        host.call("s0", stream=True)
        host.clock.advance(TTFT_S / 2)
    else:
        for _ in range(9):
            host.turn("s0", {"max_gap_ms": 2001})
    host.period(**more)
    assert host.window == pytest.approx(7.0)
    host.period(**more)
    assert host.window == pytest.approx(7.0)


@pytest.mark.parametrize("sign", ["preemptions", "retention", "queue", "stall", "few"])
def test_at_their_bounds_none_does(sign):
    """No preemption, 0.8 kept, 15 s waited, 2 s stalled; or too few turns to say."""
    host = Host(start=20)
    host.sessions(*names(9), "lost")
    if sign == "retention":
        host.lose(0.8)
    elif sign == "queue":
        host.call("s0", stream=True)
        host.clock.advance(TTFT_S / 2 - PERIOD)
    elif sign == "stall":
        for _ in range(9):
            host.turn("s0", {"max_gap_ms": 2000})
    elif sign == "few":
        host.lose(0.0, count=5)  # the first of them continues nothing
        for _ in range(4):
            host.turn("s0", {"max_gap_ms": 9000})
    host.period()
    assert host.window == 20


def test_one_stall_in_ten_answers_is_none():
    """Nine of ten keep the bound."""
    host = Host(start=20)
    host.sessions(*names(10))
    for number in range(20):
        host.turn("s0", {"max_gap_ms": 9000 if number % 20 == 0 else 100})
    host.period()
    assert host.window == 20


def test_a_preemption_between_two_steps_is_not_missed():
    """Readings come more often than the window moves."""
    host = Host(start=20)
    host.sessions(*names(10))
    host.clock.advance(PERIOD / 2)
    host.read(preemptions=1.0)
    host.clock.advance(PERIOD / 2)
    host.read()
    assert host.window == pytest.approx(7.0)
    host.period()
    assert host.window == pytest.approx(7.0)


def test_a_cut_is_given_a_cool_down():
    """8 s, while no turns were seen."""
    host = Host(start=20)
    host.sessions(*names(10))
    host.period(preemptions=1.0, count=4)
    assert host.window == pytest.approx(7.0)
    host.period(preemptions=1.0)
    assert host.window == pytest.approx(4.9)


def test_or_three_median_turns_where_those_are_longer():
    """What a cut does is seen some turns later."""
    host = Host(start=20)
    host.sessions(*names(9))
    for _ in range(5):
        host.turn("slow")
        host.clock.advance(10.0)
    host.period(preemptions=1.0)
    host.period(preemptions=1.0, count=14)
    assert host.window == pytest.approx(7.0)
    host.period(preemptions=1.0)
    assert host.window == pytest.approx(4.9)


def test_it_has_a_floor():
    """Two sessions are let in whatever the signs are."""
    host = Host()
    host.sessions(*names(8))
    host.period(preemptions=1.0, count=100)
    assert host.window == 2


def test_turns_of_before_a_cut_do_not_cut_again():
    """Retention is a mean over turns; the old ones have had their cut."""
    host = Host(start=20)
    host.sessions(*names(9), "lost")
    host.lose()
    host.period()
    host.period(seconds=2 * COOL)
    assert host.window == pytest.approx(7.0)
    host.lose(count=5)
    host.period()
    assert host.window == pytest.approx(4.9)


@pytest.mark.parametrize("sign", ["retention", "wait"])
def test_between_congestion_and_room_it_stays(sign):
    """0.8 to 0.9 kept, or 3 to 15 s waited."""
    host = Host(start=8)
    host.sessions(*names(7), "lost")
    if sign == "retention":
        host.lose(0.85)
    before = host.window
    for _ in range(29):
        if sign == "wait":
            d = host.call("s0", stream=True)
            host.period(seconds=4.0)
            host.policy.first_token(d.request_id)
            host.policy.outcome(d.request_id, ttft_ms=4000, e2e_ms=4000)
        else:
            host.period()
    assert host.window == before


def test_after_a_cut_it_grows_a_task_time_later():
    """The places that are left are tried first."""
    host = Host(start=10, step=1.0)
    host.sessions(*names(10))
    host.period(preemptions=1.0)
    for name in names(3):
        host.turn(name, session_final=True)
    host.period(count=int(LEAST / PERIOD) - 1)
    assert host.window == pytest.approx(7.0)
    host.period()
    assert host.window == pytest.approx(8.0)


def test_a_cut_that_proves_needless_is_taken_back():
    """All who are live have room for a whole cool-down: so many fit, and no more."""
    host = Host(start=20)
    host.sessions(*names(10))
    host.period(preemptions=1.0)
    host.period(count=int(COOL / PERIOD))
    host.period(preemptions=1.0)
    assert host.window == pytest.approx(4.9)
    host.turn("s0", session_final=True)
    host.period(count=int(COOL / PERIOD))
    assert host.window == pytest.approx(4.9)
    host.period()
    assert host.window == 9


def test_the_first_window_follows_from_the_memory_and_the_first_contexts():
    """Capacity over one and a half mean first contexts, once; else the parameter."""
    host = Host(start=3)
    for number in range(FIRSTS):
        assert host.window == 3
        host.read(kv_capacity_tokens=300_000)
        host.call(f"s{number}", input_tokens=8_000 + 1_000 * number)
    host.read(kv_capacity_tokens=300_000)
    assert host.window == 20
    host.read(kv_capacity_tokens=900_000)
    assert host.window == 20


def test_replicas_have_their_memory_together():
    """Each is read by itself."""
    host = Host(start=3, fill=0.5)
    for name in names(FIRSTS):
        host.call(name, input_tokens=10_000)
    host.policy._firsts.popitem()
    for replica in ("one", "two"):
        host.read(replica=replica, kv_capacity_tokens=300_000)
    host.call("another", input_tokens=10_000)
    host.read(replica="one", kv_capacity_tokens=300_000)
    assert host.window == 20


def test_a_few_tiny_contexts_do_not_open_the_door_for_all():
    """Each counts for a thousand tokens, and the first window stays in reach."""
    host = Host(start=8)
    host.sessions(*names(FIRSTS), input_tokens=1)
    host.read(kv_capacity_tokens=300_000_000)
    assert host.window == 8 * START_TIMES
    host = Host(start=8)
    host.sessions(*names(FIRSTS), input_tokens=1)
    host.read(kv_capacity_tokens=30_000)
    assert host.window == 20


def test_later_calls_and_unknown_prompts_size_nothing():
    """Only a session's first context is one."""
    host = Host(start=3)
    for _ in range(9):
        host.turn("s", input_tokens=100)
        host.turn(None, input_tokens=100)
        host.call("unknown")
    host.read(kv_capacity_tokens=300_000)
    assert host.window == 3


def test_a_window_that_was_cut_is_not_sized_any_more():
    """What was met goes before what was reckoned."""
    host = Host(start=10)
    host.sessions(*names(10), input_tokens=1_000)
    host.period(preemptions=1.0)
    host.read(kv_capacity_tokens=300_000)
    assert host.window == pytest.approx(7.0)


# ------------------------------------------------------------------------ who gets in


def test_a_full_window_refuses_the_next_new_session_and_no_live_one():
    """With 503 and a wait of its own; the gate is the window's."""
    host = Host(start=3)
    host.sessions(*names(3))
    refused = host.call("new")
    assert (*said(refused), refused.wait) == ("slots", 503, "defer", "policy")
    assert gates(host)["active_sessions"] == (3.0, 3.0, True)
    host.sessions(*names(3))
    assert gates(host)["session_in_flight"] == (0.0, 64.0, False)


def test_a_cut_throws_nobody_out_and_lets_nobody_in():
    """Live sessions go on; a place is free when enough of them have ended."""
    host = Host(start=4, beta=0.5)
    host.sessions(*names(4))
    host.period(preemptions=1.0)
    assert host.window == 2
    host.sessions(*names(4))
    for number, admitted in ((0, False), (1, False), (2, True)):
        host.turn(f"s{number}", session_final=True)
        assert host.call(f"new{number}").admitted is admitted


def test_a_session_that_ends_makes_room():
    """By saying so or by its lease: either way the next one gets in."""
    host = Host(start=1, floor=1)
    host.turn("a", session_final=True)
    host.turn("b")
    assert not host.call("c").admitted
    host.period(seconds=LEASE)
    assert host.live == set()
    host.turn("c")


def test_a_session_whose_call_is_open_holds_its_place_beyond_the_lease():
    """What never ends is the ledger's to give up, not the window's."""
    host = Host(start=1, floor=1)
    d = host.call("a", stream=False)
    host.period(seconds=2 * LEASE)
    assert host.live == {"a"}
    host.policy.outcome(d.request_id)
    host.period(seconds=LEASE)
    assert host.live == set()


def test_helpers_share_their_roots_place_and_its_bound_of_open_calls():
    """Half a family is worth nothing, and a family is one caller."""
    host = Host(start=1, floor=1, in_flight=3)
    host.turn("root")
    for n in range(3):
        assert host.call(f"helper{n}", parent_session="root").admitted
    many = host.call("helper", parent_session="root")
    assert said(many) == ("session_in_flight", 503, "defer")
    assert gates(host)["session_in_flight"] == (3.0, 3.0, True)
    assert host.live == {"root"}
    assert host.call("helper", parent_session="another").reason == "slots"


def test_who_names_no_session_is_held_by_the_queue_alone():
    """It takes no place, and is never one of a session that all such share."""
    host = Host(start=1, floor=1)
    host.turn("a")
    for _ in range(5):
        host.turn(None)
    assert host.live == {"a"}
    host.call("a", stream=True)
    host.clock.advance(TTFT_S / 2)
    host.turn(None)  # at the bound
    host.clock.advance(0.1)
    refused = host.call(None)
    assert said(refused) == ("queue_age", 503, "defer")
    assert gates(host)["oldest_wait_s"][1:] == (TTFT_S / 2, True)


def test_a_new_session_without_slack_is_told_so_and_a_live_one_goes_on():
    """No wait helps it; what was let in is served."""
    host = Host()
    assert said(host.call("new", deadline_s=0.0)) == (
        "deadline_unmeetable",
        503,
        "reject",
    )
    host.turn("live", deadline_s=0.1)
    host.turn("live", deadline_s=-5.0)


def test_the_wait_is_for_the_ends_that_are_needed():
    """Of those before it; from 2 to 8 s, and 2 s while nothing was seen to end."""
    host = Host(start=1, floor=1)
    for name in names(8, "ended"):
        host.turn(name, session_final=True)
        host.period()
    host.turn("a")
    waits = [host.call(f"new{n}").estimate_ms for n in range(6)]
    assert waits == sorted(waits)
    assert waits[0] == pytest.approx(2000, abs=1)
    assert waits[1] == pytest.approx(4000, abs=1)
    assert waits[-1] == 8000
    fresh = Host(start=1, floor=1)
    fresh.turn("a")
    assert fresh.call("new").estimate_ms == 2000


# ------------------------------------------------------------------------------- shed


def grown(mode, **given):
    """A full window with an old session that holds most of all contexts."""
    host = Host(start=2, floor=1, mode=mode, quantum=3, **given)
    for _ in range(3):
        host.turn("old", input_tokens=9_000)
    host.turn("new", input_tokens=1_000)
    return host


def test_with_shed_the_largest_old_one_leaves_when_a_new_one_is_turned_away():
    """For good, with what it had; and its place is another's."""
    host = grown("shed")
    host.turn("old", input_tokens=9_000)
    assert host.call("third").reason == "slots"
    d = host.call("old", input_tokens=9_500)
    assert (*said(d), d.should_retry) == ("session_quota", 429, "reject", False)
    error = d.body()["error"]
    assert (error["limit"], error["used"]) == (3, 4)
    host.turn("third", input_tokens=100)
    assert host.live == {"new", "third"}


def test_with_protect_nobody_ever_does():
    """Who was let in is served to its end."""
    host = grown("protect")
    for _ in range(5):
        assert host.call("third").reason == "slots"
        host.turn("old", input_tokens=9_000)


def test_who_left_may_come_again_as_a_new_one():
    """It waits for a place like all others."""
    host = grown("shed")
    host.call("third")
    host.call("old", input_tokens=9_500)
    host.turn("third")
    assert host.call("old", input_tokens=9_500).reason == "slots"


def test_a_session_that_only_asked_does_not_leave_before_it_is_told():
    """A host that holds a call may ask again and again."""
    host = grown("shed")
    host.call("third")
    d = host.policy.ask(host.reading, session="old", input_tokens=9_500)
    assert d.reason == "session_quota"
    assert "old" in host.live
    host.policy.answer(d)
    assert "old" not in host.live


@pytest.mark.parametrize(("mode", "leaves"), [("shed", True), ("protect", False)])
def test_with_shed_one_leaves_too_when_congestion_persists(mode, leaves):
    """Also when nobody new has come: 30 s of it, without a break."""
    host = grown(mode)
    host.period(count=int(PERSISTS_S / PERIOD), preemptions=1.0)
    host.turn("old", input_tokens=9_000)
    host.period()
    host.period(count=int(PERSISTS_S / PERIOD), preemptions=1.0)
    host.turn("old", input_tokens=9_000)
    host.period(preemptions=1.0)
    assert (host.call("old").reason == "session_quota") is leaves


# --------------------------------------------------------------------- it opens again


def test_an_engine_with_nothing_open_is_used_whoever_is_live():
    """One in 4 s: sessions that run tools hold their places, and nothing runs."""
    host = Host(start=1, floor=1)
    host.turn("a")
    for number in range(3):
        assert host.call(f"new{number}").reason == "slots"
        host.clock.advance(4.0)
        host.turn(f"new{number}")


def test_with_calls_open_that_are_answered_a_full_window_stays_shut():
    """Nobody was let in for a while because answers are long."""
    host = Host(start=1, floor=1)
    d = host.call("a")
    host.policy.first_token(d.request_id)
    host.clock.advance(TTFT_S - 1)
    assert host.call("new").reason == "slots"


@pytest.mark.parametrize("session", ["new", None])
def test_one_stuck_request_does_not_shut_the_door(session):
    """Now and then one is let in behind it; served at once, it tells of no queue."""
    host = Host(start=1, floor=1)
    host.call("stuck", stream=True)
    host.period(count=20)
    d = host.call(session, stream=True)
    assert d.admitted
    host.clock.advance(0.2)
    host.policy.first_token(d.request_id)
    host.policy.outcome(d.request_id, ttft_ms=200, e2e_ms=200)
    before = host.window
    host.period(count=4)
    assert host.window == before
    assert host.call(None if session is None else "another").admitted


def test_the_wait_of_one_that_was_overtaken_cuts_nothing():
    """It waits for something else than its turn."""
    host = Host(start=8)
    host.sessions(*names(7))
    host.call("stuck", stream=True)
    host.clock.advance(TTFT_S)
    host.turn("s0", {"ttft_ms": 100, "e2e_ms": 200}, stream=True)
    host.period()
    assert host.window == 8


# ------------------------------------------------------------------------- and besides


def test_every_sign_that_is_known_is_on_every_record():
    """Also when it does not hold and for who is let in: that is its liveness."""
    host = Host()
    host.lose(0.5)
    for _ in range(9):
        host.turn("s0", {"max_gap_ms": 50})
    host.period(preemptions=2.0)
    host.turn("s0")
    told = gates(host)
    assert told["retention"] == (0.5, 0.8, True)
    assert told["preemptions"] == (2.0, 0.0, True)
    assert told["stall_ms"] == (50.0, 2000.0, False)
    assert told["oldest_wait_s"] == (0.0, TTFT_S / 2, False)
    assert told["active_sessions"] == (2.0, 2.0, True)


def test_what_is_not_known_is_not_asked():
    """An engine that says nothing, answers without counts: neither blind nor cut."""
    host = Host(start=2)
    host.reading = Reading({}, taken_ns=host.clock.monotonic_ns())
    for _ in range(20):
        host.sessions(*names(2))
        host.clock.advance(PERIOD)
        host.policy.look(Reading({}, taken_ns=host.clock.monotonic_ns()))
    d = host.call("new")
    assert (d.blind, d.reason, host.window) == (None, "slots", 2)
    assert set(gates(host)) == {"active_sessions", "last_let_in_s", "oldest_wait_s"}


@pytest.mark.parametrize("mode", ["protect", "shed"])
def test_asking_leaves_it_as_it_was(mode):
    """`decide` may be asked many times for one request."""
    host = grown(mode)
    host.call("third")
    host.clock.advance(5.0)
    policy, now_ns = host.policy, host.clock.monotonic_ns()
    view = policy._resolver.view(host.reading, timed=True)
    for session in ("old", "new", "third", "fourth", None):
        request = policy._look(host.reading, {"session": session}).request
        before = of(policy)
        for _ in range(3):
            policy.decide(Snapshot(view, request, policy.ledger, now_ns, policy._gates))
        assert of(policy) == before


def test_a_lower_bound_over_the_upper_one_stops_at_construction():
    """Growing and cutting at once is no rule."""
    fault = r"low_retention=0\.95 is over high_retention=0\.9"
    with pytest.raises(ConfigError, match=fault):
        SessionAimd(low_retention=0.95)


def test_processes_share_the_window():
    """Each of two lets in half as many at first, and grows half as fast."""
    half = SessionAimd.divided({"start": 8}, 2)
    assert half == {"start": 4, "fill": 0.5, "floor": 1, "step": 1.0}


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("call"), st.sampled_from("abcdef"), st.booleans()),
        st.tuples(st.just("end"), st.integers(0, 30), st.integers(0, 9_000)),
        st.tuples(st.just("token"), st.integers(0, 30), st.none()),
        st.tuples(st.just("ask"), st.sampled_from("abcdef"), st.none()),
        st.tuples(st.just("read"), st.sampled_from([0.0, 1.0]), st.none()),
        st.tuples(st.just("wait"), st.sampled_from([0.5, 2.0, 9.0, 125.0]), st.none()),
    ),
    max_size=60,
)


class Watched:
    """A host whose every answer is compared with what the window has to say."""

    def __init__(self):
        self.host = Host(start=3, in_flight=40)
        self.opened = []

    def do(self, what, first, second):
        """One step."""
        host = self.host
        if what == "read":
            host.read(preemptions=first)
        elif what == "wait":
            host.clock.advance(first)
        elif what in ("call", "ask"):
            self.asks(what, first, second)
        elif self.opened and what == "end":
            request_id = self.opened.pop(first % len(self.opened))
            host.policy.outcome(request_id, cached_tokens=second, max_gap_ms=second)
        elif self.opened:
            host.policy.first_token(self.opened[first % len(self.opened)])

    def asks(self, what, name, final):
        """A call that is final, or one that may be held."""
        host = self.host
        live, active = name in host.live, len(host.live)
        if what == "ask":
            d = host.policy.ask(host.reading, session=name, input_tokens=1000)
        else:
            d = host.call(name, session_final=final, input_tokens=1000)
        if live:
            assert d.admitted
        elif d.admitted:
            probes = not gates(host).get("last_let_in_s", (0, 0, True))[2]
            assert active < host.policy._window.whole or probes
        self.opened += [d.request_id] if d.admitted else []


@settings(deadline=None, max_examples=100)
@given(steps=STEPS)
def test_no_order_of_events_refuses_a_live_session_or_keeps_one_for_ever(steps):
    """With `protect` a promise is kept; and in the end nothing is held."""
    watched = Watched()
    host, policy = watched.host, watched.host.policy
    for step in steps:
        watched.do(*step)
        assert policy.floor <= host.window
    for request_id in watched.opened:
        policy.outcome(request_id)
    host.period(seconds=LEASE, count=3)
    assert (policy._sessions.active, policy._sessions.waiting) == (0, 0)
    assert policy.ledger._accounts == {}
