"""Lengths of time as people type them."""

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from admitperf.cli.duration import Duration, seconds_of, spoken


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("5m", 300), ("1h", 3600), ("1h30m", 5400), ("250ms", 0.25),
     ("2d", 172_800), ("1.5h", 5400), ("7", 7), ("0.5", 0.5), (" 5M ", 300)],
)  # fmt: skip
def test_a_duration_is_read(text, seconds):
    """Parts add up; a bare number is seconds; capitals are as good."""
    assert seconds_of(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "h", "1 h", "-5s", "1h30", "1y", "nan", "1e3s"])
def test_what_is_no_duration_is_refused(text):
    """A fault is a usage error that shows how it is written."""
    assert seconds_of(text) is None
    with pytest.raises(click.BadParameter, match="90s, 5m or 1h30m"):
        Duration(0, 10).convert(text, None, None)


def test_a_duration_out_of_bounds_is_refused():
    """With its bounds, as one would type them."""
    with pytest.raises(click.BadParameter, match="between 50ms and 1h"):
        Duration(0.05, 3600).convert("2h", None, None)


@given(st.integers(0, 10**7))
def test_what_is_spoken_is_read_back(seconds):
    """`1h30m` is what 5400 seconds are called, and `0s` nothing."""
    assert seconds_of(spoken(seconds)) == seconds
