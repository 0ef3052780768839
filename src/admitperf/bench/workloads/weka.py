"""Reads WEKA's Claude Code sessions (kv-cache-tester).

One line is a session, in a short form in which runs of blocks stand as `[first,
count]`; the form in which they were published, a session a file with `requests` and
`hash_ids`, is read as well. A call says which blocks of 64 tokens its prompt is made
of, by numbers that are local to the session, and how long the client was idle before
it. What calls have in common is thereby known exactly, and becomes chains (`chains`).

A sub-agent's calls run beside those of its session: the first follows the answer of the
call during or after which the sub-agent was started, and its session goes on when it
did, whether or not the sub-agent is through. `stream` says that an answer was streamed,
nothing about what ran side by side.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from admitperf.bench.workloads.calls import Asked, made_session
from admitperf.bench.workloads.chains import in_rows
from admitperf.bench.workloads.reading import (
    amount,
    documents,
    ids,
    label,
    runs,
    whole,
)
from admitperf.bench.workloads.workload import Recorded, TraceError
from admitperf.core.notes import Note
from admitperf.reports.wording import plural
from admitperf.simulator.traffic.sessions import Session

NAME = "weka"

BLOCK_TOKENS = 64
"""Tokens of a block of the trace."""


def read(*paths: str | Path) -> Recorded:
    """The sessions of one trace; it has no clock that they share.

    Args:
        paths: its files; a name that ends in .gz is unpacked.

    Raises:
        TraceError: a file cannot be read, or is none of these; names file and line.
    """
    reader = _Reader()
    sessions = tuple(
        session
        for path in paths
        for where, told in documents(path)
        for session in reader.read(told, where)
    )
    if not sessions:
        raise TraceError(f"{', '.join(map(str, paths))}: holds no session")
    return Recorded(
        name=NAME,
        begun=None,
        pool=sessions,
        said=f"agents: {plural(len(sessions), 'recorded session')}",
        notes={"sessions": len(sessions), **reader.notes()},
    )


@dataclass(slots=True)
class _Recorded:
    """One call of the trace: what it follows and after how long, and its blocks."""

    after: int | None
    gap_s: float
    told: Mapping[str, Any]


class _Reader:
    def __init__(self) -> None:
        self.beside = self.unknown_gaps = self.empty = 0
        self._where = ""

    def notes(self) -> dict[str, Note]:
        """What the trace lacks, counted.

        A gap that it lacks is the time from start to start, less the answer's where
        that is known; an answer without a token is taken for one.
        """
        return {
            "calls_beside": self.beside,
            "gaps_unknown": self.unknown_gaps,
            "answers_empty": self.empty,
        }

    def read(self, line: dict[str, Any], where: str) -> Iterator[Session]:
        """One session; none for a line without a call."""
        self._where = where
        try:
            told = _short(line, where) if "requests" in line else line
            asked = [self._asked(one) for one in self._recorded(told["events"])]
            name = label(told, "session", where)
        except TraceError:
            raise
        except (KeyError, TypeError, AttributeError, RecursionError) as error:
            raise TraceError(f"{where}: is no session: {_why(error)}") from None
        if asked:
            yield made_session(name, asked, BLOCK_TOKENS)

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
        begun_s = 0.0 if last is None else self._end_s(made[last].told)
        gap_s, calls = (
            max(0.0, amount(event, "t", self._where) - begun_s),
            list[_Recorded](),
        )
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
        known = call.get("think") is not None
        think_s = amount(call, "think", self._where) if known else 0.0
        if before is None:
            return 0.0
        if not known:
            self.unknown_gaps += 1
            begun_s = amount(call, "t", self._where)
            return max(0.0, begun_s - self._end_s(before))
        return think_s

    def _end_s(self, call: Mapping[str, Any]) -> float:
        """When an answer ended, or its call began where the trace does not say."""
        known = call.get("api") is not None
        answer_s = amount(call, "api", self._where) if known else 0.0
        return amount(call, "t", self._where) + answer_s

    def _asked(self, one: _Recorded) -> Asked:
        told, where = one.told, self._where
        answer = whole(told, "out", where)
        self.empty += answer < 1
        return Asked(
            after=one.after,
            gap_s=one.gap_s,
            input_tokens=max(1, whole(told, "in", where)),
            output_tokens=max(1, answer),
            runs=runs(told, "blocks", where),
        )


def _why(error: Exception) -> str:
    """What is wrong with a line, in words a person can act on."""
    if isinstance(error, KeyError):
        return f"the field {error.args[0]!r} is missing"
    return (
        "a line is an object with session and events, and a call one with t, in, out"
        " and blocks, which are pairs of whole numbers"
    )


# --------------------------------------------------------- the form that was published

_SHORTER = {"think_time": "think", "api_time": "api", "input_types": "src"}


def _short(line: dict[str, Any], where: str) -> dict[str, Any]:
    """The same in the short form."""
    events = [_event(one, where) for one in line["requests"]]
    return {"session": line["id"], "events": events}


def _event(told: Mapping[str, Any], where: str) -> dict[str, Any]:
    if "requests" in told:
        calls = [_event(one, where) for one in told["requests"]]
        return {"t": told["t"], "subagent": told.get("agent_id"), "calls": calls}
    made = {_SHORTER.get(name, name): value for name, value in told.items()}
    del made["hash_ids"]
    made["blocks"] = in_rows(ids(told, "hash_ids", where))
    return made
