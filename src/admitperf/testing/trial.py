"""One policy under observation."""

import sys
import threading
from collections.abc import Mapping
from typing import Any

from admitperf.core.decision import Decision
from admitperf.core.policy import Policy
from admitperf.core.snapshot import Snapshot
from admitperf.core.verdict import Verdict
from admitperf.testing.fake_clock import FakeClock
from admitperf.testing.memory_log import MemoryLog

_ASKED_AGAIN = 4
_OUTSIDE = ("import", "open", "socket.", "subprocess.", "os.", "_thread.start")
"""Audit events of what a rule must not do while a request waits."""


class Trial:
    """Calls one policy and collects what is wrong with how it answers.

    Args:
        promised: whether the host says that it reports outcomes.
        on_blind: the posture.

    Attributes:
        answers: what the policy said, call by call.
        orders: (status, admitted) of every call: what to do.
    """

    def __init__(
        self,
        cls: type[Policy],
        parameters: Mapping[str, object],
        *,
        enforce: float = 1.0,
        promised: bool = True,
        on_blind: str = "degrade",
    ) -> None:
        self.clock = FakeClock(start_s=1000.0, wall_s=1.7e9)
        self.log = MemoryLog()
        self.policy = cls(
            **parameters,
            clock=self.clock,
            log=self.log,
            enforce=enforce,
            reports_outcomes=promised,
            on_blind=on_blind,
        )
        self.answers: list[tuple[object, ...]] = []
        self.orders: list[tuple[int, bool]] = []
        self._open: list[str] = []
        self._faults: list[str] = []
        _watch(self.policy)

    def call(
        self, label: str, raw: Mapping[str, object], facts: Mapping[str, Any]
    ) -> Decision | None:
        """One request; None when the call itself failed."""
        request_id = f"call-{len(self.answers)}"
        _seen.clear()
        try:
            d = self.policy(raw, request_id=request_id, **facts)
        except Exception as error:  # noqa: BLE001  whatever is wrong is the finding
            self._faults.append(f"{label}: the call raised {error!r}")
            return None
        self._judge(label, d)
        gates = tuple((g.name, g.value, g.op, g.bound) for g in d.gates)
        self.answers.append((d.verdict, d.reason, d.status, d.retry_after_ms, gates))
        self.orders.append((d.status, d.admitted))
        if d.admitted:
            self._open.append(d.request_id)
        return d

    def ask(
        self, label: str, raw: Mapping[str, object], facts: Mapping[str, Any]
    ) -> None:
        """One request of a host that holds: asked several times, then answered."""
        request_id = f"call-{len(self.answers)}"
        before = self.policy.ledger.accounts
        d = self.policy.ask(raw, request_id=request_id, **facts)
        for _ in range(_ASKED_AGAIN):
            if d.open:
                d = self.policy.ask(raw, request_id=request_id, **facts)
        self.policy.answer(d)
        self.answers.append((d.verdict, d.reason, d.status))
        if d.admitted:
            self._open.append(d.request_id)
        elif self.policy.ledger.accounts != before:
            self._faults.append(f"{label}: a request that is refused is charged")

    def leave(self) -> None:
        """Everyone admitted gets a first token and an end, one of them twice."""
        for request_id in [*self._open, *self._open[:1], "nobody's"]:
            self.policy.first_token(request_id)
            self.policy.outcome(request_id, ok=True, ttft_ms=100.0, output_tokens=8)
        self._open.clear()
        left = self.policy.ledger.in_flight
        if left:
            self._faults.append(f"{left} requests stay open after all have ended")
        if kept := self.policy.ledger.accounts:
            self._faults.append(f"{len(kept)} charges stay after all have ended")

    def faults(self) -> list[str]:
        """What was wrong so far."""
        failed = [
            f"{hook} failed: {line['error']}"
            for line in self.log.controls
            for hook in ("observe", "task")
            if line["event"] == f"{hook}_failed"
        ]
        return [*self._faults, *failed]

    def _judge(self, label: str, d: Decision) -> None:
        told = [f"{label}: decide does {event}" for event in _seen]
        if d.reason == "policy_error":
            told.append(f"{label}: decide failed: {d.blind}")
        refused = d.verdict is not Verdict.ADMIT and d.blind is None
        if refused and not d.gates:
            told.append(f"{label}: refuses for {d.reason} and leaves no gate")
        known = self.policy.refuses_with
        if refused and known and d.reason not in known:
            told.append(f"{label}: refuses for {d.reason}, not among refuses_with")
        if refused and self.policy.baseline:
            told.append(f"{label}: a baseline refuses for {d.reason}")
        self._faults += told


_seen: list[str] = []
_deciding: list[int] = []
"""The threads inside a watched `decide`."""

_hooked = threading.Event()


def _watch(policy: Policy) -> None:
    """Notes what a policy's `decide` does to the world outside it."""
    if not _hooked.is_set():
        _hooked.set()
        sys.addaudithook(_note)
    decide = policy.decide

    def watched(metrics: Snapshot) -> Decision:
        _deciding.append(threading.get_ident())
        try:
            return decide(metrics)
        finally:
            _deciding.pop()

    policy.decide = watched  # type: ignore[method-assign]


def _note(event: str, args: tuple[object, ...]) -> None:
    if not _deciding or not event.startswith(_OUTSIDE):
        return
    if threading.get_ident() == _deciding[-1]:
        _seen.append(f"{event}({', '.join(map(repr, args[:1]))[:80]})")
