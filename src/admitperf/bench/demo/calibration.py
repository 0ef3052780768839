"""What is measured before a policy is tried: unloaded latency, capacity, deadlines.

And the bound on the queue that follows from them.
"""

import math
from dataclasses import dataclass
from itertools import repeat
from typing import Self

from admitperf.bench.demo import scene
from admitperf.simulator import End, closed_loop, serve

TTFT_FACTOR = 5.0
"""Deadline of the first token, in unloaded ones. Origin: the product brief, 12."""

STALL_FACTOR = 10.0
STALL_LEAST_MS = 500.0
"""Longest gap between tokens: ten unloaded ones, half a second at least. As above."""

SLO_FROM = "TTFT 5x unloaded p95, stall max(10x token time, 500 ms)"

UNLOADED = 200
"""Questions that are served alone. Plain choice."""

CLIENTS = 16
"""Clients of the closed loop: enough for a queue that never empties. Plain choice."""

SETTLE_S = 20.0
"""Seconds of the closed loop left out at its beginning. Plain choice."""

_APART_S = 3_600.0  # longer than any takes


@dataclass(frozen=True, slots=True)
class Calibration:
    """The engine without a policy.

    Attributes:
        unloaded_ms: p95 of the time to first token of questions served alone.
        token_ms: their mean time between two tokens.
        capacity_per_s: questions a second that end while a closed loop keeps a queue,
            beside the documents.
        answers: how many ended while that was measured.
    """

    unloaded_ms: float
    token_ms: float
    capacity_per_s: float
    answers: int

    @classmethod
    def measured(cls, seed: int) -> Self:
        """Measures the scene's engine."""
        alone = _alone(seed)
        return cls(_p95_ttft_ms(alone), _token_ms(alone), *_capacity(seed))

    @property
    def slo(self) -> dict[str, float]:
        """The deadlines, in milliseconds."""
        stall_ms = max(STALL_FACTOR * self.token_ms, STALL_LEAST_MS)
        return {
            "ttft_ms": float(round(TTFT_FACTOR * self.unloaded_ms)),
            "stall_ms": float(round(stall_ms)),
        }

    @property
    def left_ms(self) -> float:
        """What the first token's deadline leaves for waiting in the engine's queue.

        Less the request's own time, and less the age of what is known of the queue.
        """
        age_ms = scene.SCRAPING.interval_s * 1e3
        return self.slo["ttft_ms"] - self.unloaded_ms - age_ms

    @property
    def max_waiting(self) -> int:
        """How many of a queue are served in that time."""
        return max(0, math.floor(self.left_ms / 1e3 * self.capacity_per_s))


def _alone(seed: int) -> list[End]:
    questions = scene.QUESTION.at((n * _APART_S for n in range(UNLOADED)), seed)
    return serve(tuple(questions), scene.ENGINE, seed)


def _p95_ttft_ms(ends: list[End]) -> float:
    took = sorted(end.ttft_ms for end in ends)
    return took[math.ceil(0.95 * len(took)) - 1]


def _token_ms(ends: list[End]) -> float:
    gaps = sum(end.arrival.output_tokens - 1 for end in ends)
    return sum(end.e2e_ms - end.ttft_ms for end in ends) / gaps


def _capacity(seed: int) -> tuple[float, int]:
    begin_s = scene.BEGIN_S
    (engine,) = scene.setting(seed).fleet().engines
    ends = closed_loop(
        engine,
        tuple(scene.documents(seed)),
        scene.QUESTION.at(repeat(0.0), seed),
        CLIENTS,
        (begin_s, begin_s + scene.LASTS_S),
    )
    at_s = [end.at_s for end in ends if end.at_s >= begin_s + SETTLE_S]
    return (len(at_s) - 1) / (at_s[-1] - at_s[0]), len(at_s)
