"""Intervals and tests over a handful of paired differences."""

import random
import sys
from itertools import product
from math import sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from admitperf.core.errors import MissingExtra
from admitperf.reports.comparison.statistics import (
    EQUIVALENCE_CONFIDENCE,
    equivalence_p,
    holm,
    least_sign_flip_p,
    not_worse_p,
    ranges_apart,
    sign_flip_p,
    special,
    t_interval,
    t_p,
)

DIFFERENCES = st.lists(st.floats(-1, 1).map(lambda x: round(x, 3)), min_size=2)
FEW = st.lists(st.floats(-1, 1).map(lambda x: round(x, 3)), min_size=1, max_size=10)
SPREAD = (0.02, 0.05, -0.01, 0.04, 0.03, 0.02)


def flipped_by_hand(differences):
    """All 2^n flips, one by one."""
    seen = abs(sum(differences))
    sums = [
        abs(sum(s * d for s, d in zip(signs, differences, strict=True)))
        for signs in product((1, -1), repeat=len(differences))
    ]
    return sum(one >= seen - 1e-9 for one in sums) / len(sums)


def test_the_t_interval_is_scipys():
    """Mean and reach as another implementation has them."""
    ours = t_interval(SPREAD)
    theirs = stats.ttest_1samp(SPREAD, 0).confidence_interval(0.95)
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high))
    assert t_p(SPREAD) == pytest.approx(stats.ttest_1samp(SPREAD, 0).pvalue)


def test_equal_differences_leave_one_value():
    """No spread: the interval is a point, and 0 is either it or ruled out."""
    assert t_interval([0.25, 0.25, 0.25]).low == 0.25
    assert t_p([0.25, 0.25, 0.25]) == 0
    assert t_p([0.0, 0.0, 0.0]) == 1
    assert t_interval([0.0, 0.0]).excludes_zero is False


@given(FEW)
def test_sign_flips_are_counted_one_by_one(differences):
    """The two halves together count what a walk over all flips counts."""
    assert sign_flip_p(differences) == pytest.approx(flipped_by_hand(differences))


@pytest.mark.parametrize(("n", "p"), [(5, 0.0625), (6, 0.03125), (8, 0.0078125)])
def test_the_least_p_of_sign_flips(n, p):
    """2^(1-n): five pairs can never give p < 0.05."""
    assert sign_flip_p([0.01 * k for k in range(1, n + 1)]) == p
    assert least_sign_flip_p(n) == p


def test_many_pairs_are_flipped_by_halves():
    """Thirty pairs are exact too, and near what t says."""
    chance = random.Random(3)
    many = [chance.gauss(0.3, 1) for _ in range(30)]
    assert sign_flip_p(many) == pytest.approx(t_p(many), abs=0.02)
    assert sign_flip_p([1.0] * 41) is None


def test_no_difference_is_no_evidence():
    """All flips are as far from 0 as nothing is."""
    assert sign_flip_p([0.0] * 6) == 1
    assert sign_flip_p([0.1, -0.1]) == 1


@given(DIFFERENCES, st.floats(0.001, 0.5))
def test_equivalence_is_the_90_interval_inside_the_margin(differences, margin):
    """Two one-sided tests and the interval never disagree."""
    inside = t_interval(differences, EQUIVALENCE_CONFIDENCE).inside(margin)
    p = equivalence_p(differences, margin)
    assert abs(p - 0.05) < 1e-9 or inside == (p < 0.05)


def test_not_worse_looks_at_one_side():
    """A gain of any size is not worse; a loss of the margin is."""
    assert not_worse_p([0.1, 0.2, 0.3, 0.2], 0.01) < 0.05
    assert not_worse_p([-0.1, -0.2, -0.3, -0.2], 0.01) > 0.95
    error = stats.sem(SPREAD)
    t = (sum(SPREAD) / 6 + 0.01) / error
    assert not_worse_p(SPREAD, 0.01) == pytest.approx(stats.t.sf(t, 5))
    assert error == pytest.approx(stats.tstd(SPREAD) / sqrt(6))


@pytest.mark.parametrize(
    ("a", "b", "apart"),
    [
        ((0.9, 0.8), (0.5, 0.7), True),
        ((0.5, 0.7), (0.9, 0.8), True),
        ((0.9, 0.6), (0.5, 0.7), False),
        ((0.7, 0.8), (0.5, 0.7), False),
        ((0.5, 0.7), (0.7, 0.8), False),
    ],
)
def test_ranges_are_apart_when_nothing_is_shared(a, b, apart):
    """Touching is overlapping."""
    assert ranges_apart(a, b) is apart


def test_holm_by_hand():
    """The smallest p times all of them, the next times one less, never falling."""
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5]) == [0.5]
    assert holm([0.9, 0.8]) == [1.0, 1.0]


def test_without_scipy_one_line_names_the_extra(monkeypatch):
    """Who installed the base package is told what to install."""
    monkeypatch.setitem(sys.modules, "scipy.special", None)
    with pytest.raises(MissingExtra, match=r"admitperf\[reports\]: pip install"):
        special()
