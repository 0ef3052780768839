"""The engine's steps, found again in the times at which clients saw tokens.

In one step every decoding request gets one token, so a request's next token belongs to
the next step. Deliveries can only be late: a step ended no later than its first token
arrived anywhere, and no later than any later step did.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise
from statistics import median

from admitperf.simulator.fit.recorded import Asked

TOGETHER = 0.3
"""A first token this part of a usual step after a step's end still belongs to it.

A plain choice: on loaded machines one step's tokens come within a fifth of a step.
"""

CAUGHT_UP = 0.5
"""Tokens late by some steps that then come in under half the usual time were held up on
their way; otherwise their request had been thrown out of memory and came back."""

_FEW_STEPS = 2


class Kind(Enum):
    """Why a request got a token in a step."""

    FIRST = "its prompt was computed"
    DECODE = "it had one in the step before"
    RESUMED = "it was computed anew after a preemption"


@dataclass(frozen=True, slots=True)
class Token:
    """A token of a step.

    Attributes:
        asked: whose; its place in the run.
        before: tokens it had been given before this one.
        kind: why it came.
    """

    asked: int
    before: int
    kind: Kind


@dataclass(slots=True)
class Step:
    """One step of the engine.

    Attributes:
        end_s: when it ended, in seconds from the start of the run.
        tokens: what it gave.
    """

    end_s: float
    tokens: list[Token] = field(default_factory=list)


def steps(asked: Sequence[Asked]) -> list[Step]:
    """The steps of a run, in order; none when it does not say when tokens came."""
    gaps = [b[0] - a[0] for one in asked for a, b in pairwise(one.chunks)]
    if not gaps:
        return []
    return _Finder(asked, median(gaps)).found()


class _Finder:
    def __init__(self, asked: Sequence[Asked], usual_s: float) -> None:
        self._asked = asked
        self._usual_s = usual_s
        self._steps: list[Step] = []
        self._last: dict[int, int] = {}  # the step of a request's newest token

    def found(self) -> list[Step]:
        events = sorted(
            (at_s, place, nth)
            for place, one in enumerate(self._asked)
            for nth, (at_s, _) in enumerate(one.chunks)
        )
        given = [0] * len(self._asked)
        for at_s, place, nth in events:
            tokens = self._asked[place].chunks[nth][1]
            if tokens > 0:
                self._take(at_s, place, nth, tokens, given[place])
                given[place] += tokens
        later_s = float("inf")
        for step in reversed(self._steps):
            later_s = step.end_s = min(step.end_s, later_s)
        return self._steps

    def _take(self, at_s: float, place: int, nth: int, tokens: int, given: int) -> None:
        kind = Kind.DECODE
        if place not in self._last:
            self._join(at_s)
            self._put(len(self._steps) - 1, place, given, Kind.FIRST)
            tokens, given = tokens - 1, given + 1
        step = self._last[place] + tokens
        lag = len(self._steps) - 1 - step
        if lag > 0 and not self._held_up(place, nth, lag):
            kind = Kind.RESUMED
            self._join(at_s)
            step = len(self._steps) - 1
        while step >= len(self._steps):
            self._steps.append(Step(at_s))
        for n in range(tokens):
            at = max(0, step - tokens + 1 + n)
            self._put(at, place, given + n, kind if n == 0 else Kind.DECODE)

    def _put(self, step: int, place: int, given: int, kind: Kind) -> None:
        self._steps[step].tokens.append(Token(place, given, kind))
        self._last[place] = step

    def _join(self, at_s: float) -> None:
        """A token without a predecessor: of the newest step, or of one after it."""
        late_s = at_s - self._steps[-1].end_s if self._steps else float("inf")
        if late_s > TOGETHER * self._usual_s:
            self._steps.append(Step(at_s))

    def _held_up(self, place: int, nth: int, lag: int) -> bool:
        """Whether a token that lags was only delivered late."""
        chunks = self._asked[place].chunks
        end = min(nth + lag, len(chunks) - 1)
        if end == nth:
            return lag <= _FEW_STEPS
        took_s = chunks[end][0] - chunks[nth][0]
        return took_s < CAUGHT_UP * (end - nth) * self._usual_s
