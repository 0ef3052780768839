"""Clocks of a trace: its own line of time, and time as it was recorded."""

from admitperf.core.clock import SYSTEM, Clock


class LineOfTime:
    """A clock whose wall time follows from its monotonic time.

    So whoever takes it agrees to the microsecond on the `t_us` of a log.

    Attributes:
        epoch_us: wall clock microseconds at monotonic zero.
    """

    def __init__(self, clock: Clock = SYSTEM) -> None:
        self._clock = clock
        self._offset_ns = clock.wall_ns() - clock.monotonic_ns()
        self.epoch_us = self._offset_ns // 1000

    def monotonic_ns(self) -> int:
        """The clock's own."""
        return self._clock.monotonic_ns()

    def wall_ns(self) -> int:
        """Nanoseconds since the Unix epoch, had nobody stepped the clock since."""
        return self._clock.monotonic_ns() + self._offset_ns


class Recorded:
    """A clock that stands where the trace is read: both times are its `t_us`."""

    def __init__(self) -> None:
        self._now_ns = 0

    def stand_at(self, t_us: int) -> None:
        """Goes to a time of the trace, in microseconds since 1970."""
        self._now_ns = t_us * 1000

    def monotonic_ns(self) -> int:
        """Nanoseconds since the Unix epoch, by the trace."""
        return self._now_ns

    def wall_ns(self) -> int:
        """The same."""
        return self._now_ns
