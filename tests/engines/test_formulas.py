"""Ratios, products and rates of what several series hold."""

import math

import pytest

from admitperf.core.series import Series
from admitperf.core.window import Window
from admitperf.engines.engine import Counter
from admitperf.engines.exposition import parse
from admitperf.engines.formulas import (
    folded,
    per_engine,
    per_second,
    product,
    share,
    summed,
    total,
)

USED = 'used{{engine="{}",pid="{}"}} {}\n'
ROOM = 'room{{engine="{}",pid="{}"}} {}\n'


def series(*lines):
    """A page of these lines."""
    return Series(parse("".join(lines)))


@pytest.mark.parametrize("values", [(3, 7), (7, 3)])
def test_the_largest_over_repeats_counts(values):
    """Series that differ in a repeat label only are one engine's, in any order."""
    lines = [USED.format(0, pid, value) for pid, value in enumerate(values)]
    page = series(*lines, USED.format(1, 0, 2))
    assert per_engine(page, "used") == {
        (("engine", "0"),): 7.0,
        (("engine", "1"),): 2.0,
    }
    assert total(page)(Counter("used")) == 9.0


def test_labels_that_tell_quantities_apart_can_be_left_out():
    """What a label picks out is one quantity; the label is no engine's name."""
    page = series('x{kind="a",model="m"} 1\n', 'x{kind="b",model="m"} 2\n')
    only_b = per_engine(page, "x", (("kind", ("b",)),), ("kind",))
    assert only_b == {(("model", "m"),): 2.0}


def test_an_engine_without_room_is_left_out_of_a_share():
    """No capacity, or one of 0, says nothing and spoils nothing."""
    page = series(
        USED.format(0, 1, 5), ROOM.format(0, 1, 10),
        USED.format(1, 1, 5), ROOM.format(1, 1, 0),
        USED.format(2, 1, 5),
    )  # fmt: skip
    assert share("used", "room")(page, Window.EMPTY).value == 0.5
    assert share("used", "absent")(page, Window.EMPTY) is None


def test_a_product_needs_both_factors_of_an_engine():
    """Each engine by its own factor, then summed."""
    page = series(
        USED.format(0, 1, 5), ROOM.format(0, 1, 10),
        USED.format(1, 1, 5), ROOM.format(1, 1, 20),
        USED.format(2, 1, 5),
    )  # fmt: skip
    found = product("used", "room")(page, Window.EMPTY)
    assert found.value == 150.0
    assert found.parts == {"engine=0": 50.0, "engine=1": 100.0}


@pytest.mark.parametrize(("how", "value"), [("sum", 1.5), ("max", 0.9), ("mean", 0.75)])
def test_folding_keeps_the_parts(how, value):
    """One value for all, and each engine's beside it, named by what differs."""
    values = {
        (("engine", "0"), ("model", "m")): 0.6,
        (("engine", "1"), ("model", "m")): 0.9,
    }
    found = folded(values, how)
    assert found.value == pytest.approx(value)
    assert found.parts == {"engine=0": 0.6, "engine=1": 0.9}


def test_one_engine_has_no_parts_and_none_no_value():
    """Parts are for telling apart."""
    assert folded({(): 0.5}, "mean").parts == {}
    assert folded({}, "sum") is None


@pytest.mark.parametrize("seconds", [0.0, -1.0])
def test_no_time_no_rate(seconds):
    """A rate over nothing is not known."""
    before, after = series("n_total 1\n"), series("n_total 3\n")
    formula = per_second(Counter("n_total"))
    assert formula(after, Window.between(before, after, seconds)) is None
    assert formula(after, Window.between(before, after, 4.0)) == 0.5


def test_a_sum_too_large_for_a_float_is_infinite():
    """It does not raise, and no signal accepts it."""
    assert summed([1e308, 1e308]) == math.inf
    assert summed([0.1] * 10) == 1.0
