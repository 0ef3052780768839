"""Ranges side by side, and histograms."""

import altair as alt
from tests.reports.chart_parts import labels, layers

from admitperf.reports.charts.distributions import Range, histogram, ranges
from admitperf.reports.charts.over_time import Bound

EDGES = {"edges": [10.0, 100.0, 1000.0], "counts": [3, 1], "n": 4}


def test_each_range_has_an_axis_of_its_own():
    """Signals of several units cannot share one."""
    chart = ranges(
        [
            Range("kv_pressure (fraction)", 0.1, 0.9, ((0.5, "circle"),)),
            Range("queue_depth (requests)", 0, 60, (), (Bound(32, "> 32"),)),
        ]
    )
    alt.Chart.from_dict(chart)
    assert [one["title"]["text"] for one in chart["vconcat"]] == [
        "kv_pressure (fraction)",
        "queue_depth (requests)",
    ]
    assert labels(chart) == ["> 32"]


def test_a_label_near_the_end_stands_before_its_bound():
    """Else it would stick out of the plot."""
    chart = ranges([Range("x", 0, 1, (), (Bound(0.95, ">= 0.95"),))])
    (text,) = (one for one in layers(chart) if one["mark"]["type"] == "text")
    assert text["mark"]["align"] == "right"


def test_a_histogram_draws_every_count_between_its_edges():
    """One bar for each, none left out."""
    chart = histogram(EDGES, "TTFT (ms)", [Bound(500, "ttft_ms 500")])
    alt.Chart.from_dict(chart)
    assert chart["layer"][0]["data"]["values"] == [
        {"from": 10.0, "to": 100.0, "n": 3},
        {"from": 100.0, "to": 1000.0, "n": 1},
    ]
    assert labels(chart) == ["ttft_ms 500"]
    assert chart["layer"][0]["encoding"]["y2"] == {"datum": 0}, "bars stand on 0"


def test_a_wide_range_has_a_logarithmic_axis_that_says_so():
    """A narrow one, or one that begins at 0, has not."""

    def axis(edges):
        one = histogram({**EDGES, "edges": edges}, "TTFT (ms)")["layer"][0]
        x = one["encoding"]["x"]
        return x["scale"].get("type"), x["title"]

    assert axis([10.0, 100.0, 1000.0]) == ("log", "TTFT (ms), log scale")
    assert axis([10.0, 20.0, 30.0]) == (None, "TTFT (ms)")
    assert axis([0.0, 20.0, 3000.0]) == (None, "TTFT (ms)")
