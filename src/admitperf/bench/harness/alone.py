"""What calls take when nothing else runs: the latency without load, class by class."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Self

from admitperf.bench.harness.target import Arm, Target
from admitperf.bench.harness.virtual import VirtualTarget
from admitperf.core.errors import AdmitPerfError
from admitperf.reports.quantile import nearest_rank
from admitperf.simulator.traffic.arrival import Arrival
from admitperf.simulator.traffic.sessions import (
    Session,
    UnderWay,
    drawn,
    new_tokens,
)
from admitperf.simulator.traffic.traffic import Answer, Traffic

BASELINE = Arm(name="no_admission", policy="no_admission")
"""What stands before the engine while it is measured."""

EDGES = (512, 2048, 8192, 32768)
"""New prompt tokens at which a class of calls ends. Plain choices, powers of four."""

LEAST_SHARE = 0.02
"""Of the calls: a class with fewer joins its upper neighbour, the last its lower."""

UNLOADED = 200
UNLOADED_CLASS = 40
UNLOADED_MOST = 3_000
UNLOADED_WALL = 60
"""Calls served alone: in all, of each class, at most, and at most in wall time. Plain
choices: with 40 a p95 is the second highest but one."""

ALONE_GAP_S = 0.5
"""Longest pause within a session while latency without load is measured; it changes
nothing but how long that takes. Plain choice."""


class CalibrationError(AdmitPerfError, ValueError):
    """The deployment cannot be measured."""


# ------------------------------------------------------------------------ classes


@dataclass(frozen=True, slots=True)
class Classes:
    """Classes of calls by the new tokens of their prompts.

    Attributes:
        edges: where one ends and the next begins, ascending; empty = one class.
    """

    edges: tuple[int, ...] = ()

    def __call__(self, new: int) -> str:
        """The class of a call with so many new tokens."""
        for edge in self.edges:
            if new <= edge:
                return f"new<={edge}"
        return f"new>{self.edges[-1]}" if self.edges else ""

    @property
    def names(self) -> tuple[str, ...]:
        """All of them, the least new tokens first."""
        return (*(self(edge) for edge in self.edges), self(1 << 62))

    @classmethod
    def of(cls, sessions: Sequence[Session]) -> Self:
        """Those that a workload's calls fall into, none of them nearly empty."""
        sizes = sorted(size for one in sessions for size in new_tokens(one))
        edges = [edge for edge in EDGES if edge < sizes[-1]]
        while edges:
            ends = (-1, *edges, math.inf)
            counts = [sum(a < n <= b for n in sizes) for a, b in pairwise(ends)]
            least = LEAST_SHARE * len(sizes)
            few = next((n for n, count in enumerate(counts) if count < least), None)
            if few is None:
                break
            del edges[min(few, len(edges) - 1)]
        return cls(tuple(edges))


# --------------------------------------------------------------------- unloaded


@dataclass(frozen=True, slots=True, kw_only=True)
class Unloaded:
    """How fast calls of one class are when nothing else runs.

    Attributes:
        n: calls.
        p50_ms, p95_ms: of the time to first token.
        token_ms: mean time between two tokens.
    """

    n: int
    p50_ms: float
    p95_ms: float
    token_ms: float


class Alone:
    """Traffic of sessions one after the other.

    Args:
        sessions: in this order.
    """

    def __init__(self, sessions: Iterable[Session]) -> None:
        self.seen: list[tuple[Session, int, Answer]] = []
        """Session, place and what came of it, in the order of the ends."""
        self._sessions = iter(sessions)
        self._one: UnderWay | None = None

    def first(self) -> list[Arrival]:
        """What begins the first of them."""
        return self._next(0.0)

    def after(self, arrival: Arrival, at_s: float, answer: Answer) -> list[Arrival]:
        """What follows in the session, or what begins the next one."""
        one = self._one
        if one is None:
            return []
        place = one.place(arrival.id)
        self.seen.append((one.session, place, answer))
        one.open -= 1
        asked = [
            self._ask(one, following, at_s)
            for following in one.following.get(place, ())
        ]
        return asked if one.open else self._next(at_s)

    def _next(self, at_s: float) -> list[Arrival]:
        session = next(self._sessions, None)
        self._one = None if session is None else UnderWay(session)
        if self._one is None:
            return []
        return [
            self._ask(self._one, place, at_s) for place in self._one.following[None]
        ]

    @staticmethod
    def _ask(one: UnderWay, place: int, at_s: float) -> Arrival:
        one.open += 1
        gap_s = min(one.session.calls[place].gap_s, ALONE_GAP_S)
        return one.arrival(place, at_s + gap_s)


def unloaded(
    target: Target, sessions: Sequence[Session], classes: Classes, seed: int
) -> dict[str, Unloaded]:
    """The latency of each class when nothing else runs.

    Raises:
        CalibrationError: not one call of a class was answered.
        AdmitPerfError: the engine cannot be driven.
    """
    virtual = isinstance(target, VirtualTarget)
    chosen = _sample(
        sessions, classes, seed, UNLOADED_MOST if virtual else UNLOADED_WALL
    )
    traffic = Alone(chosen)
    driven(target, traffic, seed)
    found: dict[str, list[tuple[float, float, int]]] = {n: [] for n in classes.names}
    for session, place, answer in traffic.seen:
        if answer.ttft_ms is not None:
            spent_ms = (answer.e2e_ms or answer.ttft_ms) - answer.ttft_ms
            gaps = max(answer.output_tokens - 1, 0)
            name = classes(new_tokens(session)[place])
            found[name].append((answer.ttft_ms, spent_ms, gaps))
    return {name: _unloaded(name, seen, found) for name, seen in found.items()}


def _unloaded(
    name: str,
    seen: Sequence[tuple[float, float, int]],
    found: Mapping[str, Sequence[tuple[float, float, int]]],
) -> Unloaded:
    if not seen:
        raise CalibrationError(
            f"no call of class {name or 'any'} was answered without load"
        )
    took = sorted(ttft_ms for ttft_ms, _, _ in seen)
    gaps = sum(n for _, _, n in seen)
    spent_ms = sum(ms for _, ms, _ in seen)
    if not gaps:  # of answers of one token nothing can be said: take the others'
        spent_ms = sum(ms for one in found.values() for _, ms, _ in one)
        gaps = sum(n for one in found.values() for _, _, n in one) or 1
    return Unloaded(
        n=len(took),
        p50_ms=nearest_rank(took, 0.5),
        p95_ms=nearest_rank(took, 0.95),
        token_ms=spent_ms / gaps,
    )


def _sample(
    sessions: Sequence[Session], classes: Classes, seed: int, most: int
) -> list[Session]:
    """Sessions until there are enough calls of every class, whole ones."""
    chosen, counts = list[Session](), dict.fromkeys(classes.names, 0)
    for session in islice(drawn(sessions, seed), len(sessions)):
        calls = sum(counts.values())
        enough = min(counts.values()) >= min(UNLOADED_CLASS, most // len(counts))
        if calls >= most or (calls >= min(UNLOADED, most) and enough):
            break
        chosen.append(session)
        for new in new_tokens(session):
            counts[classes(new)] += 1
    return chosen


def driven(
    target: Target, traffic: Traffic, seed: int, until_s: float = math.inf
) -> None:
    """Lets traffic go through without a policy, and without a log."""
    target.drive(
        BASELINE,
        None,
        traffic,
        seed=seed,
        notes={},
        slo=None,
        run="calibration",
        experiment="calibration",
        until_s=until_s,
    )


# ---------------------------------------------------------------------- sessions


def nominal_s(
    session: Session, classes: Classes, alone: Mapping[str, Unloaded]
) -> float:
    """How long a session takes when nothing else runs, in seconds.

    Gaps, first tokens (p50 of the class) and tokens along its longest path.
    """
    ends = list[float]()
    for call, new in zip(session.calls, new_tokens(session), strict=True):
        one = alone[classes(new)]
        spent_ms = one.p50_ms + (call.received_tokens - 1) * one.token_ms
        begin_s = 0.0 if call.after is None else ends[call.after]
        ends.append(begin_s + call.gap_s + spent_ms / 1e3)
    return max(ends)
