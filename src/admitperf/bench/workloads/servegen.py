"""Reads the clients of ServeGen: how each asks in windows of ten minutes.

    {"client": 7, "windows": [[72000, 0.55, 8.9, "W", 0.41, 1.6]],
     "input_tokens_q": [231, 246, 267, 298, 322, 383, 4308], "output_tokens_q": [...]}

A window is its start in seconds, the rate, the coefficient of variation of the gaps and
their family with its shape and scale; where nothing came it is left out. Rate and
variation are what is used: now and then a fitted scale is far from the rate. Quantiles
are those of `SHARES`. There are no requests in it: they are drawn.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
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
from admitperf.bench.workloads.reading import objects
from admitperf.bench.workloads.tables import GRID
from admitperf.bench.workloads.workload import Recorded, TraceError
from admitperf.core.notes import Note

NAME = "servegen"

SHARES = (0.05, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
"""Of the quantiles of a client's lengths; beyond the first and last they stay."""

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
    try:
        windows = {
            float(start): Window(float(rate), float(cv), _family(family))
            for start, rate, cv, family, *_ in line["windows"]
        }
        prompts, answers = line.get("input_tokens_q"), line.get("output_tokens_q")
        sizes = _sizes(prompts, answers) if prompts and answers else None
        name = f"client-{line['client']}"
    except KeyError as error:
        raise TraceError(f"{where}: the field {error.args[0]!r} is missing") from None
    except (TypeError, ValueError):
        told = "is no client: windows are [start, rate, cv, G or W], quantiles seven"
        raise TraceError(f"{where}: {told}") from None
    if not windows:
        raise TraceError(f"{where}: a client without a window")
    return name, windows, sizes


def _family(told: object) -> Any:  # noqa: ANN401  one of two letters
    if told not in {"G", "W"}:
        raise ValueError(told)
    return told


def _sizes(prompts: Sequence[float], answers: Sequence[float]) -> Sizes:
    return Sizes(
        input_tokens=_table(prompts),
        output_tokens=_table(answers),
        max_output_tokens=MAX_OUTPUT_TOKENS,
    )


def _table(quantiles: Sequence[float]) -> list[float]:
    """At the shares of `GRID`, straight between those that are known."""
    if len(quantiles) != len(SHARES):
        raise ValueError(quantiles)
    found = list[float]()
    for share in GRID:
        place = bisect_right(SHARES, share)
        if place in {0, len(SHARES)}:
            found.append(float(quantiles[max(0, place - 1)]))
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
