"""A limit that grows by steps and is cut when somebody waits too long."""

import logging

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.policies.limited_host import LimitedHost

from admitperf import ConfigError
from admitperf.policies.aimd import Aimd
from admitperf.policies.gradient import Gradient
from admitperf.testing import FakeClock


@pytest.fixture(autouse=True)
def _quiet():
    """Blindness is said loudly, once."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def host(**given):
    """A host with this policy."""
    return LimitedHost(Aimd, **given)


def congested(**given):
    """Ten open, one of them waiting, and the cut that follows from it: by one."""
    made = host(start=10, **given)
    made.fill(9)
    made.ask()
    made.look(9)
    return made


def test_at_the_limit_the_next_is_refused_and_told_when_to_come():
    """With the count as its gate, so that the wait is computed from what ends."""
    one = host(start=10, ceiling=10)
    one.fill(10)
    for _ in range(10):
        one.clock.advance(0.3)
        one.end()
        one.fill(1)
    refused = one.ask()
    assert (refused.reason, refused.status) == ("in_flight_cap", 503)
    assert str(refused.verdict) == "defer"
    assert refused.wait == "measured"
    assert 250 <= refused.estimate_ms <= 400


def test_the_limit_is_on_every_line():
    """The gate is there whether it holds or not, and its bound is the limit."""
    one = host(start=2)
    gates = [one.ask().gates[0] for _ in range(3)]
    assert [(g.value, g.bound, g.held) for g in gates] == [
        (0, 2, False),
        (1, 2, False),
        (2, 2, True),
    ]


def test_a_cold_start_grows_by_half_while_nobody_waits():
    """8, 12, 18: each time it was filled, and not before."""
    one = host(start=8)
    one.look(20)
    assert one.limit == 8
    one.fill(8)
    one.look(9)
    assert one.limit == 12
    one.look(20)
    assert one.limit == 12
    one.fill(4)
    one.look(9)
    assert one.limit == 18


def test_a_wait_over_the_target_cuts_and_one_under_it_does_not():
    """In the middle between room and congestion the limit stays."""
    assert congested().limit == 9
    still = host(start=10, target_ms=5000.0)
    still.fill(9)
    still.ask()
    still.look(16)
    assert still.limit == 10


@pytest.mark.parametrize(
    ("target_ms", "limit"), [(1000.0, 38), (1999.0, 39), (100.0, 36), (1.0, 36)]
)
def test_a_cut_is_by_as_many_as_wait_too_long_and_no_deeper_than_a_fifth(
    target_ms, limit
):
    """Two ends a second and a second over the target: two of 40 are too many."""
    policy = Aimd(start=40, target_ms=target_ms)
    for at_s in range(4):
        for _ in range(2):
            policy._period.add(float(at_s), 2.0, 39, ended=True)
    policy._move(4.0, 2.0, 2.0)
    assert policy._window.whole == limit
    policy._period.add(5.0, 60.0, 40, ended=False)
    policy._period.ends = 100
    policy._move(6.0, 60.0, 60.0)
    assert policy._window.whole == int(limit * 0.8)


def test_the_length_of_whole_answers_plays_no_part():
    """Ten that took a minute each, with first tokens at once: no congestion."""
    one = host(start=10)
    one.fill(10)
    one.clock.advance(60.0)
    for _ in range(10):
        one.end(ttft_ms=50.0, e2e_ms=60_000.0, output_tokens=3000)
        one.fill(1)
    one.look(9)
    assert one.limit == 15


@pytest.mark.parametrize(("taught", "limit"), [(True, 10), (False, 9)])
def test_a_long_prompt_may_take_the_time_its_prefill_takes(taught, limit):
    """A thousand tokens took a second on an idle engine: of 1.3 s, 0.3 s is waiting."""
    facts = {"input_tokens": 1000}
    one = host(start=10)
    one.fill(10, **facts)
    one.end(ttft_ms=1000.0 if taught else None)
    one.ask(**facts)
    one.clock.advance(1.05)
    for _ in range(4):
        one.look(seconds=0.06)
    assert one.limit == limit


def test_what_was_cached_is_not_taken_for_fast_prefill():
    """9,900 of 10,000 tokens came from the cache: the rate is that of the hundred."""
    one = host()
    one.fill(1, input_tokens=10_000)
    one.end(ttft_ms=100.0, cached_tokens=9_900)
    assert one.policy._waits.prefill_s == pytest.approx(0.1)
    one.fill(1, input_tokens=10_000)
    one.end(ttft_ms=10_000.0)
    assert one.policy._waits.prefill_s == pytest.approx(0.595)


def test_one_who_was_overtaken_waits_for_something_else():
    """A younger request has ended: the oldest is no queue, and cuts nothing."""
    one = host(start=10)
    stuck = one.ask()
    one.look(1)
    one.fill(9)
    one.clock.advance(0.2)
    one.end(e2e_ms=100.0)
    one.look(40)
    assert one.limit == 10
    one.end(stuck.request_id)


def test_a_few_looks_change_nothing():
    """A period goes on until it has samples enough, however long it lasts."""
    one = host(start=10, min_samples=5)
    one.fill(9)
    one.ask()
    one.clock.advance(30.0)
    one.look(3)
    assert one.limit == 10
    one.look(1)
    assert one.limit == 9


def test_there_is_no_other_cut_before_the_first_had_its_effect():
    """Who waits while more than the limit are open came in under the old one."""
    one = congested()
    one.look(40)
    assert one.limit == 9
    one.end()
    one.look(3)
    assert one.limit == 9
    one.look(2)
    assert one.limit == 7


@pytest.mark.parametrize("policy", [Aimd, Gradient])
def test_a_ceiling_under_the_floor_is_told_at_construction(policy):
    """No limit is between them; equal, they are the limit."""
    with pytest.raises(ConfigError, match="ceiling = 2 is under floor = 5"):
        policy(floor=5, ceiling=2)
    assert policy(floor=5, ceiling=5)._window.whole == 5


def test_it_stays_between_floor_and_ceiling():
    """Whatever the waits are, and whatever it starts with."""
    assert host(start=100, ceiling=20).limit == 20
    assert host(start=1, floor=5).limit == 5
    one = host(start=8, ceiling=10)
    one.fill(8)
    one.look(40)
    assert one.limit == 10


def test_asking_many_times_moves_nothing():
    """A gateway that holds a request asks again and again."""
    one = host(start=1)
    one.fill(1)
    reading = one.reading
    held = one.policy.ask(reading, stream=True)
    for _ in range(50):
        one.policy.ask(reading, request_id=held.request_id, stream=True)
    assert one.policy.ledger.in_flight == 1
    assert one.limit == 1


def test_a_step_of_the_wall_clock_moves_nothing():
    """Time is the monotonic clock's."""
    one, other = host(), host()
    for each in (one, other):
        each.fill(8)
        each.look(2)
    one.clock.set_wall(9e9)
    for each in (one, other):
        each.look(7)
    assert one.limit == other.limit == 12


def test_a_host_that_reports_no_first_tokens_is_blind_and_not_cut():
    """Ends without first tokens say that ages say nothing."""
    clock = FakeClock()
    policy = Aimd(clock=clock, reports_outcomes=True)
    for _ in range(3):
        d = policy({"running": 1.0})
        policy.outcome(d.request_id)
    assert policy({"running": 1.0}).reason == "signal_absent"


def test_each_of_several_processes_has_its_part():
    """What bounds one process is divided, the target is not."""
    parts = Aimd.divided({"start": 6}, 4)
    assert parts == {"start": 2, "floor": 1, "ceiling": 256}


def test_with_answers_that_are_not_streamed_only_the_ceiling_holds():
    """Nobody reports their first token; the page says so."""
    one = host(start=8, ceiling=20)
    for _ in range(12):
        while one.ask(stream=False).admitted:
            pass
        one.look(9)
    assert one.limit == 20


def test_a_host_that_lets_in_what_is_refused_teaches_it_as_well():
    """With `enforce=0` more are open than the limit, and nobody waits: it grows."""
    one = host(start=4, enforce=0.0)
    one.fill(30)
    one.look(60)
    assert 30 <= one.limit <= 45


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["ask", "ask", "ask", "start", "end", "look", "held"]),
        st.integers(0, 30),
    ),
    max_size=60,
)


@settings(deadline=None, max_examples=80)
@given(steps=STEPS)
def test_no_order_of_events_gets_past_the_limit_or_leaves_its_bounds(steps):
    """Refused exactly when as many are open as the gate said; never under the floor."""
    one = host(start=4, floor=2, ceiling=6, min_samples=1)
    for what, number in steps:
        if what == "ask":
            before, waits = len(one.open), bool(one.waiting)
            d = one.ask()
            last = d.gates[-1]
            probes = waits and last.name == "last_let_in_s" and not last.held
            assert d.admitted == (before < d.gates[0].bound or probes)
            assert 2 <= d.gates[0].bound <= 6
        elif what == "start" and one.waiting:
            one.start(one.waiting[number % len(one.waiting)])
        elif what == "end" and one.open:
            one.end(one.open[number % len(one.open)], ttft_ms=10.0 * number)
        elif what == "look":
            one.look(number)
        elif what == "held" and len(one.open) >= one.limit:
            d = one.policy.ask(one.reading, stream=True)
            if d.admitted:
                one.open.append(d.request_id)
                one.waiting.append(d.request_id)
        assert len(one.open) <= 6
        assert one.policy.ledger.in_flight == len(one.open)


def one_stuck(**given):
    """A host one of whose requests has waited until the limit is at the floor."""
    one = host(start=8, **given)
    stuck = one.ask()
    one.look(200)
    assert one.limit == 1
    return one, stuck


def test_a_probe_shows_that_the_oldest_is_stuck_and_the_limit_comes_back():
    """One is let in past the limit; it ends first, and the cuts are undone."""
    one, _ = one_stuck()
    probe = one.ask()
    assert probe.admitted
    assert not one.ask().admitted
    one.end(probe.request_id, ttft_ms=100.0, e2e_ms=100.0)
    assert one.limit == 8


def test_without_an_end_only_a_probe_in_four_seconds_is_let_in():
    """A queue that stands gets no more than that, and none past the ceiling."""
    one, _ = one_stuck(ceiling=8)
    let = []
    for _ in range(60):
        let.append(one.ask().admitted)
        one.look(4)
    assert sum(let) == 7
    assert let[:5] == [True, False, False, False, True]


def test_a_cut_is_not_undone_by_the_turn_of_an_ordinary_queue():
    """When the oldest has its first token nobody was stuck: the limit stays."""
    one, stuck = one_stuck()
    one.end(stuck.request_id)
    one.look(1)
    assert one.limit == 1


def test_past_a_stuck_one_the_waits_of_those_that_end_count():
    """Two seconds of waiting, over and over: the limit is cut all the same."""
    one, _ = one_stuck()
    probe = one.ask()
    one.end(probe.request_id, ttft_ms=100.0, e2e_ms=100.0)
    for _ in range(8):
        d = one.ask()
        one.look(8)
        if d.admitted:
            one.end(d.request_id, ttft_ms=2000.0, e2e_ms=2000.0)
    assert one.limit < 8
