"""The contexts of all sessions, idle ones too, against the memory there is."""

import math
from collections.abc import Mapping
from operator import attrgetter
from typing import Annotated

from admitperf.core.charge import Charge
from admitperf.core.decision import Decision
from admitperf.core.outcome import Outcome
from admitperf.core.param import Param
from admitperf.core.policy import Policy
from admitperf.core.signal import Signal
from admitperf.core.signals import IN_FLIGHT, KV_CAPACITY_TOKENS, KV_PRESSURE
from admitperf.core.snapshot import Snapshot
from admitperf.policies.parts.live.session import Session
from admitperf.policies.parts.live.sessions import LEASE, LEASE_S, Sessions
from admitperf.policies.parts.replicas import REPLICAS_MOST

WAIT_LEAST_MS = 250.0
"""Shortest wait told, in milliseconds. Plain choice: a gateway reads its engines that
often, and nobody is let go on between two readings."""

UNHEARD_S = 60.0
"""Seconds after which a replica that was not read again no longer counts. Plain choice:
hundreds of readings."""

_CODE = "ThunderAgent's released code"
_RULE: tuple[Signal | str, ...] = (
    KV_CAPACITY_TOKENS,
    IN_FLIGHT,
    "session",
    "input_tokens",
)


_NEEDS: Mapping[str, tuple[Signal | str, ...]] = {"shared=measured": (KV_PRESSURE,)}
"""What each adds to what is read."""


class ThunderInspired(Policy):
    """Lets a new session in when its context fits beside those of all others.

    Once a tick the contexts of all sessions, between their calls too, are compared with
    the KV cache: while they are more, sessions are held back at their next call, the
    smallest first; while they are less, those that wait go on. It never rejects.
    Inspired by ThunderAgent, and kept as it is: the rule to beat.
    """

    name = "thunder_inspired"
    unit = "agent-session"
    slo_awareness = "throughput"
    signal_quantity = "kv_pressure"
    metadata_assumed = ("session", "input_tokens")
    refuses_with = ("kv_headroom",)
    requires = _RULE
    needs = _NEEDS

    watermark: Annotated[
        float,
        Param(
            "contexts that are let in, as a fraction of the KV cache",
            above=0.0,
            high=10.0,
            per_process=True,
            origin=f"{_CODE}: all of it",
        ),
    ] = 1.0
    tick_s: Annotated[
        float,
        Param(
            "seconds from one look at all sessions to the next",
            above=0.0,
            high=3600.0,
            origin=_CODE,
        ),
    ] = 5.0
    buffer_tokens: Annotated[
        int,
        Param(
            "tokens added for each session, for what it writes next",
            low=0,
            high=1e9,
            origin=_CODE,
        ),
    ] = 100
    shared: Annotated[
        str,
        Param(
            "measured: contexts of open calls count for no more than the cache in use; "
            "none: every context counts in full",
            choices=("none", "measured"),
            origin="ThunderAgent's released code, which has it and leaves it at 0",
        ),
    ] = "none"
    half_life_s: Annotated[
        float | None,
        Param(
            "seconds without a call after which a context counts half when others wait "
            "to go on, 1 in the code's option; None = it counts in full",
            above=0.0,
            origin=_CODE,
        ),
    ] = None
    force_after_s: Annotated[
        float,
        Param(
            "seconds after which a session that is held back goes on whatever fits",
            above=0.0,
            origin=_CODE,
        ),
    ] = 1800.0
    lease_s: Annotated[float, LEASE] = LEASE_S

    def __init__(self, **given: object) -> None:
        super().__init__(**given)
        self._sessions = Sessions(self.name, self.lease_s, "kv_headroom")
        self._read: dict[str | None, tuple[float, float, float]] = {}
        self._all_tokens = 0.0
        self._shared = 0.0
        self._next_s: float | None = None
        if self.shared == "measured":
            self.require(KV_PRESSURE, *_RULE)

    def decide(self, metrics: Snapshot) -> Decision:
        """Who was let in goes on; a new one passes if nobody waits and it fits."""
        sessions, request = self._sessions, metrics.request
        session = sessions.find(request)
        known = request.session is None or (session is not None and session.live)
        added = 0 if known else (request.input_tokens or 0) + self.buffer_tokens
        room = self._capacity(metrics)
        if self._goes_alone(metrics, added):
            room = self._used() + added
        full = metrics.gate("thunder_tokens", self._used() + added, room, ">")
        if request.session is None:
            return self.admit()
        if session is not None and session.live:
            held = session.paused_ns is not None
            refuse = metrics.gate("session_paused", held, 1.0)
        else:
            ahead = sessions.waiting + sessions.count(paused=True, busy=False)
            refuse = metrics.gate("thunder_waiting", ahead, 0.0, ">") or full
        return self._later(metrics) if refuse else self.admit()

    def decided(self, metrics: Snapshot, d: Decision) -> Charge | None:
        """A sign of life of the session, and a call of it when it was let in."""
        return self._sessions.decided(metrics, d)

    def observe(self, metrics: Snapshot, outcome: Outcome | None) -> None:
        """Looks at all sessions once a tick."""
        self._sessions.observe(metrics, outcome)
        if outcome is not None:
            return
        self._measure(metrics)
        if self._next_s is None or metrics.now_s >= self._next_s:
            self._next_s = metrics.now_s + self.tick_s
            self._tick(metrics)

    def _later(self, metrics: Snapshot) -> Decision:
        """Until the next tick: before that nobody is let go on."""
        left_s = 0.0 if self._next_s is None else self._next_s - metrics.now_s
        return self.defer("kv_headroom", estimate_ms=max(WAIT_LEAST_MS, 1000 * left_s))

    def _cache(self, metrics: Snapshot) -> float:
        """Tokens of the cache, over all replicas read lately."""
        return self._all_tokens or metrics.read(KV_CAPACITY_TOKENS) or 0.0

    def _capacity(self, metrics: Snapshot) -> float:
        """Tokens of it that may be held."""
        return self.watermark * self._cache(metrics)

    def _goes_alone(self, metrics: Snapshot, tokens: float) -> bool:
        """Whether one goes on that fits the cache, but never this process's part.

        It does while no call is open here and no other such one is let in: it would
        wait in vain for enough room.
        """
        part = self._capacity(metrics)
        fits = part < tokens <= self._cache(metrics)
        return fits and self._used() <= part and not self._sessions.count(busy=True)

    def _used(self) -> float:
        """What sessions hold: all but those held back that have no call open."""
        sessions = self._sessions
        tokens = sessions.tokens() - sessions.tokens(paused=True, busy=False)
        count = sessions.active - sessions.count(paused=True, busy=False)
        return max(0.0, tokens - self._shared) + self.buffer_tokens * count

    def _measure(self, metrics: Snapshot) -> None:
        """Capacity and use of each replica as it was read last."""
        capacity = metrics.read(KV_CAPACITY_TOKENS)
        if capacity is None:
            return
        if len(self._read) >= REPLICAS_MOST:
            self._read.clear()  # all are read anew
        now_s = metrics.now_s
        used = float(metrics.read(KV_PRESSURE) or 0.0) * float(capacity)
        self._read[metrics.replica] = (float(capacity), used, now_s)
        for replica, (_, _, seen_s) in tuple(self._read.items()):
            if now_s - seen_s > UNHEARD_S:
                del self._read[replica]
        self._all_tokens = sum(tokens for tokens, _, _ in self._read.values())
        if self.shared == "measured":
            held = sum(used for _, used, _ in self._read.values())
            self._shared = max(0.0, self._sessions.tokens(busy=True) - held)

    def _tick(self, metrics: Snapshot) -> None:
        """Lets go on whom there is room for, then holds back while there is none."""
        now_ns, capacity = metrics.now_ns, self._capacity(metrics)
        self._force(now_ns)
        self._resume(metrics)
        sessions = self._sessions
        marked = sessions.tokens(paused=True, busy=True)
        marked += self.buffer_tokens * sessions.count(paused=True, busy=True)
        self._pause(metrics, self._used() - marked - capacity)

    def _faded(self, now_ns: int) -> float:
        """How much less the contexts of those that run a tool count than they are."""
        half_life_s = self.half_life_s
        if half_life_s is None:
            return 0.0
        return sum(
            session.tokens
            * (1.0 - math.exp2((session.idle_ns - now_ns) / 1e9 / half_life_s))
            for session in self._sessions.live()
            if _runs_a_tool(session)
        )

    def _pause(self, metrics: Snapshot, excess: float) -> None:
        """Holds back the smallest, first of those that run a tool, until it fits.

        The last one goes on if it fits the cache.
        """
        if excess <= 0:
            return
        running = [s for s in self._sessions.live() if s.busy or _runs_a_tool(s)]
        for session in sorted(running, key=_order):
            cost = session.tokens + self.buffer_tokens
            last = self._sessions.count(paused=False) == 1
            stays = last and cost <= self._cache(metrics)
            if excess > 0 and session.paused_ns is None and not stays:
                excess -= cost
                self._sessions.pause(session, metrics.now_ns)

    def _resume(self, metrics: Snapshot) -> None:
        """Lets go on what fits: who asks again, then who is new, then who is idle."""
        now_ns = metrics.now_ns
        room = self._capacity(metrics) - self._used() + self._faded(now_ns)
        held = [s for s in self._sessions.paused.values() if not s.busy]
        paused = sorted(held, key=_SIZE)
        asking = [s for s in paused if s.refused_ns is not None]
        idle = [s for s in paused if s.refused_ns is None]
        for session in (*asking, *sorted(self._sessions.queue(), key=_SIZE), *idle):
            cost = session.tokens + self.buffer_tokens
            if cost <= room or self._goes_alone(metrics, cost):
                room -= cost
                self._let_go_on(session, now_ns)

    def _force(self, now_ns: int) -> None:
        """Lets go on whose call has waited for too long, whether it fits or not."""
        then_ns = now_ns - int(self.force_after_s * 1e9)
        for session in (*self._sessions.paused.values(), *self._sessions.queue()):
            since_ns = session.refused_ns
            if since_ns is not None and since_ns <= then_ns:
                self._let_go_on(session, now_ns)

    def _let_go_on(self, session: Session, now_ns: int) -> None:
        if session.live:
            self._sessions.resume(session)
        else:
            self._sessions.let_in(session, now_ns)


_SIZE = attrgetter("tokens")


def _order(session: Session) -> tuple[bool, int]:
    """Those that run a tool before those whose call is open."""
    return (session.busy, session.tokens)


def _runs_a_tool(session: Session) -> bool:
    """Whether it is free to call and has not been told to come again."""
    return not (
        session.busy or session.paused_ns is not None or session.refused_ns is not None
    )
