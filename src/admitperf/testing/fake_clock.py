"""Time that passes when a test says so."""


class FakeClock:
    """A clock for tests and replays: `Policy(..., clock=FakeClock())`.

    Args:
        start_s: the monotonic clock's first value, in seconds.
        wall_s: the wall clock's, in seconds since the Unix epoch.
    """

    def __init__(self, start_s: float = 0.0, wall_s: float = 0.0) -> None:
        self._monotonic_ns = _ns(start_s)
        self._wall_ns = _ns(wall_s)

    def advance(self, seconds: float) -> None:
        """Lets time pass on both clocks.

        Raises:
            ValueError: `seconds` is negative; a monotonic clock never goes back.
        """
        if seconds < 0:
            raise ValueError(f"a monotonic clock cannot go back by {-seconds} s")
        self._monotonic_ns += _ns(seconds)
        self._wall_ns += _ns(seconds)

    def set_wall(self, wall_s: float) -> None:
        """Steps the wall clock alone, to seconds since the Unix epoch."""
        self._wall_ns = _ns(wall_s)

    def monotonic_ns(self) -> int:
        """Nanoseconds since an arbitrary start."""
        return self._monotonic_ns

    def wall_ns(self) -> int:
        """Nanoseconds since the Unix epoch."""
        return self._wall_ns


def _ns(seconds: float) -> int:
    return round(seconds * 1_000_000_000)
