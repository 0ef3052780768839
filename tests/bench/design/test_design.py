"""The plan of an experiment: order, faults, what is told, budgets."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest
from tests.bench.design.experiments import message

from admitperf.bench.design.design import (
    BudgetError,
    Design,
    faults,
    told,
    trimmed,
    williams,
)

TWO = Design(arms=("no_admission", "a"))
THREE = Design(arms=("no_admission", "a", "b"))


def test_every_arm_meets_every_cell_once():
    """Loads times blocks, whole blocks first."""
    cells = THREE.cells()
    assert len(set(cells)) == len(cells) == 6 * 8
    assert [block for _, block in cells] == sorted(block for _, block in cells)
    assert {load for load, _ in cells} == set(THREE.loads)
    assert all(sorted(THREE.order(*cell)) == sorted(THREE.arms) for cell in cells)
    assert THREE.runs == len(cells) * 3


def test_no_load_always_comes_first():
    """The loads of a block are shuffled."""
    first = {
        next(load for load, b in THREE.cells() if b == block) for block in range(1, 9)
    }
    assert len(first) > 2


@pytest.mark.parametrize("load", TWO.loads)
def test_two_arms_are_first_as_often_as_each_other(load):
    """As many AB as BA over the blocks of a load."""
    first = Counter(TWO.order(load, block)[0] for block in range(1, 9))
    assert first == {"no_admission": 4, "a": 4}


def test_the_order_of_two_arms_is_no_pattern():
    """Not the same in every load, nor alternating."""
    orders = {
        tuple(TWO.order(load, block)[0] for block in range(1, 9)) for load in TWO.loads
    }
    assert len(orders) > 2


@pytest.mark.parametrize("n", [2, 3, 4, 5, 6])
def test_a_williams_square_balances_places_and_neighbours(n):
    """Each thing has each place, and follows each other one, equally often."""
    rows = williams(n)
    assert len(rows) == (n if n % 2 == 0 else 2 * n)
    places = Counter((place, one) for row in rows for place, one in enumerate(row))
    assert set(places.values()) == {len(rows) // n}
    follows = Counter(pair for row in rows for pair in pairwise(row))
    assert len(follows) == n * (n - 1)
    assert len(set(follows.values())) == 1


def test_the_seed_makes_the_order():
    """The same seed gives the same, another one another."""
    orders = [
        [design.order(*cell) for cell in design.cells()]
        for design in (THREE, replace(THREE), replace(THREE, seed=2))
    ]
    assert orders[0] == orders[1] != orders[2]


def test_fewer_blocks_keep_the_order_of_the_first():
    """What a budget leaves is a beginning of the same plan."""
    short = replace(THREE, blocks=6)
    for block in range(1, 7):
        assert short.order(1.2, block) == THREE.order(1.2, block)


# ----------------------------------------------------------------------- faults


def test_the_default_design_has_no_faults():
    """Nor with an A/A pair, alone or beside an arm."""
    again = "no_admission_again"
    assert faults(THREE) == []
    assert faults(replace(THREE, arms=(*THREE.arms, again), aa=True)) == []
    assert faults(Design(arms=("no_admission", again), aa=True, blocks=3)) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"blocks": 5}, "smallest sign-flip p is 0.0625"),
        ({"loads": (0.5, 0.8, 1.0)}, "no load is 1.2x of capacity or more"),
        ({"arms": ("no_admission",)}, "no arm beside the baseline"),
        ({"arms": ("a", "b")}, "baseline no_admission is no arm"),
        ({"arms": ("no_admission", "a", "a")}, "2 arms are called a"),
        ({"loads": (1.2, 1.2)}, "given twice"),
        ({"loads": (-1.0, 1.2)}, "above 0, not -1"),
        ({"loads": (float("inf"), 1.2)}, "not inf"),
        ({"margin": 0.0}, "margin"),
    ],
)
def test_a_design_that_cannot_win_says_why(change, said):
    """Each fault in one sentence."""
    found = faults(replace(THREE, **change))
    assert [one for one in found if said in one], found
    assert all("\n" not in one for one in found)


def test_all_faults_are_said_at_once():
    """Not one after the other."""
    assert len(faults(replace(THREE, blocks=2, loads=(0.5,), margin=2.0))) == 3


# ------------------------------------------------------------------------- told


def test_it_tells_what_can_be_shown():
    """Claims, the smallest p, the MDE with an example."""
    said = " ".join(told(THREE, None))
    assert "0.007812" in said
    assert "MDE 1.16 x SD" in said
    assert "0.035 with an SD of 0.030 (as an example" in said
    assert "mean over 1.2x, 1.5x, 2x" in said
    assert "mean over 0.5x, 0.8x" in said
    assert "2 gains are claimed: Holm" in said
    assert "1x enters no claim" in said


def test_a_measured_spread_takes_the_place_of_the_example():
    """And says that it was measured."""
    said = " ".join(told(TWO, 0.1))
    assert "0.116 with an SD of 0.100 (as measured)" in said
    assert "Holm" not in said


def test_what_is_not_asked_is_told():
    """No load below capacity: harm is not asked."""
    said = " ".join(told(replace(THREE, loads=(1.2, 2.0)), None))
    assert "Not asked: whether it does harm" in said
    assert "No harm, claimed" not in said


# ----------------------------------------------------------------------- budget


def test_a_budget_drops_exploratory_loads_first():
    """In the fixed order, each said."""
    steps = []
    for loads in (6, 5, 4, 3, 2):
        made, said = trimmed(THREE, 1.0, loads * 8 * 3)
        steps.append(made.loads)
        assert len(said) == 6 - loads
        assert made.blocks == 8
    assert steps == [
        (0.5, 0.8, 1.0, 1.2, 1.5, 2.0),
        (0.8, 1.0, 1.2, 1.5, 2.0),
        (0.8, 1.2, 1.5, 2.0),
        (0.8, 1.2, 1.5),
        (0.8, 1.2),
    ]


def test_then_it_drops_blocks_down_to_six():
    """And says which."""
    made, said = trimmed(THREE, 1.0, 2 * 6 * 3)
    assert (made.loads, made.blocks) == ((0.8, 1.2), 6)
    assert said[-1] == "For the budget, block 7 is left out: 6 remain."
    assert faults(made) == []


def test_a_budget_that_is_enough_leaves_nothing_out():
    """The design comes back as it was."""
    assert trimmed(THREE, 1.0, 6 * 8 * 3) == (THREE, [])


def test_a_budget_below_the_least_is_refused():
    """With what the least takes."""
    with pytest.raises(BudgetError) as raised:
        trimmed(THREE, 10.0, 100.0)
    assert "36 runs" in message(raised)
    assert "take 360 s" in message(raised)
