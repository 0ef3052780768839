"""Who waits first, and who goes before others."""

import pytest
from tests.simulator.small import arrival

from admitperf.simulator.engine.job import Job
from admitperf.simulator.engine.waiting import ByRank, FirstCome


def jobs(*priorities):
    """One of each priority, a second apart."""
    return [
        Job(arrival(n, at_s=n, priority=priority), float(n), float(n))
        for n, priority in enumerate(priorities)
    ]


def all_of(queue):
    """What is taken from it, to the last."""
    return [queue.take().arrival.id for _ in range(len(queue))]


def filled(queue, some):
    """A queue they came to in their order."""
    for job in some:
        queue.add(job)
    return queue


def test_who_came_first_is_first_whatever_its_priority():
    """And is seen before it is taken."""
    queue = filled(FirstCome(), jobs(2, 1, 0))
    assert queue.first().arrival.id == "r0"
    assert all_of(queue) == ["r0", "r1", "r2"]


def test_by_rank_the_lowest_number_is_first_and_among_equals_who_came_first():
    """Priorities may be negative."""
    queue = filled(ByRank(), jobs(2, 1, -1, 1))
    assert queue.first().arrival.id == "r2"
    assert all_of(queue) == ["r2", "r1", "r3", "r0"]


def test_who_is_put_back_comes_before_all_but_by_rank_keeps_its_place():
    """It was started once."""
    some = jobs(2, 0, 1)
    for queue, order in (
        (FirstCome(), ["r0", "r1", "r2"]),
        (ByRank(), ["r1", "r2", "r0"]),
    ):
        filled(queue, some[1:])
        queue.put_back(some[0])
        assert all_of(queue) == order


@pytest.mark.parametrize(
    ("queue", "order"),
    [
        (FirstCome(), ["r1", "r2", "r4", "r5", "r6"]),
        (ByRank(), ["r2", "r5", "r6", "r1", "r4"]),
    ],
)
def test_one_can_go_from_anywhere_and_the_others_keep_their_order(queue, order):
    """Its caller went away."""
    some = jobs(0, 5, 1, 6, 7, 2, 3)
    filled(queue, some)
    queue.remove(some[0])
    queue.remove(some[3])
    assert all_of(queue) == order
    assert len(queue) == 0
