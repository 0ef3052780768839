"""How long an engine's step takes, as a line over the tokens resident in its cache.

A running request gets one token a step, so the time between its tokens is the step's.
An ingress learns it when the answer ends, as a mean over the answer, and pairs it with
the mean of what was resident meanwhile.
"""

from bisect import bisect_left
from collections import deque
from math import log2
from statistics import median

from admitperf.policies.parts.fluid_wait.line import theil_sen

KEPT_S = 600.0
"""Seconds an answer is remembered. Origin: research notes, 1.1: the last 10 minutes."""

REFIT_EVERY_S = 5.0
"""Seconds between two fits. Plain choice: far shorter than what is remembered."""

MEASURED_AFTER = 8
"""Answers after which there is a step time. Plain choice: a median of 8."""

SLOPED_AFTER = 3
"""Levels of residency with which there is a slope. Plain choice: two are any line."""

LEAST_TOKENS = 8
"""Shorter answers are passed over: their mean is of too few steps. Plain choice."""

_PER_OCTAVE = 2
_LEVELS = 48
_KEPT_PER_LEVEL = 9
_READINGS_MOST = 512


class Pace:
    """Step times by levels of residency, and the line through their middle ones.

    It holds at most 48 levels (half octaves, up to 16 million tokens) of nine answers,
    and the last 512 readings.

    Attributes:
        line: (d0, d1) in seconds and seconds per resident token; d1 is 0 until the
            residency has moved enough. None = not measured.
    """

    def __init__(self) -> None:
        self.line: tuple[float, float] | None = None
        self._levels: dict[int, deque[tuple[float, float, float]]] = {}
        self._times: list[float] = []
        self._sums: list[float] = [0.0]
        self._fitted_s: float | None = None

    def read(self, now_s: float, resident: float) -> None:
        """Takes a reading's resident tokens; now and then it fits the line anew."""
        self._times.append(now_s)
        self._sums.append(self._sums[-1] + resident)
        if len(self._times) > _READINGS_MOST:
            half = _READINGS_MOST // 2
            del self._times[:half], self._sums[:half]
        if self._fitted_s is None or now_s - self._fitted_s >= REFIT_EVERY_S:
            self._fitted_s = now_s
            self._fit(now_s - KEPT_S)

    def ended(self, now_s: float, tokens: int, took_s: float) -> None:
        """Takes an answer of so many tokens, the first of which came `took_s` ago."""
        resident = self._resident(now_s - took_s)
        if tokens < LEAST_TOKENS or took_s <= 0.0 or resident is None:
            return
        level = min(_LEVELS - 1, int(_PER_OCTAVE * log2(resident + 1.0)))
        kept = self._levels.setdefault(level, deque(maxlen=_KEPT_PER_LEVEL))
        kept.append((now_s, resident, took_s / (tokens - 1)))

    def _resident(self, since_s: float) -> float | None:
        """Mean over the readings since then; the last one when there was none."""
        if not self._times:
            return None
        first = min(bisect_left(self._times, since_s), len(self._times) - 1)
        total = self._sums[-1] - self._sums[first]
        return total / (len(self._times) - first)

    def _fit(self, oldest_s: float) -> None:
        recent = [
            [(resident, step) for at_s, resident, step in kept if at_s >= oldest_s]
            for kept in self._levels.values()
        ]
        steps = [step for kept in recent for _, step in kept]
        if len(steps) < MEASURED_AFTER:
            self.line = None
            return
        points = [_middle(kept) for kept in recent if kept]
        self.line = _rising(points) or (median(steps), 0.0)


def _middle(kept: list[tuple[float, float]]) -> tuple[float, float]:
    """The answer with the median step: residency and step belong together."""
    return sorted(kept, key=lambda point: point[1])[(len(kept) - 1) // 2]


def _rising(points: list[tuple[float, float]]) -> tuple[float, float] | None:
    """The line through them; None when it is none that an engine can have."""
    fitted = theil_sen(points) if len(points) >= SLOPED_AFTER else None
    return fitted if fitted and fitted[0] > 0.0 and fitted[1] >= 0.0 else None
