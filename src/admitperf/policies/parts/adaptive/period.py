"""What a controller saw since it last acted."""

from collections import deque
from statistics import median

SAMPLES_MOST = 256
"""Samples kept of one period, the latest. Plain choice: the middle of more is the same,
and sorting them takes some ten microseconds."""

ENDS = 4
"""Ends after which a period tells how soon slots come free. Plain choice: fewer say
little, and a slow engine's limit is moved less often by it."""

LONG_S = 2.0
"""Seconds after which it does so without them: answers may take longer than anybody
wants to wait for a limit. Plain choice."""


class Period:
    """Waits, ends and the most that was in flight, over at least some seconds.

    Args:
        lasts_s: its least length, in seconds.
        least: samples of the wait that it has to have: with fewer it goes on.

    Attributes:
        ends: requests that ended in it.
        used: the most that was in flight.
    """

    def __init__(self, lasts_s: float, least: int) -> None:
        self._lasts_s = lasts_s
        self._least = least
        self._begun_s: float | None = None
        self._waits_s: deque[float] = deque(maxlen=SAMPLES_MOST)
        self.ends = 0
        self.used = 0.0

    def add(
        self, now_s: float, wait_s: float | None, in_flight: float, *, ended: bool
    ) -> None:
        """Takes a look.

        Args:
            wait_s: None = not known; only time has passed.
            in_flight: without the one that has just ended.
            ended: one has just ended.
        """
        if self._begun_s is None:
            self._begun_s = now_s
        self.used = max(self.used, in_flight + ended)
        self.ends += ended
        if wait_s is not None:
            self._waits_s.append(wait_s)

    def waits_s(self, now_s: float) -> tuple[float, float] | None:
        """The middle and the last wait in seconds, the shorter one first.

        A queue that is gone is none any more, and one that has just come is one: who
        cuts a limit goes by the first, who raises it by the second. None = too short a
        period, or too few samples.
        """
        begun_s, some = self._begun_s, self._waits_s
        if (
            begun_s is None
            or now_s - begun_s < self._lasts_s
            or len(some) < self._least
        ):
            return None
        middle, last = median(some), some[-1]
        return (middle, last) if middle < last else (last, middle)

    def told(self, now_s: float) -> bool:
        """Whether it saw enough ends, or none in a long time."""
        lasted_s = 0.0 if self._begun_s is None else now_s - self._begun_s
        return self.ends >= ENDS or lasted_s >= LONG_S

    def ends_per_s(self, now_s: float) -> float:
        """Requests that ended per second of it so far."""
        begun_s = self._begun_s
        lasted_s = 0.0 if begun_s is None else now_s - begun_s
        return self.ends / lasted_s if lasted_s > 0 else 0.0

    def begin(self, now_s: float) -> None:
        """Forgets it all, for the next."""
        self._waits_s.clear()
        self._begun_s, self.used, self.ends = now_s, 0.0, 0
