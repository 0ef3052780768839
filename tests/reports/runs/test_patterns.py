"""Decisions by the truth of comparisons, and how near they came."""

import pytest
from tests.reports.byhand import decision, header

from admitperf.reports.questions.seen import looked
from admitperf.reports.runs.patterns import Bound, Rows

QUEUES = [0, 3, 9, 9, 12]


@pytest.fixture
def rows(write):
    """The decisions of such queues."""
    signals = [{"queue_depth": one, "kv_pressure": 0.5} for one in QUEUES]
    lines = [decision(seq, signals=one) for seq, one in enumerate(signals, 1)]
    with looked([write(header(), *lines, decision(9))]) as found:
        columns = {name: f"s{n}" for n, name in enumerate(found.log.names.signals)}
        yield Rows(found.log.store, 0, columns)


def test_without_comparisons_all_are_one_group(rows):
    """Of those that have the signal; its values are of the first."""
    (only,) = rows.patterns(["queue_depth", "kv_pressure"], [])
    assert (only.n, only.values) == (5, {"queue_depth": 0.0, "kv_pressure": 0.5})


def test_a_group_for_each_pattern_of_truths(rows):
    """In the order of their first decisions."""
    bounds = [Bound("queue_depth", ">", 3.0), Bound("queue_depth", "<", 12.0)]
    found = [
        (p.n, p.values["queue_depth"]) for p in rows.patterns(["queue_depth"], bounds)
    ]
    assert found == [(2, 0.0), (2, 9.0), (1, 12.0)]


@pytest.mark.parametrize(
    ("op", "bound", "true", "nearest", "distance"),
    [
        (">", 12.0, 0, 12.0, 0.0),
        (">=", 12.0, 1, 12.0, 0.0),
        (">", 20.0, 0, 12.0, 8.0),
        ("<=", 0.0, 1, 0.0, 0.0),
        ("<", -2.0, 0, 0.0, 2.0),
        (">", float("inf"), 0, 12.0, float("inf")),
    ],
)
def test_how_near_it_came(rows, op, bound, true, nearest, distance):
    """Upward gates from below, downward ones from above."""
    found = rows.reach(Bound("queue_depth", op, bound))
    assert (found.true.n, found.true.of) == (true, 5)
    assert (found.nearest, found.distance) == (nearest, distance)
