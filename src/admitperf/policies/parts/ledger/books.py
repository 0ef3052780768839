"""The ledger: what all live tasks need together, kept as running sums."""

from collections import OrderedDict
from collections.abc import Set as AbstractSet
from itertools import islice
from math import exp2

from admitperf.core.charge import Charge
from admitperf.core.decision import Decision
from admitperf.core.outcome import Outcome
from admitperf.core.request import Request
from admitperf.core.snapshot import Snapshot
from admitperf.policies.parts.ledger.history import History
from admitperf.policies.parts.ledger.needs import Needs
from admitperf.policies.parts.ledger.rate import Rate
from admitperf.policies.parts.ledger.sums import Sums
from admitperf.policies.parts.ledger.task import Task
from admitperf.policies.parts.live.session import Session
from admitperf.policies.parts.live.sessions import LOOKED_AT, SESSIONS_MOST, Sessions
from admitperf.policies.parts.settled import prompt_tokens

CLASSES_MOST = 1_000
"""Classes of tasks, and tenants, of which something is kept, the ones met last. Plain
choice, as of the lengths of answers: callers may invent objectives."""

OVER_S, LEFT_S = 5.0, 10.0
"""Seconds that a task is kept after an answer that asks for no tool, and after its
caller hung up. Origin: research notes, 7.4."""

SHARED_WEIGHT = 0.1
"""Of a first call in the mean of what its prompt shares with others. Plain choice."""

_STOPPED = ("stop", "end_turn")
_TOOL = ("tool_calls", "tool_use", "function_call")
_CLOSED = "client_closed"


class Books(Sessions):
    """Tasks and their needs; also of those that run a tool, less and less.

    Args:
        name: the policy's.
        lease_s: as of `Sessions`.
        half_life_s: seconds without an open call after which a task counts half.
        reasons: what the policy refuses for when there is no room.

    Attributes:
        shared: tokens with which prompts of all tasks begin.
    """

    def __init__(
        self, name: str, lease_s: float, half_life_s: float, *reasons: str
    ) -> None:
        super().__init__(name, lease_s, *reasons)
        self._half_life_ns = half_life_s * 1e9
        self._histories: OrderedDict[tuple[str | None, str | None], History] = (
            OrderedDict()
        )
        self._gone: OrderedDict[str, Task] = OrderedDict()
        self._leaving: OrderedDict[str, int] = OrderedDict()
        self._now_ns = 0
        self._busy, self._idle = Sums(), Sums()
        self._idle_at_ns = 0
        self._tenants: dict[str | None, Sums] = {}
        self._common: OrderedDict[str | None, float] = OrderedDict()
        self._released = Rate(), Rate(), Rate()
        self.shared = 0.0

    # What `decide` reads.

    def task(self, request: Request) -> Task | None:
        """The task a request belongs to, live or waiting; None = not met."""
        found = self.find(request)
        return None if found is None else _task(found)

    def history(self, request: Request) -> History:
        """What tasks of a request's class were like."""
        return self._histories.get((request.model, request.slo_class)) or History()

    def needed(self, now_ns: int) -> tuple[float, float, float]:
        """What all live tasks need: tokens, slots and prompt tokens a second."""
        faded = exp2((self._idle_at_ns - now_ns) / self._half_life_ns)
        busy, idle = self._busy.all, self._idle.all
        return (
            busy[0] + faded * idle[0] + (self.shared if self._live else 0.0),
            busy[1] + faded * idle[1],
            busy[2] + faded * idle[2],
        )

    def needs_of(self, request: Request, task: Task | None) -> Needs:
        """What a task would need that begins with this request."""
        history = self.history(request) if task is None else task.history
        before = task or self._gone.get(request.session or "")
        growth = history.grows if before is None else before.growth
        own = max(0.0, (request.input_tokens or 0) - self.shared)
        return Needs.begun(history, own, growth)

    def tenant_kv(self, tenant: str | None) -> float:
        """Tokens that live tasks of a tenant need."""
        held = self._tenants.get(tenant)
        return 0.0 if held is None else held.all[0]

    @property
    def tenants(self) -> AbstractSet[str | None]:
        """Tenants with a live task."""
        return self._tenants.keys()

    def frees_s(self, place: int, amount: float, now_ns: int) -> float | None:
        """Seconds until so much should be free, as tasks end lately.

        Args:
            place: 0 of the cache, 1 of the slots, 2 of prefill.
            amount: in its unit.
            now_ns: the present.

        Returns:
            None while no task has ended.
        """
        per_s = self._released[place].per_s(now_ns)
        return amount / per_s if per_s else None

    # What a policy tells.

    def decided(self, metrics: Snapshot, d: Decision) -> Charge | None:
        """As of `Sessions`."""
        self._now_ns = metrics.now_ns
        return super().decided(metrics, d)

    def observe(self, metrics: Snapshot, outcome: Outcome | None) -> None:
        """As of `Sessions`."""
        self._now_ns = metrics.now_ns
        super().observe(metrics, outcome)

    def end(self, session: Session) -> None:
        """Forgets a task; how one called that was let in is remembered a while."""
        self._leaving.pop(session.root, None)
        if session.live:
            self._close(_task(session))
        super().end(session)

    # How.

    def _made(self, name: str, request: Request, now_ns: int) -> Task:
        """A task that is met; one that comes back calls as it did."""
        key = request.model, request.slo_class
        history = self._histories.setdefault(key, History())
        self._histories.move_to_end(key)
        if len(self._histories) > CLASSES_MOST:
            self._histories.popitem(last=False)
        return Task(name, now_ns, history, request.tenant, self._gone.pop(name, None))

    def _start(self, session: Session, request: Request, now_ns: int) -> None:
        task = _task(session)
        self._leaving.pop(task.root, None)
        if not task.calls:
            task.entered_ns = now_ns
            for rate in self._released:
                rate.begin(now_ns)
        elif not task.busy:
            task.paused((now_ns - task.idle_ns) / 1e9)
        if request.session == task.root and request.input_tokens is not None:
            task.asks(request.input_tokens)
        super()._start(task, request, now_ns)

    def _end(
        self, session: Session, request: Request, outcome: Outcome, now_ns: int
    ) -> None:
        super()._end(session, request, outcome, now_ns)
        task, fresh = _task(session), prompt_tokens(outcome, cached=False)
        task.stays_s = LEFT_S if outcome.error == _CLOSED else None
        if not outcome.ok or outcome.charge is None or request.session != task.root:
            return
        had = outcome.cached_tokens
        if fresh is None or (had is None and task.calls > 1):
            fresh = int(task.growth)
        task.served((now_ns - task.began_ns) / 1e9, fresh)
        if task.calls == 1 and task.is_new and had is not None:
            self._shares(task, min(had, task.prompt))
        if outcome.finish_reason in _TOOL:
            task.history.tools = True
        elif task.history.tools and outcome.finish_reason in _STOPPED:
            task.stays_s = OVER_S

    def _freed(self, session: Session, metrics: Snapshot) -> None:
        super()._freed(session, metrics)
        task = _task(session)
        if task.live and not task.busy and task.stays_s is not None:
            stays_ns = min(int(1e9 * task.stays_s), self._lease_ns)
            self._leaving[task.root] = metrics.now_ns + stays_ns

    def _expire(self, metrics: Snapshot) -> None:
        """Those that seem to be over go before their lease."""
        for root, due_ns in tuple(islice(self._leaving.items(), LOOKED_AT)):
            if due_ns > metrics.now_ns:
                break
            del self._leaving[root]
            task = self._live.get(root)
            if task is not None and not task.busy:
                self.end(task)
        super()._expire(metrics)

    def _shares(self, task: Task, cached: int) -> None:
        """What a new task's first prompt had in common with others.

        All share what each tenant's tasks do: one who sends one long prompt under many
        names must not make others seem small.
        """
        mean = self._common.pop(task.tenant, 0.0)
        self._common[task.tenant] = mean + SHARED_WEIGHT * (cached - mean)
        if len(self._common) > CLASSES_MOST:
            self._common.popitem(last=False)
        self.shared = min(self._common.values())

    def _close(self, task: Task) -> None:
        """What a task that is over teaches, and gives back."""
        if not task.cut:
            lasted_s = (task.idle_ns - task.entered_ns) / 1e9
            task.history.learn(task.calls, max(0.0, lasted_s))
        if task.needs is not None:
            for rate, amount in zip(self._released, task.needs.all, strict=True):
                rate.add(amount, self._now_ns)
        if not task.final:
            self._gone[task.root] = task
            if len(self._gone) > SESSIONS_MOST:
                self._gone.popitem(last=False)

    def _settle(self, session: Session) -> None:
        super()._settle(session)
        task = _task(session)
        if task.needs is not None:
            self._take(task, task.needs, -1)
            task.needs = None
        if task.live:
            task.needs = task.charged(self.shared)
            self._take(task, task.needs, 1)

    def _take(self, task: Task, needs: Needs, sign: int) -> None:
        """Adds what a task needs to the sums, or takes it away."""
        held = self._tenants.setdefault(task.tenant, Sums())
        held.add(needs.all, sign)
        if not held.count:
            del self._tenants[task.tenant]
        if needs.since_ns is None:
            self._busy.add(needs.all, sign)
            return
        self._idle.scale(exp2((self._idle_at_ns - self._now_ns) / self._half_life_ns))
        self._idle_at_ns = self._now_ns
        faded = exp2((needs.since_ns - self._now_ns) / self._half_life_ns)
        self._idle.add(needs.all, sign, faded)


def _task(session: Session) -> Task:
    """All that are made here are tasks."""
    if not isinstance(session, Task):
        raise TypeError(f"{session.root} is no task")
    return session
