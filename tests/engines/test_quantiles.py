"""Quantiles of histograms over a window."""

import math

import pytest

from admitperf.core.series import Series
from admitperf.core.window import Window
from admitperf.engines.engine import Counter
from admitperf.engines.exposition import parse
from admitperf.engines.quantiles import quantile, rises

TTFT = Counter("ttft")
INF = math.inf


@pytest.mark.parametrize(
    ("buckets", "rank", "seconds"),
    [
        ({0.5: 10, 1.0: 10, INF: 10}, 0.5, 0.25),
        ({0.5: 0, 1.0: 10, INF: 10}, 0.5, 0.75),
        ({0.5: 5, 1.0: 10, INF: 10}, 0.5, 0.5),
        ({0.5: 5, 1.0: 9, INF: 10}, 0.9, 1.0),
        ({1.0: 4, INF: 4}, 0.0, 0.0),
    ],
)
def test_a_quantile_is_linear_inside_its_bucket(buckets, rank, seconds):
    """The rank's place in its bucket is the place between the bounds."""
    assert quantile(buckets, rank) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "buckets",
    [
        {},
        {0.5: 0, INF: 0},
        {0.5: 1, 1.0: 1, INF: 10},
        {0.5: 9, 1.0: 5, INF: 10},
        {INF: 10},
    ],
    ids=["no buckets", "nothing seen", "above the last bound", "falling", "no bounds"],
)
def test_a_quantile_that_is_not_known_is_none(buckets):
    """Nothing observed, or only "more than that"."""
    assert quantile(buckets, 0.5) is None


def page(buckets, count, labels=""):
    """A histogram page."""
    lines = [f'ttft_bucket{{le="{le}"{labels}}} {n}\n' for le, n in buckets.items()]
    braces = f"{{{labels.removeprefix(',')}}}" if labels else ""
    return "".join(lines) + f"ttft_count{braces} {count}\n"


def risen(before, after):
    """What each bucket gained between two pages."""
    old, new = Series(parse(before)), Series(parse(after))
    return rises(TTFT, new, Window.between(old, new, 10.0))


def test_buckets_gain_what_was_observed():
    """The difference of two pages, bucket by bucket."""
    before = page({"0.5": 1, "1.0": 3, "+Inf": 4}, 4)
    after = page({"0.5": 2, "1.0": 6, "+Inf": 9}, 9)
    assert risen(before, after) == {0.5: 1.0, 1.0: 3.0, INF: 5.0}


def test_a_restart_is_a_restart_of_every_bucket():
    """A bucket that passed its old count again counts whole, since `_count` fell."""
    before = page({"0.5": 1, "1.0": 50, "+Inf": 100}, 100)
    after = page({"0.5": 3, "1.0": 4, "+Inf": 9}, 9)
    assert risen(before, after) == {0.5: 3.0, 1.0: 4.0, INF: 9.0}


def test_engines_are_summed():
    """Ranks add up; one that appears later is left out."""
    first, second = ',engine="0"', ',engine="1"'
    before = page({"1.0": 1, "+Inf": 2}, 2, first)
    after = page({"1.0": 4, "+Inf": 6}, 6, first) + page({"1.0": 9}, 9, second)
    assert risen(before, after) == {1.0: 3.0, INF: 4.0}
    both = before + page({"1.0": 1, "+Inf": 1}, 1, second)
    later = after + page({"1.0": 3, "+Inf": 3}, 3, second)
    assert risen(both, later) == {1.0: 5.0, INF: 6.0}


def test_one_page_has_no_gain():
    """Without a window nothing is known."""
    assert rises(TTFT, Series(parse(page({"1.0": 1}, 1))), Window.EMPTY) == {}


def test_bounds_that_are_no_numbers_are_left_out():
    """A bucket without a bound belongs nowhere."""
    broken = 'ttft_bucket 5\nttft_bucket{le="x"} 5\nttft_bucket{le="NaN"} 5\n'
    before = broken + page({"1.0": 1, "+Inf": 1}, 1)
    after = broken + page({"1.0": 2, "+Inf": 2}, 2)
    assert risen(before, after) == {1.0: 1.0, INF: 1.0}
