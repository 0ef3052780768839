"""Colours and lines that every figure shares.

Colours are stand-ins: on paper, on a light and on a dark screen each is replaced by the
one of its name, see `html/page.css`. The eight are apart for colour-blind readers too.
Source: Okabe and Ito, "Color Universal Design" (2008), yellow darkened for white paper.
"""

INK = "#2f3437"
FAINT = "#8a9196"
GRID = "#dfe3e6"
SERIES = (
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#cc79a7",
    "#e69f00",
    "#56b4e9",
    "#7a5195",
    "#a08a00",
)
BOUND = "#c0392b"
"""Of bounds, whatever else is drawn: they are dashed too."""

NAMES = {
    INK: "ink",
    FAINT: "faint",
    GRID: "grid",
    BOUND: "bound",
    **{colour: f"s{place}" for place, colour in enumerate(SERIES, 1)},
}
"""What each stand-in is called in a style sheet."""

DASHES = ([1, 0], [6, 3], [2, 2], [8, 2, 2, 2], [4, 4], [1, 3], [10, 3], [6, 2, 1, 2])
"""One for each colour, so that lines differ without it."""

WIDTH = 640
HEIGHT = 170
"""Plain choice, in CSS pixels: fits a column of text; figures scale with the page."""
