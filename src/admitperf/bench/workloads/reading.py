"""Lines of a trace, and of what is wrong with one: the file and the line are named."""

import gzip
import json
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from admitperf.bench.workloads.workload import TraceError

MOST = 2**53
"""The largest count, and time in whatever unit: up to it a float is exact."""

MOST_DIGITS = 400
"""Of an integer; a longer one is over any bound. Under what Python refuses to read."""

PAIR = 2

SHOWN = 40
"""Characters of a value that is at fault. Plain choice."""


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
        found = _loaded(text)
    except (ValueError, RecursionError) as error:
        raise TraceError(f"{where}: is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise TraceError(f"{where}: is no JSON object")
    return found


def _loaded(text: str) -> Any:  # noqa: ANN401  whatever the text is
    """Integers that are too long for Python are infinite: their reader names them."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        raise
    except ValueError:
        return json.loads(text, parse_int=number_of)


def number_of(digits: str) -> float:
    """A whole number; infinite when it has more digits than any that is read."""
    return int(digits) if len(digits) <= MOST_DIGITS else float(digits)


def _opened(path: Path) -> IO[str]:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8")
    return path.open(encoding="utf-8")


def whole(
    told: Mapping[str, Any], field: str, where: str, least: int = 0, most: int = MOST
) -> int:
    """A whole number of a line, in bounds.

    Raises:
        TraceError: it is missing, or none.
    """
    found = amount(told, field, where, least, most)
    if found != int(found):
        raise TraceError(f"{where}: {field} = {_shown(told[field])} is no whole number")
    return int(found)


def amount(
    told: Mapping[str, Any],
    field: str,
    where: str,
    least: float = 0.0,
    most: float = MOST,
) -> float:
    """A number of a line, in bounds, which no infinite one is.

    Raises:
        TraceError: it is missing, or none.
    """
    if field not in told:
        raise TraceError(f"{where}: the field {field!r} is missing")
    found = told[field]
    says = f"{where}: {field} = {_shown(found)}"
    if isinstance(found, bool) or not isinstance(found, (int, float)):
        raise TraceError(f"{says} is no number")
    if not found >= least:
        raise TraceError(f"{says} is not at least {least:g}")
    if found > most:
        raise TraceError(f"{says} is over {most}")
    return float(found)


def label(told: Mapping[str, Any], field: str, where: str) -> str:
    """What something of a line is called: a text, or a whole number.

    Raises:
        TraceError: it is missing, or none.
    """
    if field not in told:
        raise TraceError(f"{where}: the field {field!r} is missing")
    found = told[field]
    if isinstance(found, bool) or not isinstance(found, (str, int)):
        raise TraceError(f"{where}: {field} = {_shown(found)} is no name")
    return str(found)


def listed(told: Mapping[str, Any], field: str, where: str) -> list[Any]:
    """A list of a line.

    Raises:
        TraceError: it is missing, or none.
    """
    if field not in told:
        raise TraceError(f"{where}: the field {field!r} is missing")
    found = told[field]
    if not isinstance(found, list):
        raise TraceError(f"{where}: {field} = {_shown(found)} is no list")
    return found


def ids(told: Mapping[str, Any], field: str, where: str) -> list[int]:
    """Numbers of blocks: names, so that they have no bounds; none where it is missing.

    Raises:
        TraceError: they are no list of whole numbers.
    """
    found = told.get(field, [])
    if not isinstance(found, list) or not all(map(_is_whole, found)):
        raise TraceError(f"{where}: {field} are no whole numbers")
    return found


def runs(told: Mapping[str, Any], field: str, where: str) -> list[tuple[int, int]]:
    """Blocks with numbers in a row: the first number, and how many.

    Raises:
        TraceError: it is missing, or they are no pairs.
    """
    found = listed(told, field, where)
    if not all(map(_is_run, found)):
        raise TraceError(f"{where}: {field} are no pairs of whole numbers")
    for _, count in found:
        if not 1 <= count <= MOST:
            what = "a run without blocks" if count < 1 else f"a run of over {MOST}"
            raise TraceError(f"{where}: {field} hold {what}")
    return [(first, count) for first, count in found]


def _is_run(told: object) -> bool:
    return (
        isinstance(told, (list, tuple))
        and len(told) == PAIR
        and all(map(_is_whole, told))
    )


def _is_whole(told: object) -> bool:
    return isinstance(told, int) and not isinstance(told, bool)


def _shown(told: object) -> str:
    """The beginning of what a field holds, in one line."""
    said = repr(told)
    return said if len(said) <= SHOWN else f"{said[:SHOWN]}..."
