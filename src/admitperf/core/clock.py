"""The only file that asks the time.

Everything else takes a `Clock`, so that a test or a replay can supply its own.
"""

import time
from typing import Protocol


class Clock(Protocol):
    """Two clocks in nanoseconds: one that never goes back, one that people read."""

    def monotonic_ns(self) -> int:
        """Nanoseconds since an arbitrary start; never goes back."""

    def wall_ns(self) -> int:
        """Nanoseconds since the Unix epoch; may be stepped by the system."""


class _System:
    monotonic_ns = staticmethod(time.monotonic_ns)
    wall_ns = staticmethod(time.time_ns)


SYSTEM: Clock = _System()


def pause() -> None:
    """Gives other threads the interpreter for a moment."""
    time.sleep(0)
