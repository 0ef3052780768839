"""Time that passes as the simulation says."""

_NS = 1_000_000_000


class VirtualClock:
    """A `core.clock.Clock` that stands still until it is moved.

    Args:
        wall_s: the wall clock at the start, in seconds since the Unix epoch.
    """

    def __init__(self, wall_s: float = 0.0) -> None:
        self._now_ns = 0
        self._wall_ns = round(wall_s * _NS)

    def move_to(self, at_s: float) -> None:
        """Moves both clocks to so many seconds after the start.

        Raises:
            ValueError: that is in the past.
        """
        at_ns = round(at_s * _NS)
        if at_ns < self._now_ns:
            raise ValueError(f"time cannot go back to {at_s} s")
        self._wall_ns += at_ns - self._now_ns
        self._now_ns = at_ns

    def monotonic_ns(self) -> int:
        """Nanoseconds since the start."""
        return self._now_ns

    def wall_ns(self) -> int:
        """Nanoseconds since the Unix epoch."""
        return self._wall_ns
