"""Arms side by side: their repeats, what tells them apart, and how they bear load."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from admitperf.reports.charts.over_time import AXIS
from admitperf.reports.charts.theme import (
    BOUND,
    DASHES,
    FAINT,
    HEIGHT,
    INK,
    SERIES,
    WIDTH,
)

Chart = dict[str, Any]

_ROW = 26
"""Plain choice, in CSS pixels: two lines of text are this far apart."""
_SHAPES = (
    "circle",
    "square",
    "triangle-up",
    "diamond",
    "cross",
    "triangle-down",
    "triangle-left",
    "triangle-right",
)
_NAMES = {"title": None, "labelLimit": 400, "labelPadding": 6, "grid": False}
_LETTER = 7.5
"""Plain choice, in CSS pixels: a letter of a label is narrower in most fonts."""
_WIDER = 2.2
"""Plain choice, in CSS pixels a letter: a reader's font may be wider than the one that
labels are measured in."""
_BESIDE = 0.008
"""Plain choice, in multiples of capacity: arms stand so far apart."""
_BESIDE_AT_MOST = 0.06
"""Plain choice, in multiples of capacity: from the first arm to the last."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A difference and what is known of it.

    Attributes:
        name: the row it stands in; no two are the same.
        value: None = there is none, and the row stays empty.
        low, high: its interval; None = no interval can be given.
        strong: whether it is what the others come to.
    """

    name: str
    value: float | None
    low: float | None = None
    high: float | None = None
    strong: bool = False


def repeats(rows: Sequence[tuple[str, Sequence[float]]], title: str) -> Chart:
    """A dot for each repeat, one row an arm.

    Args:
        rows: the values by name; no two names are the same.
        title: of the axis.
    """
    values = [{"name": name, "at": at} for name, many in rows for at in many]
    names = [name for name, _ in rows]
    return {
        "width": WIDTH,
        "padding": _room(names),
        "height": {"step": _ROW},
        "data": {"values": values},
        "mark": {
            "type": "point",
            "filled": True,
            "size": 70,
            "opacity": 0.6,
            "color": SERIES[0],
            "aria": False,
        },
        "encoding": {
            "x": _across("at", title) | {"scale": {"zero": False, "padding": 12}},
            "y": _down(names),
        },
    }


def forest(rows: Sequence[Estimate], title: str, margin: float | None = None) -> Chart:
    """Differences one below the other, with intervals, zero and the margin.

    Args:
        rows: in order from above.
        title: of the axis.
        margin: the smallest difference that matters; None = it is none of one size.
    """
    names = [one.name for one in rows]
    known = [_row(one) for one in rows if one.value is not None]
    across, down = _across("at", title), _down(names)
    whiskers = _layer(
        [row for row in known if row["low"] is not None],
        {"type": "rule", "strokeWidth": 2, "color": SERIES[0]},
        {"x": across | {"field": "low"}, "x2": {"field": "high"}, "y": down},
    )
    points = _layer(
        known,
        {"type": "point", "filled": True, "opacity": 1, "color": SERIES[0]},
        {
            "x": across,
            "y": down,
            "shape": _two("strong", ("diamond", "circle")),
            "size": _two("strong", (130, 55)),
        },
    )
    return {
        "width": WIDTH,
        "padding": _room(names),
        "height": {"step": _ROW},
        "layer": [*_zero(margin), whiskers, points],
    }


def against_load(
    curves: Sequence[tuple[str, Sequence[Mapping[str, Any]]]], title: str
) -> Chart:
    """A metric of every arm over multiples of capacity, with intervals.

    Arms stand a little beside each other, so that none hides another.

    Args:
        curves: of each arm its points: load, mean, and low and high of the interval,
            None where there is none.
        title: of the axis: the metric.
    """
    names = [arm for arm, _ in curves]
    values = [
        {"arm": arm, **point, "at": point["load"] + beside}
        for (arm, points), beside in zip(curves, _beside(len(names)), strict=True)
        for point in points
    ]
    x = _loads(values)
    y = {"field": "mean", "type": "quantitative", "title": title}
    colour = _named(names, SERIES)
    lines = _layer(
        values,
        {"type": "line", "strokeWidth": 2},
        {
            "x": x,
            "y": y,
            "color": colour,
            "strokeDash": _named(names, DASHES) | {"legend": None},
        },
    )
    bars = _layer(
        [one for one in values if one["low"] is not None],
        {"type": "rule", "strokeWidth": 1.5, "opacity": 0.7},
        {"x": x, "y": y | {"field": "low"}, "y2": {"field": "high"}, "color": colour},
    )
    points = _layer(
        values,
        {"type": "point", "filled": True, "size": 60, "opacity": 1},
        {"x": x, "y": y, "color": colour, "shape": _named(names, _SHAPES)},
    )
    return {
        "width": WIDTH,
        "height": 2 * HEIGHT,
        "layer": [*_capacity(values), bars, lines, points],
    }


def _beside(n: int) -> list[float]:
    """How far each of some arms stands from its load."""
    step = min(_BESIDE, _BESIDE_AT_MOST / max(n, 1))
    return [step * (place - (n - 1) / 2) for place in range(n)]


def _loads(values: Sequence[Mapping[str, Any]]) -> Chart:
    """The axis of loads: a label for each that was run."""
    return {
        "field": "at",
        "type": "quantitative",
        "title": "load, as a multiple of capacity",
        "scale": {"nice": False, "padding": 18, "zero": False},
        "axis": AXIS
        | {
            "values": sorted({one["load"] for one in values}),
            "format": "~g",
            "labelExpr": "datum.label + 'x'",
        },
    }


def _capacity(values: Sequence[Mapping[str, Any]]) -> list[Chart]:
    """A line at one times capacity, where loads lie on both sides of it."""
    loads = [one["load"] for one in values]
    if not loads or not min(loads) <= 1 <= max(loads):
        return []
    at = {"x": {"datum": 1.0, "type": "quantitative"}}
    rule = {"type": "rule", "color": FAINT, "strokeDash": [2, 3]}
    text = {
        "type": "text",
        "text": "capacity",
        "align": "left",
        "dx": 4,
        "dy": 8,
        "color": INK,
        "fontSize": 11,
    }
    return [
        _layer([{}], rule, at),
        _layer([{}], text, {**at, "y": {"value": 0}}),
    ]


def _zero(margin: float | None) -> list[Chart]:
    """The line of no difference, within the band of those that do not matter."""
    zero = _layer(
        [{"at": 0}],
        {"type": "rule", "color": BOUND, "strokeDash": [5, 3]},
        {"x": {"field": "at", "type": "quantitative"}},
    )
    if margin is None:
        return [zero]
    band = _layer(
        [{"from": -margin, "to": margin}],
        {"type": "rect", "color": FAINT, "opacity": 0.25},
        {"x": {"field": "from", "type": "quantitative"}, "x2": {"field": "to"}},
    )
    return [band, zero]


def _room(names: Sequence[str]) -> Chart:
    """Room on the left for what names are wider than they are taken for."""
    longest = max(map(len, names), default=0)
    return {"left": 5 + _WIDER * longest, "right": 8, "top": 5, "bottom": 5}


def _row(one: Estimate) -> dict[str, Any]:
    return {
        "name": one.name,
        "at": one.value,
        "low": one.low,
        "high": one.high,
        "strong": "yes" if one.strong else "no",
    }


def _across(field: str, title: str) -> Chart:
    return {"field": field, "type": "quantitative", "title": title, "axis": AXIS}


def _down(names: Sequence[str]) -> Chart:
    return {
        "field": "name",
        "type": "nominal",
        "axis": _NAMES,
        "scale": {"domain": list(names)},
    }


def _two(field: str, of: tuple[Any, Any]) -> Chart:
    """One of two looks, without a legend."""
    scale = {"domain": ["yes", "no"], "range": list(of)}
    return {"field": field, "type": "nominal", "scale": scale, "legend": None}


def _named(names: Sequence[str], looks: Sequence[Any]) -> Chart:
    """A look for each name; they come round again when there are more names."""
    return {
        "field": "arm",
        "type": "nominal",
        "title": None,
        "legend": {
            "columns": _columns(names),
            "columnPadding": 24,
            "labelLimit": 400,
            "symbolOpacity": 1,
            "symbolStrokeWidth": 0,
        },
        "scale": {
            "domain": list(names),
            "range": [looks[place % len(looks)] for place in range(len(names))],
        },
    }


def _columns(names: Sequence[str]) -> int:
    """Of a legend, so that it is as wide as the plot."""
    longest = max(map(len, names), default=1)
    return max(int(WIDTH / (_LETTER * longest + 45)), 1)


def _layer(values: Sequence[Mapping[str, Any]], mark: Chart, encoding: Chart) -> Chart:
    return {
        "data": {"values": list(values)},
        "mark": {**mark, "aria": False},
        "encoding": encoding,
    }
