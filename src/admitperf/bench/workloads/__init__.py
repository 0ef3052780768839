"""Workloads by name, whoever wrote them: entry points of `admitperf.workloads`.

    offered = workload("tool-tight").fitting(longest_tokens=2_048)
    begun = offered.begun(rate_per_s=0.5, lasts_s=600.0, seed=1)

Ours are found the same way as anyone's. A name that nothing offers is a file of a
recorded trace, whose form is told from its lines.
"""

import inspect
from collections.abc import Callable, Sequence
from pathlib import Path

from admitperf.bench.workloads.workload import (
    Noun,
    Recorded,
    TraceError,
    Workload,
    WorkloadError,
)
from admitperf.core.errors import BadPlugin
from admitperf.core.plugins import Plugins

__all__ = [
    "GROUP",
    "Noun",
    "Recorded",
    "TraceError",
    "Workload",
    "WorkloadError",
    "available",
    "workload",
]

GROUP = "admitperf.workloads"
"""The entry-point group: name to what makes it, `(**parameters) -> Workload`."""


def available() -> dict[str, str]:
    """What each installed workload is, by name, in alphabetical order.

    One that cannot be imported is told as that, and takes no other away.

    Raises:
        WorkloadError: two distributions offer one name.
    """
    found = Plugins(GROUP, "workload")
    for name in found:
        _offered(found, name)
    return {name: _said(found, name) for name in found}


def workload(
    name: str,
    *,
    trace: Sequence[str | Path] = (),
    divisor: int | None = None,
    **parameters: object,
) -> Workload:
    """A workload, not yet made to fit an engine (`fitting`).

    Args:
        name: of an installed one, or the first file of a recorded trace.
        trace: the files it replays, or the further ones of that trace; none = it is
            generated.
        divisor: of token counts; None = what makes most calls fit.
        parameters: its own.

    Raises:
        WorkloadError: nothing has this name, it has no such parameter, or it cannot be
            had so.
        TraceError: a file is no trace.
    """
    files = [Path(one) for one in trace]
    given = dict(parameters)
    if divisor is not None:
        given["divisor"] = divisor
    found = Plugins(GROUP, "workload")
    if name in found:
        if files:
            given["trace"] = files
        return _made(found, name, given)
    if not Path(name).is_file():
        what = f"no workload {name!r}, and no file of that name"
        raise WorkloadError(f"{what}; {found.missing(name)}")
    from admitperf.bench.workloads.replay import replay  # noqa: PLC0415  its readers

    return replay([Path(name), *files], given)


def _offered(found: Plugins, name: str) -> None:
    try:
        found.offer(name)
    except BadPlugin as fault:
        raise WorkloadError(str(fault)) from None


def _made(found: Plugins, name: str, parameters: dict[str, object]) -> Workload:
    make = _loaded(found, name)
    try:
        inspect.signature(make).bind(**parameters)
    except TypeError:
        raise WorkloadError(_no_such(name, make, parameters)) from None
    return make(**parameters)


def _loaded(found: Plugins, name: str) -> Callable[..., Workload]:
    try:
        made, where = found.loaded(name)
    except BadPlugin as fault:
        raise WorkloadError(str(fault)) from fault.__cause__
    if not callable(made):
        raise WorkloadError(f"{where} cannot be called")
    return made


def _no_such(
    name: str, make: Callable[..., Workload], parameters: dict[str, object]
) -> str:
    known = inspect.signature(make).parameters
    wrong = ", ".join(sorted(parameters.keys() - known.keys())) or "something"
    return f"workload {name!r} takes no {wrong}; it takes: {', '.join(known) or 'none'}"


def _said(found: Plugins, name: str) -> str:
    """The first line of what its maker says."""
    try:
        told = inspect.getdoc(_loaded(found, name)) or ""
    except WorkloadError as fault:
        return str(fault)
    return told.partition("\n")[0]
