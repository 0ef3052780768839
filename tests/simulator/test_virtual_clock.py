"""Virtual time moves when it is told to, forward."""

import pytest

from admitperf.simulator import VirtualClock


def test_both_clocks_move_together_from_where_they_stood():
    """The monotonic one from zero, the wall clock from its start."""
    clock = VirtualClock(wall_s=1_000.0)
    clock.move_to(2.5)
    clock.move_to(2.5)
    assert clock.monotonic_ns() == 2_500_000_000
    assert clock.wall_ns() == 1_002_500_000_000


def test_it_never_goes_back():
    """A monotonic clock that did would make waits negative."""
    clock = VirtualClock()
    clock.move_to(2.0)
    with pytest.raises(ValueError, match=r"cannot go back to 1\.9 s"):
        clock.move_to(1.9)
    assert clock.monotonic_ns() == 2_000_000_000
