"""How quantities were spread: ranges side by side, and histograms."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from admitperf.reports.charts.over_time import AXIS, Bound, Chart, at_bounds
from admitperf.reports.charts.theme import FAINT, HEIGHT, SERIES, WIDTH

_ROW = 36
_BAR = 9
_WIDE = 5
"""Plain choice: from this ratio of its ends on, an axis is logarithmic."""


@dataclass(frozen=True, slots=True)
class Range:
    """A quantity on an axis of its own.

    Attributes:
        name: what stands above the axis, with the unit.
        low, high: its ends.
        marked: values between them, each with the shape it is drawn as.
        bounds: what it was compared with.
    """

    name: str
    low: float
    high: float
    marked: tuple[tuple[float, str], ...]
    bounds: tuple[Bound, ...] = ()


def ranges(rows: Sequence[Range]) -> Chart:
    """Bars from the smallest to the largest value, one below the other."""
    return {"spacing": 14, "vconcat": [_row(one) for one in rows]}


def _row(one: Range) -> Chart:
    x = {
        "type": "quantitative",
        "title": None,
        "scale": {"nice": True},
        "axis": AXIS,
    }
    bar = {
        "data": {"values": [{"low": one.low, "high": one.high}]},
        "mark": {
            "type": "rule",
            "color": SERIES[0],
            "strokeWidth": _BAR,
            "opacity": 0.45,
            "aria": False,
        },
        "encoding": {"x": x | {"field": "low"}, "x2": {"field": "high"}},
    }
    marks = [
        {
            "data": {"values": [{"at": at}]},
            "mark": {
                "type": "point",
                "shape": shape,
                "filled": True,
                "opacity": 1,
                "color": SERIES[0],
                "size": 70,
                "aria": False,
            },
            "encoding": {"x": x | {"field": "at"}},
        }
        for at, shape in one.marked
    ]
    return {
        "title": {"text": one.name, "frame": "group", "anchor": "start"},
        "width": WIDTH,
        "height": _ROW,
        "layer": [bar, *marks, *at_bounds(one.bounds, "x", (one.low, one.high))],
        "view": {"stroke": FAINT},
    }


def histogram(
    found: Mapping[str, Any], title: str, bounds: Sequence[Bound] = ()
) -> Chart:
    """How many values fell between each two edges.

    Args:
        found: a histogram of a document, with at least one count.
        title: of the axis: the quantity and its unit.
        bounds: of the SLO.
    """
    edges = found["edges"]
    values = [
        {"from": low, "to": high, "n": n}
        for low, high, n in zip(edges, edges[1:], found["counts"], strict=False)
        if n
    ]
    log = edges[-1] > _WIDE * edges[0] > 0
    scale = {"type": "log"} if log else {"zero": True}
    bars = {
        "data": {"values": values},
        "mark": {"type": "rect", "color": SERIES[0], "opacity": 0.75, "aria": False},
        "encoding": {
            "x": {
                "field": "from",
                "type": "quantitative",
                "title": f"{title}, log scale" if log else title,
                "scale": scale | {"nice": False},
                "axis": AXIS,
            },
            "x2": {"field": "to"},
            "y": {"field": "n", "type": "quantitative", "title": "outcomes"},
            "y2": {"datum": 0},
        },
    }
    span = (edges[0], edges[-1])
    return {
        "width": WIDTH,
        "height": HEIGHT,
        "layer": [bars, *at_bounds(bounds, "x", span, _ABOVE)],
    }


_ABOVE = {"align": "center", "y": 0, "dx": 0, "dy": -4}
"""Where the label of a bound hides no bar."""
