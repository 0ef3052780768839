"""The fluid equations, and what measures their constants."""

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from admitperf.core.ledger import LEASE_S
from admitperf.policies.parts.fluid_wait.line import theil_sen
from admitperf.policies.parts.fluid_wait.mix import MEASURED_AFTER, Mix
from admitperf.policies.parts.fluid_wait.model import (
    balanced_step_s,
    class_tokens,
    demand,
    in_flight,
    step_s,
)
from admitperf.policies.parts.fluid_wait.pace import KEPT_S, Pace
from admitperf.policies.parts.fluid_wait.stages import STEP_S, Stages

CLASSES = st.lists(
    st.tuples(st.floats(0.01, 50.0), st.integers(1, 30_000), st.integers(1, 4_000)),
    min_size=1,
    max_size=6,
)
STEPS = st.tuples(st.floats(1e-3, 0.2), st.floats(0.0, 1e-5))


def load_of(classes):
    """Tokens per second of a step, of all classes."""
    return sum(class_tokens(rate, length, out) for rate, length, out in classes)


# The equations.


def test_two_classes_by_hand():
    """2/s of 100 + 9 tokens, 1/s of 1000 + 99; a step of 10 ms + 1 us a token."""
    short, long = class_tokens(2.0, 100, 9), class_tokens(1.0, 1000, 99)
    assert (short, long) == (2 * 10 * 104.5, 100 * 1049.5)
    load = short + long
    assert load == 107_040.0
    tau_s = balanced_step_s(load, 0.01, 1e-6)
    assert tau_s == pytest.approx(0.01 / (1 - 0.10704))
    assert load * tau_s == pytest.approx(1198.709, abs=0.001)
    assert in_flight(2.0, 9, tau_s) == pytest.approx(0.223974, abs=1e-6)
    assert in_flight(1.0, 99, tau_s) == pytest.approx(1.119871, abs=1e-6)


@settings(max_examples=100, deadline=None)
@given(classes=CLASSES, steps=STEPS)
def test_in_balance_as_many_end_as_come_and_the_step_is_its_own_cause(classes, steps):
    """With n_j = rate_j tau, d0 + d1 M(n) is tau again: the paper's fixed point."""
    load = load_of(classes)
    tau_s = balanced_step_s(load, *steps)
    if tau_s is None:
        assert steps[1] * load >= 1.0
        return
    counts = [rate * tau_s for rate, _, _ in classes]
    resident = sum(
        class_tokens(n, length, out)
        for n, (_, length, out) in zip(counts, classes, strict=True)
    )
    assert math.isclose(resident, load * tau_s, rel_tol=1e-9)
    assert math.isclose(step_s(resident, *steps), tau_s, rel_tol=1e-6)


def test_the_boundary_of_what_the_engine_can_compute():
    """At d1 x load = 1 the step has no end; just below it has one."""
    assert balanced_step_s(1e6, 0.01, 1e-6) is None
    assert balanced_step_s(2e6, 0.01, 1e-6) is None
    assert balanced_step_s(0.999e6, 0.01, 1e-6) == pytest.approx(10.0)
    assert balanced_step_s(1e9, 0.01, 0.0) == 0.01


@settings(max_examples=100, deadline=None)
@given(classes=CLASSES, steps=STEPS, room=st.floats(1e3, 1e7))
def test_the_boundary_of_memory_is_a_demand_of_one(classes, steps, room):
    """At most 1 if and only if it balances within the room; scaled to 1 it fills it."""
    load = load_of(classes)
    offered = demand(load, room, *steps)
    tau_s = balanced_step_s(load, *steps)
    fits = tau_s is not None and load * tau_s <= room
    if not math.isclose(offered, 1.0, rel_tol=1e-6):
        assert (offered <= 1.0) is fits
    scaled = load / offered
    filled = scaled * balanced_step_s(scaled, *steps)
    assert math.isclose(filled, room, rel_tol=1e-5)


@settings(max_examples=100, deadline=None)
@given(classes=CLASSES, steps=STEPS, room=st.floats(1e3, 1e7))
def test_the_largest_thresholds_keep_both_conditions_of_the_paper(classes, steps, room):
    """M(n) <= C and tau(n) <= n_j / rate_j, for the rates that are let in."""
    load = load_of(classes)
    let_in = min(1.0, 1.0 / demand(load, room, *steps))
    tau_s = balanced_step_s(let_in * load, *steps)
    stretch = room / (let_in * load * tau_s)
    assert stretch >= 1.0 - 1e-5
    counts = [stretch * let_in * rate * tau_s for rate, _, _ in classes]
    resident = sum(
        class_tokens(n, length, out)
        for n, (_, length, out) in zip(counts, classes, strict=True)
    )
    assert math.isclose(resident, room, rel_tol=1e-5)
    for n, (rate, _, _) in zip(counts, classes, strict=True):
        assert step_s(resident, *steps) <= n / (let_in * rate) * (1 + 1e-5)


# The line.


def test_a_line_through_points_of_which_a_quarter_are_wrong():
    """Wild points move neither slope nor intercept."""
    points = [(float(x), 3.0 + 0.5 * x) for x in range(20)]
    for n in (2, 7, 11, 13, 17):
        points[n] = (float(n), 1e6)
    intercept, slope = theil_sen(points)
    assert (intercept, slope) == (3.0, 0.5)


def test_points_above_one_another_are_no_line():
    """Without two values of x there is no slope."""
    assert theil_sen([]) is None
    assert theil_sen([(1.0, 2.0)]) is None
    assert theil_sen([(1.0, 2.0), (1.0, 3.0)]) is None


# The step's time.


def run(pace, now_s, resident, step, tokens=50):
    """One answer at a residency, with a reading each second; returns the next one's."""
    took_s = step * (tokens - 1)
    seconds = math.ceil(took_s)
    for second in range(seconds):
        pace.read(now_s + second, resident)
    pace.ended(now_s + took_s, tokens, took_s)
    return now_s + seconds


def test_the_step_is_found_from_answers_and_readings():
    """A step of 20 ms + 0.1 us a token is recovered, one answer in ten being absurd."""
    pace, rng, now_s = Pace(), random.Random(7), 0.0
    for n in range(120):
        resident = rng.uniform(5_000, 400_000)
        step = 1.0 if n % 10 == 9 else 0.020 + 1e-7 * resident
        now_s = run(pace, now_s, resident, step)
    pace.read(now_s + 10.0, 0.0)
    d0, d1 = pace.line
    assert d0 == pytest.approx(0.020, rel=0.02)
    assert d1 == pytest.approx(1e-7, rel=0.05)


def test_an_answer_is_paired_with_what_was_resident_while_it_was_written():
    """The mean of the readings since its first token, and of no other."""
    pace = Pace()
    for second, resident in enumerate([900.0] * 5 + [0.0] * 10 + [1000.0] * 10):
        pace.read(float(second), resident)
    pace.ended(25.0, 100, 20.0)
    (kept,) = pace._levels.values()
    assert kept[0] == (25.0, 500.0, pytest.approx(20.0 / 99))


def test_before_eight_answers_there_is_no_step():
    """Small samples say nothing."""
    pace, now_s = Pace(), 0.0
    for _ in range(7):
        now_s = run(pace, now_s, 1000.0, 0.02)
    pace.read(now_s + 5.0, 1000.0)
    assert pace.line is None
    now_s = run(pace, now_s + 5.0, 1000.0, 0.02)
    pace.read(now_s + 5.0, 1000.0)
    assert pace.line == (pytest.approx(0.02), 0.0)


def test_a_residency_that_never_moved_says_nothing_about_a_slope():
    """Then the step is the same whatever is resident."""
    pace, rng, now_s = Pace(), random.Random(3), 0.0
    for _ in range(40):
        now_s = run(pace, now_s, 1000.0, rng.uniform(0.019, 0.021))
    pace.read(now_s + 10.0, 1000.0)
    assert pace.line[1] == 0.0
    assert pace.line[0] == pytest.approx(0.020, rel=0.05)


def test_a_line_no_engine_can_have_is_taken_for_none():
    """More tokens do not make a step shorter, and no step starts below zero."""
    for step in (lambda x: 0.05 - 1e-7 * x, lambda x: 1e-6 * x - 0.002):
        pace, now_s = Pace(), 0.0
        for n in range(40):
            resident = 5_000.0 * 2 ** (n % 5)
            now_s = run(pace, now_s, resident, step(resident))
        pace.read(now_s + 10.0, 0.0)
        d0, d1 = pace.line
        assert d0 > 0.0
        assert d1 == 0.0


def test_what_is_long_past_is_forgotten():
    """Ten minutes without an answer leave no step."""
    pace, now_s = Pace(), 0.0
    for _ in range(20):
        now_s = run(pace, now_s, 1000.0, 0.02)
    pace.read(now_s + KEPT_S - 15.0, 0.0)
    assert pace.line is not None
    pace.read(now_s + KEPT_S + 30.0, 0.0)
    assert pace.line is None


def test_short_answers_and_impossible_times_are_passed_over():
    """Nobody divides by nothing."""
    pace = Pace()
    pace.ended(1.0, 100, 1.0)
    pace.read(2.0, 1000.0)
    for tokens, took_s in ((1, 1.0), (7, 1.0), (100, 0.0), (100, -5.0)):
        pace.ended(3.0, tokens, took_s)
    assert pace._levels == {}


def test_what_a_pace_keeps_is_bounded():
    """A week of readings and answers of any size."""
    pace, rng = Pace(), random.Random(1)
    for n in range(5_000):
        pace.read(n * 100.0, rng.uniform(0.0, 1e9))
        pace.ended(n * 100.0 + 1.0, 100, rng.uniform(0.1, 9.0))
    assert len(pace._times) <= 512
    assert len(pace._sums) == len(pace._times) + 1
    assert len(pace._levels) <= 48
    assert max(len(kept) for kept in pace._levels.values()) <= 9


# The mix.


def test_the_rate_of_a_steady_stream_is_its_rate_from_early_on():
    """Two a second are two after five seconds and after five minutes."""
    mix = Mix(30.0)
    for n in range(600):
        mix.offered(n / 2, "a")
        if n in (10, 599):
            assert mix.rate(n / 2, "a") == pytest.approx(2.0, rel=0.15)
    assert mix.rate(600.0, "a") < 0.001
    assert mix.rate(300.0, "b") == 0.0


EVENTS = st.lists(
    st.tuples(
        st.sampled_from([0.0, 0.01, 1.0, 40.0]),
        st.sampled_from("ab"),
        st.booleans(),
        st.integers(1, 5_000),
    ),
    max_size=60,
)


@settings(max_examples=100, deadline=None)
@given(events=EVENTS)
def test_the_load_is_the_sum_over_the_measured_classes(events):
    """A running sum, whatever came and finished in between."""
    mix, now_s, finished = Mix(30.0), 0.0, {"a": [], "b": []}
    for pause_s, cls, offered, tokens in events:
        now_s += pause_s
        if offered:
            mix.offered(now_s, cls)
        else:
            mix.ended(now_s, cls, tokens, tokens / 2)
            finished[cls].append(tokens)
    expected = 0.0
    for cls, seen in finished.items():
        measured = len(seen) >= MEASURED_AFTER
        assert (mix.output(cls) is not None) is measured
        if measured:
            length = mix._classes[cls].length
            expected += class_tokens(mix.rate(now_s, cls), length, mix.output(cls))
    assert mix.load(now_s) == pytest.approx(expected, rel=1e-6, abs=1e-9)


def test_the_size_of_a_class_is_the_mean_of_its_first_and_then_follows():
    """Five answers are a mean; a lasting change is followed."""
    mix = Mix(30.0)
    for tokens in (10, 20, 30, 40, 50):
        mix.ended(0.0, "a", 100, tokens)
    assert mix.output("a") == pytest.approx(30.0)
    for _ in range(60):
        mix.ended(1.0, "a", 100, 300)
    assert mix.output("a") == pytest.approx(300.0, rel=0.01)


# The stages.


class Books:
    """Accounts and a time, as a snapshot has them."""

    def __init__(self):
        self.now_s = 0.0
        self.open = []

    def charged(self, account):
        """What the open charges on an account come to."""
        return sum(one.amount for one in self.open if one.account == account)


def test_a_reservation_is_raised_when_its_time_has_come():
    """And given back whole when the request ends, whenever that is."""
    stages, books = Stages("p", None), Books()
    taken = stages.charge(0.0, 100.0, [(12.0, 50.0), (100.0, 200.0)])
    books.open += taken
    seen = []
    for now_s in (0.0, 9.9, 10.0, 99.0, 100.0, 5000.0):
        books.now_s = now_s
        stages.look(books)
        seen.append(stages.held(books))
    assert seen == [100.0, 100.0, 150.0, 150.0, 350.0, 350.0]
    books.open.clear()
    stages.look(books)
    assert stages.held(books) == 0.0
    assert stages._numbers == {}


def test_raises_past_the_lease_and_of_nothing_are_left_out():
    """No fact about a request makes the book of raises long."""
    stages, books = Stages("p", None), Books()
    taken = stages.charge(0.0, 1.0, [(LEASE_S, 5.0), (1e300, 5.0), (1.0, 0.0)])
    assert len(taken) == 1
    for second in range(20_000):
        books.now_s = float(second)
        stages.charge(books.now_s, 1.0, [(second % 899.0, 1.0)])
        if not second % 100:
            stages.look(books)
    assert len(stages._numbers) <= LEASE_S / STEP_S + 21


def erlang_loss(servers):
    """What chance refuses of a load that just keeps so many servers busy."""
    lost = 1.0
    for n in range(1, servers + 1):
        lost = servers * lost / (n + servers * lost)
    return lost


def test_at_the_least_chance_refuses_what_the_parameter_says():
    """Erlang's loss formula at a load of as many as there may be."""
    assert erlang_loss(1) == 0.5
    assert round(100 * erlang_loss(100)) == 8
