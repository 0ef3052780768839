"""Dots on an axis, and tables as wide as they need."""

from admitperf.reports.pages.columns import aligned
from admitperf.reports.pages.sketch import sketch


def test_every_value_has_its_place_on_one_axis():
    """The lowest of all at the left end, the highest at the right."""
    one, two, axis = sketch({"a": [0.2, 0.3], "longer": [0.6, 0.6]}, columns=9)
    assert one == "a      |o o      |"
    assert two == "longer |        2|"
    assert axis == "       0.200 0.600"


def test_equal_values_stand_in_the_middle():
    """There is no axis to speak of."""
    one, _ = sketch({"a": [0.5, 0.5, 0.5]}, columns=9)
    assert one == "a |    3    |"


def test_more_than_nine_at_one_place():
    """One column, one mark."""
    one, _ = sketch({"a": [0.5] * 12 + [1.0]}, columns=5)
    assert one == "a |#   o|"


def test_nothing_gives_nothing():
    """No repeat has a goodput."""
    assert list(sketch({"a": [], "b": []})) == []
    one, two, _ = sketch({"a": [], "b": [1.0]}, columns=5)
    assert (one, two) == ("a |     |", "b |  o  |")


def test_a_table_keeps_to_80_columns():
    """The first column is cut, and it shows."""
    head, line = aligned([["name", "a", "bb"], ["x" * 90, "1" * 20, "2"]])
    assert len(head) == len(line) == 80
    assert line.startswith(f"  {'x' * 51}~  {'1' * 20}   2")
    assert head.endswith("a  bb")
