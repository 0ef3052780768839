"""What happened when, as stairs: one step for each bin of time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from admitperf.reports.charts.theme import BOUND, DASHES, HEIGHT, SERIES, WIDTH

Chart = dict[str, Any]
Values = Sequence[float | None]

AXIS = {"labelFlush": False, "labelOverlap": True, "tickCount": 8}
"""Of time and of quantities from left to right: labels keep their distance."""
_SINCE = "s since the first decision"
_FAR = 0.9
_NEAR = 0.08
"""Plain choice, of the axis: bounds closer than this have their labels on two sides."""


@dataclass(frozen=True, slots=True)
class Bound:
    """A bound that stood still.

    Attributes:
        at: where, in the unit of what it bounds.
        label: what is written beside it, such as ">= 0.9".
    """

    at: float
    label: str


def signal(
    grid: Mapping[str, Any],
    values: tuple[Values, Values, Values],
    title: str,
    bounds: Sequence[Bound] = (),
    moving: Sequence[tuple[Values, Values]] = (),
) -> Chart:
    """A signal over time: a band from the smallest to the largest value, and the mean.

    Args:
        grid: of a series in a document.
        values: smallest, mean and largest of each bin; None where there are none.
        title: of the axis: the signal and its unit.
        bounds: of its gates, those that stood still.
        moving: smallest and largest in each bin of those that moved.
    """
    low, mean, high = values
    steps = _steps(grid, {"low": low, "mean": mean, "high": high})
    y = {
        "type": "quantitative",
        "title": title,
        "scale": _scale(low, high),
        "axis": {"titleLimit": HEIGHT},
    }
    band = _mark("area", steps, _x(grid), y | {"field": "low"}, {"field": "high"})
    band["mark"] |= {"color": SERIES[0], "opacity": 0.3}
    line = _mark("line", steps, _x(grid), y | {"field": "mean"})
    line["mark"] |= {"color": SERIES[0], "strokeWidth": 1.5, "strokeCap": "round"}
    drawn = [layer for pair in moving for layer in _moving(grid, pair, y)]
    return _layered([band, line, *drawn, *at_bounds(bounds, "y", _span(low, high))])


def answers(
    grid: Mapping[str, Any], counted: Sequence[tuple[str, Sequence[int]]]
) -> Chart:
    """How many decisions were answered how, one above the other.

    Args:
        grid: of a series in a document.
        counted: each answer with its number in each bin; the first stands lowest.
    """
    steps: list[dict[str, Any]] = []
    base = [0] * len(grid["from_s"])
    for name, n in counted:
        top = [under + one for under, one in zip(base, n, strict=True)]
        some = _steps(grid, {"from": base, "to": top})
        steps += [{**step, "answer": name} for step in some]
        base = top
    y = {"type": "quantitative", "title": f"decisions in {grid['bin_s']:g} s"}
    area = _mark("area", steps, _x(grid), y | {"field": "from"}, {"field": "to"})
    area["mark"]["opacity"] = 0.5
    edge = _mark("line", steps, _x(grid), y | {"field": "to"})
    edge["mark"]["strokeWidth"] = 2
    names = [name for name, _ in counted]
    for layer in (area, edge):
        layer["encoding"]["color"] = _named("answer", names, SERIES)
    edge["encoding"]["strokeDash"] = _named("answer", names, DASHES)
    return _layered([area, edge])


def goodput(grid: Mapping[str, Any], shares: Values) -> Chart:
    """Goodput of what arrived in each bin.

    Args:
        grid: of a series in a document.
        shares: of what was offered; None where nothing was.
    """
    y = {
        "field": "share",
        "type": "quantitative",
        "title": "goodput of attempts",
        "scale": {"domain": [0, 1]},
        "axis": {"format": ".0%"},
    }
    line = _mark("line", _steps(grid, {"share": shares}), _x(grid), y)
    line["mark"] |= {"color": SERIES[2], "strokeWidth": 2}
    return _layered([line])


# ------------------------------------------------------------------------- bounds


def at_bounds(
    bounds: Sequence[Bound],
    axis: str,
    span: tuple[float, float],
    place: Mapping[str, Any] | None = None,
) -> list[Chart]:
    """Dashed lines with labels.

    Args:
        bounds: which; those too far off to be drawn are left out, see `in_reach`.
        axis: "x" or "y".
        span: smallest and largest value that is drawn beside them.
        place: of the labels, in the terms of Vega-Lite; None = beside the line.
    """
    drawn: list[Chart] = []
    before: Bound | None = None
    seen = sorted(in_reach(bounds, span), key=lambda bound: bound.at)
    most = max((span[1], *(one.at for one in seen)))
    wide = most - min((span[0], 0.0, *(one.at for one in seen)))
    for one in seen:
        near = before is not None and one.at - before.at < _NEAR * wide
        late = axis == "x" and most - one.at < _LATE * wide
        beside = {"align": "right", "dx": -3} if late else {}
        drawn += _at(one, axis, place or beside, near)
        before = one
    return drawn


def in_reach(bounds: Sequence[Bound], span: tuple[float, float]) -> list[Bound]:
    """The bounds that fit on an axis without squeezing the values to a line."""
    most = _REACH * max(abs(span[0]), abs(span[1]), span[1] - span[0])
    return [one for one in bounds if abs(one.at) <= most or one.at == 0]


_REACH = 20
"""Plain choice: so far values take a twentieth of the axis at the least."""


_LATE = 0.15
"""Plain choice, of the axis: a label of a bound nearer to its end stands before it."""


def _at(one: Bound, axis: str, place: Mapping[str, Any], aside: object) -> list[Chart]:
    data = {"values": [{"at": one.at, "label": one.label}]}
    at = {axis: {"field": "at", "type": "quantitative"}}
    rule = {
        "data": data,
        "mark": {"type": "rule", "color": BOUND, "strokeDash": [6, 3], "aria": False},
        "encoding": at,
    }
    text = {
        "data": data,
        "mark": {
            "type": "text",
            "color": BOUND,
            "aria": False,
            "baseline": "bottom",
            **_PLACES[axis, bool(aside)],
            **place,
        },
        "encoding": {**at, "text": {"field": "label"}},
    }
    return [rule, text]


_PLACES: dict[tuple[str, bool], dict[str, Any]] = {
    ("y", False): {"align": "right", "x": WIDTH, "dx": -2, "dy": -3},
    ("y", True): {"align": "left", "x": 0, "dx": 4, "dy": -3},
    ("x", False): {"align": "left", "y": 0, "dx": 3, "dy": 12},
    ("x", True): {"align": "left", "y": 0, "dx": 3, "dy": 26},
}


def _moving(
    grid: Mapping[str, Any], pair: tuple[Values, Values], y: Chart
) -> list[Chart]:
    steps = _steps(grid, {"least": pair[0], "most": pair[1]})
    drawn = []
    for end in ("least", "most"):
        line = _mark("line", steps, _x(grid), y | {"field": end})
        line["mark"] |= {"color": BOUND, "strokeDash": [6, 3], "strokeWidth": 1.2}
        drawn.append(line)
    return drawn


# -------------------------------------------------------------------------- parts


def _steps(grid: Mapping[str, Any], columns: Mapping[str, Values]) -> list[Chart]:
    """One point at the beginning of each step, one at the end before a gap."""
    steps: list[Chart] = []
    went_on = False
    for start, *values in zip(grid["from_s"], *columns.values(), strict=True):
        here = dict(zip(columns, values, strict=True))
        known = all(value is not None for value in values)
        if went_on and not known:
            steps += [{**steps[-1], "t": start}, {"t": start, **here}]
        elif known:
            steps.append({"t": start, **here})
        went_on = known
    if went_on:
        steps.append({**steps[-1], "t": end_s(grid)})
    return steps


def end_s(grid: Mapping[str, Any]) -> float:
    """Where the last bin ends, in s from the first decision."""
    end: float = grid["from_s"][-1] + grid["bin_s"]
    return end


def _span(low: Values, high: Values) -> tuple[float, float]:
    known = [value for value in (*low, *high) if value is not None]
    return (min(known), max(known)) if known else (0.0, 0.0)


def _scale(low: Values, high: Values) -> Chart:
    """From 0, unless that would leave a tenth of the axis to the values."""
    least, most = _span(low, high)
    return {
        "zero": not (0 < 0.9 * most < least or least < 0.9 * most < 0),
        "nice": True,
    }


def _x(grid: Mapping[str, Any]) -> Chart:
    return {
        "field": "t",
        "type": "quantitative",
        "title": _SINCE,
        "scale": {"domain": [0, end_s(grid)], "nice": False},
        "axis": AXIS,
    }


def _mark(
    kind: str, values: list[Chart], x: Chart, y: Chart, y2: Chart | None = None
) -> Chart:
    made: Chart = {
        "data": {"values": values},
        "mark": {"type": kind, "interpolate": "step-after", "aria": False},
        "encoding": {"x": x, "y": y},
    }
    if y2 is not None:
        made["encoding"]["y2"] = y2
    return made


def _named(field: str, names: Sequence[str], palette: Sequence[Any]) -> Chart:
    some = [palette[place % len(palette)] for place in range(len(names))]
    return {
        "field": field,
        "type": "nominal",
        "title": None,
        "sort": list(names),
        "scale": {"domain": list(names), "range": some},
        "legend": {"symbolType": "stroke", "symbolStrokeWidth": 3, "symbolSize": 300},
    }


def _layered(layers: list[Chart]) -> Chart:
    return {"width": WIDTH, "height": HEIGHT, "layer": layers}
