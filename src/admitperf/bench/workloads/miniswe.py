"""Reads the calls of agents one a line: mini-swe-agent's, and agentperf's.

    {"session": "d80534", "t": 2.58678, "in": 1291, "out": 92, "blocks": [[0, 19]]}

Blocks have one name space over all sessions: what sessions share is known. Where the
time of the tools is told (`tool_ms_after`) it is the pause before the next call; else
the pause is what passed from call to call less the answer, which is not told and is
taken to have come at `ANSWER_MS_PER_TOKEN`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

from admitperf.bench.workloads.calls import MAX_OUTPUT_TOKENS, in_tokens
from admitperf.bench.workloads.chains import Run, chains
from admitperf.bench.workloads.reading import amount, label, objects, runs, whole
from admitperf.bench.workloads.sharing import Prefix, told_apart
from admitperf.bench.workloads.workload import Recorded, TraceError
from admitperf.reports.wording import number, plural
from admitperf.simulator.traffic.sessions import Beginning, Call, Session

NAME = "miniswe"

BLOCK_TOKENS = 64
"""Tokens of a block of these traces."""

ANSWER_MS_PER_TOKEN = 5.5
"""By how much the shortest time from call to call grows with each token of the answer:
the slope through the 5th percentiles of 382 such times of the mini-swe-agent trace, in
five groups by the length of the answer."""


@dataclass(frozen=True, slots=True)
class _Told:
    """A call as its line has it."""

    session: str
    at_s: float
    input_tokens: int
    output_tokens: int
    tool_s: float | None
    runs: tuple[Run, ...]


def read(
    path: str | Path, answer_ms_per_token: float = ANSWER_MS_PER_TOKEN
) -> Recorded:
    """Sessions and when they began.

    Args:
        path: of the file.
        answer_ms_per_token: what an answer took, where no line says.

    Raises:
        TraceError: it cannot be read, or is none of these; names file and line.
    """
    told = [_told(line, where) for where, line in objects(path)]
    if not told:
        raise TraceError(f"{path}: holds no call")
    sessions = dict[str, list[_Told]]()
    for one in told:
        sessions.setdefault(one.session, []).append(one)
    prompts = _prompts(told)
    begun = [
        (calls[0].at_s, _session(calls, prompts[name], answer_ms_per_token / 1000))
        for name, calls in sessions.items()
    ]
    return _recorded(sorted(begun, key=itemgetter(0)), told)


def _told(line: dict[str, Any], where: str) -> _Told:
    tool = "tool_ms_after"
    return _Told(
        session=label(line, "session", where),
        at_s=amount(line, "t", where) if "t" in line else 0.0,
        input_tokens=whole(line, "in", where, 1),
        output_tokens=max(1, whole(line, "out", where)),
        tool_s=amount(line, tool, where) / 1000 if line.get(tool) else None,
        runs=tuple(runs(line, "blocks", where)),
    )


def _prompts(told: Sequence[_Told]) -> dict[str, list[Prefix]]:
    """What each prompt of each session is made of."""
    found = dict[str, list[list[tuple[int, int]]]]()
    for one, path in zip(told, chains([one.runs for one in told]), strict=True):
        tokens = list(in_tokens(path, one.input_tokens, BLOCK_TOKENS))
        found.setdefault(one.session, []).append(tokens)
    return told_apart(found, NAME)


def _session(
    told: Sequence[_Told], prompts: Sequence[Prefix], answer_s: float
) -> Session:
    calls = (
        Call(
            after=place - 1 if place else None,
            gap_s=_pause_s(told[place - 1], one, answer_s) if place else 0.0,
            input_tokens=one.input_tokens,
            output_tokens=one.output_tokens,
            prefix=prefix,
        )
        for place, (one, prefix) in enumerate(zip(told, prompts, strict=True))
    )
    return Session(told[0].session, tuple(calls), MAX_OUTPUT_TOKENS)


def _pause_s(before: _Told, one: _Told, answer_s: float) -> float:
    if before.tool_s is not None:
        return before.tool_s
    return max(0.0, one.at_s - before.at_s - before.output_tokens * answer_s)


def _recorded(begun: Sequence[Beginning], told: Sequence[_Told]) -> Recorded:
    tools = any(one.tool_s is not None for one in told)
    return Recorded(
        name=NAME,
        begun=tuple(begun),
        pool=tuple(session for _, session in begun),
        said=f"agents with short tools: {plural(len(begun), 'recorded session')} of"
        f" {number(len(told) / len(begun))} calls on average",
        notes={"sessions": len(begun), "pauses_told": tools},
    )
