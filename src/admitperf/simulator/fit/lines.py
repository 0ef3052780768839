"""A run's file as text, and the numbers in it, each fault as one line."""

import gzip
import json
import math
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from admitperf.core.errors import LogError

Fields = Mapping[str, Any]


def text_of(path: Path) -> str:
    """The text of a file, unpacked when it is packed with gzip.

    Raises:
        LogError: it cannot be read.
    """
    try:
        raw = path.read_bytes()
        if raw[:2] == b"\x1f\x8b":
            raw = gzip.decompress(raw)
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        raise LogError(f"{path}: is not UTF-8 text") from None
    except (OSError, EOFError, zlib.error) as error:
        why = getattr(error, "strerror", None) or f"cannot be unpacked: {error}"
        raise LogError(f"{path}: {why}") from None


def objects(path: Path, text: str) -> Iterator[tuple[int, Fields]]:
    """Each line's number and object; blank lines, and a torn last one, are passed over.

    Raises:
        LogError: a line is no JSON object.
    """
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        if not line.strip("\0 \t\r"):
            continue
        try:
            found = json.loads(line)
        except ValueError:
            if number == len(lines):  # no newline: its writer was cut off
                return
            raise LogError(f"{path}:{number}: is no JSON") from None
        if not isinstance(found, dict):
            raise LogError(f"{path}:{number}: is no JSON object")
        yield number, found


def number(fields: Fields, name: str, where: str) -> float:
    """A finite number of at least 0.

    Raises:
        LogError: it is absent, or something else.
    """
    value = maybe(fields, name)
    if value is None:
        raise LogError(f"{where}: {name} {fields.get(name)!r} is no number from 0 up")
    return value


def whole(fields: Fields, name: str, where: str) -> int:
    """A whole number of at least 0.

    Raises:
        LogError: it is absent, or something else.
    """
    value = number(fields, name, where)
    if value != int(value):
        raise LogError(f"{where}: {name} {value!r} is no whole number")
    return int(value)


def maybe(fields: Fields, name: str) -> float | None:
    """A finite number of at least 0; None for anything else."""
    value = fields.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if 0 <= value < math.inf else None


def count(fields: Fields, name: str) -> int | None:
    """A whole number of at least 0; None for anything else."""
    value = maybe(fields, name)
    return None if value is None or value != int(value) else int(value)
