"""Reads decision logs, ours: what a policy was asked becomes traffic again.

A decision says when a request came, its prompt and its bound; its outcome says how long
the answer was, and for one that was refused or never ended the bound stands in. What
prompts share no log says. Tries of one request (`logical_id`) are one request, at the
first; those of one session with a name are one session, whose pauses are what passed
from an answer to the next request, or from request to request where no answer is known.
A prompt of a session that is no shorter than the one before is taken to go on from it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Any, TypeVar

from admitperf.bench.workloads.reading import amount, label, objects, whole
from admitperf.bench.workloads.workload import Recorded, TraceError
from admitperf.core.notes import Note
from admitperf.reports.wording import plural
from admitperf.simulator.traffic.sessions import Beginning, Call, Session

NAME = "decisions"

ANSWER_TOKENS = 256
"""An answer of which neither the length nor a bound is known. Plain choice."""

_Key = tuple[str, int]
_Fact = TypeVar("_Fact")


@dataclass(slots=True)
class _Asked:
    """A request, at its first try."""

    at_s: float
    input_tokens: int
    max_output_tokens: int | None
    session: str | None
    tenant: str | None
    output_tokens: int | None = None
    ended_s: float | None = None


@dataclass(slots=True)
class _Log:
    """What was read so far.

    Attributes:
        asked: by the decision on the first try.
        tries: which decision each later try belongs to.
        first: the first try of each logical request.
        silent: decisions that do not say how long the prompt was.
    """

    asked: dict[_Key, _Asked] = field(default_factory=dict[_Key, _Asked])
    tries: dict[_Key, _Key] = field(default_factory=dict[_Key, _Key])
    first: dict[tuple[str, str], _Key] = field(
        default_factory=dict[tuple[str, str], _Key]
    )
    silent: int = 0


def read(*paths: str | Path) -> Recorded:
    """The requests of one log, in sessions where it names them.

    Args:
        paths: its files; a name that ends in .gz is unpacked.

    Raises:
        TraceError: a file cannot be read, or no decision says how long its prompt was.
    """
    log = _Log()
    for path in paths:
        for where, line in objects(path):
            _take(log, line, where)
    if not log.asked:
        what = "no decision says how long its prompt was (input_tokens)"
        raise TraceError(f"{', '.join(map(str, paths))}: {what}: nothing to replay")
    sessions = dict[str, list[_Asked]]()
    for number, one in enumerate(log.asked.values(), 1):
        sessions.setdefault(one.session or f"request-{number}", []).append(one)
    first_s = min(one.at_s for one in log.asked.values())
    begun = sorted(_begun(sessions, first_s), key=itemgetter(0))
    return _recorded(begun, log)


def _take(log: _Log, line: Mapping[str, Any], where: str) -> None:
    if line.get("k") == "decision":
        _decision(log, _key(line, "seq", where), line, where)
    elif line.get("k") == "outcome":
        _outcome(log, _key(line, "of", where), line, where)


def _key(line: Mapping[str, Any], field: str, where: str) -> _Key:
    return label(line, "run", where), whole(line, field, where)


def _decision(log: _Log, key: _Key, line: Mapping[str, Any], where: str) -> None:
    facts = line.get("facts", {})
    if not isinstance(facts, dict):
        raise TraceError(f"{where}: facts are no JSON object")
    if "input_tokens" not in facts:
        log.silent += 1
        return
    name = _told(facts, "logical_id", where, label) or str(key[1])
    before = log.first.setdefault((key[0], name), key)
    if before != key:
        log.tries[key] = before
        return
    late_s = (_told(facts, "late_ms", where, amount) or 0.0) / 1000
    log.asked[key] = _Asked(
        at_s=amount(line, "t_us", where) / 1e6 - late_s,
        input_tokens=max(1, whole(facts, "input_tokens", where)),
        max_output_tokens=_told(facts, "max_output_tokens", where, whole),
        session=_told(facts, "session", where, label),
        tenant=_told(facts, "tenant", where, label),
    )


def _told(
    facts: Mapping[str, Any],
    field: str,
    where: str,
    read: Callable[[Mapping[str, Any], str, str], _Fact],
) -> _Fact | None:
    """A fact that need not be there."""
    return None if facts.get(field) is None else read(facts, field, where)


def _outcome(log: _Log, key: _Key, line: Mapping[str, Any], where: str) -> None:
    if not isinstance(line.get("ok"), bool):
        raise TraceError(f"{where}: the field 'ok' is neither true nor false")
    one = log.asked.get(log.tries.get(key, key))
    if one is None or not line["ok"]:
        return
    one.ended_s = amount(line, "t_us", where) / 1e6
    one.output_tokens = _told(line, "output_tokens", where, whole) or one.output_tokens


def _begun(sessions: Mapping[str, list[_Asked]], first_s: float) -> Iterator[Beginning]:
    for name, asked in sessions.items():
        asked.sort(key=attrgetter("at_s"))
        calls = tuple(_call(asked, place) for place in range(len(asked)))
        bound = max(_bound(one) for one in asked)
        yield asked[0].at_s - first_s, Session(name, calls, bound, asked[0].tenant)


def _call(asked: Sequence[_Asked], place: int) -> Call:
    """One request; it follows the one before, if that had an answer by then."""
    one, before = asked[place], asked[place - 1] if place else None
    answer = one.output_tokens or min(_bound(one), ANSWER_TOKENS)
    gap_s = 0.0
    if before is not None:
        since_s = before.at_s if before.ended_s is None else before.ended_s
        gap_s = max(0.0, one.at_s - since_s)
    chain = sum(  # a new one after each prompt that is shorter than the one before
        after.input_tokens < earlier.input_tokens
        for earlier, after in pairwise(asked[: place + 1])
    )
    return Call(
        after=place - 1 if place else None,
        gap_s=gap_s,
        input_tokens=one.input_tokens,
        output_tokens=answer,
        prefix=((chain, one.input_tokens),),
    )


def _bound(one: _Asked) -> int:
    """What its caller set; what an answer came to is no bound, and tells a policy."""
    return one.max_output_tokens or ANSWER_TOKENS


def _recorded(begun: Sequence[Beginning], log: _Log) -> Recorded:
    named = any(one.session for one in log.asked.values())
    unknown = sum(one.output_tokens is None for one in log.asked.values())
    said = f"a decision log: {plural(len(log.asked), 'request')}"
    if named:
        said += f" in {plural(len(begun), 'session')}"
    notes: dict[str, Note] = {
        "trace_requests": len(log.asked),
        "answers_unknown": unknown,
        "decisions_without_length": log.silent,
        "tries_merged": len(log.tries),
    }
    if named:
        notes["prefix_source"] = "assumed: a prompt goes on from a shorter one before"
    return Recorded(
        name=NAME,
        begun=tuple(begun),
        pool=tuple(session for _, session in begun),
        said=said,
        notes=notes,
    )
