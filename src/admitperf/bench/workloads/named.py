"""The workloads that come along, each behind an entry point of `admitperf.workloads`.

With the files of its trace each replays them; without, it is generated from what was
measured of them, as their licences let one keep that and not all of them the traces.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from math import inf
from pathlib import Path
from typing import TypeVar

from admitperf.bench.workloads import (
    azure,
    measured,
    miniswe,
    mooncake,
    servegen,
    weka,
)
from admitperf.bench.workloads import fan_out as fanned
from admitperf.bench.workloads.agents import Agents
from admitperf.bench.workloads.chat import KIND, TOKENS, Chat
from admitperf.bench.workloads.clients import Clients, of_clients
from admitperf.bench.workloads.conversations import Conversations
from admitperf.bench.workloads.generated import Generated
from admitperf.bench.workloads.pooled import Pooled
from admitperf.bench.workloads.replayed import Requests, Trace
from admitperf.bench.workloads.workload import Recorded, Workload, WorkloadError
from admitperf.reports.wording import number, plural
from admitperf.simulator.traffic.sessions import capped

Files = Sequence[Path]
"""The files of a trace; none = it is generated."""

POOL = 200
"""Sessions that are generated to draw from. Plain choice."""

POOL_REQUESTS = 2_000
"""The same of requests."""

POOL_SEED = 1
"""Of what all runs of a workload share: the sessions they draw from."""

LONGEST_GAP_S = 60.0
"""A pause that is longer is cut to this, or a session would last for hours in which
nobody asks anything. Plain choice, and usual where agent traces are replayed."""

LONGEST_TURN_GAP_S = 600.0
"""The same where people read and write between turns: about the 95th percentile of what
passes from turn to turn in Mooncake's conversations."""

AT_ONCE = 8
"""Sessions that an `agent-burst` begins side by side. Plain choice."""

_Number = TypeVar("_Number", int, float)

# --------------------------------------------------------------------------- sessions


def tool_tight(
    *,
    trace: Files = (),
    divisor: int | None = None,
    sessions: int = POOL,
    longest_gap_s: float = LONGEST_GAP_S,
) -> Workload:
    """Agents with tools that take under a second, and small prompts (mini-swe-agent).

    Args:
        trace: one file of its calls.
        divisor: of token counts; None = what makes most calls fit.
        sessions: that are generated to draw from.
        longest_gap_s: pauses are cut to it.
    """
    name = "tool-tight"
    if trace:
        return pooled(name, miniswe.read(_one(name, trace)), divisor, longest_gap_s)
    return pooled(name, _grown(name, sessions), divisor, longest_gap_s)


def agent_sessions(
    *,
    trace: Files = (),
    divisor: int | None = None,
    sessions: int = POOL,
    longest_gap_s: float = LONGEST_GAP_S,
) -> Workload:
    """Coding agents with long prompts and long sessions (WEKA's Claude Code sessions).

    Args:
        trace: its files.
        divisor: of token counts; None = what makes most calls fit.
        sessions: that are generated to draw from.
        longest_gap_s: pauses are cut to it.
    """
    name = "agent-sessions"
    found = weka.read(*trace) if trace else _grown(name, sessions)
    return pooled(name, found, divisor, longest_gap_s)


def agent_burst(
    *,
    trace: Files = (),
    divisor: int | None = None,
    sessions: int = POOL,
    longest_gap_s: float = LONGEST_GAP_S,
    at_once: int = AT_ONCE,
) -> Workload:
    """Coding agents, several of one tenant beginning at once (WEKA's sessions).

    Args:
        trace, divisor, sessions, longest_gap_s: as of `agent_sessions`.
        at_once: how many.
    """
    found = weka.read(*trace) if trace else _grown("agent-sessions", sessions)
    made = pooled("agent-burst", found, divisor, longest_gap_s)
    return replace(made, at_once=_least(1, "at_once", at_once))


def agents(*, sessions: int = POOL, divisor: int | None = None) -> Workload:
    """Agents that are made up, small enough for any engine."""
    kind, count = Agents(), _least(1, "sessions", sessions)
    recorded = Recorded(
        name="agents",
        begun=None,
        pool=tuple(kind.sessions(count, POOL_SEED)),
        said=kind.words(),
        notes={"sessions": sessions},
        synthetic=True,
    )
    return Pooled(name="agents", recorded=recorded, divisor=divisor).fitting(None)


def fan_out(*, sessions: int = POOL, divisor: int | None = None) -> Workload:
    """SYNTHETIC: tasks of 40 calls, 30 of them within two seconds; not measured.

    Args:
        sessions: tasks to draw from.
        divisor: of token counts; None = what makes most calls fit.
    """
    recorded = fanned.made(_least(1, "sessions", sessions), POOL_SEED)
    return Pooled(name=fanned.NAME, recorded=recorded, divisor=divisor).fitting(None)


def _grown(name: str, count: int) -> Recorded:
    return _made(name, _least(1, "sessions", count))


@cache
def _made(name: str, count: int) -> Recorded:
    pool = tuple(measured.growth(name).sessions(name, count, POOL_SEED))
    calls = sum(len(session.calls) for session in pool)
    source = measured.measured()[name]["source"]
    return Recorded(
        name=name,
        begun=None,
        pool=pool,
        said=f"{name}: {plural(count, 'session')} of {number(calls / count)} calls on"
        f" average, generated from measures of {source}",
        notes={"sessions": count, "generated_from": source},
    )


def pooled(
    name: str, recorded: Recorded, divisor: int | None, longest_gap_s: float
) -> Pooled:
    """Sessions of a trace to draw from, whose long pauses are cut.

    Raises:
        WorkloadError: a parameter is none.
    """
    _least(0, "longest_gap_s", longest_gap_s)
    pool = tuple(capped(recorded.pool, longest_gap_s))
    made = replace(
        recorded,
        pool=pool,
        said=f"{recorded.said}, pauses cut at {number(longest_gap_s)} s",
        notes={**recorded.notes, "longest_gap_s": longest_gap_s},
    )
    return Pooled(name=name, recorded=made, divisor=divisor).fitting(None)


# --------------------------------------------------------------------------- requests


def chat(
    *,
    input_tokens: Sequence[int] = TOKENS[0],
    output_tokens: Sequence[int] = TOKENS[1],
    max_output_tokens: int | None = None,
    priorities: Sequence[int] = (),
) -> Workload:
    """Requests of plain sizes at Poisson times.

    Args:
        input_tokens: prompt, from and to.
        output_tokens: answer, from and to.
        max_output_tokens: the bound callers set; None = no more than is needed, or the
            plain one with plain answers.
        priorities: of which each request has one by chance, such as `[0, 10]`; none =
            requests say nothing of how much they matter.

    Raises:
        WorkloadError: these are no sizes.
    """
    prompt, answer = _sizes(input_tokens), _sizes(output_tokens)
    bound = max_output_tokens or (TOKENS[2] if answer == TOKENS[1] else answer[1])
    if bound < answer[1]:
        said = f"max_output_tokens {bound} is less than an answer of {answer[1]}"
        raise WorkloadError(f"workload 'chat': {said}")
    kind = replace(KIND, input_tokens=prompt, output_tokens=answer)
    return Chat(
        kind=replace(kind, max_output_tokens=bound), priorities=_whole(priorities)
    )


def _whole(told: object) -> tuple[int, ...]:
    """Whole numbers.

    Raises:
        WorkloadError: they are none.
    """
    found = tuple(told) if isinstance(told, (list, tuple)) else (told,)
    if any(isinstance(one, bool) or not isinstance(one, int) for one in found):
        raise WorkloadError(f"workload 'chat': {told!r:.40} are no whole priorities")
    return found


def _sizes(told: object) -> tuple[int, int]:
    """Two whole numbers, the lower one first.

    Raises:
        WorkloadError: they are not.
    """
    found = tuple(told) if isinstance(told, (list, tuple)) else ()
    match found:
        case (int() as low, int() as high) if 1 <= low <= high:
            return low, high
    raise WorkloadError(f"workload 'chat': {told!r:.40} is no span of tokens")


def chat_steady(*, trace: Files = (), divisor: int | None = None) -> Workload:
    """Chat that comes almost evenly: there is little for a policy to do (Azure, conv).

    Args:
        trace: its file.
        divisor: of token counts; None = what makes most requests fit.
    """
    name = "chat-steady"
    if trace:
        return replayed(name, azure.read(_one(name, trace)), divisor)
    swells, sizes = measured.swells(name), measured.sizes(name)
    return _generated(Generated(name=name, arrivals=swells, sizes=sizes), divisor)


def code_burst(*, trace: Files = (), divisor: int | None = None) -> Workload:
    """Code completion that comes in bursts, 40 in two seconds and more (Azure, code).

    Args:
        trace: its file.
        divisor: of token counts; None = what makes most requests fit.
    """
    name = "code-burst"
    if trace:
        return replayed(name, azure.read(_one(name, trace)), divisor)
    bursts, sizes = measured.bursts(name), measured.sizes(name)
    return _generated(Generated(name=name, arrivals=bursts, sizes=sizes), divisor)


def chat_prefix(
    *, trace: Files = (), divisor: int | None = None, sessions: bool = False
) -> Workload:
    """Chat whose prompts go on from each other (Mooncake's conversations).

    Args:
        trace: its file.
        divisor: of token counts; None = what makes most requests fit.
        sessions: each turn comes a while after the answer before it, in sessions that
            are recovered from what prompts share; else each comes at its own instant.
    """
    name = "chat-prefix"
    if trace:
        recorded = mooncake.read(_one(name, trace), sessions=sessions)
        if sessions:
            return pooled(name, recorded, divisor, LONGEST_TURN_GAP_S)
        return replayed(name, recorded, divisor)
    if sessions:
        return pooled(name, _grown(name, POOL_REQUESTS), divisor, LONGEST_TURN_GAP_S)
    return _generated(measured.conversations(name), divisor)


def tenants(*, trace: Files = (), divisor: int | None = None) -> Workload:
    """Many clients of one service, a few of them large and bursty (ServeGen, m-large).

    Args:
        trace: its file.
        divisor: of token counts; None = what makes most requests fit.
    """
    name = "tenants"
    if trace:
        return of_servegen(name, _one(name, trace), divisor)
    told = measured.measured()[name]["source"]
    clients = measured.clients(name)
    said = f"generated from measures of {told}"
    recorded = of_clients(name, clients, said, {"generated_from": told})
    return Clients(
        name=name, clients=clients, recorded=recorded, divisor=divisor
    ).fitting(None)


def of_servegen(name: str, path: Path, divisor: int | None) -> Workload:
    """The clients of a file.

    Raises:
        TraceError: it is none.
    """
    clients = servegen.clients(path)
    recorded = servegen.recorded(clients)
    return Clients(
        name=name, clients=clients, recorded=recorded, divisor=divisor
    ).fitting(None)


def replayed(name: str, recorded: Recorded, divisor: int | None) -> Workload:
    """Requests at the instants of a trace.

    Raises:
        WorkloadError: it has none, or a divisor is none.
    """
    if not recorded.begun:
        raise WorkloadError(f"{name}: the trace does not say when a request came")
    return Requests(
        name=name,
        source=Trace.of(recorded.begun),
        recorded=recorded,
        divisor=divisor,
        whole="session_source" in recorded.notes,
    ).fitting(None)


def _generated(source: Generated | Conversations, divisor: int | None) -> Workload:
    told = measured.measured()[source.name]["source"]
    recorded = Recorded(
        name=source.name,
        begun=None,
        pool=source.pool(POOL_REQUESTS, POOL_SEED),
        said=f"{source.name}: requests generated from measures of {told}",
        notes={"generated_from": told},
    )
    return Requests(
        name=source.name,
        source=source,
        recorded=recorded,
        divisor=divisor,
        whole=isinstance(source, Conversations),
    ).fitting(None)


def _one(name: str, trace: Files) -> Path:
    if len(trace) != 1:
        raise WorkloadError(f"{name}: its trace is one file, not {len(trace)}")
    return trace[0]


def _least(least: _Number, name: str, given: _Number) -> _Number:
    """A parameter that is a number and not under this; whole where that is whole."""
    kinds = (int,) if least else (int, float)
    fits = isinstance(given, kinds) and least <= given < inf
    if isinstance(given, bool) or not fits:
        raise WorkloadError(f"{name} = {given!r} is no number of at least {least}")
    return given
