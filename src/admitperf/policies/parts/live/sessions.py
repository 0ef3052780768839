"""The live sessions of a host, between their calls too.

The ledger knows open requests; an agent that runs a tool has none open and will be back
with its whole context. So a policy that decides about sessions keeps them here, from
the first admitted call until the last one ends, or until nothing was heard for a lease.

Helpers (sub-agents) are charged to their root: a request whose own session is not known
and whose `parent_session` is joins that one's family, whatever depth the parent is at.
One whose parent is not known is a root of its own.

Open calls are the ledger's to count: each admitted call holds a `Charge` on its root's
account, and what the ledger gives back is given back here. Time is what `decided` and
`observe` see; nothing changes in `decide`.
"""

from collections import OrderedDict, deque
from collections.abc import Iterable
from itertools import islice
from statistics import median

from admitperf.core.charge import Charge
from admitperf.core.decision import Decision
from admitperf.core.outcome import Outcome
from admitperf.core.param import Param
from admitperf.core.request import Request
from admitperf.core.snapshot import Snapshot
from admitperf.core.verdict import Verdict
from admitperf.policies.parts.live.session import Session

LEASE_S = 120.0
LEASE = Param(
    "seconds without a sign of life after which a session is gone",
    low=1.0,
    high=86400.0,
    origin="plain choice: over the 86 s that half the people of TraceLab "
    "(arXiv 2606.30560) take to answer, and over any wait we send",
)
"""How long a session lasts that nobody hears of, as a policy's parameter."""

CALLS_MOST = 64
CALLS = Param(
    "calls of one session, its helpers' too, that may be open",
    low=1,
    high=1e6,
    origin="plain choice: twice the 30 calls within two seconds that are feared of "
    "agents; with the 8 of the research notes, 7.2, such tasks died in the simulator",
)
"""How many calls of one session may be open, as a policy's parameter."""

SESSIONS_MOST = 2_000
"""Live sessions kept, and again as many that wait; beyond it the one that was silent
longest goes. Plain choice: ten times the 200 that a decision's cost is promised for."""

HELPERS_MOST = 16
"""Helpers of one session whose contexts are kept; beyond it the one that was silent
longest goes. Plain choice: several times what one agent starts at once."""

TURNS_KEPT = 63
"""Turns that the median is taken of. Plain choice: an odd number, some
minutes' worth of a few agents."""

TURNS_LEAST = 3
"""Turns after which there is a median. Plain choice: one turn says little."""

LOOKED_AT = 4
"""Sessions looked at for a lease that ran out, at each event: more than one can add."""

_BUSY = 1
_PAUSED = 2
_PLACES = {
    (paused, busy): tuple(
        place
        for place in range(4)
        if paused in (None, bool(place & _PAUSED))
        and busy in (None, bool(place & _BUSY))
    )
    for paused in (None, False, True)
    for busy in (None, False, True)
}
"""Where the sessions are counted that are so."""


class _Call(Charge):
    """One open call, on the account of its session.

    Args:
        account: the policy's name, a word and the session's root.
    """

    __slots__ = ("root",)

    def __init__(self, account: tuple[str, str, str]) -> None:
        super().__init__(account)
        self.root = account[-1]


class Sessions:
    """Sessions by name, with running sums, so that a decision costs the same for any.

    Not thread-safe by itself: the policy's lock covers it. Bounded by `SESSIONS_MOST`;
    a forked child goes on with a copy, whose sessions leave by lease unless they call.

    Args:
        name: the policy's: its accounts begin with it.
        lease_s: seconds without a sign of life after which a session without open calls
            is gone. A call with an end that is never reported is open for the ledger's
            own lease, and its session for that and at most two of these.
        reasons: what the policy refuses for when there is no room: who was refused for
            one of them waits.

    Attributes:
        paused: live sessions that are held back, in the order of their pausing.
    """

    def __init__(self, name: str, lease_s: float, *reasons: str) -> None:
        self._name = name
        self._lease_ns = int(lease_s * 1e9)
        self._reasons = reasons
        self._live: OrderedDict[str, Session] = OrderedDict()
        self._waiting: OrderedDict[str, Session] = OrderedDict()
        self._named: dict[str | None, Session] = {}
        self._counts = [0, 0, 0, 0]
        self._tokens = [0, 0, 0, 0]
        self._turns: deque[float] = deque(maxlen=TURNS_KEPT)
        self._turn_s: float | None = None
        self.paused: OrderedDict[str, Session] = OrderedDict()

    # What `decide` reads.

    def find(self, request: Request) -> Session | None:
        """The session a request belongs to, live or waiting; None = not met."""
        session = self._named.get(request.session)
        if session is None and request.session is not None:
            return self._named.get(request.parent_session)
        return session

    @property
    def active(self) -> int:
        """Live sessions, helpers not counted."""
        return len(self._live)

    @property
    def waiting(self) -> int:
        """Sessions that were refused and never let in."""
        return len(self._waiting)

    def count(self, *, paused: bool | None = None, busy: bool | None = None) -> int:
        """Live sessions, of those that are so; None = either."""
        return sum(self._counts[place] for place in _PLACES[paused, busy])

    def tokens(self, *, paused: bool | None = None, busy: bool | None = None) -> int:
        """Context tokens of live sessions, of those that are so; None = either."""
        return sum(self._tokens[place] for place in _PLACES[paused, busy])

    @property
    def turn_s(self) -> float | None:
        """Median seconds from the start of a call to that of the session's next one.

        Of the last turns of all sessions; None until some were seen.
        """
        return self._turn_s

    def account(self, session: Session) -> tuple[str, str, str]:
        """On which its open calls are charged."""
        return (self._name, "session", session.root)

    def live(self) -> Iterable[Session]:
        """Live sessions, the one that was silent longest first."""
        return self._live.values()

    def queue(self) -> Iterable[Session]:
        """Sessions that wait to be let in, the one that was silent longest first."""
        return self._waiting.values()

    # What a policy tells.

    def decided(self, metrics: Snapshot, d: Decision) -> Charge | None:
        """An answer is final: a sign of life, and with an admission an open call.

        Returns:
            What the call holds; for the policy's `decided` to return.
        """
        request, now_ns = metrics.request, metrics.now_ns
        admitted = d.verdict is Verdict.ADMIT
        session = self.find(request)
        if session is None and (admitted or d.reason in self._reasons):
            session = self._meet(request, now_ns)
        if session is None:
            self._expire(metrics)
            return None
        if admitted:
            self._start(session, request, now_ns)
        elif d.reason in self._reasons:
            self._refused(session, request, now_ns)
        self._seen(session, now_ns)
        self._expire(metrics)
        return _Call(self.account(session)) if admitted else None

    def observe(self, metrics: Snapshot, outcome: Outcome | None) -> None:
        """A call ended, or a reading came: then only leases are looked at."""
        if outcome is not None and outcome.request is not None:
            session = self._caller(outcome.request, outcome.charge)
            if session is not None:
                self._end(session, outcome.request, outcome, metrics.now_ns)
                self._freed(session, metrics)
        self._expire(metrics)

    def let_in(self, session: Session, now_ns: int) -> None:
        """Gives a session that waits its place before its call comes back."""
        self._enter(session)
        session.idle_ns = now_ns
        self._seen(session, now_ns)

    def pause(self, session: Session, now_ns: int) -> None:
        """Holds a live session back; what that means for its calls is the policy's."""
        session.paused_ns = now_ns
        self.paused[session.root] = session
        self._settle(session)

    def resume(self, session: Session) -> None:
        """Lets a session that was held back go on."""
        session.paused_ns = None
        del self.paused[session.root]
        self._settle(session)

    def end(self, session: Session) -> None:
        """Forgets a session; its open calls go on, and count for it no more."""
        table = self._live if session.live else self._waiting
        del table[session.root]
        self.paused.pop(session.root, None)
        for name in (session.root, *session.helpers):
            if self._named.get(name) is session:
                del self._named[name]
        session.live = session.busy = False
        self._settle(session)

    # How.

    def _caller(self, request: Request, charge: object) -> Session | None:
        """Whose call it was: a helper may have become a root of its own meanwhile."""
        if isinstance(charge, _Call):
            return self._live.get(charge.root)
        return self.find(request)

    def _meet(self, request: Request, now_ns: int) -> Session | None:
        name = request.session
        if name is None:
            return None
        session = self._named[name] = self._made(name, request, now_ns)
        self._waiting[name] = session
        return session

    def _made(self, name: str, request: Request, now_ns: int) -> Session:  # noqa: ARG002  a subclass looks at it
        """A session that is met; a subclass may know more of each."""
        return Session(name, now_ns)

    def _enter(self, session: Session) -> None:
        if session.live:
            return
        del self._waiting[session.root]
        self._live[session.root] = session
        session.live = True
        if len(self._live) > SESSIONS_MOST:
            self.end(next(iter(self._live.values())))

    def _start(self, session: Session, request: Request, now_ns: int) -> None:
        """A call is let in."""
        self._enter(session)
        if session.calls and not session.busy:
            self._turn(now_ns - session.began_ns)
        session.calls += 1
        session.busy, session.refused_ns, session.began_ns = True, None, now_ns
        if request.session == session.root:
            session.final = request.session_final
        if request.input_tokens is not None or request.session not in self._named:
            self._hold(session, request, request.input_tokens or 0, now_ns)

    def _turn(self, took_ns: int) -> None:
        self._turns.append(took_ns / 1e9)
        if len(self._turns) >= TURNS_LEAST:
            self._turn_s = median(self._turns)

    def _refused(self, session: Session, request: Request, now_ns: int) -> None:
        if session.refused_ns is None:
            session.refused_ns = now_ns
        if len(self._waiting) > SESSIONS_MOST:
            self.end(next(iter(self._waiting.values())))
        if request.input_tokens is not None:
            self._hold(session, request, request.input_tokens, now_ns)

    def _end(
        self, session: Session, request: Request, outcome: Outcome, now_ns: int
    ) -> None:
        """What the call leaves behind: its prompt and its answer, or nothing."""
        told = outcome.input_tokens
        prompt = request.input_tokens if told is None else told
        if request.session_final and request.session != session.root:
            self._let_go(session, request.session or "")
        elif prompt is not None:
            self._hold(session, request, prompt + (outcome.output_tokens or 0), now_ns)

    def _hold(
        self, session: Session, request: Request, tokens: int, now_ns: int
    ) -> None:
        name = request.session or session.root
        if self._named.setdefault(name, session) is session:
            session.holds(name, tokens, now_ns)

    def _freed(self, session: Session, metrics: Snapshot) -> None:
        """The ledger has given a call's charge back."""
        session.busy = session.live and metrics.charges(self.account(session)) > 0
        if not session.busy:
            session.idle_ns = metrics.now_ns
        if session.final and not session.busy:
            self.end(session)
        else:
            self._seen(session, metrics.now_ns)

    def _let_go(self, session: Session, helper: str) -> None:
        session.lets_go(helper)
        if self._named.get(helper) is session:
            del self._named[helper]

    def _seen(self, session: Session, now_ns: int) -> None:
        """A sign of life; a helper that gave none for a lease is let go."""
        session.seen_ns = now_ns
        table = self._live if session.live else self._waiting
        table.move_to_end(session.root)
        if session.helpers:
            name, (_, seen_ns) = next(iter(session.helpers.items()))
            late = now_ns - seen_ns >= self._lease_ns
            if late or len(session.helpers) > HELPERS_MOST:
                self._let_go(session, name)
        self._settle(session)

    def _settle(self, session: Session) -> None:
        """Counts a session for what it is now."""
        if session.place is not None:
            self._counts[session.place] -= 1
            self._tokens[session.place] -= session.counted
            session.place = None
        if session.live:
            paused = session.paused_ns is not None
            place = session.place = _PAUSED * paused + _BUSY * session.busy
            session.counted = session.tokens
            self._counts[place] += 1
            self._tokens[place] += session.tokens

    def _expire(self, metrics: Snapshot) -> None:
        """Drops sessions whose lease ran out, a few at each event.

        One with open calls stays, and is looked at again a lease later.
        """
        then_ns = metrics.now_ns - self._lease_ns
        for table in (self._live, self._waiting):
            for session in tuple(islice(table.values(), LOOKED_AT)):
                if session.seen_ns > then_ns:
                    break
                if session.live and metrics.charges(self.account(session)):
                    self._seen(session, metrics.now_ns)
                else:
                    self.end(session)
