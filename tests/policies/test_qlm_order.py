"""QLM's arithmetic: how long groups wait, and the order that is late least."""

from itertools import permutations
from math import sqrt
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from admitperf.core.busy import KEPT_S
from admitperf.policies.parts.qlm.exchange import by_deadline, exchanged, late_s
from admitperf.policies.parts.qlm.group import GROUPS_MOST, Group
from admitperf.policies.parts.qlm.grouping import grouped
from admitperf.policies.parts.qlm.plan import Plan
from admitperf.policies.parts.qlm.planner import Planner
from admitperf.policies.parts.qlm.throughput import LATELY_S, REPLICAS_MOST, Throughput
from admitperf.policies.parts.qlm.virtual_queue import (
    FORGOTTEN_AT_ONCE,
    WAITING_MOST,
    VirtualQueue,
)
from admitperf.policies.parts.qlm.waiting_time import WaitingTime

RELEASED_TOKENS = 100
"""Output tokens that QLM's released code takes any answer to have."""


def group(name, size=1, due_s=1.0, mean=100.0, sigma=0.0):
    """So many requests of one kind."""
    return Group(((name, None, None),), size, due_s, size * mean, size * sigma**2)


def names(order):
    """The names of groups, in order."""
    return [one.keys[0][0] for one in order]


# The estimator.


@pytest.mark.parametrize(
    ("requests", "rate_per_s", "seconds"), [(50, 1000.0, 5.0), (1, 400.0, 0.25)]
)
def test_without_a_scatter_it_is_the_mean_of_the_released_code(
    requests, rate_per_s, seconds
):
    """Requests times 100 tokens over the throughput, and nothing else."""
    time = WaitingTime(rate_per_s, z=0.0)
    assert time.seconds(requests * RELEASED_TOKENS, 0.0) == pytest.approx(seconds)


def test_the_upper_quantile_is_the_one_worked_out_by_hand():
    """100 answers of 200 +- 150 tokens at 2000/s: 10 s, and 1.64 times 0.75 s."""
    time = WaitingTime(2000.0, z=1.64)
    assert time.seconds(100 * 200, 100 * 150**2) == pytest.approx(10 + 1.64 * 0.75)


def test_what_is_ahead_adds_its_mean_and_its_variance():
    """Scatter adds up in squares: 9 + 16 answers scatter like 5 x 5, not 3 + 4."""
    behind = WaitingTime(100.0, z=1.0, tokens=9 * 10.0, variance=9 * 4.0)
    assert behind.seconds(16 * 10.0, 16 * 4.0) == pytest.approx((250 + 5 * 2) / 100)


def test_few_requests_are_over_estimated_most():
    """The margin over the mean falls with the root of their number, as in the paper."""
    time, margin = WaitingTime(1000.0, z=1.64), {}
    for q in (1, 4, 100):
        margin[q] = time.seconds(q * 100, q * 100**2) / (q * 0.1) - 1
    assert margin == pytest.approx({1: 1.64, 4: 0.82, 100: 0.164})


def test_few_groups_over_estimate_waits():
    """All of a group are told when its last one is served: one group of 40 says 4 s."""
    time = WaitingTime(1000.0, z=0.0)
    true_s = sum(time.seconds(100 * n, 0.0) for n in range(1, 41)) / 40
    told_s = {}
    for groups in (1, 4, 40):
        size = 40 // groups
        ends = [time.seconds(100 * size * n, 0.0) for n in range(1, groups + 1)]
        told_s[groups] = sum(ends) / groups
    assert told_s == pytest.approx({1: 4.0, 4: 2.5, 40: true_s})


@pytest.mark.parametrize("sigmas", [6, 10])
def test_an_answer_far_out_is_under_estimated(sigmas):
    """One of ten at mean + 6 sigma is past the 95th percentile of ten, as they say."""
    time = WaitingTime(1000.0, z=1.64)
    told_s = time.seconds(10 * 100, 10 * 50**2)
    assert (10 * 100 + sigmas * 50) / 1000 > told_s


# The order.


def test_the_objective_is_the_sum_of_what_is_late():
    """Being early is worth nothing: 1 s late and 9 s early is 1 s."""
    time = WaitingTime(100.0, z=0.0)
    order = [group("a", due_s=0.0), group("b", due_s=11.0)]
    assert late_s(order, time, now_s=0.0) == pytest.approx(1.0)
    assert late_s(order, time, now_s=20.0) == pytest.approx(21.0 + 11.0)


def test_a_long_group_lets_a_short_one_pass_when_it_is_late_all_the_same():
    """Nearest deadline first makes both late; exchanged, one is."""
    time = WaitingTime(1000.0, z=0.0)
    bulk, chat = group("bulk", 10, 8.0, 1000.0), group("chat", 5, 9.0)
    assert names(by_deadline([chat, bulk])) == ["bulk", "chat"]
    assert late_s([bulk, chat], time, 0.0) == pytest.approx(2.0 + 1.5)
    best = exchanged([chat, bulk], time, 0.0)
    assert names(best) == ["chat", "bulk"]
    assert late_s(best, time, 0.0) == pytest.approx(2.5)


GROUPS = st.lists(
    st.builds(
        group,
        st.text("abc", min_size=1, max_size=3),
        st.integers(1, 50),
        st.floats(-10.0, 60.0),
        st.sampled_from([1.0, 20.0, 300.0, 1000.0]),
        st.sampled_from([0.0, 10.0, 500.0]),
    ),
    max_size=GROUPS_MOST,
)


@settings(deadline=None, max_examples=100)
@given(groups=GROUPS, rate_per_s=st.sampled_from([10.0, 1000.0, 1e5]))
def test_exchanging_is_never_worse_than_the_nearest_deadline(groups, rate_per_s):
    """Whatever waits: the same groups, late by no more together."""
    time = WaitingTime(rate_per_s, z=1.64)
    found = exchanged(groups, time, 0.0)
    assert sorted(found) == sorted(groups)
    assert late_s(found, time, 0.0) <= late_s(by_deadline(groups), time, 0.0)


def drawn(rng, size):
    """Groups whose deadlines lie where the queue ends, so that some are missed."""
    groups = []
    for n in range(size):
        mean = rng.choice([20.0, 100.0, 300.0, 1000.0])
        sigma = mean * rng.choice([0.2, 0.5, 1.0, 2.0])
        due_s = rng.uniform(0.2, 1.2) * size * 7.5
        groups.append(group(str(n), rng.randint(1, 50), due_s, mean, sigma))
    return groups


DRAWN = 150
"""Instances of each size."""


def lateness(size):
    """Of instances with so many groups: (found, best, nearest deadline), seconds."""
    rng, time = Random(7), WaitingTime(1000.0, z=1.64)
    for _ in range(DRAWN):
        groups = drawn(rng, size)
        yield (
            late_s(exchanged(groups, time, 0.0), time, 0.0),
            min(late_s(order, time, 0.0) for order in permutations(groups)),
            late_s(by_deadline(groups), time, 0.0),
        )


@pytest.mark.parametrize(
    ("size", "least_share"), [(2, 1.0), (3, 1.0), (4, 0.97), (5, 0.95)]
)
def test_it_finds_the_best_order_of_a_few_groups_almost_always(size, least_share):
    """Against every order there is; all together it loses at most half a percent."""
    found_s, best_s, _ = map(sum, zip(*lateness(size), strict=True))
    hits = sum(found <= best + 1e-6 for found, best, _ in lateness(size))
    assert hits >= least_share * DRAWN
    assert best_s <= found_s <= 1.005 * best_s + 1e-6


def test_the_nearest_deadline_alone_loses_more_than_half_as_much_again():
    """At five groups: what exchanging is for."""
    _, best_s, nearest_s = map(sum, zip(*lateness(5), strict=True))
    assert nearest_s > 1.5 * best_s


# The plan.


def test_a_place_tells_what_is_ahead_of_it():
    """Number, tokens and variance of the groups before; its own are not ahead."""
    plan = Plan([group("a", 2, sigma=3.0), group("b", 3)], made_s=0.0, ready_s=0.0)
    assert plan.place(("a", None, None), 0.0) == (0, 0.0, 0.0)
    assert plan.place(("b", None, None), 0.0) == (1, 200.0, 18.0)


def test_a_group_that_is_not_in_it_joins_the_nearest():
    """By deadline, among those of its own model if there are any."""
    order = [group("m", due_s=5.0), group("m", due_s=50.0), group("x", due_s=20.0)]
    plan = Plan(
        [
            one._replace(keys=((one.keys[0][0], n, None),))
            for n, one in enumerate(order)
        ],
        made_s=0.0,
        ready_s=0.0,
    )
    assert plan.place(("m", "new", None), 19.0)[0] == 0
    assert plan.place(("m", "new", None), 40.0)[0] == 1
    assert plan.place(("x", "new", None), 5.0)[0] == 2
    assert plan.place(("y", "new", None), 19.0)[0] == 2
    assert Plan([], 0.0, 0.0).place(("m", None, None), 1.0) == (0, 0.0, 0.0)


def looks(planner, groups, time, now_s):
    """What waits is looked at, and what there is to do is done at once."""
    work = planner.work(lambda: groups, time, now_s)
    if work is not None:
        planner.take(work())


LATE = WaitingTime(1000.0, z=0.0)
BULK, CHAT = group("bulk", 10, 8.0, 1000.0), group("chat", 5, 9.0)


def test_an_order_stands_until_somebody_would_be_late():
    """New groups come last in it, also those that are due first."""
    planner = Planner(0.0)
    looks(planner, [group("a", due_s=50.0)], LATE, 0.0)
    early = [group("b", due_s=40.0), group("a", due_s=50.0)]
    looks(planner, early, LATE, 1.0)
    assert names(planner.at(1.0).order) == ["a", "b"]
    looks(planner, [group("b", due_s=2.15), group("a", due_s=50.0)], LATE, 2.0)
    assert names(planner.at(2.0).order) == ["b", "a"]


def test_while_the_rate_is_not_known_nobody_is_found_late():
    """Then the order is that of deadlines, as they came."""
    planner = Planner(0.0)
    looks(planner, [BULK, CHAT], None, 1e6)
    assert names(planner.at(1e6).order) == ["bulk", "chat"]


def test_one_plan_is_made_at_a_time_and_used_when_it_is_ready():
    """It is of the queue at its beginning, whatever came since; then the next one."""
    planner = Planner(5.0)
    assert planner.at(0.0) is None
    looks(planner, [BULK, CHAT], None, 0.0)
    looks(planner, [BULK, CHAT], LATE, 1.0)
    for now_s in (2.0, 4.0, 5.999):
        looks(planner, [CHAT], LATE, now_s)
        assert planner.at(now_s).made_s == 0.0
    made = planner.at(6.0)
    assert (made.made_s, names(made.order)) == (1.0, ["chat", "bulk"])
    looks(planner, [CHAT], LATE, 7.0)
    assert planner.at(7.0).made_s == 7.0


# Who waits.


def in_groups(queue, now_s=0.0, answer=(100.0, 0.0)):
    """The groups of what waits, each of whose answers are alike."""
    answers = dict.fromkeys(queue.kinds(), answer)
    return grouped(queue.notes(), answers, now_s)


def test_a_call_counts_once_however_often_it_is_sent_off():
    """It keeps the due time it first had, and goes when it is let in."""
    queue = VirtualQueue()
    key = ("m", None, None)
    queue.note("call", key, due_s=5.0, until_s=10.0)
    queue.note("call", key, due_s=9.0, until_s=20.0)
    [one] = in_groups(queue)
    assert (one.size, one.due_s, queue.count(key)) == (1, 5.0, 1)
    queue.expire(19.0)
    assert len(queue) == 1
    queue.drop("call")
    queue.drop("call")
    assert (len(queue), queue.count(key), in_groups(queue)) == (0, 0, [])


def test_what_is_more_than_eight_groups_joins_the_nearest():
    """The fullest stay apart; nobody is lost."""
    queue = VirtualQueue()
    for n in range(12):
        for call in range(2 if n < GROUPS_MOST else 1):
            key = ("m", str(n), None)
            queue.note(f"{n}-{call}", key, due_s=10.0 * n, until_s=1.0)
    groups = in_groups(queue)
    assert len(groups) == GROUPS_MOST
    assert [one.due_s for one in groups] == [10.0 * n for n in range(GROUPS_MOST)]
    assert sum(one.size for one in groups) == 2 * GROUPS_MOST + 4
    assert groups[-1].keys == tuple(("m", str(n), None) for n in (7, 8, 9, 10, 11))
    assert sum(one.tokens for one in groups) == pytest.approx(100.0 * 20)


def test_the_callers_that_are_noted_are_bounded():
    """The oldest note goes first, and times of notes that stand no longer go too."""
    queue = VirtualQueue()
    for n in range(5 * WAITING_MOST + 10):
        queue.note(str(n), ("m", None, None), due_s=float(n), until_s=1.0)
    [one] = in_groups(queue)
    assert (one.size, one.due_s) == (WAITING_MOST, 4.0 * WAITING_MOST + 10)
    assert len(queue._ends) <= 2 * WAITING_MOST


def test_a_crowd_that_is_gone_is_forgotten_bit_by_bit_and_left_out_at_once():
    """A request may wait for whoever forgets; the optimizer sees the end at once."""
    queue = VirtualQueue()
    for n in range(WAITING_MOST):
        queue.note(str(n), ("m", None, None), due_s=9.0, until_s=1.0 + n % 2)
    queue.expire(1.0)
    assert len(queue) == WAITING_MOST - FORGOTTEN_AT_ONCE
    [one] = in_groups(queue, now_s=1.0)
    assert one.size == WAITING_MOST / 2
    for _ in range(WAITING_MOST // FORGOTTEN_AT_ONCE):
        queue.expire(1.0)
    assert len(queue) == WAITING_MOST / 2


# What is measured.


def test_a_rate_is_what_ended_in_the_time_that_was_full():
    """Half the time empty does not halve it, and two ends are no rate yet."""
    rate = Throughput()
    rate.reading(None, 0.0, full=True)
    for n in range(1, 4):
        assert rate.per_s(n - 0.5) is None
        rate.ended(200, float(n))
    assert rate.per_s(3.0) == pytest.approx(200.0)
    rate.reading(None, 3.0, full=False)
    rate.ended(10_000, 50.0)
    assert rate.per_s(100.0) == pytest.approx(200.0)
    rate.reading(None, 100.0, full=True)
    assert rate.per_s(103.0) == pytest.approx(100.0)


def test_what_was_long_ago_counts_half_and_half_again():
    """An engine that became faster is known to be after a minute of full work."""
    rate = Throughput()
    rate.reading(None, 0.0, full=True)
    for n in range(1, 101):
        rate.ended(100, float(n))
    for n in range(1, 4 * int(KEPT_S)):
        rate.ended(300, 100.0 + n)
    assert rate.per_s(99.0 + 4 * KEPT_S) == pytest.approx(300.0, rel=0.1)


def test_two_replicas_make_twice_what_one_does_while_it_is_full():
    """And one that is no longer read counts no more."""
    rate = Throughput()
    rate.reading("a", 0.0, full=True)
    rate.reading("b", 0.0, full=True)
    for n in range(1, 11):
        rate.ended(200, n / 2)
    assert rate.per_s(5.0) == pytest.approx(400.0)
    rate.reading("a", 5.0 + LATELY_S, full=False)
    assert rate.per_s(5.0 + LATELY_S) == pytest.approx(2000 / (10.0 + 2 * LATELY_S))
    for n in range(REPLICAS_MOST + 10):
        rate.reading(str(n), 6.0 + LATELY_S, full=True)
    assert len(rate._read) == REPLICAS_MOST


def test_the_scatter_of_many_answers_is_near_normal():
    """The theorem at work: 95 % of sums of 60 skewed answers are under the estimate."""
    rng, time = Random(3), WaitingTime(1.0, z=1.64)
    told = time.seconds(60 * 100.0, 60 * 100.0**2)
    sums = [sum(rng.expovariate(0.01) for _ in range(60)) for _ in range(2000)]
    share = sum(one <= told for one in sums) / len(sums)
    assert share == pytest.approx(0.945, abs=3 * sqrt(0.05 * 0.95 / 2000))
