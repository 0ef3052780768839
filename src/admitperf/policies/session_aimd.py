"""A window of agent sessions that follows what they meet, without a model."""

from typing import Annotated

from admitperf.core.charge import Charge
from admitperf.core.decision import Decision
from admitperf.core.errors import ConfigError
from admitperf.core.outcome import Outcome
from admitperf.core.param import Param
from admitperf.core.policy import Policy
from admitperf.core.signals import DEADLINE_SLACK_S, IN_FLIGHT, KV_CAPACITY_TOKENS
from admitperf.core.snapshot import Snapshot
from admitperf.core.verdict import Verdict
from admitperf.policies.parts.adaptive.window import Window
from admitperf.policies.parts.live.elephants import NEVER_MS_PER_S, Elephants
from admitperf.policies.parts.live.session import Session
from admitperf.policies.parts.live.sessions import (
    CALLS,
    CALLS_MOST,
    LEASE,
    LEASE_S,
    SESSIONS_MOST,
)
from admitperf.policies.parts.replicas import REPLICAS_MOST
from admitperf.policies.parts.session_window.bounds import Bounds
from admitperf.policies.parts.session_window.signs import Signs
from admitperf.policies.parts.session_window.timed import TimedSessions
from admitperf.policies.parts.stuck import PROBE_S

GROWN = 1.5
"""First contexts that a session is reckoned as, so that the first window leaves room to
grow. Origin: research notes, 7.5."""

FIRSTS = 5
"""First contexts that the first window rests on. Plain choice: sizes differ by several
times, and the mean of fewer is luck."""

FIRST_LEAST = 1_000
START_TIMES = 32
"""Tokens that a first context counts as at least, and times `start` that the first
window is at most: a few short ones must not open the door for all. Plain choices."""

TASK_LEAST_S = 20.0
TASK_MOST_S = 60.0
"""Bounds of the median task as the time from one growth to the next, in seconds.
Origin: research notes, 7.5: who was let in cannot be sent away for minutes."""

COOL_TURNS = 3.0
"""Median turns that a cut is given to show. Origin: research notes, 7.5."""

PERSISTS_S = 30.0
"""Seconds of congestion after which the largest old session leaves. Origin: research
notes, 7.5."""

WAIT_LEAST_S = 2.0
WAIT_MOST_S = 8.0
"""Bounds of the wait told, in seconds. Plain choice: a window moves each 2 s, and no
place is kept for anybody, so that one that comes free is empty until somebody asks;
tried in the simulator against 4, 5, 15 and 30 s."""

_SLACK = DEADLINE_SLACK_S.name
_NOTES = "research notes, 7.5"


class SessionAimd(Policy):
    """Lets a new session in while fewer than a window are live.

    The window grows by a step in a median task time while nothing tells of congestion,
    and is cut by a factor when anything does: contexts that were no longer cached,
    memory that ran out, a queue, or answers that stall. A cut throws nobody out; the
    window is not filled again until enough sessions have ended, or all that are there
    turn out to fit.
    """

    name = "session_aimd"
    unit = "agent-session"
    slo_awareness = "throughput"
    signal_quantity = "prefix_reuse"
    signal_structure = "dual-gate"
    metadata_assumed = ("session",)
    refuses_with = (
        "slots",
        "session_in_flight",
        "queue_age",
        "deadline_unmeetable",
        "session_quota",
    )
    requires = (IN_FLIGHT, "session", "input_tokens")

    mode: Annotated[
        str,
        Param(
            "protect: who was let in is served to its end; shed: the largest old "
            "session is refused for good while new ones are turned away",
            choices=("protect", "shed"),
            origin="plain choice: a promise is kept unless a host says otherwise",
        ),
    ] = "protect"
    quantum: Annotated[
        int,
        Param(
            "calls that a session is let have whatever its size, with `shed`",
            low=1,
            origin="research notes, 7.3",
        ),
    ] = 15
    elephant_share: Annotated[
        float,
        Param(
            "part of all live contexts that old sessions hold before one has to leave",
            low=0.0,
            high=1.0,
            origin="plain choice, tried in the simulator",
        ),
    ] = 0.3
    start: Annotated[
        int,
        Param(
            "sessions in the first window, until it follows from the KV cache",
            low=1,
            high=SESSIONS_MOST,
            per_process=True,
            origin="MARS (arXiv 2604.26963) starts its window of tasks at 8",
        ),
    ] = 8
    fill: Annotated[
        float,
        Param(
            "part of the KV cache that the first window is made for",
            above=0.0,
            high=10.0,
            per_process=True,
            origin=f"{_NOTES}: all of it",
        ),
    ] = 1.0
    floor: Annotated[
        int,
        Param(
            "sessions the window is never cut under",
            low=1,
            high=SESSIONS_MOST,
            per_process=True,
            origin="as `concur_inspired` has it",
        ),
    ] = 2
    step: Annotated[
        float,
        Param(
            "sessions the window grows by in a median task time",
            above=0.0,
            high=1000.0,
            per_process=True,
            origin=f"{_NOTES}: 1; tried in the simulator against 1 and 4",
        ),
    ] = 2.0
    beta: Annotated[
        float,
        Param(
            "what a cut leaves of the window, as a fraction",
            above=0.0,
            high=1.0,
            origin=_NOTES,
        ),
    ] = 0.7
    period_s: Annotated[
        float,
        Param(
            "seconds from one look at the signs to the next",
            above=0.0,
            high=3600.0,
            origin=_NOTES,
        ),
    ] = 2.0
    cool_down_s: Annotated[
        float,
        Param(
            "least seconds from one cut to the next; three median turns if longer",
            low=0.0,
            high=3600.0,
            origin=_NOTES,
        ),
    ] = 8.0
    low_retention: Annotated[
        float,
        Param(
            "part of former contexts still cached under which there are too many",
            low=0.0,
            high=1.0,
            origin="research notes, 2.3: 0.7 to 0.8; tried in the simulator",
        ),
    ] = 0.8
    high_retention: Annotated[
        float,
        Param(
            "part of former contexts still cached from which there is room",
            low=0.0,
            high=1.0,
            origin=_NOTES,
        ),
    ] = 0.9
    ttft_ms: Annotated[
        float,
        Param(
            "time to first token aimed at, in ms",
            above=0.0,
            high=3.6e6,
            origin="tried in the simulator against 10 s, 20 s and 60 s: under it a "
            "long first prompt alone is congestion",
        ),
    ] = 30_000.0
    stall_ms: Annotated[
        float,
        Param(
            "longest gap between tokens that nine of ten answers keep, in ms",
            above=0.0,
            high=3.6e6,
            origin="plain choice, tried in the simulator",
        ),
    ] = 2_000.0
    in_flight: Annotated[int, CALLS] = CALLS_MOST
    lease_s: Annotated[float, LEASE] = LEASE_S

    def __init__(self, **given: object) -> None:
        super().__init__(**given)
        if self.low_retention > self.high_retention:
            fault = (
                f"low_retention={self.low_retention:g} is over "
                f"high_retention={self.high_retention:g}"
            )
            raise ConfigError(f"policy {self.name}", [fault])
        ttft_s = self.ttft_ms / 1000
        bounds = Bounds(self.low_retention, self.high_retention, ttft_s, self.stall_ms)
        self._signs = Signs(bounds, self.lease_s)
        self._sessions = TimedSessions(self.name, self.lease_s, "slots")
        self._elephants = Elephants(self._sessions, self.quantum, self.elephant_share)
        self._window = Window(
            limit=self.start,
            floor=self.floor,
            ceiling=SESSIONS_MOST,
            step=self.step,
            cool_s=self.cool_down_s,
        )
        self._firsts: dict[str, int] = {}
        self._capacity: dict[str | None, float] = {}
        self._sized = False
        self._next_s: float | None = None
        self._moved_s = 0.0  # when the window last moved
        self._congested_s: float | None = None  # since when
        self._room_s: float | None = None  # since when
        self._each_s: float | None = None  # from one end of a session to the next
        self._stirred_ns = 0  # when a call was last let in or ended
        self._let_in_ns = 0

    def decide(self, metrics: Snapshot) -> Decision:
        """Who was let in goes on; a new session needs a place in the window.

        All signs are recorded every time, so that a log tells how often each held.
        """
        sessions, request = self._sessions, metrics.request
        places = self._window.whole
        queue = self._signs.record(metrics)
        full = metrics.gate("active_sessions", sessions.active, places)
        if request.session is None:
            shut = queue and not self._probes(metrics)
            return self.defer("queue_age") if shut else self.admit()
        session = sessions.find(request)
        if session is not None and session.live:
            return self._goes_on(metrics, session)
        slack_s = request.deadline_s
        if slack_s is not None and metrics.gate(_SLACK, slack_s, 0.0, "<="):
            return self.reject("deadline_unmeetable")
        if full and not self._probes(metrics):
            ahead = sessions.active - places + sessions.waiting + (session is None)
            return self.defer("slots", estimate_ms=self._wait_ms(ahead))
        return self.admit()

    def decided(self, metrics: Snapshot, d: Decision) -> Charge | None:
        """A sign of life of the session, and a call of it when it was let in."""
        sessions = self._sessions
        if not self._sized:
            self._meet(metrics)
        sessions.now_ns = metrics.now_ns
        call = sessions.decided(metrics, d)
        if d.verdict is Verdict.ADMIT:
            self._let_in_ns = self._stirred_ns = metrics.now_ns
        elif self.mode == "shed":
            self._shed(sessions.find(metrics.request), d.reason)
        return call

    def observe(self, metrics: Snapshot, outcome: Outcome | None) -> None:
        """Learns from ends and readings, and steps the window once a period."""
        self._sessions.now_ns = metrics.now_ns
        self._sessions.observe(metrics, outcome)
        self._signs.observe(metrics, outcome)
        if outcome is None:
            self._size(metrics)
        else:
            self._stirred_ns = metrics.now_ns
        if self._next_s is None:
            self._moved_s = metrics.now_s
        elif metrics.now_s < self._next_s:
            return
        else:
            self._move(metrics)
        self._next_s = metrics.now_s + self.period_s

    def _goes_on(self, metrics: Snapshot, session: Session) -> Decision:
        """A call of a live session: of one with too many open ones it waits."""
        leaves = self._elephants.leaves(session)
        if leaves and metrics.gate("session_calls", session.calls, self.quantum):
            never_ms = NEVER_MS_PER_S * self.settings.max_defer_s
            limit, used = self.quantum, session.calls
            return self.reject(
                "session_quota", estimate_ms=never_ms, limit=limit, used=used
            )
        calls = self._sessions.open_calls(metrics, session)
        many = metrics.gate("session_in_flight", calls, self.in_flight)
        return self.defer("session_in_flight") if many else self.admit()

    def _probes(self, metrics: Snapshot) -> bool:
        """Whether the engine seems to have nothing to do, whoever is live.

        Nobody was let in for a while, and nothing is open, or nothing ends, or who
        waits longest was overtaken.
        """
        now_ns = metrics.now_ns
        let_in_s = (now_ns - self._let_in_ns) / 1e9
        if metrics.gate("last_let_in_s", let_in_s, PROBE_S, "<"):
            return False
        quiet = now_ns - self._stirred_ns >= 1e9 * max(PROBE_S, self.ttft_ms / 1000)
        return quiet or not metrics.read(IN_FLIGHT) or self._signs.overtaken(metrics)

    def _wait_ms(self, ahead: int) -> float:
        """Until so many sessions should have ended."""
        wait_s = ahead * (self._each_s or self._sessions.turn_s or 0.0)
        if wait_s >= WAIT_MOST_S:
            return 1000 * WAIT_MOST_S
        return 1000 * max(wait_s, WAIT_LEAST_S)

    def _shed(self, session: Session | None, reason: str | None) -> None:
        """A new one was turned away, or the one that is to leave was told so."""
        if reason == "slots":
            self._elephants.turned_away()
        elif reason == "session_quota" and session is not None:
            self._elephants.left(session)

    def _meet(self, metrics: Snapshot) -> None:
        """Notes a new session's first context, until there are enough."""
        request, firsts = metrics.request, self._firsts
        if len(firsts) >= FIRSTS or request.session is None or not request.input_tokens:
            return
        if self._sessions.find(request) is None:
            firsts.setdefault(request.session, max(FIRST_LEAST, request.input_tokens))

    def _size(self, metrics: Snapshot) -> None:
        """The first window, once the capacity and some contexts are known."""
        capacity = metrics.read(KV_CAPACITY_TOKENS)
        if self._sized or capacity is None:
            return
        if len(self._capacity) < REPLICAS_MOST:
            self._capacity[metrics.replica] = float(capacity)
        if len(self._firsts) < FIRSTS:
            return
        self._sized = True
        if self._window.cut_s is None:
            whole = GROWN * sum(self._firsts.values()) / FIRSTS
            fits = self.fill * sum(self._capacity.values()) / whole
            self._window.approach(min(fits, START_TIMES * self.start))

    def _move(self, metrics: Snapshot) -> None:
        """One period is over: cut, grow or hold."""
        congested, room = self._signs.step(metrics)
        rate = self._sessions.ends_per_s(metrics.now_ns)
        self._each_s = 1.0 / rate if rate else None
        if congested:
            self._cut(metrics)
        else:
            self._congested_s = None
        if not room:
            self._room_s = None
            return
        if self._room_s is None:
            self._room_s = metrics.now_s
        self._grow(metrics.now_s, metrics.now_s - self._room_s)

    def _task_s(self) -> float:
        """Seconds from one growth to the next."""
        task_s = self._sessions.task_s
        return min(max(task_s or TASK_MOST_S, TASK_LEAST_S), TASK_MOST_S)

    def _grow(self, now_s: float, room_s: float) -> None:
        """By a step, if it was tried; to who is there, if a cut proves needless.

        Args:
            room_s: for how long there has been room, in seconds.
        """
        active, window = self._sessions.active, self._window
        if active > window.whole:
            if room_s < window.cool_s:
                return
            window.approach(active)
        else:
            due = now_s - self._moved_s >= self._task_s()
            if not due or active < window.whole - 1 or not window.grow(active):
                return
        self._moved_s = now_s

    def _cut(self, metrics: Snapshot) -> None:
        """Once in some turns; with `shed` the largest old one leaves if it persists."""
        now_s, window, sessions = metrics.now_s, self._window, self._sessions
        if self._congested_s is None:
            self._congested_s = now_s
        window.cool_s = max(self.cool_down_s, COOL_TURNS * (sessions.turn_s or 0.0))
        if window.cut(self.beta, now_s, sessions.active):
            self._moved_s = now_s
            self._signs.cut()
        if self.mode == "shed" and now_s - self._congested_s >= PERSISTS_S:
            self._elephants.turned_away()
