"""Bins of time that a person can read."""

from hypothesis import given
from hypothesis import strategies as st

from admitperf.reports.series.grid import Grid, width


@given(st.integers(0, 2**62), st.integers(1, 300))
def test_a_width_is_round_and_the_least_that_is_enough(span_us, most):
    """1, 2 or 5 times a power of ten; the next finer one would take too many bins."""
    chosen = width(span_us, most)
    digits = str(chosen)
    assert digits.rstrip("0") in ("1", "2", "5")
    assert span_us // chosen + 1 <= most
    finer = {"1": chosen // 2, "2": chosen // 2, "5": chosen * 2 // 5}[digits[0]]
    assert finer == 0 or span_us // finer + 1 > most


@given(st.integers(0, 10**13), st.integers(1, 300))
def test_bins_cover_the_span_without_gaps(span_us, most):
    """They begin at the first decision, and the last decision is in the last bin."""
    grid = Grid.over(span_us, most)
    assert len(grid.from_s) <= most
    assert grid.from_s[0] == 0
    assert grid.from_s == tuple(
        place * grid.width_us / 1e6 for place in range(len(grid.from_s))
    )
    assert span_us // grid.width_us == len(grid.from_s) - 1


def test_one_moment_is_one_bin():
    """A run of one decision has a span of 0."""
    assert Grid.over(0, 300).from_s == (0,)
