"""Decide once about a task, by what every task under way will still need."""

from collections.abc import Set as AbstractSet
from typing import Annotated, NamedTuple

from admitperf.core.charge import Charge
from admitperf.core.decision import Decision
from admitperf.core.outcome import Outcome
from admitperf.core.param import Param
from admitperf.core.policy import Policy
from admitperf.core.signals import IN_FLIGHT, KV_CAPACITY_TOKENS, QUEUE_DEPTH, RUNNING
from admitperf.core.snapshot import Snapshot
from admitperf.core.verdict import Verdict
from admitperf.policies.parts.ledger.books import Books
from admitperf.policies.parts.ledger.engine import Engine
from admitperf.policies.parts.ledger.needs import Needs
from admitperf.policies.parts.ledger.task import Task
from admitperf.policies.parts.live.elephants import NEVER_MS_PER_S, Elephants
from admitperf.policies.parts.live.retention import Retention
from admitperf.policies.parts.live.session import Session
from admitperf.policies.parts.live.sessions import CALLS, CALLS_MOST, LEASE, LEASE_S
from admitperf.policies.parts.stuck import PROBE_S
from admitperf.policies.parts.tenancy.weights import weights_of

GATES = (
    ("ledger_kv", "kv_headroom"),
    ("ledger_slots", "slots"),
    ("ledger_prefill", "prefill_backlog"),
)
"""What is held at once, and what is said when there is no room for it."""

KV, SLOTS, PREFILL = range(3)
CAPACITY = tuple(reason for _, reason in GATES)
TOO_LATE = "deadline_unmeetable"

WAIT_LEAST_S = 0.25
"""Shortest wait told. Plain choice: a gateway reads its engines that often."""

SHARED_FROM = 0.7
"""Part of the cache's bound in use from which tenants are held to their shares. Origin:
research notes, 7.2."""

SHED_EVERY_S = 1.0
"""Seconds from one look at all tasks for one that has to leave to the next. Plain
choice: it costs time for each of them."""

WANTED_WAITS = 3.0
"""Longest waits for which it is remembered that a tenant was turned away: who keeps to
what it was told has been back by then. Plain choice."""

WANTED_MOST = 64
"""Tenants of which that is remembered. Plain choice: bounds what a decision costs."""

_NOTES = "research notes, 7.2"
_SCREEN = "the screen of the session evidence"


class _Short(NamedTuple):
    """What there is too little of.

    Attributes:
        place: among `GATES`.
        wait_s: seconds to the next look at it.
    """

    place: int
    wait_s: float


class SessionLedger(Policy):
    """Lets a task begin when what it will need fits beside what all others will.

    Three things are held for a task from its first call to its last, while it runs a
    tool too, then less and less: KV cache, decode slots, and prefill. Later calls are
    served without a look at them. A task that does not fit is told when to come again,
    or at once that it would wait too long. In the mode `shed` the task that would take
    most to finish has to leave when new ones are turned away.
    """

    name = "session_ledger"
    unit = "agent-session"
    slo_awareness = "deadline"
    signal_quantity = "kv_pressure"
    signal_structure = "lp-composite"
    metadata_assumed = ("session", "input_tokens")
    refuses_with = (
        *CAPACITY,
        "session_in_flight",
        "session_quota",
        "tenant_share",
        TOO_LATE,
        "too_large",
    )
    requires = (KV_CAPACITY_TOKENS, IN_FLIGHT, "session", "input_tokens")

    mode: Annotated[
        str,
        Param(
            "protect: whoever began is served to the end; shed: who has had a `quantum`"
            " of calls may have to leave",
            choices=("protect", "shed"),
            origin=f"{_NOTES}; protect breaks no promise",
        ),
    ] = "protect"
    kv_share: Annotated[
        float,
        Param(
            "KV cache that tasks may need together, as a fraction",
            above=0.0,
            high=10.0,
            per_process=True,
            origin=_SCREEN,
        ),
    ] = 1.0
    slot_share: Annotated[
        float,
        Param(
            "slots that tasks may need together, as a fraction",
            above=0.0,
            high=10.0,
            per_process=True,
            origin=_SCREEN,
        ),
    ] = 1.4
    prefill_share: Annotated[
        float,
        Param(
            "prefill that tasks may need together, as a fraction",
            above=0.0,
            high=10.0,
            per_process=True,
            origin=_SCREEN,
        ),
    ] = 1.2
    burst: Annotated[
        float,
        Param(
            "times their shares that slots and prefill may be needed while nobody"
            " waits for them",
            low=1.0,
            high=100.0,
            origin=_SCREEN,
        ),
    ] = 1.6
    half_life_s: Annotated[
        float,
        Param(
            "seconds without an open call after which a task counts half",
            above=0.0,
            high=86400.0,
            origin=_SCREEN,
        ),
    ] = 30.0
    patience: Annotated[
        float,
        Param(
            "wait before its first call after which a task is refused for good, as a"
            " fraction of how long tasks of its class take, in the middle",
            low=0.0,
            high=100.0,
            origin=_SCREEN,
        ),
    ] = 0.3
    longest_wait_s: Annotated[
        float,
        Param(
            "longest wait told for want of room, in seconds: room comes and goes with"
            " pauses too, and to who asks first",
            above=0.0,
            high=3600.0,
            origin=_SCREEN,
        ),
    ] = 10.0
    slots: Annotated[
        int | None,
        Param(
            "requests that run at once on the engines of one reading, which is of a"
            " replica or of a pool; None = learnt when some wait with memory to spare",
            low=1,
            high=1e6,
            origin="off: an engine does not tell",
        ),
    ] = None
    in_flight: Annotated[int, CALLS] = CALLS_MOST
    weights: Annotated[
        str | None,
        Param(
            "shares of tenants when the cache is short, `a=2,b=1`; a tenant that is"
            " not named has 1; None = all alike",
            origin="off: nobody has said so",
        ),
    ] = None
    quantum: Annotated[
        int,
        Param(
            "calls that a task is served whatever happens, in the mode shed",
            low=1,
            high=1e6,
            origin="research notes, 7.3",
        ),
    ] = 15
    elephant_share: Annotated[
        float,
        Param(
            "part of all contexts that old tasks hold before one has to leave",
            low=0.0,
            high=1.0,
            origin="research notes, 7.3",
        ),
    ] = 0.3
    margin: Annotated[
        float,
        Param(
            "times what a newcomer would take that a task has to take to leave for it",
            low=0.0,
            high=1000.0,
            origin=_SCREEN,
        ),
    ] = 2.0
    lease_s: Annotated[float, LEASE] = LEASE_S

    def __init__(self, **given: object) -> None:
        super().__init__(**given)
        self._weights = weights_of(self.weights)
        self._engine = Engine(self.slots)
        self._books = Books(
            self.name, self.lease_s, self.half_life_s, *CAPACITY, "tenant_share"
        )
        self._retention = Retention(self.lease_s)
        self._elephants = Elephants(self._books, self.quantum, self.elephant_share)
        self._looked_s = -SHED_EVERY_S
        self._singles = (self.name, "singles")
        self._let_in_s: float | None = None
        self._wanted: dict[str | None, float] = {}

    def decide(self, metrics: Snapshot) -> Decision:
        """A task that began goes on; a new one needs room, or is told when there is."""
        task = self._books.task(metrics.request)
        prompt, largest = metrics.request.input_tokens or 0, self._engine.largest
        if prompt > largest > 0 and metrics.gate("prompt_kv", prompt, largest, ">"):
            return self.reject("too_large")
        if task is not None and task.live:
            return self._goes_on(metrics, task)
        if metrics.request.session is None:
            return self._single(metrics)
        return self._begins(metrics, task)

    def decided(self, metrics: Snapshot, d: Decision) -> object:
        """A sign of life; who is turned away may cost an old task its place."""
        task = self._books.task(metrics.request)
        began = task is not None and task.live
        if d.verdict is Verdict.ADMIT and not began:
            self._let_in_s = metrics.now_s
        elif task is not None and d.reason == "session_quota":
            task.cut = True
            self._elephants.left(task)
            return None
        elif not began and d.reason in (*CAPACITY, TOO_LATE):
            self._turned_away(metrics, task)
        if d.reason == TOO_LATE and task is not None and not began:
            self._books.end(task)  # told no; who comes back begins to wait anew
        if metrics.request.session is None:
            held = metrics.request.input_tokens or 0
            return Charge(self._singles, held), Charge(self._account(metrics), held)
        return self._books.decided(metrics, d)

    def observe(self, metrics: Snapshot, outcome: Outcome | None) -> None:
        """Learns from an end, or from a reading."""
        self._books.observe(metrics, outcome)
        self._retention.observe(metrics, outcome)
        self._engine.observe(metrics, outcome, self._retention.value)
        if outcome is None:
            known = self._books.tokens(busy=True) + metrics.charged(self._singles)
            self._engine.compare(metrics, known, min(1.0, self.kv_share))

    # Tasks that began.

    def _goes_on(self, metrics: Snapshot, task: Task) -> Decision:
        """Served, but for the two exceptions that are declared."""
        leaves = self._elephants.leaves(task)
        if leaves and metrics.gate("session_calls", task.calls, self.quantum):
            never_ms = NEVER_MS_PER_S * self.settings.max_defer_s
            limit, used = self.quantum, task.calls
            return self.reject(
                "session_quota", estimate_ms=never_ms, limit=limit, used=used
            )
        open_calls = metrics.charges(self._books.account(task))
        if metrics.gate("session_in_flight", open_calls, self.in_flight):
            return self.defer("session_in_flight")
        return self.admit()

    # Tasks that want to begin.

    def _begins(self, metrics: Snapshot, task: Task | None) -> Decision:
        needs = self._books.needs_of(metrics.request, task)
        short, over = self._short(metrics, needs), self._over_share(metrics, needs)
        if not (short or over) or self._is_idle(metrics):
            return self.admit()
        if over or short is None:
            return self.reject("tenant_share", estimate_ms=self._share_ms(metrics))
        in_all_s = self._waited_s(metrics, task) + short.wait_s
        if metrics.gate("task_wait_s", in_all_s, self._patience_s(metrics), ">"):
            wait_ms = 1000 * short.wait_s
            return self.reject(TOO_LATE, estimate_ms=wait_ms)
        return self._later(short)

    def _later(self, short: _Short) -> Decision:
        return self.defer(CAPACITY[short.place], estimate_ms=1000 * short.wait_s)

    def _short(self, metrics: Snapshot, needs: Needs) -> _Short | None:
        """Of what there is too little, the one that it would take longest to free."""
        found: _Short | None = None
        bounds = self._bounds(metrics)
        held = self._held(metrics)
        for place, (name, _) in enumerate(GATES):
            bound = bounds[place]
            if bound is None:
                continue
            needed = held[place] + needs.all[place]
            most = bound * (self.burst if self._is_free(metrics, place) else 1.0)
            if not metrics.gate(name, needed, most, ">"):
                continue
            over = needed - most
            wait_s = self._wait_s(metrics, place, over)
            if found is None or wait_s > found.wait_s:
                found = _Short(place, wait_s)
        return found

    def _is_free(self, metrics: Snapshot, place: int) -> bool:
        """Whether nobody waits for it now; the cache is not had back in a moment."""
        if place == SLOTS:
            open_calls = float(metrics.read(IN_FLIGHT) or 0.0)
            return open_calls < (self._engine.slots or 0.0)
        return place == PREFILL and not metrics.prefill_tokens

    def _wait_s(self, metrics: Snapshot, place: int, over: float) -> float:
        """Until so much should be free, at least and at most so long."""
        frees_s = self._books.frees_s(place, over, metrics.now_ns)
        known_s = self.longest_wait_s if frees_s is None else frees_s
        return min(max(known_s, WAIT_LEAST_S), self.longest_wait_s)

    def _held(self, metrics: Snapshot) -> tuple[float, float, float]:
        """What tasks need, and of the cache what others are seen to use."""
        kv, slots, prefill = self._books.needed(metrics.now_ns)
        single = metrics.charged(self._singles)
        alone = metrics.charges(self._singles)
        return kv + single + self._engine.foreign, slots + alone, prefill

    def _bounds(
        self, metrics: Snapshot
    ) -> tuple[float | None, float | None, float | None]:
        """What there is of each; None = not known."""
        engine = self._engine
        slots, prefill = engine.slots, engine.prefill
        kv = self.kv_share * engine.trusted(metrics.now_s) * engine.tokens
        return (
            kv if engine.tokens else None,
            None if slots is None else self.slot_share * slots,
            None if prefill is None else self.prefill_share * prefill,
        )

    def _waited_s(self, metrics: Snapshot, task: Task | None) -> float:
        return 0.0 if task is None else (metrics.now_ns - task.asked_ns) / 1e9

    def _patience_s(self, metrics: Snapshot) -> float:
        return self.patience * self._books.history(metrics.request).lasts_s

    def _is_idle(self, metrics: Snapshot) -> bool:
        """Whether the engine has nothing to do, whatever the books say."""
        if not (self._books.active or metrics.read(IN_FLIGHT)):
            return True
        busy = metrics.read(RUNNING) != 0 or bool(metrics.read(QUEUE_DEPTH))
        lately = self._let_in_s is None or metrics.now_s - self._let_in_s < PROBE_S
        return not (busy or lately)

    # Requests without a session.

    def _single(self, metrics: Snapshot) -> Decision:
        """A request by itself: it has to fit, behind those of its tenant alone."""
        short = self._short(metrics, Needs.once(metrics.request.input_tokens))
        speed = self._engine.prefill
        backlog = metrics.charged(self._account(metrics))
        most = float("inf") if speed is None else self._patience_s(metrics) * speed
        waits = metrics.gate("tenant_backlog_tokens", backlog, most, ">")
        if self._is_idle(metrics) or not (waits or short):
            return self.admit()
        return self.defer("prefill_backlog") if short is None else self._later(short)

    def _account(self, metrics: Snapshot) -> tuple[str, str, str | None]:
        return (self.name, "single", metrics.request.tenant)

    # Shares, and who has to leave.

    def _over_share(self, metrics: Snapshot, needs: Needs) -> bool:
        """Whether a tenant would have more than its share while another one waits."""
        tenant, bound = metrics.request.tenant, self._bounds(metrics)[0]
        if bound is None or not self._wanting(metrics) - {tenant}:
            return False
        if self._held(metrics)[0] < SHARED_FROM * bound:
            return False
        mine = self._books.tenant_kv(tenant) + needs.all[0]
        return metrics.gate(
            "tenant_kv", mine, self._share(metrics, tenant) * bound, ">"
        )

    def _wanting(self, metrics: Snapshot) -> AbstractSet[str | None]:
        """Tenants turned away lately though under their share."""
        then_s = metrics.now_s - WANTED_WAITS * self.longest_wait_s
        return {one for one, at_s in self._wanted.items() if at_s >= then_s}

    def _share(self, metrics: Snapshot, tenant: str | None) -> float:
        """Of the cache, among those that have a task or want one."""
        others = (self._books.tenants | self._wanting(metrics)) - {tenant}
        own = self._weights.get(tenant or "", 1.0)
        return own / (own + sum(self._weights.get(one or "", 1.0) for one in others))

    def _share_ms(self, metrics: Snapshot) -> float:
        own = self._books.tenant_kv(metrics.request.tenant)
        return 1000 * self._wait_s(metrics, KV, own)

    def _turned_away(self, metrics: Snapshot, task: Task | None) -> None:
        """Notes which tenant wants in, and in the mode shed looks who has to leave."""
        needs = self._books.needs_of(metrics.request, task)
        self._wants(metrics, needs)
        if self.mode != "shed" or metrics.now_s - self._looked_s < SHED_EVERY_S:
            return
        short = self._short(metrics, needs)
        if short is not None:
            self._looked_s = metrics.now_s
            self._shed(metrics, needs, short.place)

    def _wants(self, metrics: Snapshot, needs: Needs) -> None:
        """Notes who was turned away under its share; who has not been back is gone."""
        tenant, bound = metrics.request.tenant, self._bounds(metrics)[0]
        mine = self._books.tenant_kv(tenant) + needs.all[0]
        if bound is None or mine > self._share(metrics, tenant) * bound:
            return
        wanting = self._wanting(metrics)
        self._wanted = {one: self._wanted[one] for one in wanting}
        if tenant in wanting or len(wanting) < WANTED_MOST:
            self._wanted[tenant] = metrics.now_s

    def _shed(self, metrics: Snapshot, needs: Needs, place: int) -> None:
        """Marks who would take most to finish, if that is far more than a newcomer."""
        history = self._books.history(metrics.request)
        takes = needs.to_finish(history.remaining(0))[place]
        bound = self._bounds(metrics)[0] if place == KV else None

        def left(session: Session) -> float:
            if not isinstance(session, Task) or self._is_safe(metrics, session, bound):
                return 0.0
            return session.to_finish()[place]

        self._elephants.turned_away(left, self.margin * takes)

    def _is_safe(self, metrics: Snapshot, task: Task, bound: float | None) -> bool:
        """Whether memory of a tenant within its share is asked for by another one."""
        if bound is None or task.tenant == metrics.request.tenant:
            return False
        held = self._books.tenant_kv(task.tenant)
        return held <= self._share(metrics, task.tenant) * bound
