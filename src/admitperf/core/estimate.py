"""When will there be room? From the gate that fired and the drain measured lately."""

import math
from collections.abc import Sequence

from admitperf.core.decision import Decision
from admitperf.core.drain import Drain
from admitperf.core.gate import Gate
from admitperf.core.ledger import Ledger
from admitperf.core.outcome import milliseconds
from admitperf.core.reasons import SIGNAL_OF, Reason
from admitperf.core.signal import Signal
from admitperf.core.signals import ALL, OLDEST_WAIT_S, TENANT_IN_FLIGHT, TENANT_SHARE
from admitperf.core.snapshot import Snapshot
from admitperf.core.verdict import Verdict
from admitperf.core.view import View
from admitperf.core.wait import DEFAULT_MS, NO_WAIT, Wait, spread_ms, unit_interval

LEAST_MS = 250
"""Shortest measured wait. Origin: a gateway scrapes each 0.25 s; sooner than that
nothing new can be known, and a wait of a few milliseconds spreads nobody."""

_REPLICAS_MOST = 1024
_UNITS_OF_ONE = "requests"
_SIGNALS = {signal.name: signal for signal in ALL}


class Estimator:
    """Computes waits for one policy.

    Args:
        cap_s: longest wait sent, in seconds.
    """

    def __init__(self, ledger: Ledger, cap_s: float) -> None:
        self._ledger = ledger
        self._cap_s = cap_s
        self._drains: dict[str | None, dict[Signal, Drain]] = {}

    def watch(self, view: View) -> None:
        """Takes a new reading: each replica drains by itself."""
        if len(self._drains) >= _REPLICAS_MOST:
            self._drains.clear()
        drains = self._drains.setdefault(view.reading.replica, {})
        for signal, value in view.values.items():
            drain = drains.get(signal)
            if drain is None:
                drain = drains[signal] = Drain()
            drain.watch(float(value), view.reading.taken_ns)

    def settle(self, d: Decision, reason: Reason, snapshot: Snapshot) -> None:
        """Fills in what a refusal tells its caller.

        A defer whose wait is measured to be endless, past the cap or past the caller's
        deadline becomes a reject with the true estimate.
        """
        d.status, d.fault, d.should_retry = reason.status, reason.fault, reason.retry
        given = milliseconds(d.retry_after_ms)
        if given is not None:
            d.retry_after_ms = int(given) if given.is_integer() else given
            d.estimate_ms, d.wait = d.retry_after_ms, "policy"
            if reason.fault == "caller" and given > self._cap_s * 1000:
                d.should_retry = False
            return
        u = unit_interval(d.request_id, b"spread")
        wait = self._wait(d, reason, snapshot)
        d.wait, d.estimate_ms = wait.basis, wait.estimate_ms
        d.retry_after_ms = self._sent_ms(wait, reason, u)
        estimate_s = math.inf if wait.estimate_ms is None else wait.estimate_ms / 1000
        if wait is NO_WAIT:
            return
        d.capped = estimate_s > self._cap_s
        if d.capped and reason.fault == "caller":
            d.should_retry = False
        deadline_s = snapshot.request.deadline_s
        late = deadline_s is not None and estimate_s > deadline_s
        if (
            d.verdict is Verdict.DEFER
            and wait.basis != "default"
            and (d.capped or late)
        ):
            d.verdict = Verdict.REJECT

    def _sent_ms(self, wait: Wait, reason: Reason, u: float) -> int | None:
        if wait is NO_WAIT:
            return None
        if (
            wait.basis == "fixed"
            and reason.least_s is not None
            and reason.most_s is not None
        ):
            return math.ceil(
                1000 * (reason.least_s + (reason.most_s - reason.least_s) * u)
            )
        estimate = math.inf if wait.estimate_ms is None else wait.estimate_ms
        return spread_ms(estimate, self._cap_s, u)

    def _wait(self, d: Decision, reason: Reason, snapshot: Snapshot) -> Wait:
        if reason.fault == "size":
            return NO_WAIT
        if reason.fault == "instrument" and reason.least_s is not None:
            return Wait(math.ceil(reason.least_s * 1000), "fixed")
        own = milliseconds(d.estimate_ms)
        wait = (
            Wait(math.ceil(own), "policy")
            if own is not None
            else self._measured(d, snapshot)
        )
        if reason.least_s is None or reason.most_s is None or wait.estimate_ms is None:
            return wait
        bounded = min(
            max(wait.estimate_ms, reason.least_s * 1000), reason.most_s * 1000
        )
        return Wait(math.ceil(bounded), wait.basis)

    def _measured(self, d: Decision, snapshot: Snapshot) -> Wait:
        gate = _fired(d.reason or "", d.rests_on or d.gates)
        signal = _SIGNALS.get(gate.name) if gate else None
        if gate is None or signal is None:
            return Wait(DEFAULT_MS, "default")
        if signal.name == "session_in_flight":
            return self._session(snapshot)
        rate = self._rate_per_s(signal, snapshot)
        if rate is None:
            return Wait(DEFAULT_MS, "default")
        if rate <= 0:
            return self._still(signal, snapshot)
        amount = self._amount(signal, gate)
        wait_ms = milliseconds(1000 * amount / rate)
        if wait_ms is None:
            return Wait(None, "measured")
        return Wait(max(LEAST_MS, math.ceil(wait_ms)), "measured")

    def _still(self, signal: Signal, snapshot: Snapshot) -> Wait:
        """Nothing drained: endless, or only that answers take longer than was watched.

        Who runs longest should end next, as long as it is not much older than answers
        become.
        """
        counts = self._counts(signal)
        soon_s = self._ledger.frees_in_s(snapshot.now_ns) if counts else None
        if soon_s is None:
            return Wait(None, "measured")
        return Wait(max(LEAST_MS, math.ceil(1000 * soon_s)), "measured")

    def _amount(self, signal: Signal, gate: Gate) -> float:
        """What has to drain until the gate has room, in the unit of its rate.

        The ledger's own wait and share drain as requests end: by the part of the
        waiting ones that are too old, and of the open ones that are too many.
        """
        if signal is OLDEST_WAIT_S and self._counts(signal):
            return self._ledger.waiting * gate.excess / (gate.value or 1.0)
        if signal is TENANT_SHARE:
            return self._ledger.in_flight * gate.excess
        whole = signal.unit == _UNITS_OF_ONE and gate.op in (">=", "<")
        return gate.excess + (1.0 if whole else 0.0)

    def _counts(self, signal: Signal) -> bool:
        """Whether a signal drains as this host's requests end."""
        if not self._ledger.live:
            return False
        own = signal in (OLDEST_WAIT_S, TENANT_SHARE)
        read = any(signal in drains for drains in self._drains.values())
        return signal.unit == _UNITS_OF_ONE or (own and not read)

    def _session(self, snapshot: Snapshot) -> Wait:
        session = snapshot.request.session
        frees_s = session and self._ledger.session_frees_in_s(session, snapshot.now_ns)
        return (
            Wait(math.ceil(frees_s * 1000), "measured")
            if frees_s
            else Wait(DEFAULT_MS, "default")
        )

    def _rate_per_s(self, signal: Signal, snapshot: Snapshot) -> float | None:
        """How fast a signal falls.

        Requests by what this host saw end, everything by what its own readings fell;
        the faster of the two.
        """
        drain = self._drains.get(snapshot.replica, {}).get(signal)
        rates = [drain.rate_per_s(snapshot.now_ns) if drain else None]
        if self._counts(signal):
            ended = self._ledger.completions.rate_per_s(snapshot.now_ns)
            rates.append(ended and ended * self._part(signal, snapshot))
        known = [rate for rate in rates if rate is not None]
        rate = max(known) if known else None
        # What was read stood still; what came since had no time to.
        return None if rate == 0 and snapshot.view.base is not None else rate

    def _part(self, signal: Signal, snapshot: Snapshot) -> float:
        """The part of all endings that frees this signal."""
        tenant = snapshot.request.tenant
        if (
            signal not in (TENANT_IN_FLIGHT, TENANT_SHARE)
            or tenant is None
            or not self._ledger.in_flight
        ):
            return 1.0
        return self._ledger.tenant_in_flight(tenant) / self._ledger.in_flight


def _fired(reason: str, gates: Sequence[Gate]) -> Gate | None:
    """The gate a refusal rests on: its reason's own, one that held before one not."""
    own = [gate for gate in gates if gate.name == SIGNAL_OF.get(reason)]
    held = [gate for gate in own or gates if gate.held]
    return next(reversed(held or own), None)
