"""Recorded traffic by its files alone: the first line tells what form they have."""

from collections.abc import Sequence
from dataclasses import replace
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
from admitperf.bench.workloads.reading import documents, lines
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

_PARAMETERS = ("divisor", "form", "longest_gap_s", "sessions")


def replay(paths: Sequence[Path], given: dict[str, Any]) -> Workload:
    """What the files of one trace say.

    Args:
        paths: at least one, all of one form.
        given: divisor: of token counts; None = what makes most calls fit. form: one of
            `FORMS`, when the first line is not to tell. longest_gap_s: pauses between
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
    form = given.get("form") or form_of(paths[0])
    if form not in FORMS:
        raise WorkloadError(f"no form {form!r}: there are {', '.join(FORMS)}")
    divisor = given.get("divisor")
    if form == servegen.NAME:
        return of_servegen("tenants", _one(form, paths), divisor)
    recorded = _recorded(form, paths, sessions=bool(given.get("sessions")))
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


def form_of(path: Path) -> str:
    """The form of a file, by its first line.

    Raises:
        TraceError: it is of none that is known.
    """
    _, text = next(lines(path), ("", ""))
    if text.startswith(azure.HEADER[0]):
        return azure.NAME
    for where, told in documents(path):
        return _form(told, where)
    raise TraceError(f"{path}: is empty")


def _form(told: dict[str, Any], where: str) -> str:
    if {"timestamp", "input_length"} <= told.keys():
        # Mooncake's instants are whole milliseconds, vLLM's seconds with a fraction
        return mooncake.NAME if isinstance(told["timestamp"], int) else timed.NAME
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
