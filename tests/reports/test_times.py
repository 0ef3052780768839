"""Log time as a person and a program read it: UTC."""

import pytest

from admitperf.reports.times import Times

SECOND = 1_000_000
DAY = 86_400 * SECOND
START = 1_795_915_330 * SECOND  # 2026-11-29 01:22:10 UTC


@pytest.mark.parametrize(
    ("first_us", "last_us", "text"),
    [
        (None, None, ""),
        (START, START, "at 2026-11-29 01:22:10Z"),
        (START, START + SECOND - 1, "at 2026-11-29 01:22:10Z"),
        (START, START + 2 * SECOND, "from 2026-11-29 01:22:10Z to 01:22:12Z"),
        (START, START + DAY, "from 2026-11-29 01:22:10Z to 2026-11-30 01:22:10Z"),
        (0, 0, "at 1970-01-01 00:00:00Z"),
    ],
)
def test_a_period_is_said_in_utc(first_us, last_us, text):
    """The day is not repeated, and what falls into one second is one time."""
    assert Times.between(first_us, last_us).text == text


def test_a_program_gets_iso_8601_to_the_microsecond():
    """Times that any parser takes and that lose nothing."""
    times = Times.between(START, START + 7)
    assert times.first_utc == "2026-11-29T01:22:10.000000Z"
    assert times.last_utc == "2026-11-29T01:22:10.000007Z"


def test_a_time_that_no_calendar_has_is_not_known():
    """A broken clock costs the time, and not the report."""
    times = Times.between(START, 2**63 - 1)
    assert times.text == ""
    assert times.last_utc is None
