"""Running sums of what tasks need, against a count of all of them."""

from math import exp2

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from admitperf import Policy
from admitperf.core.request import Request
from admitperf.policies.parts.ledger.books import (
    CLASSES_MOST,
    LEFT_S,
    OVER_S,
    SHARED_WEIGHT,
    Books,
)
from admitperf.policies.parts.ledger.rate import LOOKS_BACK_S
from admitperf.policies.parts.live.sessions import SESSIONS_MOST
from admitperf.testing import FakeClock

LEASE = 60.0
HALF_LIFE = 20.0
HORIZON = 9_000.0
TOOL, STOP = {"finish_reason": "tool_calls"}, {"finish_reason": "stop"}


class Keeper(Policy):
    """Refuses what has a negative priority, and keeps books."""

    name = "keeper"

    def __init__(self, **given):
        super().__init__(**given)
        self.books = Books(self.name, LEASE, HALF_LIFE, "slots")

    def decide(self, metrics):
        """By priority alone."""
        return self.defer("slots") if metrics.request.priority < 0 else self.admit()

    def decided(self, metrics, d):
        """What a policy with books does."""
        return self.books.decided(metrics, d)

    def observe(self, metrics, outcome):
        """What a policy with books does."""
        self.books.observe(metrics, outcome)


class Host:
    """A gateway whose tasks call."""

    def __init__(self):
        self.clock = FakeClock(start_s=1000.0)
        self.policy = Keeper(clock=self.clock, reports_outcomes=True)
        self.books = self.policy.books
        self.readings = 0

    def call(self, session, tokens=1_000, **facts):
        """A call that comes; its id."""
        facts = {"session": session, "input_tokens": tokens, **facts}
        return self.policy({"running": 1.0}, **facts).request_id

    def turn(self, session, tokens=1_000, took_s=0.1, told=None, **facts):
        """A call that comes and ends."""
        request_id = self.call(session, tokens, **facts)
        self.clock.advance(took_s)
        self.policy.outcome(request_id, **(told or {}))

    def passes(self, seconds):
        """Time, then a new reading."""
        self.clock.advance(seconds)
        self.readings += 1
        self.policy.ask({"running": float(self.readings)}, priority=-1)

    def find(self, session, **facts):
        """The task a request would belong to."""
        return self.books.task(Request({"session": session, **facts}))

    @property
    def now_ns(self):
        """The present."""
        return self.clock.monotonic_ns()

    @property
    def needed(self):
        """What the books say."""
        return self.books.needed(self.now_ns)

    @property
    def roots(self):
        """Names of live tasks."""
        return {task.root for task in self.books.live()}

    def counted(self):
        """The same from scratch: each task's, less and less since its last call."""
        kv, slots, prefill = self.books.shared if self.roots else 0.0, 0.0, 0.0
        for task in self.books.live():
            idle_s = 0.0 if task.busy else (self.now_ns - task.idle_ns) / 1e9
            counts = exp2(-idle_s / HALF_LIFE)
            kv += counts * task.needs.all[0]
            slots += counts * task.needs.all[1]
            prefill += counts * task.needs.all[2]
        return kv, slots, prefill


# ------------------------------------------------------------------------ the sums

NAMES = st.sampled_from("abcdefgh")
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("call"), NAMES, st.integers(0, 90_000), st.booleans()),
        st.tuples(st.just("helper"), NAMES, st.integers(0, 9_000), st.booleans()),
        st.tuples(st.just("refused"), NAMES, st.integers(0, 9_000), st.booleans()),
        st.tuples(
            st.just("end"), st.integers(0, 30), st.integers(0, 9_000), st.booleans()
        ),
        st.tuples(
            st.just("wait"),
            st.sampled_from([0.01, 1.0, 19.0, 300.0]),
            st.none(),
            st.none(),
        ),
        st.tuples(st.just("leave"), NAMES, st.none(), st.none()),
    ),
    max_size=80,
)


class Life:
    """Steps in any order."""

    def __init__(self):
        self.host = Host()
        self.opened = []

    def do(self, what, first, tokens, second):
        """One step."""
        host = self.host
        if what == "wait":
            host.passes(first)
        elif what == "end":
            self.ends(first, tokens, ok=second)
        elif what == "leave":
            task = host.find(first)
            if task is not None:
                host.books.end(task)
        elif what == "refused":
            host.call(first, tokens, tenant=first, priority=-1)
        else:
            helper = {"parent_session": first} if what == "helper" else {}
            name = f"{first}'s" if what == "helper" else first
            told = {**helper, "tenant": "xyz"[ord(first) % 3], "session_final": second}
            self.opened.append(host.call(name, tokens, **told))
            host.clock.advance(0.01)

    def ends(self, which, tokens, *, ok):
        """One of the open calls."""
        if not self.opened:
            return
        request_id = self.opened.pop(which % len(self.opened))
        self.host.policy.outcome(
            request_id,
            ok=ok,
            error=None if ok else "client_closed",
            output_tokens=tokens,
            cached_tokens=tokens // 2,
            finish_reason="stop" if tokens % 2 else "tool_calls",
        )


@settings(deadline=None, max_examples=200)
@given(steps=STEPS)
def test_running_sums_are_what_a_count_of_all_tasks_says(steps):
    """After each event; none is ever negative, and in the end all are 0."""
    life = Life()
    host, books = life.host, life.host.books
    for step in steps:
        life.do(*step)
        assert host.needed == pytest.approx(host.counted(), rel=1e-6, abs=1e-6)
        assert min(host.needed) > -1e-6
        for tenant in books.tenants:
            of_it = [t.needs.all[0] for t in books.live() if t.tenant == tenant]
            assert of_it
            assert books.tenant_kv(tenant) == pytest.approx(sum(of_it), abs=1e-6)
    while life.opened:
        life.ends(0, 1, ok=True)
    for _ in range(4):
        host.passes(LEASE + LEFT_S)
    assert host.roots == set()
    assert host.needed == (0.0, 0.0, 0.0)
    assert (books.tenants, books._busy.count, books._idle.count) == (set(), 0, 0)


def test_what_tasks_have_in_common_is_counted_once():
    """By what was cached of first prompts, a tenth of the way each time."""
    host = Host()
    for name in ("a", "b"):
        host.turn(name, 10_000, told={"cached_tokens": 5_000})
    shared = 5_000 * (1 - (1 - SHARED_WEIGHT) ** 2)
    assert host.books.shared == pytest.approx(shared)
    host.turn("a", 10_000, told={"cached_tokens": 9_999})
    assert host.books.shared == pytest.approx(shared)
    new = host.books.needs_of(Request({"session": "c", "input_tokens": 8_000}), None)
    assert new.all[0] == pytest.approx(8_000 - shared + HORIZON)


# ----------------------------------------------------------------------- their ends


@pytest.mark.parametrize(
    ("told", "stays_s"),
    [
        (STOP, OVER_S),
        ({"finish_reason": "end_turn"}, OVER_S),
        (TOOL, LEASE),
        ({"finish_reason": "length"}, LEASE),
        ({}, LEASE),
        ({"ok": False, "error": "client_closed"}, LEFT_S),
        ({"ok": False, "error": "upstream"}, LEASE),
    ],
)
def test_how_long_a_task_is_kept_after_its_last_call(told, stays_s):
    """By the word its answer ended in, where tools were seen to be called."""
    host = Host()
    host.turn("other", told=TOOL)
    host.turn("s", told=told)
    host.passes(stays_s - 0.01)
    assert "s" in host.roots
    host.passes(0.02)
    assert "s" not in host.roots


def test_an_answer_without_a_tool_is_no_end_while_the_family_is_at_work():
    """A helper's call is open: the root waits for it."""
    host = Host()
    host.turn("root", told=TOOL)
    helper = host.call("helper", parent_session="root")
    host.turn("root", told=STOP)
    host.passes(LEASE)
    assert host.roots == {"root"}
    host.policy.outcome(helper)
    host.passes(OVER_S)
    assert host.roots == {"root"}


def test_a_helpers_last_word_is_not_its_roots():
    """It hands its result over, and its root goes on."""
    host = Host()
    host.turn("root", told=TOOL)
    host.turn("helper", parent_session="root", told=STOP)
    host.passes(OVER_S)
    assert host.roots == {"root"}


def test_a_task_that_comes_to_its_end_teaches_how_long_they_are():
    """Calls, and seconds from its admission to the end of its last call."""
    host = Host()
    for number in range(3):
        host.turn("s", took_s=2.0, session_final=number == 2)
        host.clock.advance(1.0)
    history = host.books.history(Request({}))
    assert history.calls.quantile(0.5) == 3
    assert history.lasted_s.quantile(0.5) == pytest.approx(8.0)


def test_one_that_was_sent_away_teaches_nothing_of_ends():
    """Else those that leave would make all look short."""
    host = Host()
    host.turn("s")
    task = host.find("s")
    task.cut = True
    host.books.end(task)
    assert len(host.books.history(Request({})).calls) == 0


def test_what_ends_comes_free():
    """The basis of the waits: so much a second, and so long for so much."""
    host = Host()
    assert host.books.frees_s(0, 1_000, host.now_ns) is None
    for number in range(600):
        host.turn(f"s{number}", took_s=1.0, session_final=True)
    kv = host.books.needs_of(Request({"session": "x", "input_tokens": 1_000}), None)
    assert LOOKS_BACK_S < 600
    assert host.books.frees_s(0, 5 * kv.all[0], host.now_ns) == pytest.approx(5, 0.05)


def test_classes_are_apart_and_not_too_many():
    """By model and objective; the ones met last are kept."""
    host = Host()
    for number in range(CLASSES_MOST + 5):
        host.turn(f"s{number}", model=f"m{number}", session_final=True)
    assert len(host.books._histories) == CLASSES_MOST
    told = [len(host.books.history(Request({"model": m})).calls) for m in ("m0", "m9")]
    assert told == [0, 1]
    other = Request({"model": "m9", "slo_class": "batch"})
    assert len(host.books.history(other).calls) == 0


def test_no_more_that_are_gone_are_remembered_than_may_be_live():
    """Who has been gone longest is forgotten first."""
    host = Host()
    for number in range(SESSIONS_MOST + 20):
        host.turn(f"s{number}", took_s=0.001)
        host.books.end(host.find(f"s{number}"))
    assert len(host.books._gone) == SESSIONS_MOST
    assert "s0" not in host.books._gone


def test_tasks_that_end_one_after_another_all_go():
    """None keeps those before it on the books, nor one that is silent."""
    host = Host()
    host.turn("silent", told=TOOL)
    for number in range(int(2 * LEASE)):
        host.turn(f"s{number}", told=STOP)
        host.clock.advance(1.0)
    assert len(host.roots) <= OVER_S + 1
    assert "silent" not in host.roots
