"""The lower priorities go first, and come back slowly."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from admitperf import ConfigError
from admitperf.core.reading import Reading
from admitperf.policies.priority_shed import LATELY_S, PriorityShed
from admitperf.testing import FakeClock


class Pool:
    """A policy, and an engine whose queue is what a test says."""

    def __init__(self, traffic=(0, 1, 2), **given):
        self.traffic = traffic
        self.clock = FakeClock(start_s=1000.0)
        self.policy = PriorityShed(clock=self.clock, **given)
        self.reading = None
        self.queue(0)

    def queue(self, depth, seconds=0.0, kv=0.1):
        """So many wait, for so long: a look and requests each quarter of a second."""
        for _ in range(max(1, round(seconds * 4))):
            raw = {"kv_cache_usage_perc": kv, "num_requests_waiting": float(depth)}
            self.reading = Reading(raw, taken_ns=self.clock.monotonic_ns())
            self.policy.look(self.reading)
            for priority in self.traffic:
                self.ask(priority)
            self.clock.advance(0.25)

    def ask(self, priority=None):
        """One request."""
        return self.policy(self.reading, priority=priority)

    @property
    def let_in(self):
        """The priorities, of 0 to 2, that are let in just now."""
        return [p for p in (0, 1, 2) if self.ask(p).admitted]


def test_below_the_bound_everybody_is_let_in():
    """And the gates are on the line all the same."""
    pool = Pool()
    pool.queue(4, seconds=60)
    assert pool.let_in == [0, 1, 2]
    assert [g.name for g in pool.ask().gates] == [
        "kv_pressure",
        "queue_depth",
        "shed_load",
        "priority_level",
    ]


def test_the_cut_off_rises_by_a_level_at_a_time_and_never_over_the_highest():
    """At load 1: first 0 goes, a second later 1, and 2 stays."""
    pool = Pool()
    pool.queue(5)
    assert pool.let_in == [1, 2]
    pool.queue(5, seconds=0.5)
    assert pool.let_in == [1, 2]
    pool.queue(5, seconds=1)
    assert pool.let_in == [2]
    pool.queue(9, seconds=60)
    assert pool.let_in == [2]


def test_at_the_hard_bound_the_highest_is_refused_too():
    """Twice the bound, for as long as it lasts."""
    pool = Pool()
    pool.queue(10)
    assert pool.let_in == []
    pool.queue(9)
    assert 2 in pool.let_in


def test_it_comes_down_a_level_after_a_while_of_calm():
    """Five seconds under 0.7 of the bound for each level."""
    pool = Pool()
    pool.queue(5, seconds=3)
    pool.queue(3, seconds=5)
    assert pool.let_in == [2]
    pool.queue(3, seconds=1)
    assert pool.let_in == [1, 2]
    pool.queue(3, seconds=5)
    assert pool.let_in == [0, 1, 2]


def test_calm_that_is_broken_begins_anew():
    """One look at 0.8 of the bound in the middle of it."""
    pool = Pool()
    pool.queue(5)
    pool.queue(3, seconds=4)
    pool.queue(4)
    pool.queue(3, seconds=4)
    assert pool.let_in == [1, 2]
    pool.queue(3, seconds=2)
    assert pool.let_in == [0, 1, 2]


@pytest.mark.parametrize("low", [4, 3])
def test_a_load_that_swings_about_the_bound_makes_no_flapping(low):
    """In a minute of swinging each priority changes sides at most once."""
    pool = Pool()
    sides = {p: [] for p in (0, 1, 2)}
    for n in range(240):
        pool.queue(low if n % 2 else 6)
        let_in = pool.let_in
        for p in (0, 1, 2):
            sides[p].append(p in let_in)
    for p, told in sides.items():
        changes = sum(a != b for a, b in pairwise(told))
        assert changes <= 1, p
    assert all(sides[2])


def test_the_reason_is_the_signal_that_makes_the_load():
    """The larger part of its bound, with its own wait."""
    pool = Pool()
    pool.queue(5, kv=0.5)
    assert pool.ask().reason == "queue_depth"
    pool.queue(6, kv=0.99)
    assert pool.ask().reason == "queue_depth"
    pool.queue(4, kv=0.95)
    refused = pool.ask()
    assert (refused.reason, refused.status) == ("kv_pressure", 503)
    assert str(refused.verdict) == "defer"


def test_who_is_refused_in_calm_is_told_when_the_cut_off_comes_down():
    """Two levels of five seconds less the calm that has passed."""
    pool = Pool()
    pool.queue(5, seconds=3)
    pool.queue(0)
    pool.queue(0, seconds=1)
    assert pool.ask(0).estimate_ms == pytest.approx(8750, abs=1)
    assert pool.ask(1).estimate_ms == pytest.approx(3750, abs=1)
    assert pool.ask(0).wait == "policy"


@pytest.mark.parametrize(
    ("priority", "admitted"),
    [(None, False), (-7, False), (9, False), (10, True), (11, True), (10**6, True)],
)
def test_a_priority_counts_as_the_highest_level_it_reaches(priority, admitted):
    """Between two levels it is the lower; below all, the lowest; none is 0."""
    pool = Pool(traffic=(0, 10, 20), levels="0,10,20")
    pool.queue(5)
    assert pool.ask(priority).admitted == admitted


@pytest.mark.parametrize("named", [None, 0, 1, 2, 7])
def test_where_all_are_of_one_priority_only_the_hard_bound_refuses(named):
    """Switched on where nobody names one, it is a plain bound and locks nobody out."""
    pool = Pool(traffic=(named,))
    pool.queue(9, seconds=60)
    assert pool.ask(named).admitted
    pool.queue(10)
    assert pool.ask(named).reason == "queue_depth"
    pool.queue(9)
    assert pool.ask(named).admitted


def test_a_level_gives_way_to_those_over_it_only_while_they_come():
    """A minute after the last of them it is the highest that there is."""
    pool = Pool(traffic=(None, 1))
    pool.queue(5, seconds=9)
    assert (pool.ask().admitted, pool.ask(1).admitted) == (False, True)
    pool.traffic = (None,)
    pool.queue(9, seconds=LATELY_S - 1)
    assert not pool.ask().admitted
    pool.queue(9, seconds=2)
    assert pool.ask().admitted
    pool.traffic = (None, 1)
    pool.queue(9, seconds=2)
    assert not pool.ask().admitted


def test_with_one_level_only_the_hard_bound_refuses():
    """It is the highest."""
    pool = Pool(levels="0")
    pool.queue(9, seconds=30)
    assert pool.ask().admitted
    pool.queue(10)
    assert not pool.ask().admitted


@pytest.mark.parametrize("levels", ["", "1,0", "0,0", "a", "0;1", ",".join("0" * 65)])
def test_levels_are_whole_numbers_that_rise(levels):
    """Told when it is made."""
    with pytest.raises(ConfigError, match="levels"):
        PriorityShed(levels=levels)


def test_without_any_bound_there_is_no_policy():
    """What nothing bounds is a mistake, told when it is made."""
    with pytest.raises(ConfigError, match="at least one of max_kv, max_waiting"):
        PriorityShed(max_kv=None, max_waiting=None)


@pytest.mark.parametrize(
    ("bounds", "required"),
    [
        ({}, ["kv_pressure", "queue_depth", "priority"]),
        ({"max_kv": None}, ["queue_depth", "priority"]),
        (
            {"max_kv": None, "max_waiting": None, "max_wait_s": 1.0},
            ["oldest_wait_s", "priority"],
        ),
    ],
)
def test_it_requires_the_signals_it_was_given_bounds_for(bounds, required):
    """And no other, so that a host need not supply them."""
    named = [getattr(r, "name", r) for r in PriorityShed(**bounds).requires]
    assert named == required


def test_asking_many_times_moves_nothing():
    """Only readings and outcomes move the cut-off."""
    pool = Pool(rise_s=0.0)
    pool.queue(5)
    for _ in range(50):
        pool.policy.ask(pool.reading, priority=0)
        pool.clock.advance(0.01)
    assert pool.let_in == [1, 2]


@settings(deadline=None, max_examples=40)
@given(
    steps=st.lists(
        st.tuples(st.integers(0, 12), st.floats(0, 3), st.integers(-3, 5)), max_size=15
    )
)
def test_a_higher_priority_is_never_refused_where_a_lower_is_let_in(steps):
    """And the highest that comes only at the hard bound, whatever the load did."""
    pool = Pool()
    for depth, seconds, priority in steps:
        pool.queue(depth, seconds)
        let_in = pool.let_in
        assert let_in == [p for p in (0, 1, 2) if let_in and p >= let_in[0]]
        assert (2 in let_in) == (depth < 10)
        if pool.ask(priority).admitted:
            assert pool.ask(priority + 1).admitted


def test_one_stuck_request_is_found_out_by_a_probe():
    """Its wait is load until one that came later is served within the bound."""
    clock = FakeClock()
    bounds = {"max_kv": None, "max_waiting": None, "max_wait_s": 1.0}
    policy = PriorityShed(clock=clock, reports_outcomes=True, **bounds)
    policy({}, stream=True)
    clock.advance(30.0)
    probe = policy({})
    assert probe.admitted
    assert policy({}).reason == "queue_age"
    clock.advance(0.2)
    policy.first_token(probe.request_id)
    policy.outcome(probe.request_id, ttft_ms=200.0, e2e_ms=200.0)
    assert policy({}).admitted
