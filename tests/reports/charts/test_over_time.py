"""Stairs over time, as Vega-Lite that Altair accepts."""

import math

import altair as alt
import pytest
from tests.reports.chart_parts import labels, layers, points
from tests.reports.example_sheets import example_sheet, figures
from tests.reports.examples import PAGES

from admitperf.reports.charts import over_time
from admitperf.reports.charts.over_time import Bound
from admitperf.reports.charts.theme import BOUND, NAMES

GRID = {"bin_s": 2.0, "from_s": [0.0, 2.0, 4.0, 6.0]}


@pytest.mark.parametrize("name", PAGES)
def test_every_figure_is_vega_lite(name):
    """By the schema that Altair carries; the dashboard draws the same one."""
    for figure in figures(example_sheet(name)):
        alt.Chart.from_dict(figure.chart)


@pytest.mark.parametrize("name", PAGES)
def test_a_figure_leaves_colours_and_voice_to_the_page(name):
    """Colours have a name in the style sheet, and marks say nothing one by one."""
    for figure in figures(example_sheet(name)):
        assert "config" not in figure.chart
        for layer in layers(figure.chart):
            assert layer["mark"]["aria"] is False
            assert layer["mark"].get("color", BOUND) in NAMES


def test_a_step_lasts_as_long_as_its_bin():
    """The last one ends where its bin does."""
    chart = over_time.goodput(GRID, [0.5, 0.25, 1.0, 0.0])
    assert [(one["t"], one["share"]) for one in points(chart, "line")] == [
        (0, 0.5),
        (2, 0.25),
        (4, 1.0),
        (6, 0.0),
        (8, 0.0),
    ]


def test_nothing_is_drawn_where_nothing_is_known():
    """A gap is a gap, and a bin alone between two gaps is still there."""
    chart = over_time.goodput(GRID, [None, 0.5, None, 0.25])
    assert [(one["t"], one["share"]) for one in points(chart, "line")] == [
        (2, 0.5),
        (4, 0.5),
        (4, None),
        (6, 0.25),
        (8, 0.25),
    ]


def test_answers_stand_on_one_another():
    """The highest edge is all that was offered."""
    chart = over_time.answers(GRID, [("admit", [3, 2, 0, 1]), ("defer", [0, 1, 4, 1])])
    tops = {
        (one["answer"], one["t"]): (one["from"], one["to"])
        for one in points(chart, "area")
    }
    assert tops["admit", 4] == (0, 0)
    assert tops["defer", 2] == (2, 3)
    assert tops["defer", 4] == (0, 4)


def test_answers_differ_without_colour():
    """Each has a dash of its own."""
    names = [(f"reject r{place}", [1, 1, 1, 1]) for place in range(8)]
    edge = over_time.answers(GRID, names)["layer"][1]["encoding"]["strokeDash"]
    dashes = edge["scale"]["range"]
    assert len({tuple(dash) for dash in dashes}) == len(edge["scale"]["domain"]) == 8


VALUES = ([0.1, None, 0.2, 0.3], [0.2, None, 0.2, 0.4], [0.3, None, 0.2, 0.44])


def test_bounds_are_drawn_and_named():
    """Dashed and labelled, also one far above all values."""
    chart = over_time.signal(GRID, VALUES, "x", [Bound(0.9, ">= 0.9")])
    rule = next(one for one in layers(chart) if one["mark"]["type"] == "rule")
    assert rule["mark"]["strokeDash"]
    assert rule["data"]["values"][0]["at"] == 0.9
    assert labels(chart) == [">= 0.9"]


def test_a_bound_that_would_squeeze_the_values_is_left_out():
    """A billion beside 60 would make a line of them; the figure says so instead."""
    far = [Bound(1e9, "> 1e+09"), Bound(0.0, "> 0")]
    assert labels(over_time.signal(GRID, VALUES, "x", far)) == ["> 0"]


def test_labels_of_close_bounds_stand_apart():
    """On two sides of the plot."""
    close = [Bound(0.9, ">= 0.9"), Bound(0.91, ">= 0.91")]
    chart = over_time.signal(GRID, VALUES, "x", close)
    sides = [
        one["mark"]["align"] for one in layers(chart) if one["mark"]["type"] == "text"
    ]
    assert sorted(sides) == ["left", "right"]


def test_an_axis_begins_at_0_unless_that_hides_the_course():
    """Values within a tenth of their size have the axis to themselves."""

    def zero(low, high):
        made = over_time.signal(GRID, ([low] * 4, [low] * 4, [high] * 4), "x")
        return made["layer"][0]["encoding"]["y"]["scale"]["zero"]

    assert zero(0.5, 1.0)
    assert not zero(9990.0, 10000.0)
    assert not zero(-10000.0, -9990.0)
    assert zero(-1.0, 1.0)


def test_a_signal_without_values_is_no_fault():
    """Nothing is drawn, and nothing is divided by."""
    none = [None] * 4
    chart = over_time.signal(GRID, (none, none, none), "x", [Bound(0.0, "> 0")])
    assert points(chart, "line") == []
    assert not math.isnan(over_time.end_s(GRID))
