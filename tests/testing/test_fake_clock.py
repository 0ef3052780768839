"""Time passes when a test says so."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from admitperf.testing import FakeClock


def test_it_starts_where_it_is_told():
    """Both clocks start at a known value, 0 unless told otherwise."""
    assert (FakeClock().monotonic_ns(), FakeClock().wall_ns()) == (0, 0)
    clock = FakeClock(start_s=50.0, wall_s=1000.5)
    assert clock.monotonic_ns() == 50_000_000_000
    assert clock.wall_ns() == 1_000_500_000_000


def test_advancing_moves_both_clocks():
    """Time that passes passes on the wall too."""
    clock = FakeClock(start_s=1.0, wall_s=100.0)
    clock.advance(0.25)
    assert clock.monotonic_ns() == 1_250_000_000
    assert clock.wall_ns() == 100_250_000_000


def test_stepping_the_wall_leaves_the_monotonic_clock_alone():
    """A clock set back by an hour is something a test can have."""
    clock = FakeClock(start_s=1.0, wall_s=100.0)
    clock.set_wall(-3600.0)
    assert clock.monotonic_ns() == 1_000_000_000
    assert clock.wall_ns() == -3_600_000_000_000


def test_it_cannot_go_back():
    """A test that would turn time back has a fault, and is told."""
    with pytest.raises(ValueError, match=r"cannot go back by 0\.1 s"):
        FakeClock().advance(-0.1)


@given(st.lists(st.floats(0, 1e6), max_size=20))
def test_it_never_goes_back(steps):
    """Whatever passes, the monotonic clock only rises."""
    clock = FakeClock()
    for step in steps:
        before = clock.monotonic_ns()
        clock.advance(step)
        assert clock.monotonic_ns() >= before
