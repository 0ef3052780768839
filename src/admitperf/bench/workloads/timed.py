"""Reads requests with instants, lengths and the blocks of their prompts.

    {"timestamp": 27.48, "input_length": 6955, "output_length": 52, "hash_ids": [4, 5]}

It is the form of vLLM's `timed_trace` and of Mooncake's traces. Blocks have one name
space over all requests; which of them belong to one session is not told, and can be
recovered from what their prompts begin with (`recovered`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any

from admitperf.bench.workloads.calls import in_tokens
from admitperf.bench.workloads.chains import chains, in_rows
from admitperf.bench.workloads.reading import amount, ids, objects, whole
from admitperf.bench.workloads.recovered import PRIVATE, Asked, continued, roots
from admitperf.bench.workloads.sharing import told_apart
from admitperf.bench.workloads.workload import Recorded, TraceError
from admitperf.core.notes import Note
from admitperf.reports.wording import number, plural
from admitperf.simulator.streams import stream
from admitperf.simulator.traffic.sessions import Beginning, Call, Session

NAME = "timed_trace"

BLOCK_TOKENS = 16
"""Tokens of a block; vLLM's default of `--timed-trace-chunk-hash-size`."""

MAX_OUTPUT_TOKENS = 4_096
"""The bound callers set; no trace of this form says. Plain choice: over the longest
answers of Mooncake's conversations."""

Tokens = Sequence[tuple[int, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """How a file of this form is to be read.

    Attributes:
        name: of the kind of trace.
        block_tokens: tokens of a block.
        unit_s: seconds of one unit of its timestamps.
        jitter_s: up to so much is added to each timestamp, drawn evenly.
        seed: of that.
        sessions: recover them: each is one session then, whose pauses are kept; False
            = each request stands for itself, at its own instant.
        private: requests that may hold a block of one session.
    """

    name: str = NAME
    block_tokens: int = BLOCK_TOKENS
    unit_s: float = 1.0
    jitter_s: float = 0.0
    seed: int = 1
    sessions: bool = False
    private: int = PRIVATE


@dataclass(frozen=True, slots=True)
class _Told:
    """One request, with the instant before anything was added to it."""

    at_s: float
    recorded_s: float
    input_tokens: int
    output_tokens: int
    blocks: tuple[int, ...]


def read(path: str | Path, form: Form | None = None) -> Recorded:
    """Requests at their instants, or sessions that were recovered.

    Args:
        path: of the file; a name that ends in .gz is unpacked.
        form: how it is to be read; None = as vLLM reads it.

    Raises:
        TraceError: it cannot be read, or is none of these; names file and line.
    """
    form = form or Form()
    chance = stream(form.seed, f"{form.name}/jitter")
    told = [
        _told(line, where, form, chance.random() * form.jitter_s)
        for where, line in objects(path)
    ]
    if not told:
        raise TraceError(f"{path}: holds no request")
    told.sort(key=attrgetter("at_s"))
    follows = continued(
        [Asked(one.recorded_s, one.blocks) for one in told], form.private
    )
    paths = chains([in_rows(one.blocks) for one in told])
    tokens = [
        tuple(in_tokens(path, one.input_tokens, form.block_tokens))
        for one, path in zip(told, paths, strict=True)
    ]
    made = _sessions if form.sessions else _requests
    begun = tuple(made(told, follows, tokens, form.name))
    return _recorded(begun, told, roots(follows), form)


def _told(line: dict[str, Any], where: str, form: Form, jitter_s: float) -> _Told:
    at_s = amount(line, "timestamp", where) * form.unit_s
    return _Told(
        at_s=at_s + jitter_s,
        recorded_s=at_s,
        input_tokens=max(1, whole(line, "input_length", where)),
        output_tokens=max(1, whole(line, "output_length", where)),
        blocks=tuple(ids(line, "hash_ids", where)),
    )


def _requests(
    told: Sequence[_Told],
    follows: Sequence[int | None],
    tokens: Sequence[Tokens],
    name: str,
) -> Iterator[Beginning]:
    """Each for itself; those of one recovered session have names alike up to a dot."""
    first_s, turns = told[0].at_s, dict[int, int]()
    for one, root, its in zip(told, roots(follows), tokens, strict=True):
        turns[root] = turns.get(root, 0) + 1
        call = Call(
            after=None,
            gap_s=0.0,
            input_tokens=one.input_tokens,
            output_tokens=one.output_tokens,
            prefix=tuple((f"{name}/{chain}", count) for chain, count in its),
        )
        session = Session(
            f"{name}-{root + 1}.{turns[root]}", (call,), MAX_OUTPUT_TOKENS
        )
        yield one.at_s - first_s, session


def _sessions(
    told: Sequence[_Told],
    follows: Sequence[int | None],
    tokens: Sequence[Tokens],
    name: str,
) -> Iterator[Beginning]:
    """Sessions that were recovered; a pause is the time from request to request."""
    members = dict[int, list[int]]()
    for place, root in enumerate(roots(follows)):
        members.setdefault(root, []).append(place)
    prompts = told_apart(
        {f"{root}": [tokens[place] for place in its] for root, its in members.items()},
        name,
    )
    for root, its in members.items():
        among = {place: number for number, place in enumerate(its)}
        calls = tuple(
            _turn(told, place, follows[place], among, prefix)
            for place, prefix in zip(its, prompts[f"{root}"], strict=True)
        )
        session = Session(f"{name}-{root + 1}", calls, MAX_OUTPUT_TOKENS)
        yield told[root].at_s - told[0].at_s, session


def _turn(
    told: Sequence[_Told],
    place: int,
    before: int | None,
    among: dict[int, int],
    prefix: tuple[tuple[int | str, int], ...],
) -> Call:
    one = told[place]
    return Call(
        after=None if before is None else among[before],
        gap_s=0.0 if before is None else one.at_s - told[before].at_s,
        input_tokens=one.input_tokens,
        output_tokens=one.output_tokens,
        prefix=prefix,
    )


def _recorded(
    begun: tuple[Beginning, ...],
    told: Sequence[_Told],
    begins: Sequence[int],
    form: Form,
) -> Recorded:
    lasted_s = told[-1].at_s - told[0].at_s
    said = f"{plural(len(told), 'recorded request')} of {number(lasted_s)} s"
    if form.jitter_s:
        said += f", 0 to {number(form.jitter_s)} s added to each instant"
    notes: dict[str, Note] = {
        "trace_requests": len(told),
        "trace_s": round(lasted_s, 3),
        "jitter_s": form.jitter_s,
        "session_source": f"recovered (prefix chain, private {form.private}, strict)",
        "sessions_recovered": len(set(begins)),
    }
    if form.sessions:
        said += f", {plural(len(begun), 'session')} recovered from what prompts share"
    return Recorded(
        name=form.name,
        begun=begun,
        pool=tuple(session for _, session in begun),
        said=said,
        notes=notes,
    )
