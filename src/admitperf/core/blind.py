"""What a policy does when it cannot see.

A missing signal is never headroom, and never an outage either: the posture answers,
under a reason of its own. Blind is left again after `GOOD_READINGS` good readings.
"""

import math
from collections import deque
from collections.abc import Callable

from admitperf.core.decision import Decision
from admitperf.core.ledger import Ledger
from admitperf.core.notice import in_words, say
from admitperf.core.resolver import Event
from admitperf.core.settings import Settings
from admitperf.core.signal import Signal
from admitperf.core.snapshot import Snapshot
from admitperf.core.verdict import Verdict
from admitperf.core.view import View

GOOD_READINGS = 3
"""Origin: brief, decision 7."""

SEEN_LEAST = 100
"""Decisions on good readings before their 95th percentile counts. Origin: brief, 4."""

_SEEN_KEPT = 1000


class Blindness:
    """Keeps whether one policy can see, and answers while it cannot.

    Attributes:
        owed: good readings needed before it sees again; 0 = it sees.
        held: the last view a decision was made on with open eyes.
        noted: the same, None once it was blind since.
    """

    def __init__(
        self, policy: str, settings: Settings, ledger: Ledger, event: Event
    ) -> None:
        self._policy = policy
        self._settings = settings
        self._ledger = ledger
        self._event = event
        self._blind: str | None = None
        self._missed: Signal | None = None
        self.owed = 0
        self._seen: deque[int] = deque(maxlen=_SEEN_KEPT)
        self.held: View | None = None
        self.noted: View | None = None
        self._held_ns = 0

    def reading(self, view: View, now_ns: int) -> None:
        """Counts a reading towards seeing again.

        A plain mapping that is handed in again is read again.
        """
        if view is self.held:
            self._held_ns = now_ns
        if self.owed and self._missed not in view.stale:
            self.owed -= 1

    def why(
        self, snapshot: Snapshot, view: View, required: tuple[Signal, ...]
    ) -> str | None:
        """Why `decide` need not be asked: "reason: detail"; None when it can see."""
        if self.owed:
            return f"signal_stale: {self.owed} more good readings needed"
        for signal in required:
            if signal not in view.values and snapshot.read_signal(signal) is None:
                return self._cause(signal, view)
        return None

    def failed(self, error: Exception, snapshot: Snapshot, view: View) -> str:
        """Why `decide` failed: a signal that was None, or a fault of its own."""
        if snapshot.read_none:
            return self._cause(snapshot.read_none[-1], view)
        self._missed = None
        return f"policy_error: {in_words(error)}"

    def _cause(self, signal: Signal, view: View) -> str:
        self._missed = signal
        return cause(signal, view)

    def sighted(self, view: View, decision: Decision) -> None:
        """Takes note of a decision made with open eyes, before it is carried out."""
        if self.held is not view:
            self.held, self._held_ns = view, view.taken_ns
        self.noted = view
        if self._ledger.live:
            one_more = decision.verdict is Verdict.ADMIT
            self._seen.append(self._ledger.in_flight + one_more)
        if self._blind is not None:
            self._blind = None
            self._event("sighted", {})
            say(f"{self._policy} can see again")

    def answer(
        self, why: str, now_ns: int, again: Callable[[View], Decision]
    ) -> Decision:
        """The posture's decision, under the blind reason.

        Args:
            why: "reason: detail".
            again: asks the policy about another view.
        """
        reason, _, detail = why.partition(": ")
        self.noted = None
        if self._missed is None or self._missed.origin != "request":
            self._say(reason, detail)  # a fact that some requests lack is no change
        if reason == "signal_stale" and not self.owed:
            self.owed = GOOD_READINGS
        posture = self._settings.on_blind
        verdict = self._held_verdict(now_ns, again) if posture == "hold_last" else None
        decision = Decision(verdict or self._posture_verdict(posture), reason)
        decision.blind = detail
        return decision

    def _posture_verdict(self, posture: str) -> Verdict:
        if posture in ("admit", "defer", "reject"):
            return Verdict(posture)
        cap = self._cap()
        full = cap is not None and self._ledger.live and self._ledger.in_flight >= cap
        return Verdict.REJECT if full else Verdict.ADMIT

    def _cap(self) -> int | None:
        if self._settings.blind_cap is not None:
            return self._settings.blind_cap
        if len(self._seen) < SEEN_LEAST:
            return None
        ranked = sorted(self._seen)
        return ranked[math.ceil(0.95 * len(ranked)) - 1]

    def _held_verdict(
        self, now_ns: int, again: Callable[[View], Decision]
    ) -> Verdict | None:
        held = self.held
        if held is None or now_ns - self._held_ns > self._settings.hold_last_s * 1e9:
            return None
        try:
            return again(held).verdict
        except Exception:  # noqa: BLE001  then the last good reading does not help either
            return None

    def _say(self, reason: str, detail: str) -> None:
        if self._blind != reason:
            self._blind = reason
            self._event("blind", {"reason": reason, "why": detail})
            posture = self._settings.on_blind
            say(f"{self._policy} is blind: {reason} ({detail}); posture {posture}")


def cause(signal: Signal, view: View) -> str:
    """The blind reason for a signal that read None, with what is known about it."""
    stale = view.stale.get(signal)
    if stale is not None:
        return f"signal_stale: {signal.name} {stale}"
    return f"signal_absent: {signal.name} {view.absent.get(signal, 'is not supplied')}"
