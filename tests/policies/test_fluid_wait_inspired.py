"""The number of each class in balance, and the room that is promised."""

import logging
import os
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from admitperf import ConfigError, MissingSignal, Reading
from admitperf.core.request import Request
from admitperf.policies.fluid_wait_inspired import SEGMENTS, FluidWaitInspired
from admitperf.policies.parts.fluid_wait.stages import STEP_S
from admitperf.policies.parts.replicas import REPLICAS_MOST
from admitperf.testing import FakeClock, MemoryLog

CAPACITY = 10_000.0
SMALL = {"input_tokens": 100, "max_output_tokens": 100}
LARGE = {"input_tokens": 1000, "max_output_tokens": 100}


class House:
    """A policy, its clock, and readings of an engine."""

    def __init__(self, **parameters):
        self.clock = FakeClock(start_s=1000.0)
        told = {"clock": self.clock, "reports_outcomes": True, "max_age_s": 1e6}
        self.policy = FluidWaitInspired(**{**told, **parameters})
        self.look()

    def look(self, pressure=0.0, replica=None):
        """A new reading, handed over as a scraper does."""
        raw = {"kv_pressure": pressure, "kv_capacity_tokens": CAPACITY}
        now_ns = self.clock.monotonic_ns()
        self.reading = Reading(raw, taken_ns=now_ns, replica=replica)
        self.policy.look(self.reading)

    def call(self, **facts):
        """One request on the last reading."""
        return self.policy(self.reading, **facts)

    def serve(self, step_s=0.1, tokens=100, **facts):
        """One request from its arrival to its end."""
        d = self.call(**facts)
        assert d.admitted
        self.clock.advance(1.0)
        self.policy.first_token(d.request_id)
        self.clock.advance(step_s * (tokens - 1))
        self.look(0.01)
        self.end(d, step_s, tokens)

    def end(self, d, step_s=0.1, tokens=100):
        """An answer of so many tokens, the first of which took a second."""
        whole_ms = 1000 + 1000 * step_s * (tokens - 1)
        self.policy.outcome(
            d.request_id, ttft_ms=1000.0, e2e_ms=whole_ms, output_tokens=tokens
        )

    def learn(self, *sizes, times=9, **how):
        """Serves requests of these sizes, one after another, then reads the engine."""
        for _ in range(times):
            for facts in sizes:
                self.serve(**how, **facts)
        self.clock.advance(6.0)
        self.look()


def gates(d):
    """(value, bound, held) of a decision's gates, by name."""
    return {gate.name: (gate.value, gate.bound, gate.held) for gate in d.gates}


def again(facts):
    """The same request as a retry: no new demand, so rates stay as they are."""
    return {**facts, "attempt": 1}


# Before anything is measured.


def test_until_it_has_measured_only_prompts_are_held_against_memory():
    """A caller's limit is no length, and no class has a number yet."""
    house = House()
    facts = {"input_tokens": 3000, "max_output_tokens": 1_000_000}
    ds = [house.call(**facts) for _ in range(4)]
    assert [d.admitted for d in ds] == [True, True, True, False]
    assert ds[3].reason == "kv_headroom"
    assert gates(ds[3]) == {
        "input_tokens": (3000.0, CAPACITY, False),
        "projected_kv": (12_000.0, 9000.0, True),
    }


def test_five_answers_are_no_step_and_eight_are():
    """A small sample binds nobody."""
    house = House()
    house.learn(SMALL, times=7)
    assert "class_in_flight" not in gates(house.call(**SMALL))
    house.learn(SMALL, times=1)
    assert "class_in_flight" in gates(house.call(**SMALL))


# The class's number.


def test_a_class_gets_its_part_of_the_memory_by_what_is_offered():
    """The largest number is room x rate (o + 1) / load: 9000 / 150 of one class."""
    house = House()
    house.learn(SMALL)
    value, most, held = gates(house.call(**again(SMALL)))["class_in_flight"]
    assert (value, held) == (0.0, False)
    assert most == pytest.approx(9000 / 150, rel=1e-6)


def test_a_class_over_its_number_is_deferred_until_one_of_it_should_end():
    """With equal rates of 150 and 1050 tokens each class has 7.5 at once."""
    house = House()
    house.learn(SMALL, LARGE)
    rates = [house.policy._engine(None).mix.rate(1e3, cls) for cls in ((1, 1), (2, 1))]
    assert all(rates)
    ds = [house.call(**again(SMALL)) for _ in range(12)]
    most = gates(ds[0])["class_in_flight"][1]
    assert 5.0 < most < 10.0
    let_in = [d for d in ds if d.admitted]
    assert len(let_in) - 1 < most <= len(let_in)
    refused = ds[len(let_in)]
    assert (str(refused.verdict), refused.reason) == ("defer", "in_flight_cap")
    assert refused.estimate_ms == pytest.approx(1000 * 0.1 * 101 / most, abs=1.5)
    assert house.call(**again(LARGE)).admitted
    house.end(let_in[0])
    assert house.call(**again(SMALL)).admitted
    assert not house.call(**again(SMALL)).admitted


def test_at_the_least_a_class_has_what_littles_law_says():
    """rate x tau x (o + 1), never below one: a tenth a second for ten is about one."""
    house = House(thresholds="least")
    house.learn(SMALL, times=60)
    engine, now_s = house.policy._engine(None), house.clock.monotonic_ns() / 1e9
    rate = engine.mix.rate(now_s, (1, 1))
    most = gates(house.call(**again(SMALL)))["class_in_flight"][1]
    assert most == pytest.approx(max(1.0, rate * 0.1 * 101))
    assert most < 2.0
    house.clock.advance(300.0)
    house.look()
    assert gates(house.call(**again(SMALL)))["class_in_flight"][1] == 1.0


def test_more_than_fits_is_scaled_down_to_what_fills_the_memory():
    """Past a demand of one, both choices come to the same number."""
    numbers = []
    for thresholds in ("largest", "least"):
        house = House(thresholds=thresholds)
        house.learn(SMALL)
        for _ in range(600):
            house.call(**SMALL)
        told = gates(house.call(**again(SMALL)))
        assert told["fluid_demand"][0] > 1.0
        assert told["fluid_demand"][2] is True
        numbers.append(told["class_in_flight"][1])
    assert numbers == [pytest.approx(60.0), pytest.approx(60.0)]


def test_a_demand_below_one_is_recorded_and_binds_nobody():
    """The log tells how far the model was from its limit."""
    log = MemoryLog()
    house = House(log=log)
    house.learn(SMALL)
    house.call(**SMALL)
    told = {gate[0]: gate for gate in log.decisions[-1]["gates"]}
    assert list(told) == [
        "input_tokens",
        "fluid_demand",
        "class_in_flight",
        "projected_kv",
    ]
    _, value, op, bound, held = told["fluid_demand"]
    assert (op, bound, held) == (">", 1.0, False)
    assert 0.0 < value < 1.0
    house.look(1.0)
    refused = house.call(**SMALL)
    assert refused.reason == "kv_headroom"
    assert gates(refused)["class_in_flight"][2] is False


def test_a_request_of_unknown_size_has_a_class_of_its_own():
    """It is held by that class and by memory as it is, and refused by neither alone."""
    house = House()
    house.learn(SMALL)
    d = house.call()
    assert d.admitted
    assert list(gates(d)) == ["projected_kv"]


# What is reserved.


def test_an_answer_holds_its_first_segment_and_later_the_next():
    """Half of the answers end at 100 tokens, eight in ten at 400."""
    house = House()
    for tokens in (100, 100, 100, 100, 100, 100, 400, 400, 400, 800):
        house.serve(tokens=tokens, input_tokens=100)
    house.clock.advance(6.0)
    house.look()
    lengths = house.policy.ledger.lengths
    ends = [lengths.quantile(Request({"input_tokens": 100}), q) for q in SEGMENTS]
    assert ends == [100, 400, 800]
    began_s = house.clock.monotonic_ns() / 1e9
    assert house.call(input_tokens=100).admitted
    held = []
    for after_s in (0.0, 20.0, 60.0):
        house.clock.advance(began_s + after_s - house.clock.monotonic_ns() / 1e9)
        house.look(0.01)
        d = house.policy.ask(house.reading, input_tokens=9_000)
        house.policy.outcome(d.request_id)
        held.append(gates(d)["projected_kv"][0] - 9_100)
    assert held == [200.0, 500.0, 900.0]


def test_several_answers_at_once_are_written_side_by_side():
    """Four of 100 tokens hold 400, take the time of 100, and are a class of 100."""
    house = House()
    house.learn(SMALL)
    assert house.policy._engine(None).pace.line == (pytest.approx(0.1), 0.0)
    for _ in range(9):
        d = house.call(n=4, **SMALL)
        house.clock.advance(1.0)
        house.look()
        house.end(d, step_s=0.5, tokens=400)
    house.clock.advance(6.0)
    house.look()
    engine = house.policy._engine(None)
    assert engine.pace.line == (pytest.approx(0.1), 0.0)
    assert engine.mix.output((1, 2)) == pytest.approx(100.0)
    house.look(0.95)
    d = house.policy.ask(house.reading, n=4, **SMALL)
    assert gates(d)["projected_kv"][0] == 10_000.0
    assert d.estimate_ms == 10_000


def test_the_raises_of_several_answers_come_at_the_time_of_one():
    """Two answers of 100 tokens outlive their segment after ten seconds, not twenty."""
    house = House()
    for tokens in (100, 100, 100, 100, 100, 100, 400, 400, 400, 800):
        house.serve(tokens=tokens, input_tokens=100)
    house.clock.advance(6.0)
    house.look()
    house.call(n=2, input_tokens=100)
    began = int(house.clock.monotonic_ns() / 1e9)
    numbers = [
        number * STEP_S - began for number in house.policy._engine(None).stages._numbers
    ]
    assert [n for n in numbers if n > 0] == [
        pytest.approx(10.0, abs=STEP_S),
        pytest.approx(40.0, abs=STEP_S),
    ]


def test_what_failed_teaches_nothing():
    """An answer that broke off says nothing about lengths."""
    house = House()
    for _ in range(9):
        d = house.call(**SMALL)
        house.policy.outcome(d.request_id, ok=False, output_tokens=3)
    assert house.policy._engine(None).mix.finished == 0


def test_what_is_refused_on_paper_only_is_promised_nothing():
    """With nothing enforced the books are those of the verdicts."""
    house = House(enforce=0.0)
    house.call(input_tokens=8_000)
    d = house.call(input_tokens=8_000)
    assert (str(d.verdict), d.admitted) == ("defer", True)
    assert gates(house.call(input_tokens=1))["projected_kv"][0] == 8_001.0
    house.policy.outcome(d.request_id, output_tokens=10)
    assert house.policy._engine(None).mix.finished == 0


def test_memory_in_use_by_others_counts_as_read():
    """The fuller of what is promised and what is resident is what newcomers meet."""
    house = House()
    house.look(0.5)
    assert gates(house.call(input_tokens=10))["projected_kv"][0] == 5_010.0


def test_no_room_is_deferred_for_as_long_as_an_answer_takes():
    """A full cache is let go of once in about the time of an answer."""
    house = House()
    house.learn(SMALL)
    house.look(0.95)
    d = house.call(**SMALL)
    assert (str(d.verdict), d.reason, d.estimate_ms) == (
        "defer",
        "kv_headroom",
        10_000,
    )
    fresh = House()
    fresh.look(0.95)
    d = fresh.call(**SMALL)
    assert (d.reason, d.estimate_ms, d.wait) == ("kv_headroom", 1000, "default")


def test_what_never_fits_is_rejected_and_what_just_fits_is_not_kept_out_for_ever():
    """Over the whole cache: 413. Into the buffer: when the engine is all but empty."""
    house = House()
    d = house.call(input_tokens=10_001)
    assert (str(d.verdict), d.reason, d.status) == ("reject", "too_large", 413)
    first = house.call(input_tokens=9_900)
    assert first.admitted
    assert house.call(input_tokens=1).reason == "kv_headroom"
    house.policy.outcome(first.request_id)
    assert house.call(input_tokens=1).admitted


# Whose books these are.


def test_being_asked_many_times_charges_and_counts_nothing():
    """Only final answers are offers, and only those let in hold anything."""
    house = House()
    house.learn(SMALL)
    for _ in range(45):
        house.call(**again(SMALL))
    now_s = house.clock.monotonic_ns() / 1e9
    mix = house.policy._engine(None).mix
    before = mix.rate(now_s, (1, 1)), dict(house.policy.ledger._accounts)
    d = house.policy.ask(house.reading, **SMALL)
    for _ in range(50):
        d = house.policy.ask(house.reading, request_id=d.request_id, **SMALL)
    assert not d.admitted
    assert (mix.rate(now_s, (1, 1)), dict(house.policy.ledger._accounts)) == before
    house.policy.answer(d)
    assert mix.rate(now_s, (1, 1)) > before[0]
    assert dict(house.policy.ledger._accounts) == before[1]


def test_a_retry_is_no_new_demand():
    """Refusing a class does not make its rate grow."""
    house = House()
    house.learn(SMALL)
    now_s = house.clock.monotonic_ns() / 1e9
    mix = house.policy._engine(None).mix
    rate = mix.rate(now_s, (1, 1))
    for _ in range(100):
        house.call(**again(SMALL))
    assert mix.rate(now_s, (1, 1)) == rate


def test_nothing_stays_charged_when_all_have_ended():
    """Ends, repeated ends, failures and leases that ran out all give back."""
    house = House()
    house.learn(SMALL, LARGE)
    ds = [house.call(**facts) for facts in (SMALL, LARGE) for _ in range(3)]
    for d in ds[:4]:
        house.policy.outcome(d.request_id, ok=d is not ds[0])
        house.policy.outcome(d.request_id)
    house.clock.advance(1000.0)
    house.look()
    house.call(**SMALL, request_id="last")
    house.policy.outcome("last")
    assert house.policy.ledger._accounts == {}
    house.clock.advance(1000.0)
    house.look()
    assert house.policy._engine(None).stages._numbers == {}


def test_each_replica_has_a_model_and_their_number_is_bounded():
    """What one engine holds is nothing that another one has to hold."""
    house = House()
    house.look(replica="a")
    assert house.call(input_tokens=8_000).admitted
    assert not house.call(input_tokens=8_000).admitted
    house.look(replica="b")
    d = house.call(input_tokens=8_000)
    assert d.admitted
    house.look(replica="a")
    house.policy.outcome(d.request_id, output_tokens=10)
    assert house.policy._engine("b").mix.finished == 1
    assert house.policy._engine("a").mix.finished == 0
    for n in range(2 * REPLICAS_MOST):
        house.look(replica=f"r{n}")
        house.call(**SMALL)
    assert len(house.policy._engines) <= REPLICAS_MOST + 1


def test_a_process_of_several_fills_its_part():
    """Two workers before one engine promise half of its memory each."""
    half = FluidWaitInspired.divided({}, 2)
    assert half["kv_share"] == 0.5
    house = House(kv_share=0.5)
    assert house.call(input_tokens=4_000).admitted
    assert not house.call(input_tokens=1_001).admitted
    assert house.call(input_tokens=1_000).admitted


def test_any_size_has_one_of_sixty_four_classes():
    """What callers say does not make the tables long."""
    house = House()
    for n in range(64):
        for m in range(64):
            facts = {"input_tokens": 2**n, "max_output_tokens": 2**m}
            house.call(**{k: v for k, v in facts.items() if v < 2**50})
    assert len(house.policy._engine(None).mix._classes) <= 64


def test_without_outcomes_it_is_blind_and_not_full(caplog):
    """No outcomes means no ledger, never a full one; a start-up check says so first."""
    caplog.set_level(logging.ERROR)
    house = House(reports_outcomes=False)
    with pytest.raises(MissingSignal, match="reports_outcomes=True"):
        house.policy.check(house.reading)
    for _ in range(5):
        d = house.call(input_tokens=9_000)
        assert (d.admitted, d.reason) == (True, "signal_absent")


@pytest.mark.parametrize(
    "wrong",
    [
        {"buffer": 1.0},
        {"buffer": -0.1},
        {"window_s": 0.0},
        {"thresholds": "most"},
        {"kv_share": 0.0},
    ],
)
def test_a_wrong_parameter_stops_at_construction(wrong):
    """No policy starts with a buffer that leaves no room."""
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        FluidWaitInspired(**wrong)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_keeps_what_was_learnt_and_none_of_what_is_open():
    """Its engine is the same one; the parent's requests are the parent's."""
    house = House()
    house.learn(SMALL)
    assert house.call(**again(LARGE)).admitted
    child = os.fork()
    if child == 0:
        house.look()
        told = gates(house.call(**again(SMALL)))
        right = told["class_in_flight"][0] == 0.0 and told["projected_kv"][0] == 200.0
        os._exit(0 if right else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0


class Story:
    """A house whose promises are also kept request by request."""

    def __init__(self):
        self.house = house = House()
        for tokens in (100, 120, 300, 100, 200, 500, 100, 150, 100):
            house.serve(tokens=tokens, **SMALL)
        house.clock.advance(6.0)
        self.open = {}
        self.policy, self.engine = house.policy, house.policy._engine(None)
        self.look(None, 0)

    def held(self):
        """All promises, the raises as of the last reading."""
        return sum(
            first + sum(more for at_s, more in raises if at_s <= self.read_s)
            for _, first, raises in self.open.values()
        )

    def name(self, which):
        """One that is open."""
        names = sorted(self.open)
        return names[which % len(names)] if names else "nobody"

    def look(self, _, __):
        """The engine is read."""
        self.house.look()
        self.read_s = self.house.clock.monotonic_ns() / 1e9
        self.agree()

    def first(self, which, _):
        """A first token comes, or a sign of life."""
        self.policy.first_token(self.name(which))

    def end(self, which, tokens):
        """A request ends; its raises are forgotten with the next reading."""
        name = self.name(which)
        self.open.pop(name, None)
        self.policy.outcome(name, output_tokens=tokens // 10)

    def ask(self, which, tokens):
        """A request comes from a host that may hold it."""
        self.call(which, tokens, self.policy.ask)

    def call(self, _, tokens, call=None):
        """A request comes."""
        facts = {"input_tokens": tokens, "max_output_tokens": 600}
        lengths = self.policy.ledger.lengths
        ends = [lengths.quantile(Request(facts), q) for q in SEGMENTS]
        before = self.engine.stages._raised + self.policy.ledger.charged(
            self.engine.stages._account
        )
        d = (call or self.policy)(self.house.reading, **facts)
        if d.admitted:
            assert before + tokens + ends[0] <= 9000.0 or before <= 1000.0
            self.take(d, tokens, ends)

    def take(self, d, tokens, ends):
        """One was let in: what it holds, and when it will hold more."""
        cls = self.policy.ledger.opened[d.request_id].charge[0].account[3]
        if "class_in_flight" in gates(d):
            open_now, most, held = gates(d)["class_in_flight"]
            assert open_now == sum(one == cls for one, *_ in self.open.values())
            assert not held
            assert open_now < most
        now_s, line = self.house.clock.monotonic_ns() / 1e9, self.engine.pace.line
        raises = [
            ((now_s + end * line[0]) // STEP_S * STEP_S, then - end)
            for end, then in pairwise(ends)
            if line is not None
        ]
        self.open[d.request_id] = cls, tokens + ends[0], raises

    def agree(self):
        """The running sums are those of the requests one by one."""
        stages, ledger = self.engine.stages, self.policy.ledger
        held = ledger.charged(stages._account) + stages._raised
        assert held == pytest.approx(self.held())


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["call", "call", "call", "ask", "first", "end", "look"]),
        st.integers(0, 30),
        st.sampled_from([0.0, 0.5, 5.0, 14.0]),
        st.sampled_from([50, 300, 2000, 20_000]),
    ),
    max_size=60,
)


@settings(max_examples=50, deadline=None)
@given(steps=STEPS)
def test_no_promise_is_made_that_memory_cannot_hold_in_any_interleaving(steps):
    """Calls, asks, first tokens, ends, readings and time in any order.

    The sums are those of the requests one by one, nobody is let in past the room or
    past the class's number, and at the end nothing is held.
    """
    story = Story()
    for what, which, pause_s, tokens in steps:
        story.house.clock.advance(pause_s)
        getattr(story, what)(which, tokens)
    story.look(None, 0)
    for name in list(story.open):
        story.end(0, 0)
        assert name not in story.open
    assert story.policy.ledger._accounts == {}
