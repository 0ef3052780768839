"""The rule behind the five verdicts."""

import pytest

from admitperf.reports.comparison.verdict import Paired, in_family

BASE = (0.50, 0.52, 0.49, 0.51, 0.50, 0.53, 0.50, 0.51)


def paired(*differences, margin=0.01):
    """A baseline and an arm that is so much better in each pair."""
    base = BASE[: len(differences)]
    arm = [one + d for one, d in zip(base, differences, strict=True)]
    return Paired.of(arm, base, margin)


def test_six_pairs_are_judged_by_interval_and_sign_flips():
    """A clear gain is better, a clear loss worse."""
    gain = paired(0.2, 0.21, 0.19, 0.2, 0.22, 0.2)
    assert (gain.word, gain.p, gain.sign_flip_p) == ("better", 0.03125, 0.03125)
    assert paired(-0.2, -0.21, -0.19, -0.2, -0.22, -0.2).word == "worse"


def test_from_six_pairs_on_ranges_decide_nothing():
    """Every pair gains a little, and the ranges overlap."""
    gain = paired(0.02, 0.025, 0.02, 0.018, 0.022, 0.02)
    assert gain.ranges_apart is False
    assert gain.word == "better"


def test_below_six_the_ranges_must_not_overlap():
    """The interval alone is not enough, and ranges alone are not either."""
    close = paired(0.02, 0.025, 0.02, 0.018, 0.022)
    assert close.interval.excludes_zero
    assert (close.separate, close.word) == (False, "inconclusive")
    assert paired(0.1, 0.11, 0.1, 0.12, 0.1).word == "better"
    wild = paired(0.04, 0.6, 0.9)
    assert wild.ranges_apart
    assert (wild.separate, wild.word) == (False, "inconclusive")


@pytest.mark.parametrize("n", [0, 1, 2])
def test_with_one_or_two_pairs_it_is_not_asked(n):
    """However large the difference."""
    few = paired(*[0.4, 0.41][:n])
    assert few.asked is False
    assert few.word == "inconclusive"
    assert (few.separate, few.equivalent, few.not_worse) == (None, None, None)


def test_the_spread_of_two_pairs_still_gives_an_mde():
    """And one pair has no spread."""
    assert paired(0.4, 0.41).smallest_effect == pytest.approx(0.055, abs=0.001)
    assert paired(0.4).smallest_effect is None


def test_a_gain_below_the_margin_is_no_gain():
    """Told from 0, and too small to matter."""
    tiny = paired(0.004, 0.005, 0.004, 0.005, 0.004, 0.005)
    assert tiny.separate
    assert tiny.word == "equivalent"
    assert paired(0.004, 0.005, 0.004, 0.005, 0.004, 0.005, margin=0.001).word == (
        "better"
    )


def test_equivalent_is_shown_and_not_just_not_different():
    """A wide interval around 0 shows nothing."""
    assert paired(0.001, -0.001, 0.002, 0.0, -0.002, 0.001).word == "equivalent"
    wide = paired(0.1, -0.1, 0.2, 0.0, -0.2, 0.05)
    assert (wide.word, wide.not_worse) == ("inconclusive", False)
    assert wide.blocks_needed is None  # a mean just below its margin


def test_not_worse_is_asked_of_one_side():
    """A gain of any size rules a loss out."""
    assert paired(0.2, 0.21, 0.19, 0.2).not_worse is True
    assert paired(-0.2, -0.21, -0.19, -0.2).not_worse is False


def test_the_blocks_needed_are_more_than_there_are():
    """When the ranges stood in the way, six pairs let sign flips be asked."""
    close = paired(0.02, 0.025, 0.02, 0.018, 0.022)
    assert close.blocks_needed == 6
    assert paired(*GAIN, 0.2, 0.21).blocks_needed == 9


def test_above_forty_pairs_t_alone_decides():
    """The flips are too many to count."""
    base = [0.5 + 0.001 * (k % 7) for k in range(41)]
    arm = [one + 0.1 + 0.001 * (k % 5) for k, one in enumerate(base)]
    many = Paired.of(arm, base)
    assert many.sign_flip_p is None
    assert (many.p, many.word) == (many.t_p, "better")


GAIN = (0.2, 0.21, 0.19, 0.2, 0.22, 0.2)
LOSS = (-0.2, -0.21, -0.19, -0.2, -0.22, -0.2)


def test_one_gain_among_several_arms_is_judged_alone():
    """An arm that lost claims no gain, and takes no part of the 5 %."""
    gain, loss = in_family([paired(*GAIN), paired(*LOSS)])
    assert (gain.word, gain.family_p) == ("better", None)
    assert loss.word == "worse"


def test_two_gains_share_the_level():
    """Six pairs cannot show two gains: 2 x 0.031 is over 0.05; seven can."""
    both = in_family([paired(*GAIN), paired(*GAIN)])
    assert [one.family_p for one in both] == [0.0625, 0.0625]
    assert {one.word for one in both} == {"inconclusive"}
    assert both[0].blocks_needed == 7
    seven = in_family([paired(*GAIN, 0.2), paired(*GAIN, 0.21)])
    assert {one.word for one in seven} == {"better"}


def test_what_is_not_asked_is_in_no_family():
    """Two pairs have no p to raise."""
    alone, few = in_family([paired(*GAIN), paired(0.4, 0.41)])
    assert (alone.family, few.family_p) == (1, None)
