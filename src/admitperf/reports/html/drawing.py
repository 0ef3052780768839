"""Vega-Lite as SVG that takes its colours from the page around it."""

import re
from typing import Any

from admitperf.reports.charts.theme import FAINT, GRID, INK, NAMES
from admitperf.reports.extra import needed

_FONT = "system-ui, sans-serif"
_CONFIG = {
    "background": None,
    "font": _FONT,
    "view": {"stroke": None},
    "axis": {
        "labelColor": INK,
        "titleColor": INK,
        "gridColor": GRID,
        "domainColor": FAINT,
        "tickColor": FAINT,
        "labelFontSize": 11,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "titlePadding": 10,
    },
    "legend": {
        "labelColor": INK,
        "titleColor": INK,
        "labelFontSize": 11,
        "titleFontSize": 11,
        "orient": "bottom",
        "columns": 4,
        "labelLimit": 260,
    },
    "title": {"color": INK, "fontSize": 12, "fontWeight": "normal", "anchor": "start"},
    "text": {"color": INK},
}
_COLOUR = re.compile(r'\b(fill|stroke)="(#[0-9a-f]{6})"')
_SIZE = re.compile(r' width="[\d.]+" height="[\d.]+" (viewBox="[^"]+")')
_ROLES = re.compile(r' (?:aria-[a-z]+|role)="[^"]*"')


def svg(chart: dict[str, Any], says: str) -> str:
    """A figure as an SVG element, to stand inside a page.

    Args:
        chart: Vega-Lite with its values inside; it is drawn without any network.
        says: what a reader who cannot see it is told.

    Raises:
        MissingExtra: vl-convert is not installed.
    """
    drawn: str = needed("vl_convert", "html").vegalite_to_svg(_configured(chart))
    drawn = _COLOUR.sub(_named, _ROLES.sub("", drawn))
    drawn = _SIZE.sub(r" \1", drawn, count=1)
    return drawn.replace("<svg ", f'<svg role="img" aria-label="{_quoted(says)}" ', 1)


def _configured(chart: dict[str, Any]) -> dict[str, Any]:
    return {**chart, "config": {**_CONFIG, **chart.get("config", {})}}


def _named(found: re.Match[str]) -> str:
    name = NAMES.get(found[2])
    return found[0] if name is None else f'{found[1]}="var(--{name})"'


def _quoted(text: str) -> str:
    for plain, written in (("&", "&amp;"), ('"', "&quot;"), ("<", "&lt;")):
        text = text.replace(plain, written)
    return text


def warm() -> None:
    """Starts the engine that draws; who is about to draw saves that time later."""
    needed("vl_convert", "html").vegalite_to_svg(
        {"data": {"values": [{}]}, "mark": "point"}
    )
