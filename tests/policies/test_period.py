"""What `aimd` and `gradient` saw since they last moved their limits."""

import pytest

from admitperf.policies.parts.adaptive.period import Period


def period(waits, ends=0, lasts_s=0.5, least=3):
    """One with a look each second, and so many ends."""
    one = Period(lasts_s, least)
    for at_s, wait_s in enumerate(waits):
        one.add(float(at_s), wait_s, 5.0, ended=at_s < ends)
    return one


@pytest.mark.parametrize(
    ("waits", "expected"),
    [
        ([1.0, 2.0, 3.0], (2.0, 3.0)),  # it has just become long
        ([3.0, 2.0, 0.0], (0.0, 2.0)),  # it is gone
        ([2.0, 2.0, 2.0], (2.0, 2.0)),
        ([None, 1.0, None, 9.0, 5.0, None], (5.0, 5.0)),
    ],
)
def test_it_tells_the_middle_wait_and_the_last_the_shorter_first(waits, expected):
    """Who cuts goes by the shorter, who raises by the longer one."""
    assert period(waits).waits_s(9.0) == expected


def test_it_tells_nothing_before_it_is_long_enough_and_has_samples():
    """Looks at what is not known are no samples."""
    assert period([1.0, 1.0]).waits_s(9.0) is None
    assert period([1.0, None, 1.0, None]).waits_s(9.0) is None
    assert period([1.0, 1.0, 1.0], lasts_s=5.0).waits_s(4.9) is None
    assert period([1.0, 1.0, 1.0], lasts_s=5.0).waits_s(5.0) == (1.0, 1.0)
    assert Period(0.0, 1).waits_s(9.0) is None


def test_it_tells_of_slots_after_four_ends_or_two_seconds():
    """Answers may take longer than anybody wants to wait for a limit."""
    assert not period([0.0] * 9, ends=3).told(1.9)
    assert period([0.0] * 9, ends=3).told(2.0)
    assert period([0.0] * 9, ends=4).told(1.0)
    assert not Period(0.5, 3).told(9.0)


def test_ends_a_second_and_the_most_in_flight_count_the_one_that_just_ended():
    """It was in flight until then."""
    one = period([0.0] * 5, ends=4)
    assert one.ends_per_s(8.0) == 0.5
    assert one.used == 6.0
    assert Period(0.5, 3).ends_per_s(9.0) == 0.0


def test_the_next_one_begins_with_nothing():
    """And at the time it was begun."""
    one = period([1.0] * 5, ends=4)
    one.begin(5.0)
    assert (one.ends, one.used, one.waits_s(9.0)) == (0, 0.0, None)
    one.add(9.0, 1.0, 1.0, ended=True)
    assert one.ends_per_s(9.0) == 0.25


def test_only_the_latest_samples_are_kept():
    """Memory does not grow with traffic."""
    one = period([0.0] * 1000 + [1.0] * 256)
    assert one.waits_s(2000.0) == (1.0, 1.0)
