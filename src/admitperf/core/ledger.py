"""The host's own open requests: who is in flight, and since when.

No outcomes means no ledger, never a full one: a host that does not report how
requests end would fill it for ever, so its signals are not known until an outcome has
been seen (or the host promised them), and again while most entries are past their
lease.
"""

from collections import OrderedDict, deque
from collections.abc import Hashable
from itertools import islice, takewhile
from typing import TypeVar

from admitperf.core.busy import Busy
from admitperf.core.charge import frozen
from admitperf.core.drain import WINDOW_S, Drain
from admitperf.core.entry import Entry
from admitperf.core.lengths import Lengths
from admitperf.core.request import Request

LEASE_S = 900.0
"""Seconds an entry counts without a sign of life. Origin: the product brief, 4."""

FORGOTTEN_S = 2 * LEASE_S + 60.0
"""Seconds without a sign of life after which an entry is forgotten. Plain choice: so
that of a steady stream whose ends are never reported, more entries are past their lease
than within it."""

ENTRIES_MOST = 50_000
"""Entries kept within their lease, and again past it; beyond it the oldest go. Bounds
the memory of a host that never reports an outcome. Plain choice."""

OVERTAKEN = 3
"""First tokens of later requests after which an older one's prompt is no work that is
left: engines take turns, and what lost three is stuck. Plain choice."""

STUCK_MOST = 16
"""Of those that wait so many are looked at for one that is not stuck. Bounds the time a
first token takes. Plain choice."""

EXPIRY_EVERY_NS = 1_000_000_000
"""Leases are looked at once a second: they last 900 s."""

_AT_ONCE = 1000
_REMEMBERED = 10_000
_SLACK = 64
_COST_SMOOTHING = 0.05


class Ledger:
    """Open requests by id, with counts per tenant and session.

    Not thread-safe by itself: the policy's lock covers it.

    Every table is in the order of the last sign of life, so that what is due to expire
    stands first.

    Args:
        reports_outcomes: the host's word that it will report outcomes.

    Attributes:
        live: whether its numbers mean anything.
        opened: requests in flight, by id.
        completions: how fast requests end.
        prefill: prompt tokens of open requests without a first token, and how fast
            they are worked off.
        lengths: how long answers are.
        next_expiry_ns: when to call `expire` next.
        expired_total: leases that ended without an end: they ran out, or were the
            oldest of too many.
    """

    def __init__(self, *, reports_outcomes: bool) -> None:
        self._told = reports_outcomes
        self._silent = False
        self.live = reports_outcomes
        self.opened: dict[str, Entry] = {}
        self._waiting: deque[Entry] = deque()
        self._expired: dict[str, Entry] = {}
        self._refused: OrderedDict[str, Entry] = OrderedDict()
        self._closed: OrderedDict[str, int] = OrderedDict()
        self.next_expiry_ns = 0
        self.expired_total = 0
        self._tenants: dict[str, list[float]] = {}
        self._sessions: dict[str, dict[int, Entry]] = {}
        self._cost = 0.0
        self._mean_cost = 0.0
        self._first_tokens = 0
        self._started = 0
        self._ended_without_first = 0
        self._service_s: float | None = None
        self._accounts: dict[Hashable, list[float]] = {}
        self.completions = Drain()
        self.prefill = Busy()
        self.lengths = Lengths()

    def open(self, entry: Entry) -> None:
        """Takes a request that was started."""
        key = entry.request_id
        if self._expired or self._refused:
            self._refused.pop(key, None)
            if self._expired.pop(key, None) is not None:
                self._judge()
        known = len(self.opened)
        if not known:
            self.completions.begin(entry.opened_ns)
        elif known >= ENTRIES_MOST:
            self._make_room()
        self.opened[key] = entry
        if entry.request.stream is not False:
            self._waiting.append(entry)
            if len(self._waiting) > 2 * len(self.opened) + _SLACK:
                self._waiting = deque(e for e in self._waiting if e.waits)
        self._count(entry)

    def _overtake(self, entry: Entry, now_ns: int) -> None:
        """Somebody has a first token: the oldest one without may never get one."""
        waiting = self._waiting
        while waiting and not waiting[0].waits:
            waiting.popleft()
        first = islice(waiting, STUCK_MOST)
        left = (e for e in first if e.waits and e.overtaken < OVERTAKEN)
        oldest = next(left, None)
        if oldest is None or oldest.seq > entry.seq:
            return
        oldest.overtaken += 1
        if oldest.overtaken >= OVERTAKEN and oldest.prefill:
            self.prefill.less(oldest.prefill, now_ns, done=False)
            oldest.prefill = 0.0

    def _make_room(self) -> None:
        """Many at once: taking the first out of a dict one by one is quadratic."""
        for entry in list(islice(self.opened.values(), ENTRIES_MOST // 100)):
            self._set_aside(entry)
        extra = max(0, len(self._expired) - ENTRIES_MOST)
        for key in list(islice(self._expired, extra)):
            del self._expired[key]
        self._judge()

    def refuse(self, entry: Entry) -> None:
        """Remembers a refused request, to notice when it is served all the same."""
        _remember(self._refused, entry.request_id, entry)

    def first_token(self, request_id: str, now_ns: int) -> None:
        """Notes a request's first token; every later call renews its lease."""
        entry = self.opened.pop(request_id, None)
        if entry is None:
            entry = self._expired.pop(request_id, None)
            if entry is None:
                return
            entry.ended = self._silent = False
            self._started += entry.first_ns is not None
            self._count(entry)
        entry.seen_ns = now_ns
        self.opened[request_id] = entry
        if entry.first_ns is None:
            entry.first_ns = now_ns
            self._first_tokens += 1
            self._started += 1
            if entry.prefill:
                self.prefill.less(entry.prefill, now_ns, done=True)
                entry.prefill = 0.0
            self._overtake(entry, now_ns)
        if not self.live:
            self._judge()

    def close(self, request_id: str, now_ns: int) -> Entry | None:
        """Takes a request out and returns its entry; None when it is not known.

        A refused request that ends was served: its entry says admitted False.
        """
        entry = self.opened.get(request_id)
        if entry is not None:
            self._release(entry, now_ns)
        else:
            entry = self._expired.pop(request_id, None) or self._refused.pop(
                request_id, None
            )
        if entry is None:
            return None
        entry.ended = True
        self._told, self._silent = True, False
        self._judge()
        self.completions.fell(1.0, now_ns)
        self._learn(entry, now_ns)
        _remember(self._closed, request_id, entry.seq)
        return entry

    def was_closed(self, request_id: str) -> bool:
        """Whether an outcome for this id was seen lately."""
        return request_id in self._closed

    def expire(self, now_ns: int) -> None:
        """Takes entries past their lease out; forgets them another lease later.

        A bounded number of them: the rest is due at once, with the next request.
        """
        due = _silent_since(self.opened, now_ns - int(LEASE_S * 1e9))
        for entry in due:
            self._set_aside(entry)
        old = _silent_since(self._expired, now_ns - int(FORGOTTEN_S * 1e9))
        for entry in old:
            del self._expired[entry.request_id]
        more = _AT_ONCE in (len(due), len(old))
        self.next_expiry_ns = now_ns + (0 if more else EXPIRY_EVERY_NS)
        self._judge()

    def _set_aside(self, entry: Entry) -> None:
        self.expired_total += 1
        self._release(entry, 0)  # nobody knows when it ended
        self._expired[entry.request_id] = entry

    def _judge(self) -> None:
        """Most of them past their lease: the host fell silent, until it is heard again.

        Without that, it would be believed whenever more requests came in during one
        lease than in the one before.
        """
        if len(self._expired) > len(self.opened):
            self._silent = True
        elif not self._expired:
            self._silent = False
        self.live = self._told and not self._silent

    @property
    def accounts(self) -> dict[Hashable, tuple[float, ...]]:
        """What open requests hold of each account: how many charges, and their sum."""
        return {account: tuple(held) for account, held in self._accounts.items()}

    @property
    def in_flight(self) -> int:
        """Open requests."""
        return len(self.opened)

    @property
    def waiting(self) -> int:
        """Open requests without a first token."""
        return len(self.opened) - self._started

    def tenant_in_flight(self, tenant: str) -> int:
        """Open requests of a tenant."""
        return int(self._tenants.get(tenant, (0, 0.0))[0])

    def tenant_share(self, tenant: str, request: Request) -> float:
        """The share of open work a tenant would hold with this request, from 0 to 1.

        Work is tokens of prompts and of the answers they middlingly have; a request
        whose tokens are not known counts as the mean of those that are, so with none
        known the share is one of requests.
        """
        own = self.cost_of(request)
        held = self._tenants.get(tenant, (0, 0.0))[1]
        return min(1.0, max(0.0, (held + own) / (self._cost + own)))

    def session_in_flight(self, session: str) -> int:
        """Open requests of a session."""
        return len(self._sessions.get(session, ()))

    def oldest_wait_s(self, now_ns: int) -> float | None:
        """Seconds the longest-waiting streamed request has had no first token.

        None when this host ends requests without ever reporting a first token: then
        its age says nothing about waiting.
        """
        if self._ended_without_first and not self._first_tokens:
            return None
        waiting = self._waiting
        while waiting and not waiting[0].waits:
            waiting.popleft()
        return max(0.0, (now_ns - waiting[0].opened_ns) / 1e9) if waiting else 0.0

    def session_frees_in_s(self, session: str, now_ns: int) -> float | None:
        """Seconds until one of a session's calls should end; None = not measured.

        The mean service time less the age of its oldest call, at least a tenth of it.
        """
        calls = self._sessions.get(session)
        if not calls or self._service_s is None:
            return None
        age_s = (now_ns - next(iter(calls.values())).opened_ns) / 1e9
        return max(self._service_s - age_s, self._service_s / 10)

    def frees_in_s(self, now_ns: int) -> float | None:
        """Seconds until an open request should end, where answers take long.

        None when their mean time is not known, is short beside what a drain watches,
        or the one that was heard of first is twice as old: then it stands still.
        """
        service_s = self._service_s
        if not self.opened or service_s is None or service_s < WINDOW_S / 2:
            return None
        age_s = (now_ns - next(iter(self.opened.values())).opened_ns) / 1e9
        if age_s > 2 * service_s:
            return None
        return max(service_s - age_s, service_s / 10)

    def _count(self, entry: Entry) -> None:
        request = entry.request
        if entry.held:
            self._take(entry)
        if not request.given:
            entry.cost = cost = self._mean_cost or 1.0
            self._cost += cost
            return
        known = self._tokens(request)
        entry.cost = cost = known or self._mean_cost or 1.0
        self._cost += cost
        if entry.first_ns is None and request.stream is not False:
            entry.prefill = request.own_prefill_tokens or 0
            if entry.prefill:
                self.prefill.more(entry.prefill, entry.opened_ns)
        if request.tenant is not None:
            held = self._tenants.setdefault(request.tenant, [0, 0.0])
            held[0] += 1
            held[1] += entry.cost
        if request.session is not None:
            self._sessions.setdefault(request.session, {})[entry.seq] = entry
        if known is not None:
            step = _COST_SMOOTHING if self._mean_cost else 1.0
            self._mean_cost += (known - self._mean_cost) * step

    def _release(self, entry: Entry, now_ns: int) -> None:
        request = entry.request
        entry.ended = True
        if entry.prefill:
            self.prefill.less(entry.prefill, now_ns, done=False)
        if entry.held:
            self._give_back(entry)
        self.opened.pop(entry.request_id, None)
        self._cost = max(0.0, self._cost - entry.cost) if self.opened else 0.0
        self._started -= entry.first_ns is not None
        if not request.given:
            return
        tenant, session = request.tenant, request.session
        if tenant is not None:
            held = self._tenants[tenant]
            held[0] -= 1
            held[1] -= entry.cost
            if held[0] <= 0:
                del self._tenants[tenant]
        if session is not None:
            calls = self._sessions[session]
            del calls[entry.seq]
            if not calls:
                del self._sessions[session]

    def _learn(self, entry: Entry, now_ns: int) -> None:
        if entry.first_ns is None and entry.request.stream is not False:
            self._ended_without_first += 1
        took_s = (now_ns - entry.opened_ns) / 1e9
        known = self._service_s
        self._service_s = took_s if known is None else known + 0.2 * (took_s - known)

    def cost_of(self, request: Request) -> float:
        """Its work in tokens: its prompt and the answer it will middlingly have.

        The mean of those that are known when its prompt is not.
        """
        return self._tokens(request) or self._mean_cost or 1.0

    def _tokens(self, request: Request) -> float | None:
        if request.input_tokens is None:
            return None
        return request.input_tokens + (self.lengths.quantile(request, 0.5) or 0.0)

    def charge(self, entry: Entry, charge: object) -> None:
        """Notes what a policy took for an open request, until its end.

        Raises:
            TypeError: one of the charges is none; nothing is taken then.
        """
        if charge is None:
            return
        entry.held = frozen(charge)
        entry.charge = charge
        if not entry.ended:
            self._take(entry)

    def charged(self, account: Hashable) -> float:
        """What open requests took from an account, all together."""
        return self._accounts.get(account, (0, 0.0))[1]

    def charges(self, account: Hashable) -> int:
        """How many charges open requests have on an account."""
        return int(self._accounts.get(account, (0, 0.0))[0])

    def _take(self, entry: Entry) -> None:
        for account, amount in entry.held:
            held = self._accounts.setdefault(account, [0, 0.0])
            held[0] += 1
            held[1] += amount

    def _give_back(self, entry: Entry) -> None:
        for account, amount in entry.held:
            held = self._accounts[account]
            held[0] -= 1
            held[1] -= amount
            if held[0] <= 0:
                del self._accounts[account]


_V = TypeVar("_V")


def _silent_since(table: dict[str, Entry], then_ns: int) -> list[Entry]:
    first = islice(table.values(), _AT_ONCE)
    return list(takewhile(lambda entry: entry.seen_ns < then_ns, first))


def _remember(table: OrderedDict[str, _V], key: str, value: _V) -> None:
    table[key] = value
    if len(table) > _REMEMBERED:
        table.popitem(last=False)
