"""The contexts of all sessions against the memory there is."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from admitperf.core.reading import Reading
from admitperf.policies.thunder_inspired import UNHEARD_S, ThunderInspired
from admitperf.testing import FakeClock, MemoryLog

TICK = 5.0
LEASE = 120.0
FORCED = 1800.0
FULL = 1.0
"""A cache that is read as full: nothing is taken to be shared."""


class Host:
    """A gateway in front of an engine of 1,000 tokens."""

    def __init__(self, capacity=1000, **given):
        self.clock = FakeClock()
        self.log = MemoryLog()
        self.policy = ThunderInspired(
            **{"buffer_tokens": 0, **given},
            clock=self.clock,
            log=self.log,
            reports_outcomes=True,
            max_age_s=10_000.0,
        )
        self.capacity = capacity
        self.reading = None
        self.read()

    def read(self, pressure=FULL, replica=None, capacity=None):
        """One new reading, now."""
        self.reading = Reading(
            {
                "kv_pressure": pressure,
                "kv_capacity_tokens": capacity or self.capacity,
            },
            taken_ns=self.clock.monotonic_ns(),
            replica=replica,
        )
        self.policy.look(self.reading)

    def ticks(self, count=1, pressure=FULL, seconds=TICK):
        """Looks at all sessions."""
        for _ in range(count):
            self.clock.advance(seconds)
            self.read(pressure)

    def call(self, session, tokens=None, **facts):
        """One call; its decision."""
        return self.policy(self.reading, session=session, input_tokens=tokens, **facts)

    def turn(self, session, tokens, output=0, **facts):
        """A call that is let in and ends."""
        d = self.call(session, tokens, **facts)
        assert d.admitted
        self.policy.outcome(d.request_id, output_tokens=output)

    @property
    def paused(self):
        """Who is held back, the first one first."""
        return list(self.policy._sessions.paused)

    @property
    def used(self):
        """Tokens that count against the cache."""
        return self.policy._used()


def said(d):
    """What a decision says, in short."""
    return (d.reason, d.status, str(d.verdict))


def gates(host):
    """The last decision's gates: name to (value, bound, held)."""
    told = host.log.decisions[-1]["gates"]
    return {name: (value, bound, held) for name, value, _, bound, held in told}


def test_a_cache_of_384k_tokens_holds_three_sessions_of_126k():
    """The rule's own arithmetic, with 100 tokens more for each: 3 x 126,100 <= 384,000.

    Also with the cache measured empty: between two calls it looks so, and the sessions
    come back all the same.
    """
    host = Host(384_000, buffer_tokens=100)
    for name in ("a", "b", "c"):
        host.turn(name, 126_000)
    host.ticks(pressure=0.0)
    assert host.used == 378_300
    d = host.call("d", 126_000)
    assert said(d) == ("kv_headroom", 503, "defer")
    assert gates(host)["thunder_tokens"] == (504_400.0, 384_000.0, True)
    for name in ("a", "b", "c"):
        host.turn(name, 126_000)


@pytest.mark.parametrize(("tokens", "admitted"), [(400, True), (401, False)])
def test_a_new_session_passes_at_once_when_it_fits(tokens, admitted):
    """Beside the contexts of all others, idle ones too; exactly full still fits."""
    host = Host()
    host.turn("a", 500, output=100)
    assert host.call("new", tokens).admitted is admitted


def test_a_new_session_does_not_pass_those_that_wait():
    """It fits, but somebody waits: both are looked at with the next tick."""
    host = Host()
    host.turn("a", 500)
    assert not host.call("large", 600).admitted
    d = host.call("small", 100)
    assert said(d) == ("kv_headroom", 503, "defer")
    assert gates(host)["thunder_waiting"] == (1.0, 0.0, True)
    assert gates(host)["thunder_tokens"][2] is False
    host.ticks()
    host.turn("small", 100)
    assert not host.call("large", 600).admitted


def test_the_wait_is_until_the_next_tick():
    """Nobody is let go on before; the long hold becomes many short waits."""
    host = Host()
    host.turn("a", 1000)
    host.clock.advance(1.5)
    d = host.call("b", 10)
    assert (d.wait, d.estimate_ms) == ("policy", 3500)
    host.clock.advance(3.4)
    assert host.call("b", 10).estimate_ms == 250


def test_when_contexts_outgrow_the_cache_the_smallest_are_held_back():
    """As many as it takes, those that run a tool, from their next call on."""
    host = Host()
    for name, tokens in (("large", 600), ("middle", 200), ("small", 100)):
        host.turn(name, tokens)
    host.turn("large", 600, output=250)
    host.ticks()
    assert host.paused == ["small", "middle"]
    assert host.used == 850
    for name in ("small", "middle"):
        assert said(host.call(name, 1)) == ("kv_headroom", 503, "defer")
        assert gates(host)["session_paused"] == (1.0, 1.0, True)
    host.turn("large", 600, output=250)


def test_a_session_with_a_call_open_is_marked_only_after_those_that_run_a_tool():
    """Its call goes on to the end; it counts until then."""
    host = Host(watermark=0.8)
    host.turn("idle", 300)
    busy = host.call("busy", 200)
    host.call("busy-too", 100)
    host.turn("idle", 550)
    host.ticks()
    assert host.paused == ["idle"]
    host.call("busy-too", 650)
    host.ticks()
    assert host.paused == ["idle", "busy"]
    assert host.used == 850
    host.policy.outcome(busy.request_id, output_tokens=5)
    assert host.used == 650
    assert not host.call("busy", 205).admitted


def test_who_was_marked_is_not_held_back_twice():
    """What it will free is counted before another one is marked."""
    host = Host(watermark=0.8)
    host.call("a", 300)
    host.call("b", 400)
    host.call("b", 600)
    host.ticks(3)
    assert (host.paused, host.used) == (["a"], 900)
    host.call("b", 550)
    host.call("c", 10_000)
    host.policy._sessions.let_in(host.policy._sessions._named["c"], 0)
    host.call("c", 350)
    host.ticks()
    assert (host.paused, host.used) == (["a", "c"], 1200)


def test_who_was_marked_stays_so_until_its_call_has_ended():
    """It does not wait yet, so it is in nobody's way; then it goes on in its turn."""
    host = Host(watermark=0.8)
    marked = host.call("a", 300)
    host.call("b", 400)
    shrinks = host.call("b", 600)
    host.ticks()
    assert host.paused == ["a"]
    host.policy.outcome(shrinks.request_id, input_tokens=100)
    host.ticks()
    assert (host.paused, host.used) == (["a"], 400)
    host.turn("new", 100, session_final=True)
    host.policy.outcome(marked.request_id)
    assert host.used == 100
    host.ticks()
    assert (host.paused, host.used) == ([], 400)


def test_who_asks_goes_before_who_is_new_and_both_before_who_is_idle():
    """Within each the smallest first, and whoever does not fit is passed over."""
    host = Host()
    sessions = host.policy._sessions
    for name, tokens in (("asks", 300), ("idle", 45), ("asks-too", 200), ("big", 400)):
        host.turn(name, tokens)
    for name in ("asks", "idle", "asks-too"):
        sessions.pause(sessions._named[name], 0)
    for name, tokens in (("asks", 300), ("asks-too", 200), ("new", 40), ("newer", 60)):
        assert not host.call(name, tokens).admitted
    host.turn("big", 450)
    host.ticks()
    assert host.used == 450 + 200 + 300 + 40
    assert host.paused == ["idle"]
    assert [session.root for session in sessions.queue()] == ["newer"]
    host.turn("new", 40)


def test_nothing_fits_until_something_ends():
    """Repeated refusals, and then in its turn."""
    host = Host()
    host.turn("a", 1000)
    for _ in range(10):
        assert not host.call("b", 500).admitted
        host.turn("a", 1000)
        host.ticks()
    host.turn("a", 1000, session_final=True)
    assert not host.call("b", 500).admitted
    host.ticks()
    host.turn("b", 500)


def test_after_half_an_hour_a_session_goes_on_whatever_fits():
    """The paper's only bound on starvation, as long as its client keeps asking."""
    host = Host()
    host.turn("a", 1000)
    while host.clock.monotonic_ns() < FORCED * 1e9:
        assert not host.call("b", 500).admitted
        host.turn("a", 1000)
        host.ticks(seconds=60.0)
    host.ticks()
    host.turn("b", 500)


def test_who_was_let_go_on_is_not_held_back_before_its_call_is_back():
    """A proxy that holds it would have sent it by now; here it has to come again."""
    host = Host()
    host.turn("a", 500)
    host.turn("b", 500)
    host.policy._sessions.pause(host.policy._sessions._named["b"], 0)
    assert not host.call("b", 400).admitted
    host.ticks()
    host.turn("a", 800)
    host.ticks()
    assert host.paused == ["a"]
    host.turn("b", 400)
    host.turn("b", 300)


def test_a_session_larger_than_the_cache_waits_and_is_not_told_so():
    """It never rejects: kept as it is."""
    host = Host()
    assert said(host.call("huge", 5000)) == ("kv_headroom", 503, "defer")
    host.ticks()
    assert said(host.call("huge", 5000)) == ("kv_headroom", 503, "defer")


def test_an_idle_context_fades_for_those_that_wait_only():
    """f = 2^(-t), the code's option: 640 tokens count 20 after 5 s; by default 640.

    Who is let go on by it is then too much by the full sum, and the idle one is held
    back in the same tick.
    """
    for half_life_s, paused, used in ((None, [], 640), (1.0, ["idle"], 980)):
        host = Host(half_life_s=half_life_s)
        host.turn("idle", 640)
        assert not host.call("large", 980).admitted
        host.ticks()
        assert (host.paused, host.used) == (paused, used)
        assert not host.call("larger", 981).admitted


def test_a_context_does_not_fade_while_its_call_is_open():
    """However long the tool ran before."""
    host = Host(half_life_s=1.0)
    host.turn("a", 640)
    host.call("a", 640)
    assert not host.call("large", 980).admitted
    host.ticks()
    assert not host.call("large", 980).admitted


def test_a_prompt_that_sessions_share_counts_once():
    """What open calls hold less than measured is shared; idle ones are not in it."""
    host = Host(shared="measured")
    host.turn("idle", 300)
    host.call("a", 400)
    host.call("b", 300)
    host.read(0.5)
    assert host.used == 300 + 500
    host.turn("new", 200)
    host.read(0.9)
    assert host.used == 300 + 700 + 200


def test_what_waits_in_the_engine_looks_shared():
    """Measured so, open calls never hold more than the cache; hence not by default."""
    host = Host(shared="measured")
    host.call("a", 900)
    host.call("a", 1500)
    host.ticks()
    assert (host.used, host.paused) == (1000, [])
    assert ThunderInspired(shared="measured").requires[0].name == "kv_pressure"


def test_by_default_the_cache_in_use_is_not_asked():
    """The released code never sets what is shared, so it counts every context."""
    host = Host()
    host.call("a", 900)
    host.call("a", 1500)
    host.read(0.1)
    assert host.used == 1500
    assert ThunderInspired().requires[0].name == "kv_capacity_tokens"


def test_each_session_gets_room_for_what_it_writes_next():
    """100 tokens, at the door and as long as it runs."""
    host = Host(buffer_tokens=100)
    host.turn("a", 400)
    assert host.used == 500
    assert not host.call("b", 401).admitted
    assert gates(host)["thunder_tokens"][0] == 1001.0


def test_the_room_to_write_counts_when_sessions_are_held_back_and_go_on():
    """Each time 100 tokens more than its context."""
    host = Host(buffer_tokens=100)
    for name, tokens in (("a", 300), ("b", 300), ("c", 100), ("b", 450)):
        host.turn(name, tokens)
    host.ticks()
    assert (host.paused, host.used) == (["c"], 950)
    for tokens, paused in ((351, ["c"]), (300, [])):
        host.turn("b", tokens)
        host.ticks()
        assert host.paused == paused


def test_the_room_of_who_was_marked_counts_as_freed():
    """With its context, or another one would be marked for nothing."""
    host = Host(buffer_tokens=100)
    host.call("a", 300)
    for tokens in (400, 550, 840):
        host.call("b", tokens)
        host.ticks()
    assert host.paused == ["a"]


def test_a_client_that_vanished_holds_nothing_for_ever():
    """By lease, live, held back or waiting; the paper's rule waits for a release."""
    host = Host()
    host.turn("gone", 900)
    host.turn("held", 100)
    host.policy._sessions.pause(host.policy._sessions._named["held"], 0)
    assert not host.call("waits", 500).admitted
    host.ticks(seconds=LEASE)
    host.ticks()
    sessions = host.policy._sessions
    assert (sessions.active, sessions.waiting, host.used) == (0, 0, 0)


def test_the_memory_is_that_of_all_replicas_read_lately():
    """Sessions are not told apart by replica; one that is gone no longer counts."""
    host = Host()
    host.clock.advance(UNHEARD_S + 1)
    host.read(replica="one")
    host.read(replica="two", capacity=500)
    host.turn("a", 1)
    assert gates(host)["thunder_tokens"][1] == 1500.0
    host.clock.advance(UNHEARD_S + 1)
    host.read(replica="two", capacity=500)
    host.turn("a", 1)
    assert gates(host)["thunder_tokens"][1] == 500.0


def test_who_names_no_session_is_not_governed():
    """No later calls, no context kept: it passes, also while others wait."""
    host = Host()
    host.turn("a", 1000)
    assert not host.call("b", 1).admitted
    assert host.call(None, 500).admitted
    assert host.used == 1000


def test_helpers_belong_to_their_root():
    """A family is one session with one context, and is not held back by halves."""
    host = Host()
    host.turn("root", 800)
    host.turn("helper", 400, parent_session="root")
    assert host.used == 1200
    host.ticks()
    assert host.paused == ["root"]
    assert not host.call("helper", 400, parent_session="root").admitted


def test_every_record_has_the_gate_also_when_it_does_not_hold():
    """How near it came to refusing is on the record."""
    host = Host()
    host.turn("a", 250)
    host.turn("a", 300)
    assert gates(host)["thunder_tokens"] == (250.0, 1000.0, False)
    assert gates(host)["session_paused"][2] is False
    host.turn("b", 100)
    assert gates(host)["thunder_tokens"] == (400.0, 1000.0, False)
    assert gates(host)["thunder_waiting"] == (0.0, 0.0, False)


def test_asking_many_times_queues_nobody():
    """A gateway that holds a request asks again and again."""
    host = Host()
    host.turn("a", 900)
    for _ in range(9):
        first = host.policy.ask(host.reading, session="b", input_tokens=500)
    assert host.policy._sessions.waiting == 0
    host.turn("c", 100)
    host.policy.answer(first)
    assert host.policy._sessions.waiting == 1


def test_processes_share_the_memory():
    """Each of two lets in half of the contexts."""
    assert ThunderInspired.divided({}, 2)["watermark"] == 0.5
    host = Host(watermark=0.5)
    host.call("a", 1)
    assert not host.call("b", 500).admitted


def test_what_fits_the_cache_but_not_this_process_s_part_goes_alone():
    """It would wait for half an hour; one such goes on, and is not held back either."""
    host = Host(watermark=0.125)
    host.turn("small", 100)
    large = host.call("large", 200)
    assert large.admitted
    assert not host.call("larger", 300).admitted
    host.ticks()
    assert host.paused == ["small"]
    host.policy.outcome(large.request_id, output_tokens=50)
    host.ticks()
    assert not host.call("larger", 300).admitted
    host.turn("large", 300, session_final=True)
    assert not host.call("small", 100).admitted
    host.ticks()
    host.turn("small", 100, session_final=True)
    host.ticks()
    host.turn("larger", 300)


def test_while_a_call_is_open_nobody_goes_alone():
    """One that runs would share what it was promised."""
    host = Host(watermark=0.125)
    small = host.call("small", 100)
    assert not host.call("large", 200).admitted
    host.ticks()
    assert not host.call("large", 200).admitted
    host.policy.outcome(small.request_id)
    host.ticks()
    assert host.call("large", 200).admitted


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("call"), st.sampled_from("abcdef"), st.integers(0, 700)),
        st.tuples(st.just("last"), st.sampled_from("abcdef"), st.integers(0, 700)),
        st.tuples(st.just("end"), st.integers(0, 30), st.integers(0, 300)),
        st.tuples(st.just("token"), st.integers(0, 30), st.none()),
        st.tuples(st.just("wait"), st.sampled_from([0.5, 5.0, 125.0]), st.none()),
    ),
    max_size=60,
)


class Watched:
    """A host whose every answer is compared with the rule."""

    def __init__(self):
        self.host = Host(force_after_s=1e6)
        self.opened = []

    def expected(self, name, tokens):
        """Whether a call of a session is to be let in now, counted the long way."""
        sessions = self.host.policy._sessions
        session = sessions._named.get(name)
        if session is not None and session.live:
            return session.paused_ns is None
        held = sum(s.tokens for s in sessions.live() if s.busy or s.paused_ns is None)
        ahead = [
            *sessions.queue(),
            *(s for s in sessions.paused.values() if not s.busy),
        ]
        return not ahead and held + tokens <= 1000

    def do(self, what, first, second):
        """One step."""
        host = self.host
        if what in ("call", "last"):
            self.asks(first, second, what == "last")
        elif what == "wait":
            host.ticks(seconds=first)
            self.fits()
        elif self.opened and what == "end":
            ended = self.opened.pop(first % len(self.opened))
            host.policy.outcome(ended, output_tokens=second)
        elif self.opened:
            host.policy.first_token(self.opened[first % len(self.opened)])

    def asks(self, name, tokens, final):
        """A call; a refusal is never a rejection."""
        expected = self.expected(name, tokens)
        d = self.host.call(name, tokens, session_final=final)
        assert d.admitted is expected
        assert str(d.verdict) in ("admit", "defer")
        self.opened += [d.request_id] if d.admitted else []

    def fits(self):
        """After a tick those that are not held back fit."""
        policy = self.host.policy
        if policy._next_s == self.host.clock.monotonic_ns() / 1e9 + TICK:
            assert policy._sessions.tokens(paused=False) <= 1000


@settings(deadline=None, max_examples=100)
@given(steps=STEPS)
def test_no_order_of_events_lets_in_more_than_fits(steps):
    """New ones only when they fit, a tick leaves what fits, and nothing stays."""
    watched = Watched()
    host, policy = watched.host, watched.host.policy
    for step in steps:
        watched.do(*step)
    for request_id in watched.opened:
        policy.outcome(request_id)
    host.ticks(3, seconds=LEASE)
    sessions = policy._sessions
    assert (sessions.active, sessions.waiting, host.used) == (0, 0, 0)
    assert policy.ledger._accounts == {}
