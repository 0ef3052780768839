"""The two claims, and the verdict they make."""

from dataclasses import replace

import pytest

from admitperf.bench.design.claims import Cell, standings
from admitperf.reports.comparison.statistics import holm, sign_flip_p, t_p

SPREAD = (-0.02, 0.01, 0.015, -0.01, 0.02, -0.015, 0.005, -0.005)  # adds up to 0


def cells(arm, gains, blocks=8, spread=SPREAD):
    """Cells whose differences are a load's gain and a block's own share of chance."""
    return [
        Cell(arm, load, block, 0.5 + gain + spread[block - 1], 0.5)
        for load, gain in gains.items()
        for block in range(1, blocks + 1)
    ]


def one(gains, **given):
    """The standing of a single arm."""
    (found,) = standings(cells("a", gains, **given))
    return found


def test_a_gain_pools_each_block_over_the_loads():
    """One observation a block: the mean over 1.2x and more, nothing else."""
    found = one({0.8: -0.3, 1.0: 0.9, 1.2: 0.1, 1.5: 0.3}).gain
    assert found.loads == (1.2, 1.5)
    assert found.statistics.n == 8
    assert found.statistics.mean == pytest.approx(0.2)
    assert found.statistics.differences == pytest.approx([0.2 + s for s in SPREAD])


def test_no_harm_pools_the_loads_below():
    """0.8x and less."""
    found = one({0.5: 0.0, 0.8: 0.002, 1.0: -0.9, 1.2: 0.1}).no_harm
    assert found.loads == (0.5, 0.8)
    assert found.statistics.mean == pytest.approx(0.001)


@pytest.mark.parametrize(
    ("above", "below", "word", "headline"),
    [
        (0.2, 0.03, "better", "better above capacity, no harm below it"),
        (0.2, -0.2, "inconclusive", "better above capacity, harm below it"),
        (
            0.2,
            -0.005,
            "inconclusive",
            "better above capacity, harm below it not ruled out",
        ),
        (0.2, None, "better", "better above capacity, harm below it not asked"),
        (-0.2, 0.03, "worse", "worse above capacity, no harm below it"),
        (0.008, -0.2, "worse", "not settled above capacity, harm below it"),
        (0.008, 0.03, "inconclusive", "not settled above capacity, no harm below it"),
        (None, 0.2, "inconclusive", "above capacity not asked, no harm below it"),
        (None, -0.2, "worse", "above capacity not asked, harm below it"),
    ],
)
def test_the_verdict_of_both_claims(above, below, word, headline):
    """A gain with harm below is no better, and says so."""
    gains = {1.5: above, 0.8: below}
    found = one({load: gain for load, gain in gains.items() if gain is not None})
    assert (found.word, found.headline) == (word, headline)


def test_equivalent_takes_a_small_spread():
    """The 90 % interval inside the margin, and no harm."""
    tight = [0.1 * s for s in SPREAD]
    assert one({0.8: 0.0, 1.5: 0.0}, spread=tight).word == "equivalent"
    assert one({0.8: -0.2, 1.5: 0.0}, spread=tight).word == "worse"


def test_a_gain_below_the_margin_is_no_gain():
    """However clear it is."""
    tight = [0.01 * s for s in SPREAD]
    found = one({1.5: 0.008}, spread=tight)
    assert found.gain.statistics.t_p < 1e-6
    assert not found.gain.rises
    assert found.word == "equivalent"


@pytest.mark.parametrize(("blocks", "rises"), [(5, False), (6, True), (8, True)])
def test_fewer_than_six_blocks_show_no_gain(blocks, rises):
    """Sign flips cannot give p < 0.05 then."""
    assert one({1.5: 0.3}, blocks=blocks).gain.rises is rises


def test_a_block_that_fell_is_seen_by_the_sign_flips():
    """One large loss among eight: t and flips both say no."""
    spread = (-0.6, *SPREAD[1:])
    found = one({1.5: 0.1}, spread=spread).gain
    assert not found.rises
    assert found.statistics.sign_flip_p > 0.05


def test_sign_flips_can_take_a_gain_away_that_t_shows():
    """Five blocks of six rose, one did not: 4 of 64 flips are as large."""
    rose = [0.1, 0.1, 0.1, 0.1, 0.1, -0.001]
    found = one({1.5: 0.0}, blocks=6, spread=rose).gain
    assert found.statistics.mean > found.statistics.margin
    assert found.statistics.t_p < 0.01
    assert found.statistics.sign_flip_p == pytest.approx(4 / 64)
    assert not found.rises


@pytest.mark.parametrize("scale", [0.001, 1.0, 1000.0])
def test_the_margin_of_what_is_no_share_is_part_of_the_baseline(scale):
    """A cost that halved is a gain in any currency."""
    half = [
        Cell("a", load, block, scale * (0.5 + s / 10), scale)
        for load in (0.8, 1.5)
        for block, s in enumerate(SPREAD, start=1)
    ]
    (found,) = standings(half, 0.01, "lower", share=False)
    assert found.gain.statistics.margin == pytest.approx(0.01 * scale)
    assert found.cells[0].statistics.margin == pytest.approx(0.01 * scale)
    assert found.word == "better"


def test_the_margin_of_a_share_is_a_difference_of_shares():
    """However small the baseline is."""
    found = one({1.5: 0.2}).gain
    assert found.statistics.margin == 0.01


def test_the_family_is_the_arms_that_were_planned():
    """Those without a run had their chance of a false alarm."""
    own = cells("a", {1.5: 0.012})
    (alone,) = standings(own)
    (beside,) = standings(own, family=4)
    assert alone.gain.statistics.family_p is None
    assert beside.gain.statistics.family == 4
    assert beside.gain.statistics.family_p == pytest.approx(
        4 * alone.gain.statistics.t_p
    )


def test_holm_raises_the_t_p_of_every_claimed_gain():
    """Over all arms, those that lost too; sign flips are left as they are."""
    gains = {"a": 0.012, "b": 0.2, "c": -0.1}
    found = standings(
        [c for arm, gain in gains.items() for c in cells(arm, {1.5: gain})]
    )
    ps = [t_p([gain + s for s in SPREAD]) for gain in gains.values()]
    raised = [one.gain.statistics.family_p for one in found]
    assert raised == pytest.approx(holm(ps))
    assert {one.gain.statistics.family for one in found} == {3}
    for one, gain in zip(found, gains.values(), strict=True):
        flips = sign_flip_p([gain + s for s in SPREAD])
        assert one.gain.statistics.sign_flip_p == pytest.approx(flips)


def test_holm_can_take_a_gain_away():
    """An arm that wins alone does not beside arms that show nothing."""
    mean, spread = 0.0137, [0.95 * s for s in SPREAD]
    own = cells("a", {1.5: mean}, spread=spread)
    (alone,) = standings(own)
    assert alone.gain.rises
    others = [c for arm in "bcd" for c in cells(arm, {1.5: 0.0})]
    beside = standings([*own, *others])[0]
    assert not beside.gain.rises
    assert beside.word == "inconclusive"


def test_a_block_that_lacks_a_load_is_left_out():
    """It would weigh the loads otherwise."""
    own = [c for c in cells("a", {1.2: 0.1, 1.5: 0.3}) if (c.load, c.block) != (1.5, 3)]
    (found,) = standings(own)
    assert found.gain.lacking == (3,)
    assert found.gain.blocks == (1, 2, 4, 5, 6, 7, 8)
    assert found.gain.statistics.n == 7


def test_single_loads_are_left_unadjusted():
    """Beside other arms as alone."""
    own = cells("a", {0.8: 0.0, 1.0: 0.1, 1.5: 0.2})
    (alone,) = standings(own)
    beside = standings([*own, *cells("b", {1.5: 0.1})])[0]
    assert [cell.load for cell in alone.cells] == [0.8, 1.0, 1.5]
    assert beside.cells == alone.cells
    assert alone.cells[1].value == pytest.approx(0.6)
    assert alone.cells[1].baseline == 0.5


def test_lower_is_better_turns_the_difference_around():
    """A metric that fell is a gain."""
    own = [replace(c, value=1 - c.value) for c in cells("a", {1.5: 0.2})]
    (found,) = standings(own, better="lower")
    assert found.gain.rises
    assert found.gain.statistics.mean == pytest.approx(0.2)
    (found,) = standings(own)
    assert found.word == "worse"


@pytest.mark.parametrize(
    ("gains", "claim", "said"),
    [
        ({1.5: 0.2, 0.8: 0.03}, "better", None),
        ({1.5: 0.2, 0.8: -0.2}, "gain", None),
        ({1.5: 0.2, 0.8: -0.2}, "better", "harm is shown below capacity"),
        ({1.5: 0.2, 0.8: -0.005}, "better", "harm is not ruled out"),
        ({1.5: -0.2, 0.8: 0.03}, "no-harm", None),
        ({1.5: -0.2, 0.8: 0.03}, "gain", "worse above capacity: -0.200"),
        ({1.5: 0.005}, "gain", "no gain in goodput is shown: mean +0.005"),
        ({1.5: 0.2}, "better", None),
        ({1.5: 0.2}, "no-harm", "no harm is not asked: no load is 0.8x or less"),
        ({0.8: 0.03}, "gain", "no gain is asked: no load is 1.2x or more"),
    ],
)
def test_each_claim_is_answered_by_itself(gains, claim, said):
    """With its numbers."""
    found = " ".join(one(gains).against(claim))
    assert said in found if said else not found


def test_too_few_blocks_say_so():
    """Not that there is no gain."""
    found = [*one({1.5: 0.3, 0.8: 0.0}, blocks=2).against("better")]
    assert found == [
        "no gain: 2 whole blocks, and 6 are the least that can show one",
        "no harm is not asked: 2 whole blocks, and 3 are the least",
    ]
