"""Percentiles by nearest rank, and what few samples cannot say."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from admitperf.reports.quantile import Spread, nearest_rank

FINITE = st.floats(allow_nan=False, allow_infinity=False)


@pytest.mark.parametrize(("fraction", "value"), [(0.5, 50), (0.95, 95), (0.99, 99)])
def test_s_bm_04_of_one_to_a_hundred(fraction, value):
    """p50 50, p95 95, p99 99: never 96 or 100."""
    assert nearest_rank([float(n) for n in range(1, 101)], fraction) == value


def test_s_bm_04_of_one_to_twenty():
    """p50 10 and p95 19: never 20."""
    spread = Spread.of(float(n) for n in range(1, 21))
    assert (spread.p50, spread.p95, spread.n) == (10, 19, 20)


def test_s_bm_05_six_samples_have_no_p95(shared):
    """p95 is withheld and says why; the maximum and n are given."""
    lines = (shared / "cases/s-bm-05/ttft_6.jsonl").read_text(encoding="utf-8")
    spread = Spread.of(json.loads(line)["ttft_ms"] for line in lines.splitlines())
    assert spread.p95 is None
    assert spread.withheld == "too few samples (6)"
    assert (spread.high, spread.n) == (900, 6)


def test_nothing_has_no_percentiles():
    """Never supplied is None all over, never zero."""
    assert Spread.of([math.nan]) == Spread(0, None, None, None, None, None, None, None)


@given(st.lists(FINITE, min_size=1), st.floats(0.01, 1.0))
def test_nearest_rank_is_what_its_definition_says(values, fraction):
    """It is the smallest value with at least that share of values at or below it."""
    ordered = sorted(values)
    found = nearest_rank(ordered, fraction)
    need = math.ceil(fraction * len(ordered))
    assert sum(value <= found for value in ordered) >= need
    below = [value for value in ordered if value < found]
    assert len(below) < need


@given(st.lists(FINITE, max_size=60))
def test_a_spread_is_in_order(values):
    """Min <= p50 <= p95 <= max, whatever order the values came in."""
    spread = Spread.of(values)
    known = [spread.low, spread.p50, spread.p95, spread.high]
    ordered = [value for value in known if value is not None]
    assert ordered == sorted(ordered)
    assert spread == Spread.of(reversed(values))
