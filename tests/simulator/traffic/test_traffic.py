"""What is still to come, in the order of time."""

import math

import pytest
from tests.simulator.small import arrival, model

from admitperf.simulator.capacity import answered
from admitperf.simulator.traffic.traffic import BUSY, Answer, Coming, OpenLoop


def test_an_open_loop_asks_whatever_happens_and_nothing_more():
    """Nobody comes again, served or refused."""
    plan = [arrival(1), arrival(2, at_s=1.0)]
    traffic = OpenLoop(plan)
    assert list(traffic.first()) == plan
    for answer in (Answer(ok=True), Answer(ok=False, refused=True), BUSY):
        assert list(traffic.after(plan[0], 1.0, answer)) == []


def test_what_comes_next_is_known_and_later_ones_find_their_place():
    """In the order of time, and within an instant in the order they were told."""
    coming = Coming([arrival(1, at_s=1.0), arrival(2, at_s=3.0)])
    coming.add([arrival(3, at_s=2.0), arrival(0, at_s=1.0)])
    taken = []
    while coming.next_s < math.inf:
        taken.append((coming.next_s, coming.take().id))
    assert taken == [(1.0, "r1"), (1.0, "r0"), (2.0, "r3"), (3.0, "r2")]


@pytest.mark.parametrize("front_ms", [0.0, 40.0])
def test_without_a_policy_traffic_is_told_of_each_end_and_refusal(front_ms):
    """Of those at the engine's door, and of those in its queue a while later."""

    class Kept(OpenLoop):
        """Keeps what it is told."""

        got = ()

        def after(self, arrival_, at_s, answer):
            """Keep it."""
            self.got += ((arrival_.id, round(at_s, 3), answer.ok),)
            return ()

    traffic = Kept([arrival(1), arrival(2, at_s=0.01)])
    limited = model(max_num_queued_reqs=1, front_ms=front_ms)
    (end,) = answered(traffic, limited)
    late_s = front_ms / 1e3
    assert traffic.got == (
        ("r2", 0.01 + late_s, False), ("r1", 0.21 + late_s, True),
    )  # fmt: skip
    assert end.arrival.id == "r1"
