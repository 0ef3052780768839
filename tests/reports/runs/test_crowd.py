"""Memory, queue and slots, counted together."""

import pytest
from tests.reports.byhand import decision, header

from admitperf.reports.questions.seen import looked


@pytest.fixture
def crowd(write):
    """What stood together on decisions with such signals."""

    def _crowd(*signals):
        rows = (decision(seq, signals=one) for seq, one in enumerate(signals, 1))
        with looked([write(header(), *rows)]) as found:
            return found.seen[0].crowd

    return _crowd


def counts(part):
    """A share without its value."""
    return part.n, part.of


def test_each_count_is_of_the_decisions_that_have_its_signals(crowd):
    """An absent signal is in no denominator that needs it."""
    found = crowd(
        {"kv_pressure": 0.95, "queue_depth": 3},
        {"kv_pressure": 0.9, "queue_depth": 0},
        {"kv_pressure": 0.89, "queue_depth": 1},
        {"kv_pressure": 0.99},
        {"queue_depth": 7},
        {},
    )
    assert counts(found.queued) == (3, 4)
    assert counts(found.full) == (3, 4)
    assert counts(found.full_queued) == (1, 3)
    assert counts(found.memory) == (1, 2)


def test_slots_count_only_while_requests_wait(crowd):
    """At nine tenths of the most that ran, with a queue."""
    found = crowd(
        {"running": 10, "queue_depth": 0},
        {"running": 9, "queue_depth": 1},
        {"running": 8, "queue_depth": 1},
        {"queue_depth": 1},
    )
    assert counts(found.slots) == (1, 2)


def test_nothing_running_is_no_slot_taken(crowd):
    """A most of 0 is reached by every 0."""
    assert counts(crowd({"running": 0, "queue_depth": 2}).slots) == (0, 1)


def test_hits_and_preemptions(crowd):
    """The hit rate only while the cache was full."""
    found = crowd(
        {"kv_pressure": 0.95, "prefix_hit_rate": 0.8, "preemptions": 0.5},
        {"kv_pressure": 0.2, "prefix_hit_rate": 0.1, "preemptions": 0},
    )
    assert (found.hits_full.n, found.hits_full.p50) == (1, 0.8)
    assert counts(found.preempting) == (1, 2)


def test_signals_nobody_supplied(crowd):
    """No column, no count."""
    found = crowd({}, {})
    assert counts(found.full) == counts(found.queued) == (0, 0)
    assert found.full.value is None
