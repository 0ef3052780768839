"""Reads the clients of ServeGen: how each asks in windows of ten minutes.

    {"client": 7, "windows": [[72000, 0.55, 8.9, "W", 0.41, 1.6]],
     "input_tokens_q": [231, 246, 267, 298, 322, 383, 4308], "output_tokens_q": [...]}

A window is its start in seconds, the rate, the coefficient of variation of the gaps and
their family with its shape and scale; where nothing came it is left out. Rate and
variation are what is used: now and then a fitted scale is far from the rate. Quantiles
are those of `SHARES`. There are no requests in it: they are drawn.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from admitperf.bench.workloads.clients import (
    WINDOW_S,
    Client,
    Window,
    of_clients,
)
from admitperf.bench.workloads.generated import Sizes
from admitperf.bench.workloads.reading import amount, label, listed, objects
from admitperf.bench.workloads.tables import GRID
from admitperf.bench.workloads.workload import Recorded, TraceError
from admitperf.core.notes import Note

NAME = "servegen"

SHARES = (0.05, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
"""Of the quantiles of a client's lengths; beyond the first and last they stay."""

MOST_CV = 1_000
"""The largest coefficient of variation that is read. Plain choice: with more hardly a
gap differs from nothing."""

MOST_WINDOWS = 100_000
"""From the first window to the last. Plain choice: nearly two years."""

LEAST_RATE_PER_S = 1e-9
"""Clients that together ask less do not ask. Plain choice."""

_WINDOW = ("start", "rate", "cv", "family")

MAX_OUTPUT_TOKENS = 8_000
"""The bound callers set; it is not told. Plain choice."""


def read(path: str | Path) -> Recorded:
    """Some requests of its clients, as many of each as is its share.

    Args:
        path: of the file.

    Raises:
        TraceError: it cannot be read, or is none of these; names file and line.
    """
    return recorded(clients(path))


def recorded(found: Sequence[Client]) -> Recorded:
    """The same of clients that were read."""
    windows = len(found[0].windows)
    notes: dict[str, Note] = {"windows": windows}
    said = f"their rates and gaps as recorded over {windows} windows of ten minutes"
    return of_clients(NAME, found, said, notes)


def clients(path: str | Path) -> list[Client]:
    """The clients themselves, all with the same windows.

    Raises:
        TraceError: as `read`.
    """
    told = list(objects(path))
    if not told:
        raise TraceError(f"{path}: holds no client")
    return of_lines(told, str(path))


def of_lines(lines: Iterable[tuple[str, dict[str, Any]]], whence: str) -> list[Client]:
    """The clients of lines, each with where it stands; there is at least one.

    Raises:
        TraceError: one is none, or none tells lengths.
    """
    told = [_told(line, where) for where, line in lines]
    known = [sizes for _, _, sizes in told if sizes]
    if not known:
        raise TraceError(f"{whence}: no client tells the lengths of its requests")
    first = min(start for _, windows, _ in told for start in windows)
    last = max(start for _, windows, _ in told for start in windows)
    count = round((last - first) / WINDOW_S) + 1
    if count > MOST_WINDOWS:
        what = f"windows lie {last - first:g} s apart, over {MOST_WINDOWS} of them"
        raise TraceError(f"{whence}: {what}")
    rates = (one.rate_per_s for _, windows, _ in told for one in windows.values())
    if sum(rates) < LEAST_RATE_PER_S * count:
        raise TraceError(f"{whence}: no client asks anything, all rates are 0")
    common = _common(known)
    still = Window(0.0, 1.0, "G")
    return [
        Client(
            name=name,
            windows=tuple(
                windows.get(first + WINDOW_S * place, still) for place in range(count)
            ),
            sizes=sizes or common,
        )
        for name, windows, sizes in told
    ]


def _told(
    line: dict[str, Any], where: str
) -> tuple[str, dict[float, Window], Sizes | None]:
    fields = "input_tokens_q", "output_tokens_q"
    name = f"client-{label(line, 'client', where)}"
    windows = dict(_windows(line, where))
    if not windows:
        raise TraceError(f"{where}: a client without a window")
    if not all(line.get(field) for field in fields):
        return name, windows, None
    prompts, answers = (_table(line, field, where) for field in fields)
    sizes = Sizes(
        input_tokens=prompts,
        output_tokens=answers,
        max_output_tokens=MAX_OUTPUT_TOKENS,
    )
    return name, windows, sizes


def _windows(line: dict[str, Any], where: str) -> Iterator[tuple[float, Window]]:
    for place, told in enumerate(listed(line, "windows", where), 1):
        name = f"window {place}"
        if not isinstance(told, list) or len(told) < len(_WINDOW):
            raise TraceError(f"{where}: {name} is not [start, rate, cv, G or W]")
        its = {
            f"{name}, {field}": one for field, one in zip(_WINDOW, told, strict=False)
        }
        start, rate, cv, family = its
        if its[family] not in ("G", "W"):
            raise TraceError(f"{where}: {family} is neither G nor W")
        yield (
            amount(its, start, where),
            Window(
                amount(its, rate, where),
                amount(its, cv, where, 0.0, MOST_CV),
                its[family],
            ),
        )


def _table(line: dict[str, Any], field: str, where: str) -> list[float]:
    """At the shares of `GRID`, straight between those that are known."""
    told = listed(line, field, where)
    if len(told) != len(SHARES):
        raise TraceError(f"{where}: {field} are {len(told)}, not {len(SHARES)}")
    its = {f"{field}[{place}]": one for place, one in enumerate(told)}
    quantiles = [amount(its, name, where) for name in its]
    found = list[float]()
    for share in GRID:
        place = bisect_right(SHARES, share)
        if place in {0, len(SHARES)}:
            found.append(quantiles[max(0, place - 1)])
            continue
        low, high = SHARES[place - 1], SHARES[place]
        part = (share - low) / (high - low)
        step = quantiles[place] - quantiles[place - 1]
        found.append(round(quantiles[place - 1] + part * step, 1))
    return found


def _common(known: Sequence[Sizes]) -> Sizes:
    """What stands for clients whose lengths are not told: the mean of the others'."""
    return Sizes(
        input_tokens=_mean([one.input_tokens for one in known]),
        output_tokens=_mean([one.output_tokens for one in known]),
        max_output_tokens=MAX_OUTPUT_TOKENS,
    )


def _mean(tables: Iterable[Sequence[float]]) -> list[float]:
    return [round(fmean(column), 1) for column in zip(*tables, strict=True)]
