"""Log time as a person and a program read it: UTC."""

import pytest

from admitperf.reports.times import Period

SECOND = 1_000_000
DAY = 86_400 * SECOND
START = 1_795_915_330 * SECOND  # 2026-11-29 01:22:10 UTC


@pytest.mark.parametrize(
    ("moments", "text"),
    [
        ([], ""),
        ([START], "at 2026-11-29 01:22:10Z"),
        ([START, START + SECOND - 1], "at 2026-11-29 01:22:10Z"),
        ([START + 2 * SECOND, START], "from 2026-11-29 01:22:10Z to 01:22:12Z"),
        ([START, START + DAY], "from 2026-11-29 01:22:10Z to 2026-11-30 01:22:10Z"),
        ([0], "at 1970-01-01 00:00:00Z"),
    ],
)
def test_a_period_is_said_in_utc_whatever_the_order(moments, text):
    """The day is not repeated, and what falls into one second is one time."""
    period = Period()
    for moment in moments:
        period.widen(moment)
    assert period.times.text == text


def test_a_program_gets_iso_8601_to_the_microsecond():
    """Times that any parser takes and that lose nothing."""
    period = Period()
    period.widen(START)
    period.widen(START + 7)
    assert period.times.first_utc == "2026-11-29T01:22:10.000000Z"
    assert period.times.last_utc == "2026-11-29T01:22:10.000007Z"


def test_a_time_that_no_calendar_has_is_not_known():
    """A broken clock costs the times, and neither the length nor the report."""
    period = Period()
    period.widen(START)
    period.widen(2**63 - 1)
    assert period.times.text == ""
    assert period.times.last_utc is None
    assert period.seconds > 9e12
