"""Recorded traffic by its files alone: their lines tell what form they have."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from admitperf.bench.workloads import (
    azure,
    decisions,
    miniswe,
    mooncake,
    servegen,
    timed,
    weka,
)
from admitperf.bench.workloads.named import (
    LONGEST_GAP_S,
    LONGEST_TURN_GAP_S,
    of_servegen,
    pooled,
    replayed,
)
from admitperf.bench.workloads.reading import documents, lines, objects
from admitperf.bench.workloads.workload import (
    Recorded,
    TraceError,
    Workload,
    WorkloadError,
)

FORMS = (
    weka.NAME,
    azure.NAME,
    miniswe.NAME,
    mooncake.NAME,
    timed.NAME,
    servegen.NAME,
    decisions.NAME,
)
"""Of traces that are read."""

LOOKED_AT = 1_000
"""Lines that are looked at for the form. Plain choice."""

MOST_LINES = 0.9
"""Share of lines whose blocks have to be of one size before it counts. As above."""

_PARAMETERS = ("divisor", "form", "longest_gap_s", "sessions")


def replay(paths: Sequence[Path], given: dict[str, Any]) -> Workload:
    """What the files of one trace say.

    Args:
        paths: at least one, all of one form.
        given: divisor: of token counts; None = what makes most calls fit. form: one of
            `FORMS`, when its lines are not to tell. longest_gap_s: pauses between
            the calls of sessions are cut to it, 60 unless said (600
            where they are turns of people). sessions: recover them,
            from requests that have none but tell what their prompts are made of.

    Raises:
        TraceError: a file is none.
        WorkloadError: a parameter that a trace does not take.
    """
    if wrong := sorted(given.keys() - set(_PARAMETERS)):
        known = ", ".join(_PARAMETERS)
        raise WorkloadError(f"a trace takes no {', '.join(wrong)}; it takes: {known}")
    form, doubt = given.get("form"), False
    if not form:
        form, doubt = form_of(paths[0])
    if form not in FORMS:
        raise WorkloadError(f"no form {form!r}: there are {', '.join(FORMS)}")
    divisor = given.get("divisor")
    if form == servegen.NAME:
        return of_servegen("tenants", _one(form, paths), divisor)
    recorded = _recorded(form, paths, sessions=bool(given.get("sessions")))
    if doubt:
        recorded = _doubted(recorded)
    if any(len(session.calls) > 1 for session in recorded.pool):
        turns = form in {mooncake.NAME, timed.NAME}
        usual_s = LONGEST_TURN_GAP_S if turns else LONGEST_GAP_S
        longest_gap_s = given.get("longest_gap_s", usual_s)
        return pooled(recorded.name, recorded, divisor, longest_gap_s)
    return replayed(recorded.name, recorded, divisor)


def _recorded(form: str, paths: Sequence[Path], *, sessions: bool) -> Recorded:
    if form == weka.NAME:
        return weka.read(*paths)
    if form == decisions.NAME:
        return decisions.read(*paths)
    path = _one(form, paths)
    if form == mooncake.NAME:
        return mooncake.read(path, sessions=sessions)
    if form == timed.NAME:
        return timed.read(path, replace(timed.Form(), sessions=sessions))
    return azure.read(path) if form == azure.NAME else miniswe.read(path)


def _one(form: str, paths: Sequence[Path]) -> Path:
    if len(paths) != 1:
        raise WorkloadError(f"a trace of the form {form} is one file, not {len(paths)}")
    return paths[0]


def _doubted(recorded: Recorded) -> Recorded:
    """The same, said to be of a form that its lines do not settle."""
    other = f"form={timed.NAME} reads them as seconds"
    return replace(
        recorded,
        said=f"{recorded.said}, timestamps taken for milliseconds as in {mooncake.NAME}"
        f" though nothing tells ({other})",
        notes={**recorded.notes, "form_assumed": f"{mooncake.NAME}; {other}"},
    )


def form_of(path: Path) -> tuple[str, bool]:
    """The form of a file, and whether its lines leave that open.

    Raises:
        TraceError: it is of none that is known.
    """
    _, text = next(lines(path), ("", ""))
    if text.startswith(azure.HEADER[0]):
        return azure.NAME, False
    for where, told in documents(path):
        if told.keys() >= {"timestamp", "input_length"}:
            return _timed_form([one for _, one in islice(objects(path), LOOKED_AT)])
        return _form(told, where), False
    raise TraceError(f"{path}: is empty")


def _timed_form(told: Sequence[dict[str, Any]]) -> tuple[str, bool]:
    """Mooncake's or vLLM's, whose lines have the same fields.

    Mooncake's instants are whole milliseconds, vLLM's seconds, mostly with a fraction.
    Where all are written without one, the tokens of a block tell.
    """
    if any(isinstance(one.get("timestamp"), float) for one in told):
        return timed.NAME, False
    if _blocks_of(told, timed.BLOCK_TOKENS):
        return timed.NAME, False
    return mooncake.NAME, not _blocks_of(told, mooncake.BLOCK_TOKENS)


def _blocks_of(told: Sequence[dict[str, Any]], block_tokens: int) -> bool:
    """Whether prompts of more than one block have as many as they need, at this size.

    False where there is no such prompt.
    """
    held = [
        (len(one["hash_ids"]), -(-one["input_length"] // block_tokens))
        for one in told
        if isinstance(one.get("hash_ids"), list)
        and isinstance(one.get("input_length"), int)
    ]
    several = [count == needed for count, needed in held if max(count, needed) > 1]
    return bool(several) and sum(several) >= MOST_LINES * len(several)


def _form(told: dict[str, Any], where: str) -> str:
    for form, fields in _FIELDS:
        if fields <= told.keys():
            return form
    raise TraceError(f"{where}: is of no form that is read: {', '.join(FORMS)}")


_FIELDS = (
    (weka.NAME, {"session", "events"}),
    (weka.NAME, {"id", "requests"}),
    (servegen.NAME, {"client", "windows"}),
    (decisions.NAME, {"k", "run"}),
    (miniswe.NAME, {"session", "in", "out"}),
)
"""The fields that only a line of a form has."""
