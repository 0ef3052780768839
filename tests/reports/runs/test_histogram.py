"""Counts between round edges are those that counting by hand gives."""

import math
from bisect import bisect_right

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reports.byhand import decision, header, outcome

from admitperf.reports.report import report
from admitperf.reports.runs.histogram import STEPS, Histogram

EDGES = [float(f"{step}e{decade}") for decade in range(-6, 13) for step in STEPS]


def by_hand(values):
    """The same by looking each value up among all edges."""
    bins = {}
    for value in values:
        if value > 0:
            place = bisect_right(EDGES, value) - 1
            bins[EDGES[place]] = bins.get(EDGES[place], 0) + 1
    return bins


def of(values, write):
    """The histogram a report makes of TTFTs."""
    lines = [header()]
    for n, value in enumerate(values, 1):
        lines += [decision(n), outcome(n, ttft_ms=value)]
    (run,) = report([write(*lines)]).runs
    return run.cost.ttft_histogram


@pytest.mark.parametrize(
    "values",
    [
        [1, 1.4999, 1.5, 9.99, 10, 1000, 1500, 999.9],
        [0.001, 0.1, 0.15, 1e9],
        [7, 7, 7],
        [0, 0, 3],
    ],
)
def test_a_value_on_an_edge_counts_above_it(values, write):
    """As by hand; what is 0 is counted apart, and bins between are there with 0."""
    found = of(values, write)
    there = {edge: n for edge, n in zip(found.edges, found.counts, strict=False) if n}
    assert there == by_hand(values)
    assert found.n == len(values)
    assert found.below == sum(value <= 0 for value in values)
    assert len(found.edges) == len(found.counts) + 1


def test_without_values_there_is_none(write):
    """Not one of zeros."""
    assert of([], write) is None


def test_values_of_nothing_have_no_bins(write):
    """All of them 0."""
    found = of([0, 0], write)
    assert (found.edges, found.counts, found.n, found.below) == ((), (), 2, 2)


@given(
    st.dictionaries(st.integers(-30, 40), st.integers(1, 99), min_size=1),
    st.integers(1, 12),
)
def test_fewer_bins_hold_the_same_values(bins, most):
    """Nothing is lost, edges still ascend, and each is one of the finer edges."""
    fine = Histogram.of(bins)
    made = fine.coarser(most)
    assert sum(made.counts) == sum(fine.counts) == made.n
    assert list(made.edges) == sorted(set(made.edges))
    assert len(made.edges) == len(made.counts) + 1
    assert made.edges[0] <= fine.edges[0]
    assert made.edges[-1] >= fine.edges[-1]
    decades = math.log10(made.edges[-1] / made.edges[0])
    assert len(made.counts) <= max(most, round(decades) + 1)
