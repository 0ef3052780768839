"""The window that `aimd`, `gradient` and `concur_inspired` move."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from admitperf.policies.parts.adaptive.window import Window


def window(**given):
    """One of 8 that moves by steps of 1 from the start."""
    sizes = {"limit": 8, "floor": 1, "ceiling": 100, "step": 1, "cool_s": 2.0}
    return Window(**{**sizes, **given})


def test_it_grows_by_steps_and_is_cut_by_a_factor():
    """CONCUR's numbers: two more when there is room, half when there is not."""
    one = window(step=2)
    assert one.grow(8)
    assert one.limit == 10
    assert one.cut(0.5, now_s=0.0)
    assert one.limit == 5


def test_it_does_not_grow_while_less_than_half_of_it_is_used():
    """What is not used was not tried; how much has to be is the owner's."""
    assert not window().grow(3)
    assert window().grow(4)
    assert not window(tried=1.0).grow(7)
    assert window(tried=1.0).grow(8)


def test_a_cold_start_is_short():
    """Until the first cut it multiplies: 8, 16, 32, 64; after it, it adds."""
    one = window(ramp=2.0)
    for _ in range(3):
        one.grow(one.limit)
    assert one.limit == 64
    one.cut(0.5, now_s=0.0)
    one.grow(32)
    assert one.limit == 33


def test_after_some_growths_in_a_row_it_is_taken_to_be_far_too_low():
    """Three steps, then the ramp; a hold in between begins the row anew."""
    one = window(ramp=2.0, patience=3)
    one.cut(1.0, now_s=0.0)
    for _ in range(4):
        one.grow(one.limit)
    assert one.limit == 22
    one = window(ramp=2.0, patience=3)
    one.cut(1.0, now_s=0.0)
    for _ in range(4):
        one.grow(one.limit)
        one.hold()
    assert one.limit == 12


def test_growths_up_to_where_it_was_cut_last_are_steps():
    """From 10 cut to 5: steps to 12, which is over 11, then the ramp."""
    one = window(limit=10, ramp=2.0, patience=3)
    one.cut(0.5, now_s=0.0)
    for _ in range(7):
        one.grow(one.limit)
    assert one.limit == 12
    one.grow(12)
    assert one.limit == 24


def test_going_to_a_place_begins_the_row_anew_and_keeps_the_bounds():
    """For an owner that computes where to go, such as a gradient."""
    one = window(ramp=2.0, patience=1)
    one.cut(1.0, now_s=0.0)
    one.grow(8)
    one.approach(20.5)
    one.grow(21)
    assert one.limit == 21.5
    one.approach(0.0)
    assert one.limit == 1


def test_there_is_one_cut_in_a_reaction_time():
    """A second one within it would answer the same congestion twice."""
    one = window()
    assert one.cut(0.5, now_s=10.0)
    assert not one.cut(0.5, now_s=11.9)
    assert one.limit == 4
    assert one.cut(0.5, now_s=12.0)
    assert one.limit == 2


def test_a_limit_far_above_what_is_used_is_cut_from_what_is_used():
    """Half of 100 would change nothing for 10 in use."""
    one = window(limit=100)
    one.cut(0.5, now_s=0.0, used=10)
    assert one.limit == 5


@pytest.mark.parametrize(("limit", "whole"), [(1.0, 1), (1.99, 1), (7.5, 7), (0.3, 1)])
def test_what_is_compared_is_whole_and_at_least_one(limit, whole):
    """A limit of 0 would never learn again."""
    assert window(limit=limit, floor=0).whole == whole


@settings(deadline=None, max_examples=100)
@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(["grow", "cut", "hold", "approach"]),
            st.floats(0, 200),
            st.floats(0, 5),
        ),
        max_size=40,
    )
)
def test_nothing_takes_it_out_of_its_bounds(steps):
    """Whatever its owner saw."""
    one, now_s = window(floor=3, ceiling=50, ramp=1.5), 0.0
    for what, number, passed_s in steps:
        now_s += passed_s
        before, cut_s = one.limit, one.cut_s
        if what == "grow":
            one.grow(number)
            assert one.limit >= before
        elif what == "cut":
            made = one.cut(min(number / 200, 1.0), now_s, used=number)
            assert made == (cut_s is None or now_s - cut_s >= 2.0)
            assert one.limit <= before
        elif what == "hold":
            one.hold()
        else:
            one.approach(number)
        assert 3 <= one.limit <= 50
