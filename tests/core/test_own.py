"""A front door knows what it sent since the engine was read, and adds it."""

import pytest

from admitperf import Reading
from admitperf.core.own import LATELY_MOST
from admitperf.policies.dual_gate import DualGate
from admitperf.policies.kv_threshold import KvThreshold
from admitperf.policies.queue_depth import QueueDepth


def vllm(waiting=0, running=0, kv=0.1, tokens=1000):
    """A page of an engine's metrics."""
    return {
        "vllm:num_requests_waiting": waiting,
        "vllm:num_requests_running": running,
        "vllm:kv_cache_usage_perc": kv,
        'vllm:cache_config_info{block_size="10"}': 1.0,
        "kv_capacity_tokens": tokens,
    }


@pytest.fixture
def policy(clock, log):
    """A bound of two in the queue."""
    return QueueDepth(max_waiting=2, clock=clock, log=log, reports_outcomes=True)


def taken(clock, replica=None, *, own_since=True, slots=0, **page):
    """A reading of this moment, of an engine that has no slot to spare."""
    return Reading(
        vllm(**page),
        taken_ns=clock.monotonic_ns(),
        replica=replica,
        own_since=own_since,
        slots=slots,
    )


def seen(log):
    """The queue depth that the last decision saw, and what of it was added."""
    line = log.decisions[-1]
    return line["signals"]["queue_depth"], line.get("added", {}).get("queue_depth", 0)


def test_a_burst_between_two_readings_meets_the_gate(policy, clock, log):
    """Ten at once on an empty engine: three fit under a bound of two, not ten."""
    reading = taken(clock)
    answers = [policy(reading).admitted for _ in range(10)]
    assert answers == [True] * 3 + [False] * 7
    assert seen(log) == (3.0, 3.0)
    assert log.decisions[-1]["gates"] == [["queue_depth", 3.0, ">", 2.0, True]]
    assert "added" not in log.decisions[0]


def test_without_the_word_nothing_is_added(policy, clock, log):
    """Who is not the front door of what was read knows nothing about it."""
    reading = taken(clock, own_since=False)
    assert all(policy(reading).admitted for _ in range(10))
    assert seen(log) == (0.0, 0)


def test_the_next_reading_begins_anew(policy, clock, log):
    """What the engine has seen is not counted twice."""
    first = taken(clock)
    for _ in range(3):
        policy(first)
    clock.advance(0.25)
    policy(taken(clock, running=3))
    assert seen(log) == (0.0, 0)


def test_who_left_makes_room(policy, clock, log):
    """Admitted less ended, of those before the reading too, and never below zero."""
    before = [policy(taken(clock, own_since=False)).request_id for _ in range(4)]
    policy(taken(clock))
    clock.advance(0.25)
    reading = taken(clock, running=5)
    ids = [policy(reading).request_id for _ in range(2)]
    policy.outcome(before[0])
    assert policy(reading).admitted
    assert seen(log) == (1.0, 1.0)
    for one in (*before[1:], *ids):
        policy.outcome(one)
    policy(reading)
    assert seen(log) == (0.0, 0)


def test_free_slots_take_the_first_ones(policy, clock, log):
    """Fewer run than ran when it was full, none waits: so many can start at once."""
    policy(taken(clock, running=8, waiting=1, slots=None))
    clock.advance(0.25)
    reading = taken(clock, running=5, slots=None)
    for _ in range(4):
        policy(reading)
    assert seen(log) == (0.0, 0)
    policy(reading)
    assert seen(log) == (1.0, 1.0)


@pytest.mark.parametrize(
    ("running", "slots", "room"),
    [
        (0, None, 8),
        (3, None, 5),
        (10, None, 10),
        (10, 64, 54),
        (64, 64, 0),
        (70, 64, 0),
    ],
)
def test_an_engine_nobody_saw_full_is_filled_quickly(
    policy, clock, log, running, slots, room
):
    """Twice what ran, at least eight; or as many as its operator says."""
    reading = taken(clock, running=running, slots=slots)
    answers = [policy(reading).admitted for _ in range(room + 5)]
    assert answers == [True] * (room + 3) + [False] * 2


def test_a_queue_shows_that_no_slot_is_free(policy, clock, log):
    """One that waits while fewer run waits for memory, and so would the next."""
    policy(taken(clock, running=8))
    clock.advance(0.25)
    reading = taken(clock, running=5, waiting=1)
    policy(reading)
    policy(reading)
    assert seen(log) == (2.0, 1.0)


def test_prompts_fill_the_cache_before_the_gauge_shows_it(clock, log):
    """Tokens of what was sent since, over the capacity; given back at the end."""
    policy = KvThreshold(threshold=0.5, clock=clock, log=log, reports_outcomes=True)
    reading = taken(clock, kv=0.1)
    ids = [policy(reading, input_tokens=150).request_id for _ in range(4)]
    last = log.decisions[-1]
    assert last["signals"]["kv_pressure"] == pytest.approx(0.55)
    assert last["added"]["kv_pressure"] == pytest.approx(0.45)
    assert last["verdict"] == "defer"
    policy.outcome(ids[0])
    assert policy(reading).admitted


def test_the_cache_is_at_most_full(clock, log):
    """More prompts than there is room for make 1.0, not more."""
    policy = KvThreshold(threshold=1.0, clock=clock, log=log, reports_outcomes=True)
    reading = taken(clock, kv=0.5)
    policy(reading, input_tokens=5000)
    policy(reading)
    line = log.decisions[-1]
    assert (line["signals"]["kv_pressure"], line["added"]["kv_pressure"]) == (1.0, 0.5)


def test_what_is_not_known_is_not_added_to(clock, log):
    """A signal that the reading lacks stays absent, whatever was sent."""
    policy = DualGate(clock=clock, log=log, reports_outcomes=True)
    page = {"vllm:kv_cache_usage_perc": 0.1}
    reading = Reading(page, taken_ns=clock.monotonic_ns(), own_since=True)
    for _ in range(3):
        policy(reading, input_tokens=100)
    line = log.decisions[-1]
    assert (line["reason"], "added" in line) == ("signal_absent", False)


def test_replicas_do_not_count_for_each_other(policy, clock, log):
    """What went to one is not in the queue of another; a pool has all of it."""
    a, b = taken(clock, "a"), taken(clock, "b")
    pool = taken(clock)
    for reading in (pool, b, a):
        policy(reading)
    for _ in range(2):
        policy(a)
    assert seen(log) == (2.0, 2.0)
    policy(b)
    assert seen(log) == (1.0, 1.0)
    policy(pool)
    assert policy.ledger.in_flight == 6
    assert seen(log) == (6.0, 6.0)


def test_a_reading_handed_over_late_counts_what_came_meanwhile(policy, clock, log):
    """The engine was asked, then two came on the old reading, then the answer."""
    old = taken(clock)
    policy(old)
    clock.advance(0.25)
    new = taken(clock, running=1)
    clock.advance(0.01)
    policy(old)
    policy(old)
    policy(new)
    assert seen(log) == (2.0, 2.0)


def test_a_refusal_adds_nothing_and_a_probe_does(policy, clock, log):
    """Only what reached the engine counts."""
    reading = taken(clock, waiting=3)
    for _ in range(3):
        d = policy.ask(reading)
    assert d.open
    policy.answer(d, probe=True)
    policy(reading)
    assert seen(log) == (4.0, 1.0)


def test_a_refused_request_that_was_served_takes_nothing_away(policy, clock, log):
    """Its end frees no place that it never was counted for."""
    reading = taken(clock)
    for _ in range(3):
        policy(reading)
    refused = policy(reading)
    policy.outcome(refused.request_id)
    policy(reading)
    assert seen(log) == (3.0, 3.0)


def test_what_is_held_on_to_while_blind_is_added_to_as_well(clock, log):
    """The posture hold_last asks about the last good reading, plus what was sent."""
    policy = QueueDepth(
        max_waiting=2,
        on_blind="hold_last",
        clock=clock,
        log=log,
        reports_outcomes=True,
    )
    policy(taken(clock))
    clock.advance(0.25)
    blind = Reading({}, taken_ns=clock.monotonic_ns(), own_since=True)
    answers = [policy(blind).admitted for _ in range(4)]
    assert answers == [True, True, False, False]


def test_the_books_are_bounded(policy, clock):
    """However many come on one reading, what is remembered of them is not."""
    reading = taken(clock)
    for _ in range(LATELY_MOST + 100):
        d = policy(reading)
        policy.outcome(d.request_id)
    assert len(policy._own._lately) == LATELY_MOST
    assert policy(reading).admitted


def test_a_host_that_asks_for_nothing_keeps_no_books(policy, clock):
    """Without such a reading, nothing is remembered."""
    policy(taken(clock, own_since=False))
    assert not policy._own._lately
