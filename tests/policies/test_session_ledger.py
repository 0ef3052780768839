"""Whole tasks, let in once, by what all of them will need.

The sections are named after what a policy for agents' sessions must do.
"""

import sys
from collections import OrderedDict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.policies.test_pure import of

from admitperf.core.reading import Reading
from admitperf.core.request import Request
from admitperf.core.snapshot import Snapshot
from admitperf.policies.parts.ledger.books import LEFT_S, OVER_S
from admitperf.policies.parts.ledger.engine import (
    ADOPT_S,
    DRIFT_EVERY_S,
    DRIFT_ROUNDS,
    TRUST_AT_FIRST,
)
from admitperf.policies.parts.stuck import PROBE_S
from admitperf.policies.session_ledger import (
    CAPACITY,
    GATES,
    WAIT_LEAST_S,
    SessionLedger,
)
from admitperf.testing import FakeClock, MemoryLog

LEASE = 120.0
HALF_LIFE = 30.0
LASTS = 60.0
PATIENCE = 0.3
WAIT_MOST_S = 10.0
IN_FLIGHT = 64
"""The defaults, and how long a task is taken to last while none has ended."""

AHEAD = 9_000
"""Tokens that a task is taken to grow by while none has been seen: ten calls of 900."""

DUTY = 0.95
"""The part of its time that such a one has a call open: 5.7 s of 6 s."""

TOOK_S = 1e-4
"""How long a call takes here: next to nothing fades meanwhile."""

GREW = 1_000
"""Tokens that whole tasks grow by a call."""

STEADY = {"slot_share": 1.0, "prefill_share": 1.0, "burst": 1.0}


class Host:
    """A gateway before an engine whose own gauge always says that it is empty."""

    def __init__(self, capacity=30_000, busy=0.0, **given):
        self.clock = FakeClock(start_s=1000.0)
        self.log = MemoryLog()
        self.policy = SessionLedger(
            **given,
            clock=self.clock,
            log=self.log,
            reports_outcomes=True,
            max_age_s=100_000.0,
        )
        self.capacity = capacity
        self.reading = None
        self.read(running=busy)
        self.read()

    def read(self, replica=None, **raw):
        """One new reading, now."""
        told = {
            "kv_capacity_tokens": self.capacity,
            "kv_pressure": 0.0,
            "running": 1.0,
            "preemptions": 0.0,
            **raw,
        }
        at_ns = self.clock.monotonic_ns()
        self.reading = Reading(told, taken_ns=at_ns, replica=replica)
        self.policy.look(self.reading)

    def passes(self, seconds, **raw):
        """Time, and then a reading."""
        self.clock.advance(seconds)
        self.read(**raw)

    def call(self, session, tokens=1_000, **facts):
        """One call; its decision."""
        return self.policy(self.reading, session=session, input_tokens=tokens, **facts)

    def end(self, d, **told):
        """A call's end."""
        self.policy.outcome(d.request_id, **told)

    def turn(self, session, tokens=1_000, told=None, **facts):
        """A call that is let in and ends at once."""
        d = self.call(session, tokens, **facts)
        assert d.admitted, d.reason
        self.clock.advance(TOOK_S)
        self.end(d, **(told or {}))
        return d

    def tasks(self, *named, **facts):
        """Tasks that begin and then run a tool."""
        for name in named:
            self.turn(name, **facts)

    def whole(self, name, calls=1, seconds=0.0, tokens=1_000):
        """A task from its first call to its last, that said so."""
        for number in range(calls):
            final = number == calls - 1
            self.turn(name, tokens + GREW * number, session_final=final)
            self.clock.advance(seconds)

    @staticmethod
    def request(session=None):
        """The facts of a call that says nothing but its session."""
        return Request({"session": session})

    @property
    def books(self):
        """The policy's own."""
        return self.policy._books

    @property
    def needed(self):
        """Tokens, slots and prompt tokens a second of all tasks."""
        return self.books.needed(self.clock.monotonic_ns())

    @property
    def live(self):
        """Names of tasks under way."""
        return {task.root for task in self.books.live()}


def names(count, kind="s"):
    """Names of that many tasks."""
    return [f"{kind}{n}" for n in range(count)]


def said(d):
    """What a decision says, in short."""
    return (d.reason, d.status, str(d.verdict))


def gates(host):
    """The last decision's gates: name to (value, bound, held)."""
    told = host.log.decisions[-1]["gates"]
    return {name: (value, bound, held) for name, value, _, bound, held in told}


def near(tokens):
    """So many, but for what faded in the time that calls took."""
    return pytest.approx(tokens, abs=1)


def kv_gate(host):
    """What the last newcomer would have made of the cache's sum."""
    return gates(host)["ledger_kv"][0]


def full(**given):
    """Three tasks that fill the cache to the last token; each needs 10,000."""
    host = Host(**given)
    host.tasks(*names(3))
    return host


NO_ROOM = ("kv_headroom", 503, "defer")
NOT_ANY_MORE = ("deadline_unmeetable", 503, "reject")


# --------------------------------------- 1. it names the session, its root, its task


def test_must_1_helpers_are_their_roots_whatever_depth_they_are_at():
    """They begin no task: none is asked whether there is room."""
    host = full()
    host.turn("helper", parent_session="s0")
    host.turn("helpers-own", parent_session="helper")
    assert host.live == {"s0", "s1", "s2"}
    assert set(gates(host)) == {"session_in_flight"}
    assert said(host.call("stranger", parent_session="nobody")) == NO_ROOM


def test_must_1_a_helpers_context_is_its_roots():
    """What it grows to is held for the family."""
    host = Host(100_000)
    host.turn("root")
    before = host.needed[0]
    host.turn("helper", 5_000, parent_session="root")
    assert host.needed[0] == pytest.approx(before + 5_000)


def test_must_1_after_its_last_call_a_session_begins_a_task_anew():
    """The next message of a person is let in for itself."""
    host = full()
    host.turn("s0", session_final=True)
    host.turn("new")
    assert said(host.call("s0")) == NO_ROOM


def test_must_1_between_tasks_only_how_it_calls_is_remembered():
    """It is charged with nothing; when it is back, its own growth is expected."""
    host = Host(100_000)
    for tokens in (1_000, 9_000, 17_000):
        host.turn("s", tokens)
    host.passes(LEASE)
    assert (host.live, host.needed) == (set(), (0.0, 0.0, 0.0))
    host.turn("other", session_final=True)
    assert kv_gate(host) == 1_000 + AHEAD
    host.turn("s")
    assert kv_gate(host) > 3 * (1_000 + AHEAD)
    assert host.needed[0] > 3 * (1_000 + AHEAD)
    host.turn("s", session_final=True)
    host.turn("s")
    assert host.needed[0] == 1_000 + AHEAD


# ------------------------------------ 2. it decides once, and keeps what it let in


def test_must_2_later_calls_are_let_in_whatever_has_become_of_the_room():
    """Past all bounds, with trust lost and a cache that runs out: no gate is asked."""
    host = full()
    host.policy._engine._slots, host.policy._engine._prefill = 1, 1.0
    for _ in range(60):
        host.passes(1.0, kv_pressure=1.0, preemptions=9.0, queue_depth=99, running=99)
        for name in names(3):
            host.turn(name, 29_000)
            assert set(gates(host)) == {"session_in_flight"}
    assert said(host.call("new")) == NO_ROOM


def test_must_2_a_session_with_too_many_open_calls_waits_for_one_of_them():
    """The first of the declared exceptions: so many, its helpers' among them."""
    host = Host()
    host.turn("root")
    opened = [host.call(f"h{n}", 10, parent_session="root") for n in range(IN_FLIGHT)]
    assert said(host.call("root")) == ("session_in_flight", 503, "defer")
    assert gates(host)["session_in_flight"] == (64.0, 64.0, True)
    host.end(opened[0])
    assert host.call("root").admitted


def elephant(mode="shed", **given):
    """One that has had its quantum and holds most of a full cache."""
    host = Host(60_000, mode=mode, quantum=3, **given)
    for _ in range(3):
        host.turn("old", 30_000)
    host.tasks("a", "b")
    return host


def test_must_2_with_shed_one_that_has_had_its_quantum_may_have_to_leave():
    """The second of them: for good, with what it had; its room is another's."""
    host = elephant()
    assert said(host.call("new")) == NO_ROOM
    d = host.call("old", 30_000)
    assert (*said(d), d.should_retry) == ("session_quota", 429, "reject", False)
    assert gates(host) == {"session_calls": (3.0, 3.0, True)}
    error = d.body()["error"]
    assert (error["limit"], error["used"]) == (3, 3)
    assert host.live == {"a", "b"}
    assert len(host.books.history(_request()).calls) == 0  # it teaches no length
    host.turn("new")


def test_must_2_a_host_that_only_asks_takes_nobodys_place():
    """One that is held may be asked about again and again."""
    host = elephant()
    host.call("new")
    d = host.policy.ask(host.reading, session="old", input_tokens=30_000)
    assert (d.reason, "old" in host.live) == ("session_quota", True)
    host.policy.answer(d)
    assert "old" not in host.live


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("call"), st.sampled_from("abcdefgh"), st.booleans()),
        st.tuples(st.just("end"), st.integers(0, 30), st.booleans()),
        st.tuples(st.just("wait"), st.sampled_from([0.5, 9.0, 125.0]), st.booleans()),
    ),
    max_size=60,
)


@settings(deadline=None, max_examples=60)
@given(steps=STEPS)
def test_must_2_with_protect_no_order_of_events_refuses_one_that_began(steps):
    """And in the end nothing is held."""
    host = Host(in_flight=100, slots=1)
    opened = []
    for what, first, second in steps:
        if what == "wait":
            host.passes(first, kv_pressure=1.0, preemptions=float(second))
        elif what == "end" and opened:
            host.end(opened.pop(first % len(opened)), ok=second)
        elif what == "call":
            began = first in host.live
            d = host.call(first, 9_000, session_final=second)
            assert d.admitted or not began
            opened += [d] if d.admitted else []
    for d in opened:
        host.end(d)
    for _ in range(3):
        host.passes(LEASE)
    assert (host.books.active, host.books.waiting) == (0, 0)
    assert host.needed == (0.0, 0.0, 0.0)
    assert host.policy.ledger._accounts == {}


# --------------------------------------------------------- 3. the future is charged


def test_must_3_a_newcomer_is_charged_with_what_it_will_grow_to():
    """Its prompt alone would fit twice."""
    host = full()
    assert said(host.call("new", 1)) == NO_ROOM
    assert gates(host)["ledger_kv"] == (near(39_001), 30_000.0, True)


@pytest.mark.parametrize(("calls", "ahead"), [(1, 1), (2, 2), (40, 10)])
def test_must_3_the_calls_to_come_are_those_of_tasks_that_ended(calls, ahead):
    """As far as the horizon reaches: ten calls, or a minute of them."""
    host = Host(1_000_000)
    for name in names(5):
        host.whole(name, calls)
    host.call("new")
    history = host.books.history(_request())
    assert kv_gate(host) == 1_000 + ahead * history.grows


def test_must_3_growth_is_a_tasks_own_as_soon_as_it_has_any():
    """By average, the newest counting three tenths."""
    host = Host(1_000_000)
    host.turn("s", 1_000)
    assert host.needed[0] == 1_000 + 10 * 900
    host.turn("s", 5_000)
    growth = 900 + 0.3 * (4_000 - 900)
    assert host.needed[0] == pytest.approx(5_000 + 10 * growth)


def test_must_3_a_task_that_outlives_all_others_is_expected_to_go_on_for_long():
    """A heavy tail: at each call it is reckoned anew, and what it has had counts."""
    host = Host(10_000_000)
    for name in names(5):
        host.whole(name, 2)
    charged = []
    for _ in range(6):
        host.turn("s", 1_000)
        task = host.books.task(_request("s"))
        charged.append((host.needed[0] - 1_000) / task.growth)
    assert charged == pytest.approx([1, 2, 3, 4, 5, 6])


def _request(session="new", tokens=1_000):
    """A request's facts."""
    policy = SessionLedger(clock=FakeClock())
    return policy._look({}, {"session": session, "input_tokens": tokens}).request


# ------------------------------------------------------------- 4. idle KV is charged


def test_must_4_a_task_that_runs_a_tool_is_charged_although_the_gauge_reads_zero():
    """It will be back with all of it."""
    host = full()
    host.read(kv_pressure=0.0)
    assert host.policy.ledger.in_flight == 0
    assert said(host.call("new")) == NO_ROOM


def test_must_4_then_less_and_less():
    """Half after a half-life; all of it again when it calls."""
    host = full()
    whole = host.needed[0]
    host.clock.advance(HALF_LIFE)
    assert host.needed[0] == pytest.approx(whole / 2)
    host.clock.advance(HALF_LIFE)
    assert host.needed[0] == pytest.approx(whole / 4)
    d = host.call("s0")
    growth = 0.7 * 900
    assert host.needed[0] == pytest.approx(whole / 6 + 1_000 + 10 * growth)
    host.end(d)


def test_must_4_what_is_measured_over_the_books_is_charged_too_after_three_rounds():
    """Someone else's requests, or books that are wrong: the larger is believed."""
    host = Host(half_life_s=86_400.0, patience=100.0)
    host.tasks("s")
    for _ in range(DRIFT_ROUNDS):
        assert host.call("new", 11_100).admitted is False
        assert kv_gate(host) < 31_000
        host.passes(DRIFT_EVERY_S, kv_pressure=0.5, running=1.0)
    host.call("new", 0)
    assert host.policy._engine.foreign == 15_000
    assert kv_gate(host) > 15_000


# ------------------------------------------------ 5. several resources at once


SHORT_OF = {
    "kv_headroom": {"capacity": 19_999},
    "slots": {"capacity": 1_000_000, "slots": 1, **STEADY},
    "prefill_backlog": {"capacity": 1_000_000, "prefill_share": 0.3, "burst": 1.0},
}


@pytest.mark.parametrize("reason", CAPACITY)
def test_must_5_a_newcomer_needs_room_in_each(reason):
    """With one of them short it waits, and is told which."""
    host = Host(**SHORT_OF[reason])
    told = {"ttft_ms": 1_000, "cached_tokens": 0}
    host.turn("a", 1_000, told)
    assert said(host.call("b")) == (reason, 503, "defer")


def test_must_5_all_that_are_known_are_asked_of_every_newcomer():
    """One that is short hides no other, so that a log tells which one binds."""
    host = Host(19_999, slots=1, **STEADY)
    host.turn("a", 1_000, {"ttft_ms": 10_000, "cached_tokens": 0})
    host.call("b")
    told = gates(host)
    assert [told[name][2] for name, _ in GATES] == [True, True, True]
    assert told["ledger_slots"][:2] == pytest.approx((2 * DUTY, 1.0), abs=0.03)


def test_must_5_what_is_not_known_is_neither_asked_nor_recorded():
    """No gate that never could hold makes a record look well guarded."""
    host = full()
    host.call("new")
    assert {name for name, _ in GATES} & set(gates(host)) == {"ledger_kv"}


@pytest.mark.parametrize("told", [{"ttft_ms": 1_000}, {"cached_tokens": 0}, {}])
def test_must_5_prefill_is_known_from_prompts_of_which_all_is_known(told):
    """Without the part that was cached, or the time, nothing follows."""
    host = Host(1_000_000)
    host.turn("a", 1_000, told)
    host.call("b")
    assert "ledger_prefill" not in gates(host)


def test_must_5_the_one_that_takes_longest_to_free_is_named():
    """The wait is of that one too."""
    host = Host(19_999, slots=1, **STEADY)
    host.clock.advance(100)
    rates = host.books._released
    for rate, amount in zip(rates, (10_000.0, 0.01, 1.0), strict=True):
        rate.begin(host.clock.monotonic_ns() - 60_000_000_000)
        rate.add(amount, host.clock.monotonic_ns())
    host.tasks("a")
    d = host.call("b")
    assert (d.reason, d.estimate_ms) == ("slots", 1000 * WAIT_MOST_S)


def test_must_5_slots_are_handed_out_beyond_their_share_while_nobody_waits():
    """As many times as `burst` says, and of the cache never."""
    host = Host(1_000_000, slots=2, slot_share=1.0, burst=2.0)
    host.tasks(*names(3))
    host.call("s0")
    assert host.call("new").admitted
    assert gates(host)["ledger_slots"][1] == 4.0
    assert gates(host)["ledger_kv"][1] == 1_000_000
    assert said(host.call("another")) == ("slots", 503, "defer")
    assert gates(host)["ledger_slots"][1] == 2.0


# ------------------------------------------------- 6. it answers from local state


class Counted(OrderedDict):
    """A table that counts what is looked at one after another."""

    seen = 0

    def values(self):
        """As of a table."""
        for value in super().values():
            type(self).seen += 1
            yield value

    def __iter__(self):
        for key in super().__iter__():
            type(self).seen += 1
            yield key


def steps(count, session):
    """Python and C calls of one decision, and tasks looked at, among so many."""
    host = Host(1e12)
    host.tasks(*names(count))
    books, made = host.books, [0]
    books._live = Counted(books._live)
    host.call("s0")
    Counted.seen = 0

    def profile(_, event, __):
        made[0] += event in ("call", "c_call")

    sys.setprofile(profile)
    try:
        d = host.call(session)
    finally:
        sys.setprofile(None)
    assert d.admitted
    return made[0], Counted.seen


@pytest.mark.parametrize("session", ["s5", "new"])
def test_must_6_a_decision_costs_the_same_beside_ten_tasks_and_two_thousand(session):
    """Counted in steps, not in time: what there is more of is in running sums."""
    few, many = steps(10, session), steps(1_990, session)
    assert abs(few[0] - many[0]) <= 10
    assert max(few[1], many[1]) <= 4


def test_must_6_forty_calls_on_one_stale_reading_are_all_counted():
    """The engine's gauge shows none of them: three fit."""
    host = Host()
    said_to = [host.call(name) for name in names(40)]
    assert [d.admitted for d in said_to] == [True] * 3 + [False] * 37
    assert host.needed[0] == 30_000


def test_must_6_forty_calls_of_tasks_under_way_are_all_counted_too():
    """Eight of each of five."""
    host = Host(1_000_000, in_flight=8)
    host.tasks(*names(5))
    opened = [host.call(f"s{n % 5}").admitted for n in range(40)]
    assert opened == [True] * 40
    assert [host.call(name).reason for name in names(5)] == ["session_in_flight"] * 5


# --------------------------------------------------------- 7. it says no usefully


def test_must_7_the_wait_is_a_forecast_from_what_came_free_lately():
    """A task of ten thousand tokens a minute: a third of that is 20 s, told as 10."""
    host = full()
    rate = host.books._released[0]
    rate._begun_ns, rate._value = host.clock.monotonic_ns() - int(6e11), 0.0
    rate.add(60 * 1_000.0, host.clock.monotonic_ns())
    d = host.call("new", 0)
    assert (d.wait, d.estimate_ms) == ("policy", pytest.approx(9_000, abs=2))
    host.turn("s0", session_final=True)
    assert host.call("new", 1_100).estimate_ms == 1000 * WAIT_LEAST_S


def test_must_7_the_wait_is_bounded_whatever_was_seen():
    """Nothing has ended, or hardly anything."""
    host = full()
    assert host.call("new").estimate_ms == 1000 * WAIT_MOST_S
    host.books._released[0].add(1e-9, host.clock.monotonic_ns())
    assert host.call("new").estimate_ms == 1000 * WAIT_MOST_S


def test_must_7_what_is_sent_is_spread():
    """Who was refused together does not come back together."""
    host = full(patience=100.0)
    waits = {host.call(name).retry_after_ms for name in names(50, "new")}
    assert len(waits) > 40
    assert min(waits) >= 1000 * WAIT_MOST_S


def test_must_7_waiting_past_a_part_of_a_tasks_time_is_not_offered():
    """It is told at once and for good, with what it waited and would."""
    host = full()
    assert said(host.call("new")) == NO_ROOM
    bound = PATIENCE * LASTS
    host.clock.advance(bound - WAIT_MOST_S - 0.1)
    for name in names(3):
        host.turn(name)
    assert said(host.call("new")) == NO_ROOM
    host.clock.advance(0.2)
    d = host.call("new")
    assert (*said(d), d.should_retry) == (*NOT_ANY_MORE, False)
    value, most, held = gates(host)["task_wait_s"]
    assert (value, most, held) == (pytest.approx(bound + 0.1, abs=0.01), bound, True)


def test_must_7_who_was_told_no_for_good_begins_to_wait_anew():
    """Its next task is not refused for how long the one before had waited."""
    host = full(half_life_s=86_400.0)
    host.call("new")
    host.clock.advance(PATIENCE * LASTS)
    assert said(host.call("new")) == NOT_ANY_MORE
    assert host.books.waiting == 0
    assert said(host.call("new")) == NO_ROOM


def test_must_7_a_callers_own_deadline_before_the_wait_ends_it_too():
    """A wait that costs it its deadline is no wait."""
    host = full()
    assert said(host.call("new", deadline_s=WAIT_MOST_S - 1))[2] == "reject"
    assert said(host.call("another", deadline_s=WAIT_MOST_S + 1)) == NO_ROOM


def test_must_7_who_is_refused_holds_nothing():
    """Neither of the sums nor of the ledger, and whoever fits goes first."""
    host = full(patience=100.0)
    before = host.needed, host.policy.ledger.accounts
    for name in names(20, "new"):
        host.call(name, 20_000)
    assert (host.needed, host.policy.ledger.accounts) == before
    host.turn("s0", session_final=True)
    host.turn("small")


def test_must_7_what_no_replica_could_hold_is_told_so():
    """No wait helps it."""
    host = Host()
    d = host.call("new", 30_001)
    assert (*said(d), d.should_retry) == ("too_large", 413, "reject", False)
    assert gates(host)["prompt_kv"] == (30_001.0, 30_000.0, True)
    assert host.call("new", 30_000).admitted


# ------------------------------------------------------------- 8. leaks come to an end


def test_must_8_a_dead_client_is_charged_a_moment_more():
    """Ten seconds: it may have reconnected."""
    host = full()
    host.turn("s0", told={"ok": False, "error": "client_closed"})
    host.passes(LEFT_S - 0.1)
    assert "s0" in host.live
    host.passes(0.1)
    assert host.live == {"s1", "s2"}
    host.turn("new")


def test_must_8_an_abandoned_session_is_charged_until_its_lease_ends():
    """Nobody said that it was over."""
    host = full(half_life_s=86_400.0)
    host.passes(LEASE - 0.1)
    assert said(host.call("new")) == NO_ROOM
    host.passes(0.1)
    assert host.live == set()


def test_must_8_a_session_whose_call_is_open_is_charged_beyond_it():
    """What never ends is the ledger's to give up."""
    host = Host()
    d = host.call("s", stream=False)
    for _ in range(3):
        host.passes(LEASE)
    assert host.live == {"s"}
    host.end(d)
    host.passes(LEASE)
    assert host.live == set()


TOOL = {"finish_reason": "tool_calls"}
STOP = {"finish_reason": "stop"}


@pytest.mark.parametrize(("before", "over"), [(TOOL, True), (STOP, False), ({}, False)])
def test_must_8_an_answer_that_asks_for_no_tool_ends_a_task_soon(before, over):
    """Where answers are seen that do ask: elsewhere all end in the same word."""
    host = Host()
    host.turn("other", told=before)
    host.turn("s", told=STOP)
    host.passes(OVER_S)
    assert ("s" in host.live) is not over


def test_must_8_one_that_calls_again_was_not_over():
    """It has its lease back."""
    host = Host()
    host.turn("s", told=TOOL)
    host.turn("s", told=STOP)
    host.passes(OVER_S - 1)
    host.turn("s", told=TOOL)
    host.passes(OVER_S)
    assert host.live == {"s"}


def test_must_8_who_names_no_session_is_behind_those_of_its_tenant_alone():
    """A bucket for each tenant, with a bound of the prompts that are open."""
    host = Host(1_000_000, prefill_share=10.0)
    host.turn("a", 1_000, {"ttft_ms": 1_000, "cached_tokens": 0})
    bound = PATIENCE * LASTS * 1_000
    for _ in range(3):
        assert host.call(None, 6_001, tenant="t").admitted
    d = host.call(None, 10, tenant="t")
    assert said(d) == ("prefill_backlog", 503, "defer")
    assert gates(host)["tenant_backlog_tokens"] == (18_003.0, bound, True)
    assert host.call(None, 10, tenant="u").admitted
    assert host.call(None, 10).admitted


def test_must_8_requests_without_a_session_are_never_one_session():
    """However many: they have no later calls, and are bound by no calls of others."""
    host = Host()
    for _ in range(3 * IN_FLIGHT):
        assert host.call(None, 10).admitted
    assert (host.books.active, host.books.waiting) == (0, 0)


def test_must_8_one_by_itself_has_to_fit_beside_all_tasks():
    """With its prompt alone: nothing of it will grow."""
    host = Host(30_500)
    host.tasks(*names(3))
    assert host.call(None, 500).admitted
    assert said(host.call(None, 501)) == NO_ROOM


# ---------------------------------------------------- 9. nobody starves


def test_must_9_a_newcomer_behind_elephants_is_told_no_in_time():
    """Not after minutes: `patience` says when, and 0 is at once."""
    host = full(patience=0.0)
    assert said(host.call("new")) == NOT_ANY_MORE
    waits = full(patience=1.0)
    waits.clock.advance(LASTS - WAIT_MOST_S)
    waits.tasks(*names(3))
    assert said(waits.call("new")) == NO_ROOM


def test_must_9_with_protect_an_elephant_behind_a_stream_of_mice_is_served():
    """Whoever is turned away meanwhile."""
    host = elephant("protect")
    for number in range(50):
        assert not host.call(f"mouse{number}", 30_000).admitted
        host.turn("old", 30_000)
        host.clock.advance(0.1)


@pytest.mark.parametrize(
    ("given", "leaves"),
    [
        ({}, True),
        ({"margin": 3.4}, True),
        ({"margin": 3.5}, False),
        ({"elephant_share": 0.93}, True),
        ({"elephant_share": 0.94}, False),
        ({"quantum": 4}, False),
    ],
)
def test_must_9_who_has_to_leave_for_a_newcomer_is_in_the_parameters(given, leaves):
    """Its calls, the share of old ones, and how much more it takes: 3.44 times."""
    host = Host(60_000, mode="shed", **{"quantum": 3, **given})
    for _ in range(3):
        host.turn("old", 30_000)
    host.tasks("a", "b")
    host.call("new")
    assert (host.call("old", 30_000).reason == "session_quota") is leaves


def test_must_9_with_shed_nobody_leaves_for_one_that_can_wait_no_more_either():
    """The mark is for the one that is turned away, for whatever reason of room."""
    host = elephant(patience=0.0)
    assert said(host.call("new")) == NOT_ANY_MORE
    assert host.call("old", 30_000).reason == "session_quota"


def test_must_9_one_that_left_may_come_again_as_a_new_one():
    """It has the chance that all have, with the growth that it showed."""
    host = elephant()
    host.call("new")
    host.call("old", 30_000)
    host.turn("new")
    assert said(host.call("old", 30_000)) == NO_ROOM
    host.passes(LEASE)
    host.turn("old", 30_000)


def shared(tokens=3_000, **given):
    """Tenant a has two tasks and c one; b is turned away within its share."""
    host = Host(40_000, **given)
    host.tasks("a0", "a1", tenant="a")
    host.tasks("c0", tenant="c")
    assert said(host.call("b0", tokens, tenant="b")) == NO_ROOM
    return host


def test_must_9_a_tenant_over_its_share_waits_while_another_one_wants_in():
    """It has room, and is told whose limit it is."""
    host = shared()
    d = host.call("a2", 0, tenant="a")
    assert said(d) == ("tenant_share", 429, "reject")
    assert d.should_retry
    assert gates(host)["ledger_kv"][2] is False


def test_must_9_shares_follow_weights():
    """What is too much for one of three alike is not for one that has most of it."""
    alike = shared(1_001)
    assert alike.call("a2", 0, tenant="a").reason == "tenant_share"
    assert gates(alike)["tenant_kv"][0] == near(29_000)
    host = shared(1_001, weights="a=29,b=10.2,c=0.1")
    host.turn("a2", 0, tenant="a")
    assert gates(host)["tenant_kv"][0] == near(29_000)
    assert gates(host)["tenant_kv"][1] > 29_000


def test_must_9_one_that_has_all_of_it_leaves_room_for_one_that_has_none():
    """Each place that comes free was its own again, for ever."""
    host = Host(41_000)
    host.tasks(*names(4, "a"), tenant="a")
    host.clock.advance(0.1)
    assert said(host.call("b0", 2_000, tenant="b")) == NO_ROOM
    host.turn("a0", session_final=True, tenant="a")
    assert said(host.call("a4", 500, tenant="a")) == ("tenant_share", 429, "reject")
    host.turn("b0", 2_000, tenant="b")


def test_must_9_a_tenant_is_not_in_its_own_way():
    """Its other task is over its share and fits: nobody else wants the room."""
    host = shared(1_001, weights="b=0.68")
    host.clock.advance(2.0)
    host.turn("b1", 1_500, tenant="b")
    assert host.needed[0] > 0.7 * 40_000


@pytest.mark.parametrize("tenant", ["a", "b"])
def test_must_9_without_anybody_else_who_wants_in_all_may_be_one_tenants(tenant):
    """The room is there to be used, and the one that wants in is not in its own way."""
    host = shared()
    if tenant == "a":
        host.clock.advance(PROBE_S + 0.1)
    host.turn("more", 0, tenant=tenant)


# ------------------------------------------------------------ 10. it degrades safely


@pytest.mark.parametrize("posture", ["admit", "defer", "reject"])
def test_must_10_without_the_caches_size_the_posture_answers(posture):
    """As the host chose, also for a task under way."""
    host = Host(on_blind=posture)
    host.turn("s")
    d = host.policy({"running": 1.0}, session="s", input_tokens=1_000)
    assert (d.reason, str(d.verdict)) == ("signal_absent", posture)


def test_must_10_by_itself_it_lets_a_few_in_and_never_none():
    """Blind from the first call on."""
    policy = SessionLedger(clock=FakeClock(), reports_outcomes=True)
    said_to = [policy({}, session=name, input_tokens=1_000) for name in names(50)]
    assert said_to[0].admitted
    assert {d.reason for d in said_to} == {"signal_absent"}


@pytest.mark.parametrize("posture", ["admit", "defer", "reject"])
def test_must_10_an_error_of_its_own_is_the_postures_too(posture, monkeypatch):
    """And nothing raises."""
    host = Host(on_blind=posture)
    monkeypatch.setattr(host.books, "needed", lambda _: 1 / 0)
    d = host.call("s")
    assert (d.reason, str(d.verdict)) == ("policy_error", posture)


def test_must_10_an_engine_with_nothing_to_do_is_used_whatever_the_books_say():
    """One in 4 s, when nothing runs and nothing waits."""
    host = full(patience=100.0)
    host.read(running=0.0, queue_depth=0.0)
    assert said(host.call("new")) == NO_ROOM
    host.clock.advance(PROBE_S)
    assert host.call("new").admitted
    assert said(host.call("another")) == NO_ROOM
    host.passes(PROBE_S, running=0.0, queue_depth=1.0)
    assert said(host.call("another")) == NO_ROOM


def test_must_10_after_a_restart_the_tasks_that_were_there_are_let_in():
    """For as long as pauses are; then a part is left to those that are not known."""
    host = Host(busy=9.0)
    assert host.policy._engine.trust == TRUST_AT_FIRST
    host.tasks(*names(3))
    assert gates(host)["ledger_kv"] == (near(30_000), 30_000.0, False)
    host.clock.advance(ADOPT_S)
    for name in names(3):
        host.turn(name)
    host.call("new")
    assert gates(host)["ledger_kv"][1] == pytest.approx(TRUST_AT_FIRST * 30_000)


def test_must_10_before_an_engine_that_rests_all_is_trusted_at_once():
    """There is nobody to adopt."""
    assert Host().policy._engine.trust == 1.0


def test_must_10_contexts_that_were_lost_make_it_more_careful():
    """A twentieth a second, and much slower back."""
    host = Host()
    for _ in range(9):
        host.turn("s", 1_000, {"cached_tokens": 0, "output_tokens": 0})
    host.passes(1.0)
    host.passes(1.0)
    assert host.policy._engine.trust == pytest.approx(0.95**2, rel=0.03)
    host.call("new")
    assert gates(host)["ledger_kv"][1] < 0.93 * 30_000


# ---------------------------------------------------------------- 11. it can be tested


@pytest.mark.parametrize("mode", ["protect", "shed"])
def test_must_11_asking_leaves_it_as_it_was(mode):
    """`decide` may be asked many times for one request."""
    host = elephant(mode)
    host.call("new")
    host.clock.advance(5.0)
    policy, now_ns = host.policy, host.clock.monotonic_ns()
    view = policy._resolver.view(host.reading, timed=True)
    for session in ("old", "new", "a", "other", None):
        facts = {"session": session, "input_tokens": 9_000, "tenant": "t"}
        request = policy._look(host.reading, facts).request
        before = of(policy)
        for _ in range(3):
            policy.decide(Snapshot(view, request, policy.ledger, now_ns, policy._gates))
        assert of(policy) == before


def test_must_11_the_same_life_gets_the_same_answers_and_the_same_gates():
    """Waits too; nothing is drawn by lot and no clock is looked at."""

    def life():
        host = elephant()
        said_to = [
            host.call(f"n{n % 7}", 500 * n, tenant="ab"[n % 2]) for n in range(40)
        ]
        return [(said(d), d.estimate_ms) for d in said_to], [
            line["gates"] for line in host.log.decisions
        ]

    assert life() == life()


def test_must_11_every_refusal_leaves_the_gate_that_it_rests_on():
    """With its value and its bound."""
    host = full()
    host.call("new")
    told = gates(host)
    assert told["ledger_kv"] == (near(40_000), 30_000.0, True)
    assert told["task_wait_s"] == (WAIT_MOST_S, PATIENCE * LASTS, False)
    host.turn("s0")
    assert gates(host) == {"session_in_flight": (0.0, 64.0, False)}


def test_must_11_processes_share_what_there_is():
    """Each of two hands out half, in the same way."""
    half = SessionLedger.divided({"kv_share": 1.0}, 2)
    shares = ("kv_share", "slot_share", "prefill_share")
    assert [half[name] for name in shares] == [0.5, 0.7, 0.6]
