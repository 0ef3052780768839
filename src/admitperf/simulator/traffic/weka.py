"""Reads WEKA's Claude Code sessions (kv-cache-tester), one JSON object a line.

One line is a session; a call says which blocks of 64 tokens its prompt is made of, as
runs of numbers that are local to the session, and how long the client was idle before
it. What calls have in common is thereby known exactly, and becomes chains (`chains`).

A sub-agent's calls run beside those of its session: the first follows the answer of the
call during or after which the sub-agent was started, and its session goes on when it
did, whether or not the sub-agent is through. `stream` says that an answer was streamed,
nothing about what ran side by side.
"""

import gzip
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import IO, Any

from admitperf.core.errors import AdmitPerfError
from admitperf.simulator.traffic.chains import Path as Chains
from admitperf.simulator.traffic.chains import Run, chains
from admitperf.simulator.traffic.sessions import Call, Session

BLOCK_TOKENS = 64
"""Tokens of a block of the trace."""

MAX_OUTPUT_TOKENS = 32_000
"""The bound an agent sets for an answer; the trace does not say. Plain choice."""


class TraceError(AdmitPerfError, ValueError):
    """A file is no trace of sessions."""


@dataclass(frozen=True, slots=True)
class Trace:
    """Sessions of a trace, and what was done to them.

    Attributes:
        sessions: in the order of the files.
        divisor: by which every count of tokens was divided.
        beside: calls of sub-agents, which run beside those of their session.
        unknown_gaps: calls whose gap the trace lacks; the time from start to start of
            the calls stands in, less the answer's where that is known.
        empty: answers without a token, taken for one.
    """

    sessions: list[Session]
    divisor: int
    beside: int
    unknown_gaps: int
    empty: int

    @property
    def calls(self) -> int:
        """Calls of all sessions."""
        return sum(len(session.calls) for session in self.sessions)


def weka(paths: Iterable[str | Path], divisor: int = 1) -> Trace:
    """The sessions of one trace.

    Args:
        paths: its files; a name that ends in .gz is unpacked.
        divisor: divides every count of tokens, blocks too, so that what is shared stays
            the same share; 1 = as recorded.

    Raises:
        TraceError: a file cannot be read, or is none of these; names file and line.
    """
    reader = _Reader(divisor)
    sessions = [
        session
        for path in paths
        for where, line in _lines(Path(path))
        for session in reader.read(line, where)
    ]
    if not sessions:
        raise TraceError(f"{', '.join(map(str, paths))}: holds no session")
    return Trace(sessions, divisor, reader.beside, reader.unknown_gaps, reader.empty)


def _lines(path: Path) -> Iterator[tuple[str, Any]]:
    try:
        with _opened(path) as file:
            for number, line in enumerate(file, 1):
                where = f"{path}, line {number}"
                if line.strip():
                    yield where, _parsed(line, where)
    except OSError as error:
        why = (error.strerror or "cannot be read").lower()
        raise TraceError(f"{path}: {why}") from None
    except (EOFError, zlib.error):
        raise TraceError(f"{path}: cannot be unpacked") from None
    except UnicodeDecodeError:
        raise TraceError(f"{path}: is not UTF-8 text") from None


def _opened(path: Path) -> IO[str]:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8")
    return path.open(encoding="utf-8")


def _parsed(line: str, where: str) -> Any:  # noqa: ANN401  whatever the file holds
    try:
        return json.loads(line)
    except ValueError as error:
        raise TraceError(f"{where}: is no JSON: {error}") from None


@dataclass(slots=True)
class _Recorded:
    """One call of the trace: what it follows and after how long, and its blocks."""

    after: int | None
    gap_s: float
    told: Mapping[str, Any]


class _Reader:
    def __init__(self, divisor: int) -> None:
        self._divisor = divisor
        self.beside = self.unknown_gaps = self.empty = 0

    def read(self, line: Any, where: str) -> Iterator[Session]:  # noqa: ANN401
        """One session; none for a line without a call."""
        try:
            recorded = self._recorded(line["events"])
            prompts = [_runs(one.told["blocks"]) for one in recorded]
            paths = chains(prompts)
            calls = tuple(map(self._call, recorded, paths))
            name = str(line["session"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise TraceError(f"{where}: is no session: {_why(error)}") from None
        if calls:
            bound = max(1, MAX_OUTPUT_TOKENS // self._divisor)
            yield Session(name, calls, bound)

    def _recorded(self, events: list[dict[str, Any]]) -> list[_Recorded]:
        made = list[_Recorded]()
        last: int | None = None  # of the session's own calls
        for event in events:
            if "subagent" in event:
                made += self._beside(event, last, made)
                continue
            before = None if last is None else made[last].told
            made.append(_Recorded(last, self._gap_s(event, before), event))
            last = len(made) - 1
        return made

    def _beside(
        self, event: dict[str, Any], last: int | None, made: list[_Recorded]
    ) -> list[_Recorded]:
        """The calls of a sub-agent, one after the other."""
        begun_s = 0.0 if last is None else _end_s(made[last].told)
        gap_s, calls = max(0.0, event["t"] - begun_s), list[_Recorded]()
        after, before = last, None
        for call in event["calls"]:
            if before is not None:
                after, gap_s = len(made) + len(calls) - 1, self._gap_s(call, before)
            calls.append(_Recorded(after, gap_s, call))
            before = call
        self.beside += len(calls)
        return calls

    def _gap_s(
        self, call: Mapping[str, Any], before: Mapping[str, Any] | None
    ) -> float:
        """How long the client was idle before a call; the first of all was not."""
        if before is None:
            return 0.0
        think = call.get("think")
        if think is None:
            self.unknown_gaps += 1
            return max(0.0, float(call["t"]) - _end_s(before))
        return max(0.0, float(think))

    def _call(self, one: _Recorded, path: Chains) -> Call:
        told = one.told
        self.empty += told["out"] < 1
        prompt = max(1, ceil(told["in"] / self._divisor))
        return Call(
            after=one.after,
            gap_s=one.gap_s,
            input_tokens=prompt,
            output_tokens=max(1, round(told["out"] / self._divisor)),
            prefix=tuple(self._tokens(path, prompt)),
        )

    def _tokens(self, path: Chains, prompt: int) -> Iterator[tuple[int, int]]:
        """Chains in tokens; rounded at their ends, so that sums stay exact."""
        blocks = begun = 0
        for place, (chain, more) in enumerate(path, 1):
            blocks += more
            end = min(prompt, blocks * BLOCK_TOKENS // self._divisor)
            if end > begun or place == len(path):  # the last holds the answer
                yield chain, end - begun
            begun = end


class _RunError(ValueError):
    """Blocks that are none."""


def _why(error: Exception) -> str:
    """What is wrong with a line, in words a person can act on."""
    if isinstance(error, KeyError):
        return f"the field {error.args[0]!r} is missing"
    if isinstance(error, _RunError):
        return str(error)
    return (
        "a line is an object with session and events, and a call one with t, in, out"
        " and blocks, which are pairs of whole numbers"
    )


def _end_s(call: Mapping[str, Any]) -> float:
    """When an answer ended, or its call began where the trace does not say."""
    return float(call["t"]) + float(call.get("api", 0.0))


def _runs(blocks: Iterable[Iterable[int]]) -> list[Run]:
    runs = [(int(first), int(count)) for first, count in blocks]
    if any(count < 1 for _, count in runs):
        raise _RunError("a run without blocks")
    return runs
