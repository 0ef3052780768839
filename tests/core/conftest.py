"""Time in the test's hands, and a log to look into."""

import pytest

from admitperf.testing import FakeClock, MemoryLog


@pytest.fixture
def clock():
    """A clock that stands still until it is told."""
    return FakeClock(start_s=1000.0, wall_s=1.7e9)


@pytest.fixture
def log():
    """A log that takes a policy's lines."""
    return MemoryLog()
