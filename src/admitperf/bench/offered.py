"""What `admitperf sim run` offers to an engine: chat requests, or agent sessions."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Protocol, TypeVar

from admitperf.reports.wording import number, plural, share
from admitperf.simulator import (
    Arrival,
    EngineModel,
    Kind,
    OpenLoop,
    Phase,
    Traffic,
    plan_hash,
    poisson,
)
from admitperf.simulator.capacity import Capacity, of_requests, of_sessions
from admitperf.simulator.traffic.agents import Agents, scaled
from admitperf.simulator.traffic.sessions import (
    Session,
    Sessions,
    beginnings,
    capped,
    fitting,
    longest_s,
    sessions_hash,
)
from admitperf.simulator.traffic.weka import Trace, weka

Note = str | float | bool | None

CHAT, AGENTS = "chat", "agents"
"""Workloads that come along."""

CHAT_TOKENS = ((100, 900), (50, 350), 384)
"""Prompt, answer and the bound on it. Plain choices: 200 tokens of answer on average,
and a bound that none reaches, of which over half comes: reports call less a short
answer."""

LONGEST_GAP_S = 60.0
"""A recorded pause that is longer is cut to this, or a session would last for hours in
which nobody asks anything. Plain choice, and usual where agent traces are replayed."""

FITS = 0.95
"""Of a trace's calls, how many have to fit into an engine. Plain choice."""

DIVISORS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
"""Divisors of token counts that are tried for that. Up to 64 a block of the trace, 64
tokens, stays a whole number of tokens."""

MADE_UP = 200
"""Sessions that are made up to draw from. Plain choice."""

MADE_UP_SEED = CAPACITY_SEED = 1
"""Of what repeats share: sessions to draw from, and the traffic that measures capacity.
A repeat has another seed, and meets the same engine with the same capacity."""

MOST_REQUESTS = 5_000_000
"""Requests of a run; more would not fit into the memory of most machines, at 1.4 kB
each. Plain choice."""

MADE_EVERY = 10_000
"""Requests made between two reports of progress. Plain choice."""

Told = Callable[[str], None]
"""Is told how far it is."""

_T = TypeVar("_T")


def _unheard(what: str) -> None:
    """Nobody asked how far it is."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Traffic of one run.

    Attributes:
        traffic: who asks.
        count: requests, or sessions that begin.
        hash: the same in runs that meet the same traffic.
    """

    traffic: Traffic
    count: int
    hash: str


class Offered(Protocol):
    """A workload, at whatever rate."""

    noun: str
    """What a rate counts: request, or session."""

    def capacity(self, model: EngineModel, seed: int) -> Capacity:
        """What one engine can carry of it."""
        ...

    def requests(self, rate_per_s: float, lasts_s: float) -> float:
        """About how many a run of it may ask."""
        ...

    def plan(
        self, rate_per_s: float, lasts_s: float, seed: int, told: Told = _unheard
    ) -> Plan:
        """A run of it."""
        ...

    def words(self) -> str:
        """What it is."""
        ...

    def client(self) -> str:
        """What a refusal leads to."""
        ...

    def notes(self) -> dict[str, Note]:
        """What was done to it, by name."""
        ...


class Chat:
    """Requests that nobody waits for to ask another one, at Poisson times.

    Args:
        model: the engine; one that takes less gets shorter requests.
    """

    noun = "request"

    def __init__(self, model: EngineModel) -> None:
        prompt, answer, most = CHAT_TOKENS
        scale = min(1.0, model.longest_tokens / (prompt[1] + most))
        self._kind = Kind(
            name=CHAT,
            input_tokens=scaled(prompt, scale),
            output_tokens=scaled(answer, scale),
            max_output_tokens=scaled((most, most), scale)[0],
        )

    def capacity(self, model: EngineModel, seed: int) -> Capacity:
        """By a closed loop."""
        return of_requests(model, self._kind.at(repeat(0.0), seed))

    def requests(self, rate_per_s: float, lasts_s: float) -> float:
        """All of them."""
        return rate_per_s * lasts_s

    def plan(
        self, rate_per_s: float, lasts_s: float, seed: int, told: Told = _unheard
    ) -> Plan:
        """Requests over this time."""
        phases = [Phase(lasts_s=lasts_s, rate_per_s=rate_per_s)]
        made = self._kind.at(poisson(phases, seed, CHAT), seed)
        asked: tuple[Arrival, ...] = tuple(_counted(made, "making requests", told))
        digest = plan_hash(_counted(asked, "naming the plan: requests", told))
        return Plan(OpenLoop(asked), len(asked), digest)

    def words(self) -> str:
        """Its sizes."""
        kind = self._kind
        return (
            f"chat: prompts of {_span(kind.input_tokens)} tokens, answers of"
            f" {_span(kind.output_tokens)} (at most {kind.max_output_tokens}), Poisson"
        )

    def client(self) -> str:
        """Who is refused stays away."""
        return "does not retry"

    def notes(self) -> dict[str, Note]:
        """Nothing was done to it."""
        return {}


class AgentSessions:
    """Sessions that begin at Poisson times, each call after the answer before it.

    Args:
        model: the engine; calls it cannot take are left out and counted.
        sessions: to draw from.
        said: what they are, in words.
        notes: what was done to them before.

    Raises:
        ValueError: no call fits.
    """

    noun = "session"

    def __init__(
        self,
        model: EngineModel,
        sessions: Sequence[Session],
        said: str,
        notes: dict[str, Note],
    ) -> None:
        self._all = sum(len(session.calls) for session in sessions)
        self._sessions, self._left_out = fitting(sessions, model.longest_tokens)
        self._longest = model.longest_tokens
        self._said = said
        self._notes = notes
        if not self._sessions:
            raise ValueError(f"no call fits into {model.longest_tokens} tokens")

    def capacity(self, model: EngineModel, seed: int) -> Capacity:
        """By agents who stand in a circle."""
        return of_sessions(model, self._sessions, seed)

    def requests(self, rate_per_s: float, lasts_s: float) -> float:
        """The calls of all that are drawn, also of those that began before."""
        calls = sum(len(session.calls) for session in self._sessions)
        drawn_s = longest_s(self._sessions) + lasts_s
        return rate_per_s * drawn_s * calls / len(self._sessions)

    def plan(
        self, rate_per_s: float, lasts_s: float, seed: int, told: Told = _unheard
    ) -> Plan:
        """Sessions that begin over this time; nothing is asked after it."""
        told("making sessions")
        begun = beginnings(self._sessions, rate_per_s, lasts_s, seed)
        digest = sessions_hash(_counted(begun, "naming the plan: sessions", told))
        return Plan(Sessions(begun, lasts_s), len(begun), digest)

    def words(self) -> str:
        """What they are and what was left out."""
        if not self._left_out:
            return self._said
        return (
            f"{self._said}; {share(self._left_out, self._all)} calls left out, over"
            f" {self._longest} tokens"
        )

    def client(self) -> str:
        """A session ends with a refusal."""
        return "does not retry; a refusal ends its session"

    def notes(self) -> dict[str, Note]:
        """What was done to them."""
        return {**self._notes, "calls_left_out": self._left_out, "calls": self._all}


def _counted(made: Iterable[_T], what: str, told: Told) -> Iterator[_T]:
    """The same, and says how many there were now and then."""
    for number_of, one in enumerate(made, 1):
        if number_of % MADE_EVERY == 0:
            told(f"{what} {number_of:,}")
        yield one


def offered(
    name: Sequence[str],
    model: EngineModel,
    divisor: int | None,
    seed: int = MADE_UP_SEED,
) -> Offered:
    """A workload.

    Args:
        name: "chat", "agents", or the files of a trace of sessions.
        model: the engine it is for.
        divisor: of a trace's token counts; None = the least that makes most calls fit.
        seed: of sessions that are made up.

    Raises:
        TraceError: a file is no trace.
        ValueError: nothing of it fits into the engine, or a divisor without a trace.
    """
    if tuple(name) in {(CHAT,), (AGENTS,)}:
        if divisor is not None:
            raise ValueError(f"{name[0]} is made up: only a trace has tokens to divide")
        return Chat(model) if name[0] == CHAT else _made_up(model, seed)
    trace = weka(name, divisor or 1)
    if divisor is None:
        least = _least_divisor(trace.sessions, model.longest_tokens)
        trace = weka(name, least) if least > 1 else trace
    return _recorded(model, trace)


def _made_up(model: EngineModel, seed: int) -> AgentSessions:
    kind = Agents().fitting(model.longest_tokens)
    said = (
        f"agents: {_span(kind.calls)} calls a session, first prompts of"
        f" {_span(kind.first_tokens)} tokens and {_span(kind.new_tokens)} more each"
        f" time, answers of {_span(kind.output_tokens)},"
        f" {number(kind.gap_s)} s between calls on average"
    )
    sessions = list(kind.sessions(MADE_UP, seed))
    return AgentSessions(model, sessions, said, {"sessions": MADE_UP})


def _recorded(model: EngineModel, trace: Trace) -> AgentSessions:
    said = (
        f"agents: {plural(len(trace.sessions), 'recorded session')}, token counts"
        f" divided by {trace.divisor}, pauses cut at {number(LONGEST_GAP_S)} s"
    )
    notes: dict[str, Note] = {
        "sessions": len(trace.sessions),
        "token_divisor": trace.divisor,
        "longest_gap_s": LONGEST_GAP_S,
        "calls_beside": trace.beside,
        "gaps_unknown": trace.unknown_gaps,
        "answers_empty": trace.empty,
    }
    return AgentSessions(model, capped(trace.sessions, LONGEST_GAP_S), said, notes)


def _least_divisor(sessions: Iterable[Session], longest_tokens: int) -> int:
    """The first that makes most calls fit, else the last."""
    sizes = list(_sizes(sessions))
    for divisor in DIVISORS:
        fit = sum(size <= longest_tokens * divisor for size in sizes)
        if fit >= FITS * len(sizes):
            return divisor
    return DIVISORS[-1]


def _sizes(sessions: Iterable[Session]) -> Iterator[int]:
    for session in sessions:
        for call in session.calls:
            yield call.input_tokens + call.output_tokens


def _span(span: tuple[int, int]) -> str:
    return f"{span[0]} to {span[1]}"
