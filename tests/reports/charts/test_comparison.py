"""Arms side by side: what is drawn, and that it can be read."""

import json
import re

import pytest

from admitperf.reports.charts.comparison import (
    Estimate,
    against_load,
    forest,
    repeats,
)
from admitperf.reports.html.drawing import svg

LONG = "a policy whose name is very long indeed"
POINTS = [
    {"load": 0.8, "mean": 0.9, "low": 0.8, "high": 1.0},
    {"load": 1.2, "mean": 0.5, "low": None, "high": None},
]


def all_of(chart):
    """The values of every layer."""
    layers = chart.get("layer", [chart])
    return [value for layer in layers for value in layer["data"]["values"]]


def test_every_repeat_is_a_dot():
    """In the row of its arm, also where an arm has none."""
    chart = repeats([("a", [0.1, 0.2]), ("b", [])], "goodput")
    assert all_of(chart) == [{"name": "a", "at": 0.1}, {"name": "a", "at": 0.2}]
    assert chart["encoding"]["y"]["scale"]["domain"] == ["a", "b"]


def test_the_margin_is_a_band_around_zero():
    """Where there is a margin; zero is always there."""
    rows = [Estimate("a", 0.2, 0.1, 0.3)]
    assert {"from": -0.01, "to": 0.01} in all_of(forest(rows, "difference", 0.01))
    bare = all_of(forest(rows, "difference"))
    assert {"at": 0} in bare
    assert not any("from" in value for value in bare)


def test_a_row_without_a_value_stays_empty():
    """And one without an interval has no line."""
    chart = forest([Estimate("a", None), Estimate("b", 0.2)], "difference")
    whiskers, points = chart["layer"][-2:]
    assert whiskers["data"]["values"] == []
    assert [value["name"] for value in points["data"]["values"]] == ["b"]
    assert points["encoding"]["y"]["scale"]["domain"] == ["a", "b"]


def test_a_point_without_an_interval_has_no_line():
    """An interval that is not known is not one of no width."""
    _, bars, lines, points = against_load([("a", POINTS)], "goodput")["layer"][-4:]
    assert len(bars["data"]["values"]) == 1
    assert len(lines["data"]["values"]) == len(points["data"]["values"]) == 2


def test_loads_are_named_as_multiples_and_where_they_are():
    """Only those that were run have a label."""
    chart = against_load([("a", POINTS), ("b", POINTS)], "goodput")
    axis = chart["layer"][-1]["encoding"]["x"]["axis"]
    assert axis["values"] == [0.8, 1.2]
    drawn = svg(chart, "1")
    assert ">0.8x<" in drawn
    assert ">1.2x<" in drawn


@pytest.mark.parametrize(
    "chart",
    [
        repeats([(LONG, [0.1, 0.2])], "goodput"),
        forest([Estimate(LONG, 0.1)], "difference", 0.01),
    ],
    ids=["repeats", "forest"],
)
def test_a_long_name_is_whole_also_in_a_wide_font(chart):
    """7 px a letter at 11 px, as in the widest of common fonts."""
    drawn = svg(chart, "1")
    assert f">{LONG}<" in drawn
    left, _, width, _ = map(float, re.search(r'viewBox="([^"]+)"', drawn)[1].split())
    assert left == 0
    plot = chart["width"]
    assert width - plot - 30 > 7 * len(LONG)


def test_many_arms_fit_a_legend_and_take_looks_again():
    """A column for long names, more for short ones."""
    for name, columns in (("x" * 80, 1), ("ab", 8)):
        chart = against_load([(f"{name}{n}", POINTS) for n in range(20)], "goodput")
        colour = chart["layer"][-1]["encoding"]["color"]
        assert colour["legend"]["columns"] == columns
        assert len(colour["scale"]["range"]) == 20


@pytest.mark.parametrize(
    "chart",
    [
        repeats([], "goodput"),
        forest([], "difference", 0.01),
        against_load([("a", [])], "goodput"),
    ],
    ids=["repeats", "forest", "loads"],
)
def test_nothing_can_be_drawn_too(chart):
    """An empty plot, not an error."""
    json.dumps(chart, allow_nan=False)
    assert svg(chart, "1").startswith("<svg ")
