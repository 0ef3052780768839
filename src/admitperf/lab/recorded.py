"""Reads the samples of a trace back, one at a time."""

import json
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from admitperf.core.reading import Reading

_Fields = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Taken:
    """One sample.

    Attributes:
        t_us: when it was complete, microseconds since 1970: the time of a decision.
        reading: as it was decided on, its time on the same line.
        signals: every signal known then, by name.
    """

    t_us: int
    reading: Reading
    signals: dict[str, float]


def samples(
    path: str, run: str, interval_s: float | None, most_bytes: int | None = None
) -> Iterator[Taken]:
    """The samples of one run of a trace, in order.

    Args:
        path: the trace.
        run: the run that holds them.
        interval_s: seconds between scrapes; None = not known.
        most_bytes: how far to read; None = to the end.

    Raises:
        OSError: it cannot be read.
    """
    raw: dict[str, float] = {}
    newest: _Fields = {}
    for line in _lines(path, run, most_bytes):
        if line.get("k") == "reading":
            raw = applied(raw, line)
            newest = line
        elif line.get("k") == "decision" and line.get("reading") == newest.get("id"):
            t_us: int = line["t_us"]
            taken_us: int = newest.get("taken_us", t_us)
            reading = Reading(raw, taken_ns=taken_us * 1000, interval_s=interval_s)
            yield Taken(t_us, reading, line.get("signals") or {})


def _lines(path: str, run: str, most_bytes: int | None) -> Iterator[_Fields]:
    read = 0
    with Path(path).open("rb") as file:
        for text in file:
            read += len(text)
            if most_bytes is not None and read > most_bytes:
                return
            try:
                line = json.loads(text)
            except ValueError:
                continue
            if isinstance(line, dict) and line.get("run") == run:
                yield line


def applied(raw: dict[str, float], line: _Fields) -> dict[str, float]:
    """A reading from the one before it and what changed."""
    kept = {} if line.get("whole") else dict(raw)
    for name in line.get("gone") or ():
        kept.pop(name, None)
    changed = line["raw"].items()
    return kept | {
        name: math.nan if value is None else float(value)
        for name, value in changed
        if value is None or _is_number(value)
    }


def _is_number(value: object) -> bool:
    plain = isinstance(value, (int, float)) and not isinstance(value, bool)
    return plain and abs(value) <= sys.float_info.max  # type: ignore[arg-type]
