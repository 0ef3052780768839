"""What a number of pairs could have shown."""

import random

import pytest

from admitperf.reports.comparison.design import (
    blocks_to_resolve,
    equivalence_power,
    factor,
    fewest_for_family,
    power,
    smallest_effect,
)
from admitperf.reports.comparison.statistics import equivalence_p, t_p

PUBLISHED = {
    3: 3.26, 5: 1.68, 6: 1.43, 8: 1.16, 10: 1.00, 15: 0.78, 20: 0.66, 30: 0.53,
}  # fmt: skip
"""The table of the method's description: MDE in SD of the paired differences."""


@pytest.mark.parametrize(("n", "k"), PUBLISHED.items())
def test_the_published_factors_come_out(n, k):
    """Computed from the noncentral t, to the digit of the table."""
    assert factor(n) == pytest.approx(k, abs=0.006)


def test_a_design_sees_its_smallest_effect_four_times_of_five():
    """Power at the MDE, by simulation: 80 %."""
    chance, n, sd = random.Random(5), 8, 0.04
    effect = smallest_effect(n, sd)
    seen = sum(
        t_p([chance.gauss(effect, sd) for _ in range(n)]) < 0.05 for _ in range(2000)
    )
    assert seen / 2000 == pytest.approx(0.8, abs=0.03)


def test_power_grows_with_pairs_and_effect():
    """No effect is seen as often as the level says; a huge one always."""
    assert power(8, 0) == pytest.approx(0.05)
    assert power(8, 1) < power(12, 1) < power(12, 2)
    assert power(6, 20) == pytest.approx(1)


def test_equivalence_power_by_simulation():
    """How often the two one-sided tests say yes when nothing differs."""
    chance, n = random.Random(6), 12
    seen = sum(
        equivalence_p([chance.gauss(0, 1) for _ in range(n)], 1) < 0.05
        for _ in range(2000)
    )
    assert seen / 2000 == pytest.approx(equivalence_power(n, 0, 1), abs=0.03)


def test_pairs_needed_to_tell_a_mean_from_0():
    """The smallest design whose MDE is the mean."""
    needed = blocks_to_resolve(0.02, 0.04, 0.01)
    assert needed == 34
    assert smallest_effect(needed, 0.04) <= 0.02 < smallest_effect(needed - 1, 0.04)


def test_pairs_needed_for_a_mean_below_the_margin():
    """It can only be shown to be within the margin."""
    needed = blocks_to_resolve(0.002, 0.02, 0.01)
    assert equivalence_power(needed, 0.1, 0.5) >= 0.8
    assert equivalence_power(needed - 1, 0.1, 0.5) < 0.8


def test_never_fewer_than_sign_flips_need_and_never_without_end():
    """Six at least; a mean just below its margin takes too many to say."""
    assert blocks_to_resolve(0.5, 0.01, 0.01) == 6
    assert blocks_to_resolve(0.3, 0.0, 0.01) == 6
    assert blocks_to_resolve(0.00999, 0.04, 0.01) is None


@pytest.mark.parametrize(("arms", "pairs"), [(1, 6), (2, 7), (3, 7), (4, 8), (8, 9)])
def test_more_arms_take_more_pairs(arms, pairs):
    """With the least sign-flip p, Holm's smallest is that times the arms."""
    assert fewest_for_family(arms) == pairs
    assert arms * 2.0 ** (1 - pairs) < 0.05 <= arms * 2.0 ** (2 - pairs)
