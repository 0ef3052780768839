"""A limit that shrinks as waits grow longer than usual."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.policies.limited_host import LimitedHost

from admitperf.policies.gradient import Gradient, aim_of, gradient_of


def host(**given):
    """A host with this policy."""
    return LimitedHost(Gradient, **given)


@pytest.mark.parametrize(
    ("long_ms", "short_ms", "expected"),
    [(100, 100, 1.0), (100, 150, 1.0), (100, 200, 0.75), (100, 300, 0.5), (1, 99, 0.5)],
)
def test_the_gradient_is_the_published_one(long_ms, short_ms, expected):
    """clamp(1.5 * long / short, 0.5, 1), worked by hand."""
    assert gradient_of(1.5, long_ms, short_ms) == expected


@pytest.mark.parametrize(
    ("gradient", "queue", "expected"),
    [(1.0, 4, 100.8), (0.5, 4, 90.8), (0.75, 1, 95.2)],
)
def test_the_limit_goes_a_fifth_of_the_way(gradient, queue, expected):
    """0.8 * limit + 0.2 * (limit * gradient + queue), for a limit of 100."""
    assert aim_of(100.0, gradient, queue) == pytest.approx(expected)


def waiting(count, looks, **given):
    """A full host with so many waiting, looked at so many times."""
    one = host(start=10, **given)
    one.fill(10 - count)
    for _ in range(count):
        one.ask()
    one.look(looks)
    return one


def test_a_wait_well_over_the_base_shrinks_the_limit():
    """Short is 1.5 s or more where 0.5 s is usual: the gradient is a half."""
    assert waiting(1, 9).limit == 9
    assert waiting(1, 9).policy._window.limit == pytest.approx(0.8 * 10 + 0.2 * 6)


def test_waits_that_are_let_be_move_the_limit_towards_one_more():
    """With a gradient of 1 it goes to a fifth of the allowance more."""
    one = waiting(1, 9, base_ms=4000.0, queue=2.0)
    assert one.policy._window.limit == pytest.approx(10.4)


def test_where_nobody_waits_it_grows_by_half_until_the_first_shrinking():
    """8, 12: when it was filled, and not before."""
    one = host(start=8)
    one.look(20)
    assert one.limit == 8
    one.fill(8)
    one.look(9)
    assert one.limit == 12


def test_it_waits_until_in_flight_has_come_down():
    """Who waits while more than the limit are open came in under the old one."""
    one = waiting(1, 60)
    assert one.limit == 9
    one.end()
    one.look(12)
    assert one.limit == 8


def test_a_load_that_lasts_does_not_become_the_usual_one():
    """The long average is learnt while the limit is not filled, and only then."""
    full = waiting(1, 40)
    assert full.policy._long_ms == 500.0
    idle = host(start=10)
    idle.fill(1)
    idle.ask()
    idle.look(40)
    assert idle.policy._long_ms > 500.0


def test_the_limit_is_on_every_line_and_at_it_the_next_is_refused():
    """The gate is there whether it holds or not, and its bound is the limit."""
    one = host(start=2)
    answers = [one.ask() for _ in range(3)]
    gates = [d.gates[0] for d in answers]
    assert [(g.name, g.bound, g.held) for g in gates] == [
        ("in_flight", 2, False),
        ("in_flight", 2, False),
        ("in_flight", 2, True),
    ]
    assert (answers[2].reason, answers[2].status) == ("in_flight_cap", 503)


def test_asking_many_times_moves_nothing():
    """A gateway that holds a request asks again and again."""
    one = host(start=1)
    one.fill(1)
    held = one.policy.ask(one.reading, stream=True)
    for _ in range(50):
        one.policy.ask(one.reading, request_id=held.request_id, stream=True)
    assert one.policy.ledger.in_flight == 1
    assert one.limit == 1


def test_it_stays_between_floor_and_ceiling():
    """Whatever the waits are, and whatever it starts with."""
    assert host(start=100, ceiling=20).limit == 20
    assert waiting(1, 60, floor=10).limit == 10
    one = host(start=8, ceiling=10)
    one.fill(8)
    one.look(40)
    assert one.limit == 10


def test_a_host_that_lets_in_what_is_refused_teaches_it_as_well():
    """With `enforce=0` more are open than the limit, and nobody waits: it grows."""
    one = host(start=4, enforce=0.0)
    one.fill(30)
    one.look(60)
    assert 30 <= one.limit <= 45


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["ask", "ask", "ask", "start", "end", "look"]),
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
        assert len(one.open) <= 6
        assert one.policy.ledger.in_flight == len(one.open)
