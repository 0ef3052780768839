"""Rows and sentences of a text page as blocks."""

from admitperf.reports.sheets.said import blocks
from admitperf.reports.sheets.sheet import Rows, Words


def test_rows_that_follow_one_another_are_together():
    """In order; a sentence between them parts them."""
    assert blocks([("a", "1"), ("b", "2"), "Then.", ("c", "3")]) == (
        Rows((("a", "1"), ("b", "2"))),
        Words("Then."),
        Rows((("c", "3"),)),
    )


def test_a_row_without_a_name_goes_on_with_the_one_before():
    """As on paper, where it stands below it; one at the beginning stands alone."""
    assert blocks([("a", "1"), ("", "2")]) == (Rows((("a", "1; 2"),)),)
    assert blocks([("", "2")]) == (Rows((("", "2"),)),)


def test_nothing_makes_no_block():
    """An empty list is none."""
    assert blocks([]) == ()
