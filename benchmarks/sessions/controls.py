"""Policies that are only controls: each leaves out a part of what the ledger is."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Annotated, Unpack

from admitperf.core.decision import Decision
from admitperf.core.facts import Facts
from admitperf.core.outcome import Outcome
from admitperf.core.param import Param
from admitperf.core.policy import Policy
from admitperf.core.reading import Reading
from admitperf.core.signals import IN_FLIGHT
from admitperf.core.snapshot import Snapshot
from admitperf.core.verdict import Verdict
from admitperf.policies.all_of import AllOf
from admitperf.policies.parts.live.elephants import Elephants
from admitperf.policies.parts.live.session import Session
from admitperf.policies.parts.live.sessions import LEASE_S, Sessions
from admitperf.policies.session_ledger import SessionLedger
from admitperf.simulator import stream

QUOTA = "session_quota"
NEVER = 2_000.0
"""Milliseconds for each second of the longest wait sent, past which an estimate says
that coming back is no use."""

SHARE = Param(
    "part of all contexts that old tasks hold before one has to leave",
    low=0.0,
    high=1.0,
    origin="as the ledger has it",
)
QUANTUM = Param("calls after which a task is old", low=1, origin="tuned, 10 or 15")


class _Shedding(Policy):
    """What both elephant controls do beside their own rule."""

    _sessions: Sessions
    _elephants: Elephants

    def _follow(self, quantum: int, share: float, reasons: Collection[str]) -> None:
        self._sessions = Sessions(self.name, LEASE_S, *reasons)
        self._elephants = Elephants(self._sessions, quantum, share)
        self.require(*self.requires, IN_FLIGHT)

    def _must_go(self, metrics: Snapshot) -> bool:
        session = self._sessions.find(metrics.request)
        leaves = session is not None and self._elephants.leaves(session)
        return metrics.gate("elephant", float(leaves), 1.0)

    def _go(self, session: Session | None, quantum: int) -> Decision:
        used = 0 if session is None else session.calls
        never_ms = NEVER * self.settings.max_defer_s
        return self.reject(QUOTA, estimate_ms=never_ms, limit=quantum, used=used)

    def _counted(self, metrics: Snapshot, d: Decision) -> object:
        """A sign of life; a new task that was refused may cost an old one its place."""
        session = self._sessions.find(metrics.request)
        was_live = session is not None and session.live
        charge = self._sessions.decided(metrics, d)
        if d.verdict is Verdict.ADMIT:
            return charge
        if session is not None and d.reason == QUOTA:
            self._elephants.left(session)
        elif not was_live:
            self._elephants.turned_away()
        return charge


class GateElephant(AllOf, _Shedding):
    """A request gate, asked at every call, with the elephant rule on top."""

    name = "gate_elephant"

    quantum: Annotated[int, QUANTUM] = 15
    elephant_share: Annotated[float, SHARE] = 0.3

    def __init__(self, **given: object) -> None:
        super().__init__(**given)
        own = {"quantum": self.quantum, "elephant_share": self.elephant_share}
        self.parameters = {**self.parameters, **own}
        reasons = {reason for part in self.parts for reason in part.refuses_with}
        self._follow(self.quantum, self.elephant_share, reasons)

    def decide(self, metrics: Snapshot) -> Decision:
        """A marked task's call is refused for good, any other's as the gate says."""
        if self._must_go(metrics):
            return self._go(self._sessions.find(metrics.request), self.quantum)
        return super().decide(metrics)

    def decided(self, metrics: Snapshot, d: Decision) -> object:
        """What the parts charge, and the call of its task after them."""
        parts = super().decided(metrics, d) or (None,) * len(self.parts)
        return (*tuple(parts), self._counted(metrics, d))  # type: ignore[arg-type]

    def observe(self, metrics: Snapshot, outcome: Outcome | None) -> None:
        """Tells the parts, and the tasks' table."""
        super().observe(metrics, outcome)
        if outcome is not None and isinstance(outcome.charge, tuple):
            outcome = replace(outcome, charge=outcome.charge[-1])
        self._sessions.observe(metrics, outcome)


class CapElephant(_Shedding):
    """At most so many live tasks, first come first served, with the elephant rule."""

    name = "cap_elephant"
    unit = "agent-session"
    requires = (IN_FLIGHT, "session")

    max_live: Annotated[int, Param("live tasks", low=1, origin="tuned")] = 8
    quantum: Annotated[int, QUANTUM] = 15
    elephant_share: Annotated[float, SHARE] = 0.3

    def __init__(self, **given: object) -> None:
        super().__init__(**given)
        self._follow(self.quantum, self.elephant_share, ("slots",))

    def decide(self, metrics: Snapshot) -> Decision:
        """A new task waits while there are so many."""
        sessions = self._sessions
        session = sessions.find(metrics.request)
        if self._must_go(metrics):
            return self._go(session, self.quantum)
        full = metrics.gate("live_sessions", sessions.active, self.max_live)
        known = session is not None and session.live
        return self.defer("slots") if full and not known else self.admit()

    def decided(self, metrics: Snapshot, d: Decision) -> object:
        """A sign of life, and a call of the task when it was let in."""
        return self._counted(metrics, d)

    def observe(self, metrics: Snapshot, outcome: Outcome | None) -> None:
        """Looks at ends and leases."""
        self._sessions.observe(metrics, outcome)


class Thinned(Policy):
    """Lets a task in by its lot, and the same for each of its calls.

    The unit without a signal: it reads nothing of the engine.
    """

    name = "thinned"
    unit = "agent-session"
    requires = ("session",)

    share: Annotated[
        float,
        Param("lots that are let in", low=0.0, high=1.0, origin="the arm it is like"),
    ]
    seed: Annotated[int, Param("of the lots", low=0, origin="of the block")]

    def decide(self, metrics: Snapshot) -> Decision:
        """Refuses for good whose lot is not under the share."""
        drawn = lot(self.seed, metrics.request.session or "")
        if metrics.gate("lot", drawn, self.share):
            return self.reject(QUOTA, estimate_ms=NEVER * self.settings.max_defer_s)
        return self.admit()


class Memoryless(SessionLedger):
    """The ledger's gates asked of every call by itself, with nothing remembered.

    The signal without the unit: each call is a task of its own to it, which ends with
    its answer; only a call that was refused is known again when it comes back.
    """

    name = "memoryless"

    def __call__(
        self,
        raw_metrics: Reading | Mapping[str, object],
        *,
        request_id: str | None = None,
        **facts: Unpack[Facts],
    ) -> Decision:
        """Decides about a call as if it were a whole task."""
        if facts.get("session") is not None:
            facts["session"] = facts.get("logical_id") or request_id
            facts["parent_session"], facts["session_final"] = None, True
        return super().__call__(raw_metrics, request_id=request_id, **facts)


def lot(seed: int, session: str) -> float:
    """A number from 0 to 1 that belongs to a task of a block."""
    return stream(seed, f"lot/{session}").random()


def share_for(seed: int, sessions: Collection[str], count: int) -> float:
    """The share with which so many of these tasks are let in, and no more."""
    lots = sorted(lot(seed, name) for name in sessions)
    return 1.0 if count >= len(lots) else lots[count]


CONTROLS: Mapping[str, type[Policy]] = {
    one.name: one for one in (GateElephant, CapElephant, Thinned, Memoryless)
}
