"""What is still to come, in the order of time."""

import math

from tests.simulator.small import arrival

from admitperf.simulator.traffic.traffic import Coming, OpenLoop


def test_an_open_loop_asks_whatever_happens_and_nothing_more():
    """Nobody comes again, served or refused."""
    plan = [arrival(1), arrival(2, at_s=1.0)]
    traffic = OpenLoop(plan)
    assert list(traffic.first()) == plan
    assert list(traffic.after(plan[0], 1.0, ok=True)) == []
    assert list(traffic.after(plan[0], 1.0, ok=False)) == []


def test_what_comes_next_is_known_and_later_ones_find_their_place():
    """In the order of time, and within an instant in the order they were told."""
    coming = Coming([arrival(1, at_s=1.0), arrival(2, at_s=3.0)])
    coming.add([arrival(3, at_s=2.0), arrival(0, at_s=1.0)])
    taken = []
    while coming.next_s < math.inf:
        taken.append((coming.next_s, coming.take().id))
    assert taken == [(1.0, "r1"), (1.0, "r0"), (2.0, "r3"), (3.0, "r2")]
