"""Vega-Lite as SVG that takes its colours from the page."""

import re

import pytest

from admitperf.core.errors import MissingExtra
from admitperf.reports.charts.over_time import Bound, signal
from admitperf.reports.charts.theme import NAMES
from admitperf.reports.extra import needed
from admitperf.reports.html import drawing

GRID = {"bin_s": 1.0, "from_s": [0.0, 1.0, 2.0]}
CHART = signal(GRID, ([1, 2, 3], [2, 3, 4], [3, 4, 5]), "x", [Bound(4.5, ">= 4.5")])


def test_every_colour_is_a_name():
    """So that one drawing is right on light, on dark and on paper."""
    svg = drawing.svg(CHART, "says 1")
    colours = set(re.findall(r'(?:fill|stroke)="(#[0-9a-fA-F]+)"', svg))
    assert not colours & set(NAMES)
    assert 'stroke="var(--s1)"' in svg
    assert 'stroke="var(--bound)"' in svg


def test_it_scales_and_says_what_it_shows():
    """A view box without a fixed size; one name, on the outside."""
    svg = drawing.svg(CHART, 'A "quote" & <tag>')
    (head,) = re.findall(r'^<svg (?:[^>"]|"[^"]*")*>', svg)
    assert "viewBox" in head
    assert " width=" not in head
    assert 'aria-label="A &quot;quote&quot; &amp; &lt;tag>"' in svg
    assert svg.count("aria-label") == 1
    assert svg.count('role="') == 1


def test_it_is_the_same_each_time():
    """Two pages on one log can be compared."""
    assert drawing.svg(CHART, "x") == drawing.svg(CHART, "x")


def test_warming_draws_nothing_anyone_sees():
    """It only starts the engine."""
    assert drawing.warm() is None


def test_a_missing_package_is_named_with_its_extra():
    """One line that says what to install."""
    with pytest.raises(MissingExtra, match=r"admitperf\[html\]: pip install jinja2"):
        needed("no_such_package_of_ours", "html")
