"""A window of agent sessions, cut when the cache is full and is not reused."""

from heapq import nsmallest
from typing import Annotated

from admitperf.core.charge import Charge
from admitperf.core.decision import Decision
from admitperf.core.errors import ConfigError
from admitperf.core.outcome import Outcome
from admitperf.core.param import Param
from admitperf.core.policy import Policy
from admitperf.core.signals import (
    IN_FLIGHT,
    KV_CAPACITY_TOKENS,
    KV_PRESSURE,
    PREFIX_HIT_RATE,
)
from admitperf.core.snapshot import Snapshot
from admitperf.policies.parts.adaptive.window import Window
from admitperf.policies.parts.live.session import Session
from admitperf.policies.parts.live.sessions import (
    LEASE,
    LEASE_S,
    SESSIONS_MOST,
    Sessions,
)

FULL_OF_MEAN = 1.5
"""Contexts of the mean size that a session is reckoned as, so that the first window
leaves room to grow. Origin: our adaptation."""

WAIT_LEAST_S = 3.0
WAIT_MOST_S = 10.0
"""Bounds of the median turn as a wait, in seconds. Origin: our adaptation: turns of
coding agents mostly take that long."""

_READER = "a reader's notes of arXiv 2601.22705"


class ConcurInspired(Policy):
    """Lets a new session in while fewer than a window are live.

    The window grows while the KV cache is nearly empty and is cut when it is both full
    and not reused: that is what thrashing looks like. After a cut the sessions that
    are furthest behind are held back at their next call, and go on when the window
    grows or others end. Inspired by CONCUR.

    Raises:
        ConfigError: `u_low` is over `u_high`.
    """

    name = "concur_inspired"
    unit = "agent-session"
    slo_awareness = "throughput"
    signal_quantity = "kv_pressure"
    signal_structure = "dual-gate"
    metadata_assumed = ("session",)
    refuses_with = ("slots",)
    requires = (KV_PRESSURE, IN_FLIGHT, "session")

    alpha: Annotated[
        float,
        Param(
            "sessions the window grows by in a period",
            above=0.0,
            high=1000.0,
            per_process=True,
            origin=_READER,
        ),
    ] = 2.0
    beta: Annotated[
        float,
        Param(
            "what a cut leaves of the window, as a fraction",
            above=0.0,
            high=1.0,
            origin=_READER,
        ),
    ] = 0.5
    u_low: Annotated[
        float,
        Param(
            "KV cache in use under which the window grows, as a fraction",
            low=0.0,
            high=1.0,
            origin=_READER,
        ),
    ] = 0.2
    u_high: Annotated[
        float,
        Param(
            "KV cache in use over which it may be cut, as a fraction",
            low=0.0,
            high=1.0,
            origin=_READER,
        ),
    ] = 0.5
    h_thresh: Annotated[
        float,
        Param(
            "prefix cache hit rate under which it may be cut, as a fraction",
            low=0.0,
            high=1.0,
            origin=_READER,
        ),
    ] = 0.2
    start: Annotated[
        int,
        Param(
            "sessions in the first window, unless it follows from `context_tokens`",
            low=1,
            high=SESSIONS_MOST,
            per_process=True,
            origin="MARS (arXiv 2604.26963) starts its window of tasks at 8",
        ),
    ] = 8
    context_tokens: Annotated[
        int | None,
        Param(
            "mean context of a session in tokens; None = not known",
            low=1,
            origin="off: only the host knows how long its sessions get",
        ),
    ] = None
    floor: Annotated[
        int,
        Param(
            "sessions the window is never cut under",
            low=1,
            high=SESSIONS_MOST,
            per_process=True,
            origin="our adaptation, as MARS has it",
        ),
    ] = 2
    period_s: Annotated[
        float,
        Param(
            "seconds from one step of the window to the next",
            above=0.0,
            high=3600.0,
            origin="our adaptation: some steps of the model; the paper's is not known",
        ),
    ] = 2.0
    cool_down_s: Annotated[
        float,
        Param(
            "least seconds from one cut to the next; a median turn if that is longer",
            low=0.0,
            high=3600.0,
            origin="our adaptation: what was cut is seen a turn later",
        ),
    ] = 8.0
    lease_s: Annotated[float, LEASE] = LEASE_S

    def __init__(self, **given: object) -> None:
        super().__init__(**given)
        if self.u_low > self.u_high:
            fault = f"u_low={self.u_low:g} is over u_high={self.u_high:g}"
            raise ConfigError(f"policy {self.name}", [fault])
        self._sessions = Sessions(self.name, self.lease_s, "slots")
        self._window = Window(
            limit=self.start,
            floor=self.floor,
            ceiling=SESSIONS_MOST,
            step=self.alpha,
            cool_s=self.cool_down_s,
        )
        self._sized = self.context_tokens is None
        self._seen: dict[str | None, tuple[float, float | None]] = {}
        self._next_s: float | None = None

    def decide(self, metrics: Snapshot) -> Decision:
        """A session that was let in goes on; a new one needs a place in the window.

        All gates are asked every time, so that the log tells how often the cache was
        full, how often not reused, and how often both.
        """
        sessions, request = self._sessions, metrics.request
        metrics.gate("thrash", float(self._thrashes(metrics)), 1.0)
        full = metrics.gate("active_sessions", sessions.active, self._window.whole)
        if request.session is None:
            return self.admit()
        session = sessions.find(request)
        if session is not None and session.live:
            full = metrics.gate("session_paused", session.paused_ns is not None, 1.0)
        return (
            self.defer("slots", estimate_ms=self._turn_ms()) if full else self.admit()
        )

    def decided(self, metrics: Snapshot, d: Decision) -> Charge | None:
        """A sign of life of the session, and a call of it when it was let in."""
        call = self._sessions.decided(metrics, d)
        self._resume()
        return call

    def observe(self, metrics: Snapshot, outcome: Outcome | None) -> None:
        """Steps the window once a period, and lets go on whom it has room for."""
        self._sessions.observe(metrics, outcome)
        if outcome is None:
            self._watch(metrics)
        self._resume()

    def _thrashes(self, metrics: Snapshot) -> bool:
        """Whether both hold, each recorded; with no lookups there is no hit rate."""
        full = metrics.above(KV_PRESSURE, self.u_high)
        if metrics.read(PREFIX_HIT_RATE) is None:
            return False
        return metrics.below(PREFIX_HIT_RATE, self.h_thresh) and full

    def _turn_ms(self) -> float | None:
        """One median turn, bounded; None until turns were seen."""
        turn_s = self._sessions.turn_s
        if turn_s is None:
            return None
        return 1000 * min(max(turn_s, WAIT_LEAST_S), WAIT_MOST_S)

    def _watch(self, metrics: Snapshot) -> None:
        """Keeps each replica's last reading, and steps when the period is over."""
        pressure, hits = metrics.read(KV_PRESSURE), metrics.read(PREFIX_HIT_RATE)
        if pressure is None:
            return
        self._size(metrics)
        known = None if hits is None else float(hits)
        self._seen[metrics.replica] = (float(pressure), known)
        if self._next_s is None:
            self._next_s = metrics.now_s + self.period_s
        elif metrics.now_s >= self._next_s:
            self._next_s = metrics.now_s + self.period_s
            self._step(metrics)
            self._seen.clear()

    def _size(self, metrics: Snapshot) -> None:
        """The first window, once the capacity is known."""
        capacity = metrics.read(KV_CAPACITY_TOKENS)
        if self._sized or capacity is None or self.context_tokens is None:
            return
        self._sized = True
        self._window.approach(float(capacity) / (FULL_OF_MEAN * self.context_tokens))

    def _step(self, metrics: Snapshot) -> None:
        """One period is over: cut, grow or hold."""
        seen, sessions = self._seen.values(), self._sessions
        running = sessions.count(paused=False)
        if any(self._is_thrash(*reading) for reading in seen):
            self._window.cool_s = max(self.cool_down_s, sessions.turn_s or 0.0)
            if self._window.cut(self.beta, metrics.now_s, running):
                self._pause(running - self._window.whole, metrics.now_ns)
        elif all(pressure < self.u_low for pressure, _ in seen):
            self._window.grow(sessions.active)

    def _is_thrash(self, pressure: float, hits: float | None) -> bool:
        return pressure > self.u_high and hits is not None and hits < self.h_thresh

    def _pause(self, count: int, now_ns: int) -> None:
        """Holds back those that are furthest behind; of equals the longest silent."""
        running = [s for s in self._sessions.live() if s.paused_ns is None]
        for session in nsmallest(count, running, key=_progress):
            self._sessions.pause(session, now_ns)

    def _resume(self) -> None:
        """Lets go on whom there is room for, the one that is furthest first."""
        sessions = self._sessions
        while sessions.paused and sessions.count(paused=False) < self._window.whole:
            sessions.resume(next(reversed(sessions.paused.values())))


def _progress(session: Session) -> int:
    return session.calls
