"""Histograms count by size, as Prometheus has them."""

import pytest

from admitperf.simulator.engine.tally import Histogram


def test_a_bucket_holds_what_is_no_greater_than_its_bound():
    """1.0 is in the bucket up to 1.0; what is over all bounds is in none of them."""
    made = Histogram((1.0, 2.0, 5.0))
    for value in (0.5, 1.0, 1.1, 9.0):
        made.add(value)
    assert made.up_to() == [2, 3, 3]
    assert (made.count, made.sum) == (4, pytest.approx(11.6))


def test_many_of_one_size_are_counted_at_once():
    """As the steps of a leap are."""
    made = Histogram((1.0,))
    made.add(0.25, 1_000)
    assert (made.up_to(), made.count, made.sum) == ([1_000], 1_000, 250.0)
