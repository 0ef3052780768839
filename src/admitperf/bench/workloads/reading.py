"""Lines of a trace, and of what is wrong with one: the file and the line are named."""

import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from admitperf.bench.workloads.workload import TraceError


def lines(path: str | Path) -> Iterator[tuple[str, str]]:
    """Where each line stands, in words, and its text; empty ones are left out.

    Args:
        path: of a text; a name that ends in .gz is unpacked.

    Raises:
        TraceError: it cannot be read.
    """
    path = Path(path)
    try:
        with _opened(path) as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield f"{path}, line {number}", line
    except OSError as error:
        why = (error.strerror or "cannot be read").lower()
        raise TraceError(f"{path}: {why}") from None
    except (EOFError, zlib.error):
        raise TraceError(f"{path}: cannot be unpacked") from None
    except UnicodeDecodeError:
        raise TraceError(f"{path}: is not UTF-8 text") from None


def objects(path: str | Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The same where each line is a JSON object.

    Raises:
        TraceError: one is none, or the file cannot be read.
    """
    for where, line in lines(path):
        yield where, parsed(line, where)


def documents(path: str | Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The same, or one object that is laid out over the lines of a file.

    Raises:
        TraceError: as `objects`.
    """
    found = lines(path)
    first = next(found, None)
    if first is None:
        return
    where, text = first
    if text.strip() == "{":
        rest = "".join(line for _, line in found)
        yield str(path), parsed(text + rest, str(path))
        return
    yield where, parsed(text, where)
    for where, text in found:
        yield where, parsed(text, where)


def parsed(text: str, where: str) -> dict[str, Any]:
    """A JSON object.

    Raises:
        TraceError: it is none.
    """
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise TraceError(f"{where}: is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise TraceError(f"{where}: is no JSON object")
    return found


def _opened(path: Path) -> IO[str]:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8")
    return path.open(encoding="utf-8")


def whole(told: dict[str, Any], field: str, where: str, least: int = 0) -> int:
    """A whole number of a line.

    Raises:
        TraceError: it is missing, or none.
    """
    found = amount(told, field, where, least)
    if found != int(found):
        raise TraceError(f"{where}: {field} = {told[field]!r} is no whole number")
    return int(found)


def amount(told: dict[str, Any], field: str, where: str, least: float = 0.0) -> float:
    """A finite number of a line.

    Raises:
        TraceError: it is missing, or none.
    """
    if field not in told:
        raise TraceError(f"{where}: the field {field!r} is missing")
    found = told[field]
    if isinstance(found, bool) or not isinstance(found, (int, float)):
        raise TraceError(f"{where}: {field} = {found!r} is no number")
    if not least <= found < float("inf"):
        raise TraceError(f"{where}: {field} = {found!r} is not at least {least:g}")
    return float(found)
