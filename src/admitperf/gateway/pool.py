"""One pool: its policy, what it sees, and how each request fares before its start.

Every refusal is recorded, the policy's and the host's own: a caller back before its
time, a tenant over its quota, one who left while held. Nothing here waits.
"""

import math
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from admitperf.core.clock import SYSTEM, Clock
from admitperf.core.decision import Decision
from admitperf.core.errors import MissingSignal
from admitperf.core.notice import say
from admitperf.core.policy import Policy
from admitperf.core.reading import Reading
from admitperf.core.request import Request
from admitperf.core.signals import KV_PRESSURE, QUEUE_DEPTH, RUNNING
from admitperf.core.verdict import Verdict
from admitperf.gateway.attempts import Attempts, Call
from admitperf.gateway.counters import Counters
from admitperf.gateway.facts.facts import Known
from admitperf.gateway.hold import HoldQueue, Waiter, may_wait
from admitperf.gateway.quotas import Over, Quotas
from admitperf.gateway.setup import Limits, PoolSetup

PROBE_S = 10.0
"""A pool in which nothing of ours is open and nothing moves is asked again after so
long, although its policy says no: a frozen gauge would say so for ever. Origin: field
case s-met-07."""

EXPLAINED = 500
"""Decisions kept for `explain`. Plain choice: about 1 MB; what lives long comes back
cold, and costs each request."""

REST_S = 2.0
REST_PART = 0.2
"""Nobody is held up to the very deadline: what is left, at most these seconds or this
part of it, is for the engine's first token, or for the refusal's way back. Plain
choice."""

_DRAINING_MS = 1000.0  # another process takes over meanwhile, or a balancer does
_FROZEN = (KV_PRESSURE, QUEUE_DEPTH, RUNNING)
_MOST_ATTEMPT = 3


class Seen(Protocol):
    """Where a pool's readings come from.

    Attributes:
        failed: why a replica cannot be read, by its name.
        rounds, failures: how often all were read, and how often one could not be; None
            where the host hands readings in.
    """

    failed: dict[str, str]

    @property
    def rounds(self) -> int | None:
        """See above."""

    @property
    def failures(self) -> int | None:
        """See above."""

    @property
    def pool(self) -> Reading:
        """The last one of all replicas."""

    @property
    def all(self) -> tuple[Reading, ...]:
        """Those that decisions are made on."""

    def replica(self, name: str) -> Reading:
        """The last one of a replica."""

    def first(self) -> dict[str, str]:
        """Reads here and now; `failed`."""

    def start(self, on_new: Callable[[], None]) -> None:
        """Begins to read; `on_new` is called after each reading, in whatever thread."""

    def stop(self) -> None:
        """Ends reading."""


@dataclass(slots=True)
class Asked:
    """One request at the front door.

    Attributes:
        known: what it says of itself.
        call: the call it is a try at.
        arrived_ns: on the clock of the policy.
        facts: as the policy gets them.
        request_id: its id; None until the first decision.
        replica: what it is judged for, then where it went; None = the pool.
        judged: what it was admitted for.
        outcome: how it ended; empty until then.
    """

    known: Known
    call: Call
    arrived_ns: int
    facts: dict[str, Any]
    request_id: str | None = None
    replica: str | None = None
    judged: str | None = None
    outcome: dict[str, Any] = field(default_factory=dict)


class Told(NamedTuple):
    """What `explain` says of a decision, and nothing that is large."""

    decision: Decision
    facts: Mapping[str, object]
    slo: Mapping[str, float]
    outcome: Mapping[str, object]


class Pool:
    """Decides about the requests of one pool.

    Args:
        setup: what it is made of.
        policy: its policy.
        seen: its readings.
        limits: bounds of the front door.
        quotas: of all tenants.
        clock: source of time.

    Attributes:
        counters: what it counts.
        queue: requests that are held.
        draining: every request is refused from now on.
        last: the newest decision; None = there was none.
        order: names the replicas that a request of a session may go to, the best
            first; None = there is one, or the policy judges by the whole pool.
        missing: the signal that its policy requires and no page has, in words; None =
            none, as far as is known.
    """

    def __init__(
        self,
        setup: PoolSetup,
        policy: Policy,
        seen: Seen,
        limits: Limits,
        quotas: Quotas,
        clock: Clock = SYSTEM,
    ) -> None:
        self.setup = setup
        self.name = setup.name
        self.policy = policy
        self.seen = seen
        self.counters = Counters()
        self.queue = HoldQueue(setup.holding.most, clock)
        self.order: Callable[[str | None], Sequence[str]] | None = None
        self.missing: str | None = None
        self._sighted = False
        self.draining = False
        self.last: Decision | None = None
        self._attempts = Attempts(limits.identities)
        self._quotas = quotas
        quotas.policies.append(policy)
        self._clock = clock
        self._explained: OrderedDict[str, Told] = OrderedDict()
        self._still: dict[str | None, tuple[tuple[float | None, ...], int]] = {}
        self._open_on: Counter[str | None] = Counter()

    # Before the start.

    def meet(self, known: Known, arrived_ns: int) -> Asked:
        """Takes in a request: which call it is a try at, and at which replica."""
        call = self._call(known)
        facts = {**known.facts, "logical_id": call.logical_id, "attempt": call.tries}
        return Asked(known, call, arrived_ns, facts, known.request_id)

    def _call(self, known: Known) -> Call:
        """The call it is a try at.

        An idempotency key settles that. Without one, a client that counts its tries and
        says 0 begins a call; one that does not count may tell by ids of its own.
        """
        said, key = known.said_attempt, known.idempotency
        anybody = said is None and key is None and "session" not in known.facts
        return self._attempts.begin(
            known.fingerprint,
            said,
            mark=known.request_id if anybody else None,
            fresh=said == 0 and key is None,
        )

    def judge(self, asked: Asked) -> Decision:
        """The first answer: admitted, or a refusal, open if the policy made it."""
        now_ns = self._clock.monotonic_ns()
        self.counters.unreadable += not asked.known.wish.readable
        own = self._own_refusal(asked, now_ns)
        if own is not None:
            return own
        if len(self.queue):  # who came before has the first claim to any room
            self.queue.pump()
        d = self._ask(asked, None)
        asked.request_id = d.request_id
        took_us = (self._clock.monotonic_ns() - now_ns) / 1000
        self.counters.decide_us.add(took_us)
        if not d.open:
            return self._recorded(asked, d, 0.0)
        if self._frozen(asked.replica, now_ns):
            self.counters.probes += 1
            return self.settle(asked, d, probe=True)
        return d

    def settle(
        self, asked: Asked, d: Decision, held_ms: float = 0.0, *, probe: bool = False
    ) -> Decision:
        """Makes an open refusal the answer."""
        if not d.open:
            return d
        held = held_ms or None
        return self._recorded(
            asked, self.policy.answer(d, held_ms=held, probe=probe), held_ms
        )

    def waiter(self, asked: Asked, d: Decision) -> Waiter | None:
        """The place it has now in the holding queue; None = it is to be answered."""
        holding = self.setup.holding
        patience_s = self._patience_s(asked, d)
        if patience_s <= 0 or holding.defer != "hold":
            return None
        tenant = asked.known.identity.setup
        facts = asked.facts
        waiter = Waiter(
            lambda held_ms: self._held(asked, held_ms, waiter.decision),
            d,
            tenant=asked.known.identity.tenant,
            weight=tenant.weight if tenant else 1.0,
            tokens=self.policy.ledger.cost_of(Request(facts)),
            priority=facts.get("priority") or 0,
            wait_s=patience_s,
        )
        return waiter if self.queue.enter(waiter) else None

    def too_large(self, asked: Asked) -> Decision:
        """Its body is over the limit: refused, whatever the policy would say."""
        return self._refuse(asked, "too_large", "body", Verdict.REJECT)

    def left(self, asked: Asked, d: Decision, held_ms: float) -> None:
        """Its caller left while it was held."""
        if d.open:
            why, verdict = "client_closed", d.verdict
            self._refuse(asked, d.reason or "", why, verdict, held_ms=held_ms)
            return
        self.ended(asked, d, {"ok": False, "error": "client_closed"})

    # After it.

    def ended(self, asked: Asked, d: Decision, outcome: dict[str, Any]) -> None:
        """An admitted request ended; gives its lease back."""
        self.policy.outcome(d.request_id, **outcome)
        asked.outcome.update(outcome, replica=asked.replica)
        self._open_on[asked.judged] -= 1
        ok = bool(outcome.get("ok"))
        self._attempts.ended(asked.call, served=ok)
        self.counters.outcomes["ok" if ok else str(outcome.get("error"))] += 1
        ttft_ms = outcome.get("ttft_ms")
        if ttft_ms is not None:
            self.counters.ttft_s.add(ttft_ms / 1000)
        if len(self.queue):
            self.queue.pump()

    def number(self, d: Decision) -> str:
        """The id of a decision, for headers and `explain`."""
        return f"{self.policy.run}-{d.seq}"

    def explain(self, name: str) -> dict[str, object] | None:
        """What is known of a decision, by its id or its request id; None = too old."""
        found = self._explained.get(name) or next(
            (
                one
                for one in reversed(self._explained.values())
                if one.decision.request_id == name
            ),
            None,
        )
        if found is None:
            return None
        d = found.decision
        return {
            "pool": self.name,
            "decision_id": self.number(d),
            "request_id": d.request_id,
            "verdict": str(d.verdict),
            "reason": d.reason,
            "admitted": d.admitted,
            "status": d.status,
            "retry_after_ms": d.retry_after_ms,
            "estimate_ms": d.estimate_ms,
            "wait": d.wait,
            "blind": d.blind,
            "gates": [[g.name, g.value, g.op, g.bound, g.held] for g in d.gates],
            "facts": found.facts,
            "slo": found.slo,
            "outcome": dict(found.outcome),
        }

    def forget_call(self, asked: Asked) -> None:
        """It ended before there was a decision."""
        self._attempts.ended(asked.call, served=False)

    def look_for_missing(self) -> None:
        """Looks whether the engines say what the policy requires, once they say much.

        They may have come up after this process, whose start-up could not look.
        """
        reading = self.seen.pool
        if self._sighted or not reading.raw:
            return
        try:
            self.policy.check(reading)
        except MissingSignal as error:
            if self.missing is None:
                say(f"pool {self.name}: {error}")
            self.missing = str(error)
        else:
            self.missing, self._sighted = None, True

    # How.

    def reading(self, replica: str | None) -> Reading:
        """What the policy looks at."""
        return self.seen.pool if replica is None else self.seen.replica(replica)

    def _ask(self, asked: Asked, held_ms: float | None) -> Decision:
        facts = asked.facts
        if held_ms and facts.get("deadline_s") is not None:
            facts = {**facts, "deadline_s": facts["deadline_s"] - held_ms / 1000}
        names = self.order(facts.get("session")) if self.order else (None,)
        first: Decision | None = None
        for asked.replica in names:
            d = self.policy.ask(
                self.reading(asked.replica),
                request_id=asked.request_id,
                held_ms=held_ms,
                **facts,
            )
            asked.request_id = d.request_id
            if not d.open:
                return d
            first = first or d
        asked.replica = names[0]
        return first or d

    def _held(self, asked: Asked, held_ms: float, last: Decision) -> Decision:
        """Asks again for one that is held; an admission is recorded at once.

        Its tenant may have used up its quota meanwhile: then the last answer stands.
        """
        if self._over_quota(asked, self._clock.monotonic_ns()) is not None:
            return last
        d = self._ask(asked, held_ms)
        return d if d.open else self._recorded(asked, d, held_ms)

    def _own_refusal(self, asked: Asked, now_ns: int) -> Decision | None:
        """A refusal that does not ask the policy, recorded; None = ask it."""
        if self.draining:
            return self._refuse(
                asked, "slots", "draining", Verdict.DEFER, retry_after_ms=_DRAINING_MS
            )
        call = asked.call
        if call.due_ns > now_ns:
            left_ms = math.ceil((call.due_ns - now_ns) / 1e6)
            d = self._refuse(
                asked, call.reason, "early", call.verdict, retry_after_ms=left_ms
            )
            d.should_retry = d.should_retry and call.again
            return d
        over = self._over_quota(asked, now_ns)
        if over is None:
            return None
        return self._refuse(
            asked,
            over.reason,
            "quota",
            Verdict.REJECT,
            estimate_ms=over.wait_ms,
            limit=over.limit,
            used=over.used,
        )

    def _over_quota(self, asked: Asked, now_ns: int) -> Over | None:
        """What one more would be over, of its tenant's quotas."""
        tenant = asked.known.identity.setup
        if tenant is None:
            return None
        return self._quotas.over(tenant, self._quotas.open(tenant), now_ns)

    def _refuse(
        self,
        asked: Asked,
        reason: str,
        why: str,
        verdict: Verdict,
        **told: Any,  # noqa: ANN401  keywords of `Policy.refuse`
    ) -> Decision:
        """Refuses on the host's own account; what it told goes to the policy's log."""
        held_ms = told.get("held_ms") or 0.0
        d = self.policy.refuse(
            self.reading(asked.replica),
            reason,
            why=why,
            verdict=verdict,
            request_id=asked.request_id,
            **told,
            **asked.facts,
        )
        asked.request_id = d.request_id
        return self._recorded(asked, d, held_ms, why)

    def _recorded(
        self, asked: Asked, d: Decision, held_ms: float, by: str = "policy"
    ) -> Decision:
        """Counts an answer that is final, and remembers it."""
        counters, call = self.counters, asked.call
        self.last = d
        key = (str(d.verdict), d.reason or "", d.admitted, by)
        counters.decisions[key] += 1
        counters.attempts[min(call.tries, _MOST_ATTEMPT)] += 1
        counters.blind += d.blind is not None
        if held_ms:
            counters.held_s.add(held_ms / 1000)
        told = Told(d, asked.facts, asked.known.slo, asked.outcome)
        self._explained[self.number(d)] = told
        if len(self._explained) > EXPLAINED:
            self._explained.popitem(last=False)
        if d.admitted:
            asked.judged = asked.replica
            self._open_on[asked.judged] += 1
            tenant = asked.known.identity.setup
            if tenant is not None:
                self._quotas.charge(tenant, self._clock.monotonic_ns())
            return d
        wait_ms = d.retry_after_ms or 0.0
        if wait_ms:
            counters.wait_s.add(wait_ms / 1000)
        due_ns = self._clock.monotonic_ns() + int(wait_ms * 1e6) if wait_ms else 0
        if by != "early":  # the time it was told first stands
            self._attempts.refused(call, due_ns, d.reason or "", d.verdict)
            call.again = d.should_retry
        call.open = False
        return d

    def _patience_s(self, asked: Asked, d: Decision) -> float:
        """How long it may be held, in seconds; 0 = not at all."""
        holding = self.setup.holding
        if not may_wait(d) or asked.facts.get("slo_class") in holding.never:
            return 0.0
        deadline_s: float | None = asked.facts.get("deadline_s")
        if deadline_s is None:
            return holding.longest_s
        rest_s = min(REST_S, deadline_s * REST_PART)
        return min(holding.longest_s, deadline_s - rest_s)

    def _frozen(self, replica: str | None, now_ns: int) -> bool:
        """Whether nothing of ours is open there, and what it says stands still."""
        if self._open_on[replica] > 0:
            self._still.pop(replica, None)
            return False
        reading = self.reading(replica)
        seen = tuple(signal.read(reading) for signal in _FROZEN)
        before, since_ns = self._still.get(replica, ((), now_ns))
        if seen == before and any(seen) and now_ns - since_ns < PROBE_S * 1e9:
            return False
        self._still[replica] = seen, now_ns
        return seen == before and any(seen)
