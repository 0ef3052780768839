"""What would miss its deadline anyway."""

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from admitperf import ConfigError
from admitperf.policies.deadline_slack import DeadlineSlack
from admitperf.testing import FakeClock, MemoryLog

RAW = {"running": 1.0}
END = {"deadline_is": "end"}


class Engine:
    """One that serves one request at a time, at a pace that a test may change."""

    def __init__(self, rate=1000.0, token_s=0.02, **given):
        self.clock = FakeClock(start_s=1000.0)
        self.rate = rate
        self.token_s = token_s
        self.policy = DeadlineSlack(clock=self.clock, reports_outcomes=True, **given)

    def call(self, prompt=1000, answer=101, **facts):
        """A request, served to its end when it is admitted; its decision."""
        d = self.policy(RAW, input_tokens=prompt, **facts)
        if d.admitted:
            self.serve(d.request_id, prompt, answer)
        return d

    def serve(self, rid, prompt, answer):
        """A first token and an end, each in its time."""
        first_s = prompt / self.rate
        self.clock.advance(first_s)
        self.policy.first_token(rid)
        answer_s = self.token_s * (answer - 1)
        self.clock.advance(answer_s)
        took = {"ttft_ms": 1000 * first_s, "e2e_ms": 1000 * (first_s + answer_s)}
        self.policy.outcome(rid, output_tokens=answer, **took)

    def measured(self):
        """The engine, once its pace is known."""
        for _ in range(4):
            self.call()
        return self


def said(d):
    """What a decision says, in short."""
    return (str(d.verdict), d.reason, d.status)


LATE = ("reject", "deadline_unmeetable", 503)


def test_a_passed_deadline_is_refused_at_once():
    """Before anything is measured, and with no promise that a retry would help."""
    engine = Engine()
    for left_s in (0.0, -5.0):
        d = engine.policy(RAW, deadline_s=left_s)
        assert said(d) == LATE
        assert d.headers()["x-should-retry"] == "false"
    assert engine.policy(RAW, deadline_s=0.001).admitted


def test_a_request_without_a_deadline_is_never_refused():
    """Nothing would be missed, whatever is ahead of it."""
    engine = Engine().measured()
    for _ in range(5):
        assert engine.policy(RAW, input_tokens=10**6).admitted
    assert engine.policy(RAW).gates == ()


@pytest.mark.parametrize(("given", "needed_s"), [({}, 1.0), (END, 3.02)])
def test_a_request_is_refused_when_what_it_is_due_for_comes_too_late(given, needed_s):
    """1 s for its prompt; to its end 101 tokens more at 0.02 s."""
    engine = Engine(**given).measured()
    in_time = engine.policy.ask(RAW, input_tokens=1000, deadline_s=needed_s + 0.1)
    assert in_time.admitted
    engine = Engine(probe_s=3600.0, **given).measured()
    engine.call(deadline_s=0.1)
    d = engine.call(deadline_s=needed_s - 0.1)
    assert said(d) == LATE
    assert d.gates[1].name == "deadline_slack_s"
    assert d.gates[1].bound == pytest.approx(needed_s)


@pytest.mark.parametrize(("given", "needed_s"), [({}, 3.0), (END, 5.02)])
def test_the_prompts_ahead_take_their_time_first(given, needed_s):
    """2000 tokens ahead are 2 s, for the first token as for the end."""
    engine = Engine(**given).measured()
    engine.policy(RAW, input_tokens=2000)
    d = engine.policy(RAW, input_tokens=1000, deadline_s=needed_s - 0.1)
    assert said(d) == LATE
    in_time = {"input_tokens": 1000, "deadline_s": needed_s + 0.1}
    assert engine.policy(RAW, **in_time).admitted


@pytest.mark.parametrize(("given", "left_s"), [({}, 1.98), (END, 4.0)])
def test_the_estimate_is_when_a_fresh_deadline_would_be_met(given, left_s):
    """It needs 3 s or 5.02 s: once 1.02 s of what is ahead is worked off."""
    engine = Engine(**given).measured()
    engine.policy(RAW, input_tokens=2000)
    d = engine.policy(RAW, input_tokens=1000, deadline_s=left_s)
    assert said(d) == LATE
    assert d.wait == "policy"
    assert d.estimate_ms == pytest.approx(1020, abs=2)
    assert d.body()["error"]["estimate_ms"] == d.estimate_ms


def test_a_deadline_is_for_the_first_token_unless_told_otherwise():
    """The length of the answer does not matter, however long it may get."""
    engine = Engine()
    for _ in range(4):
        engine.call(answer=5001)
    engine.policy(RAW, input_tokens=2000)
    asks = {"input_tokens": 500, "max_output_tokens": 10**6}
    assert engine.policy.ask(RAW, **asks, deadline_s=2.4).reason
    assert engine.policy.ask(RAW, **asks, deadline_s=2.6).admitted


@pytest.mark.parametrize(("quantile", "admitted"), [(0.5, True), (0.9, False)])
def test_the_asked_quantile_of_lengths_is_foretold(quantile, admitted):
    """One in five answers is long: the middle one says yes, the upper ones no."""
    engine = Engine(quantile=quantile, **END)
    for turn in range(20):
        engine.call(answer=1001 if turn % 5 == 0 else 101)
    assert engine.policy(RAW, input_tokens=10, deadline_s=0.1).admitted
    assert engine.policy(RAW, input_tokens=10, deadline_s=3.0).admitted is admitted


def test_a_prompt_of_unknown_length_is_not_foretold():
    """A fact that is missing refuses nobody."""
    engine = Engine().measured()
    assert engine.policy(RAW, deadline_s=0.5).admitted


def test_without_a_pace_of_answers_the_first_token_alone_is_foretold():
    """An answer takes some time at least: a first token too late is too late."""
    engine = Engine(probe_s=3600.0, **END)
    for _ in range(4):
        engine.call(answer=1)
    engine.policy(RAW, input_tokens=5000)
    assert said(engine.policy(RAW, input_tokens=10, deadline_s=4.0)) == LATE
    assert engine.policy(RAW, input_tokens=10, deadline_s=5.5).admitted


def test_one_that_would_be_late_by_itself_is_let_in_now_and_then():
    """Once each `probe_s`, and not while the last one is still open."""
    engine = Engine().measured()
    probe = engine.policy(RAW, input_tokens=9000, deadline_s=1.0)
    assert probe.admitted
    for _ in range(40):
        assert said(engine.policy(RAW, input_tokens=9000, deadline_s=1.0)) == LATE
        engine.clock.advance(1.0)
    engine.policy.outcome(probe.request_id, ok=False)
    again = engine.policy(RAW, input_tokens=9000, deadline_s=1.0)
    assert again.admitted
    engine.policy.outcome(again.request_id, ok=False)
    engine.clock.advance(9.9)
    assert said(engine.policy(RAW, input_tokens=9000, deadline_s=1.0)) == LATE
    engine.clock.advance(0.1)
    assert engine.policy(RAW, input_tokens=9000, deadline_s=1.0).admitted


@pytest.mark.parametrize(
    ("given", "told", "again"),
    [
        ({}, {"ttft_ms": 900.0, "e2e_ms": 1e6}, True),
        ({}, {"ttft_ms": 1100.0, "e2e_ms": 1e6}, False),
        ({}, {"ttft_ms": 900.0, "ok": False}, False),
        ({}, {"e2e_ms": 900.0}, False),
        ({}, {}, False),
        (END, {"ttft_ms": 100.0, "e2e_ms": 900.0}, True),
        (END, {"ttft_ms": 100.0, "e2e_ms": 1100.0}, False),
        (END, {"e2e_ms": 900.0, "ok": False}, False),
        (END, {"ttft_ms": 900.0}, False),
    ],
)
def test_a_probe_that_was_in_time_lets_the_next_one_in_at_once(given, told, again):
    """The forecast was wrong; one that was late, failed or told nothing was not."""
    engine = Engine(**given).measured()
    probe = engine.policy(RAW, input_tokens=9000, deadline_s=1.0)
    engine.policy.outcome(probe.request_id, **told)
    assert engine.policy(RAW, input_tokens=9000, deadline_s=1.0).admitted is again


def test_others_that_are_in_time_say_nothing_about_a_probe():
    """Small requests are in time on a slow engine too."""
    engine = Engine().measured()
    probe = engine.policy(RAW, input_tokens=9000, deadline_s=1.0)
    engine.policy.outcome(probe.request_id, ok=False)
    assert engine.call(prompt=10, answer=2, deadline_s=10.0).admitted
    assert said(engine.policy(RAW, input_tokens=9000, deadline_s=1.0)) == LATE


def test_an_answer_that_is_late_by_itself_is_a_probe_too():
    """With its whole prompt cached it is the pace of answers that is in doubt."""
    engine = Engine(**END).measured()
    facts = {"input_tokens": 1000, "cached_tokens": 1000, "deadline_s": 1.0}
    assert engine.policy(RAW, **facts).admitted
    assert said(engine.policy(RAW, **facts)) == LATE
    assert engine.policy.ledger.charges(("deadline_slack", "probe")) == 1


def test_what_only_the_prompts_ahead_make_late_is_let_in_each_four_seconds():
    """They are worked off, and then it fits: only a stuck one is to be found out."""
    engine = Engine().measured()
    engine.policy(RAW, input_tokens=60_000)
    late = []
    for _ in range(30):
        engine.clock.advance(1.0)
        d = engine.policy(RAW, input_tokens=1000, deadline_s=20.0)
        late.append(said(d) == LATE)
    assert late == ([True] * 3 + [False]) * 7 + [True] * 2


@pytest.mark.parametrize("deadline_is", ["first_token", "end"])
def test_an_engine_that_was_slow_and_recovers_is_used_again(deadline_is):
    """A hundred times too slow a forecast heals by probes alone, within a minute."""
    engine = Engine(rate=10.0, token_s=2.0, deadline_is=deadline_is).measured()
    probe = engine.policy(RAW, input_tokens=1000, deadline_s=8.0)
    assert said(engine.call(deadline_s=8.0)) == LATE
    engine.serve(probe.request_id, 1000, 101)
    engine.rate, engine.token_s = 1000.0, 0.02
    began_ns = engine.clock.monotonic_ns()
    late = sum(not engine.call(deadline_s=8.0).admitted for _ in range(20))
    assert late <= 1
    assert engine.clock.monotonic_ns() - began_ns < 70e9


def test_small_requests_that_pass_do_not_hide_that_large_ones_would():
    """Overheads make small prompts look slow; a large one is let in and tells."""
    engine = Engine(rate=200.0).measured()
    for _ in range(20):
        engine.call(prompt=10, answer=5)
    engine.rate = 5000.0
    first = engine.call(prompt=20_000, answer=5, deadline_s=20.0)
    assert first.gates[1].bound > 100
    late = 0
    for _ in range(50):
        engine.clock.advance(1.0)
        engine.call(prompt=10, answer=5, deadline_s=20.0)
        late += not engine.call(prompt=20_000, answer=5, deadline_s=20.0).admitted
    assert late < 10


def test_asking_again_and_again_charges_nothing():
    """A probe is one when it is let in; held requests are not."""
    engine = Engine().measured()
    policy = engine.policy
    policy(RAW, input_tokens=9000, deadline_s=1.0)
    asked = policy.ask(RAW, input_tokens=9000, deadline_s=1.0)
    for _ in range(20):
        asked = policy.ask(
            RAW, request_id=asked.request_id, input_tokens=9000, deadline_s=1.0
        )
    assert policy.ledger.charges(("deadline_slack", "probe")) == 1
    policy.answer(asked)
    assert policy.ledger.charges(("deadline_slack", "probe")) == 1


def test_the_gates_are_there_when_they_do_not_hold_too():
    """The log tells what was left and what was needed."""
    log = MemoryLog()
    engine = Engine(log=log).measured()
    engine.policy(RAW, input_tokens=1000, deadline_s=60.0)
    engine.policy(RAW, input_tokens=1000, deadline_s=0.5)
    first, second = (line["gates"] for line in log.decisions[-2:])
    assert first == [
        ["deadline_slack_s", 60.0, "<=", 0.0, False],
        ["deadline_slack_s", 60.0, "<", pytest.approx(1.0), False],
    ]
    assert [(gate[0], gate[4]) for gate in second] == [
        ("deadline_slack_s", False),
        ("deadline_slack_s", True),
        ("since_probe_s", False),
    ]


def test_without_outcomes_it_is_blind():
    """A host that never says how requests end has nothing measured."""
    policy = DeadlineSlack(clock=FakeClock(), on_blind="admit")
    d = policy(RAW, deadline_s=-1.0)
    assert (d.admitted, d.reason) == (True, "signal_absent")


def test_a_step_of_the_wall_clock_changes_nothing():
    """A deadline is seconds from now, on the monotonic clock."""
    engine = Engine().measured()
    engine.clock.set_wall(4e9)
    engine.policy(RAW, input_tokens=2000)
    assert said(engine.policy(RAW, input_tokens=1000, deadline_s=2.9)) == LATE
    assert engine.policy(RAW, input_tokens=1000, deadline_s=3.1).admitted


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_measures_anew():
    """It has none of its parent's requests, so that nothing is ahead of its own."""
    engine = Engine().measured()
    engine.policy(RAW, input_tokens=2000)
    child = os.fork()
    if child == 0:
        os._exit(
            engine.policy(RAW, input_tokens=1000, deadline_s=2.9).reason is not None
        )
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert said(engine.policy(RAW, input_tokens=1000, deadline_s=2.9)) == LATE


@pytest.mark.parametrize(
    "wrong",
    [{"deadline_is": "start"}, {"quantile": 0.0}, {"probe_s": 0.0}, {"slack": 1.0}],
)
def test_a_wrong_parameter_stops_at_construction(wrong):
    """No policy starts with a number that was not meant."""
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        DeadlineSlack(**wrong)


STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.sampled_from(["open", "ask"]),
            st.integers(0, 5000),
            st.none() | st.floats(-1, 60),
        ),
        st.tuples(st.just("token"), st.integers(0, 5), st.none()),
        st.tuples(st.just("end"), st.integers(0, 5), st.integers(0, 400)),
        st.tuples(st.just("wait"), st.sampled_from([0.1, 1.0, 5.0, 30.0]), st.none()),
    ),
    max_size=60,
)


class Host:
    """A host that keeps its own books."""

    def __init__(self, deadline_is):
        self.clock = FakeClock()
        self.policy = DeadlineSlack(
            clock=self.clock, reports_outcomes=True, deadline_is=deadline_is
        )
        self.judged = "e2e_ms" if deadline_is == "end" else "ttft_ms"
        self.opened = {}
        self.probes = []
        self.proved = True

    def request(self, call, prompt, left_s):
        """One request: a passed deadline never starts, none is never refused."""
        facts = {} if left_s is None else {"deadline_s": left_s}
        d = call(RAW, input_tokens=prompt, **facts)
        now_ns = self.clock.monotonic_ns()
        if left_s is None or left_s <= 0:
            assert d.admitted is (left_s is None)
        elif not d.admitted:
            assert d.gates[1].bound > left_s
        elif len(d.gates) > 1 and d.gates[1].held:
            assert self.proved or now_ns - self.probes[-1][1] >= 10e9
            assert all(rid not in self.opened for rid, *_ in self.probes)
            self.probes.append((d.request_id, now_ns, left_s))
            self.proved = False
        if d.admitted:
            self.opened[d.request_id] = now_ns

    def do(self, what, first, second):
        """One step."""
        some = list(self.opened)
        if what in ("open", "ask"):
            self.request(
                self.policy if what == "open" else self.policy.ask, first, second
            )
        elif what == "wait":
            self.clock.advance(first)
        elif some:
            rid = some[first % len(some)]
            if what == "token":
                self.policy.first_token(rid)
            else:
                e2e_ms = (self.clock.monotonic_ns() - self.opened.pop(rid)) / 1e6
                told = {"ttft_ms": e2e_ms / 2, "e2e_ms": e2e_ms}
                took_ms = told[self.judged]
                for probe, _, left_s in self.probes[-1:]:
                    self.proved |= probe == rid and took_ms <= 1000 * left_s
                self.policy.outcome(rid, output_tokens=second, **told)


@settings(deadline=None, max_examples=100)
@given(steps=STEPS, deadline_is=st.sampled_from(["first_token", "end"]))
def test_in_no_order_of_events_starts_more_than_a_probe_that_would_be_late(
    steps, deadline_is
):
    """Refused when and only when it would be late, but for one probe at a time."""
    host = Host(deadline_is)
    for step in steps:
        host.do(*step)
    for rid in host.opened:
        host.policy.outcome(rid)
    assert host.policy.ledger.charges(("deadline_slack", "probe")) == 0


def test_a_prompt_that_is_stuck_lets_a_probe_by():
    """Where nobody was let in for four seconds one is, however late it is foretold."""
    clock = FakeClock()
    policy = DeadlineSlack(clock=clock, reports_outcomes=True)
    for _ in range(3):
        d = policy({}, input_tokens=100)
        clock.advance(0.1)
        policy.first_token(d.request_id)
        policy.outcome(d.request_id)
    policy({}, input_tokens=50_000)
    clock.advance(3.9)
    caller = {"input_tokens": 100, "deadline_s": 5.0}
    assert policy({}, **caller).reason == "deadline_unmeetable"
    clock.advance(0.2)
    assert policy({}, **caller).admitted
    assert policy({}, **caller).reason == "deadline_unmeetable"
