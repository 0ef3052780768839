"""Workloads by name, whoever wrote them: entry points of `admitperf.workloads`.

    offered = workload("tool-tight").fitting(longest_tokens=2_048)
    begun = offered.begun(rate_per_s=0.5, lasts_s=600.0, seed=1)

Ours are found the same way as anyone's. A name that nothing offers is a file of a
recorded trace, whose form is told from its lines.
"""

import inspect
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from admitperf.bench.workloads.workload import (
    Noun,
    Recorded,
    TraceError,
    Workload,
    WorkloadError,
)

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

_Offers = dict[str, list[EntryPoint]]


def available() -> dict[str, str]:
    """What each installed workload is, by name, in alphabetical order.

    One that cannot be imported is told as that, and takes no other away.

    Raises:
        WorkloadError: two distributions offer one name.
    """
    offers = _offers()
    return {name: _said(_only(name, offers[name])) for name in sorted(offers)}


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
    offers = _offers()
    if name in offers:
        if files:
            given["trace"] = files
        return _made(_only(name, offers[name]), given)
    if not Path(name).is_file():
        raise WorkloadError(_not_found(name, sorted(offers)))
    from admitperf.bench.workloads.replay import replay  # noqa: PLC0415  its readers

    return replay([Path(name), *files], given)


def _offers() -> _Offers:
    offers: _Offers = {}
    for offer in entry_points(group=GROUP):
        offers.setdefault(offer.name, []).append(offer)
    return offers


def _only(name: str, found: Sequence[EntryPoint]) -> EntryPoint:
    if len({(_distribution(offer), offer.value) for offer in found}) > 1:
        told = ", ".join(f"{_distribution(offer)} ({offer.value})" for offer in found)
        raise WorkloadError(f"workload {name!r} is offered more than once: {told}")
    return found[0]


def _made(offer: EntryPoint, parameters: dict[str, object]) -> Workload:
    make = _loaded(offer)
    try:
        inspect.signature(make).bind(**parameters)
    except TypeError:
        raise WorkloadError(_no_such(offer.name, make, parameters)) from None
    return make(**parameters)


def _loaded(offer: EntryPoint) -> Callable[..., Workload]:
    where = f"workload {offer.name!r} of distribution {_distribution(offer)}"
    try:
        made: object = offer.load()
    except Exception as error:  # whatever a package does when it is imported
        told = " ".join(f"{type(error).__name__}: {error}".split())
        raise WorkloadError(f"{where} cannot be imported: {told}") from error
    if not callable(made):
        raise WorkloadError(f"{where}: {offer.value} cannot be called")
    return made


def _no_such(
    name: str, make: Callable[..., Workload], parameters: dict[str, object]
) -> str:
    known = inspect.signature(make).parameters
    wrong = ", ".join(sorted(parameters.keys() - known.keys())) or "something"
    return f"workload {name!r} takes no {wrong}; it takes: {', '.join(known) or 'none'}"


def _said(offer: EntryPoint) -> str:
    """The first line of what its maker says."""
    try:
        told = inspect.getdoc(_loaded(offer)) or ""
    except WorkloadError as fault:
        return str(fault)
    return told.partition("\n")[0]


def _distribution(offer: EntryPoint) -> str:
    return offer.dist.name if offer.dist is not None else "(unknown)"


def _not_found(name: str, known: Sequence[str]) -> str:
    nearest = get_close_matches(name, known, n=3, cutoff=0.5)
    told = f"nearest: {', '.join(nearest)}; " if nearest else ""
    return (
        f"no workload {name!r}, and no file of that name; {told}installed:"
        f" {', '.join(known) or 'none'}"
    )
