"""A run's file as text, and the objects in it, each fault as one line."""

import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path

from admitperf.core.errors import LogError
from admitperf.simulator.fit.vetted import Fields, Vetted, shown


def text_of(path: Path) -> str:
    """The text of a file, unpacked when it is packed with gzip.

    Raises:
        LogError: it cannot be read.
    """
    try:
        raw = path.read_bytes()
        if raw[:2] == b"\x1f\x8b":
            raw = gzip.decompress(raw)
        return raw.decode("utf-8-sig")  # a mark of the order of bytes is no text
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
            found = parsed(line)
        except ValueError:
            if number == len(lines):  # no newline: its writer was cut off
                return
            raise LogError(f"{place(path, number)}: is no JSON") from None
        if not isinstance(found, dict):
            raise LogError(f"{place(path, number)}: is no JSON object")
        yield number, found


def parsed(text: str) -> object:
    """The JSON of a text.

    Raises:
        ValueError: it is none; also when it is nested too deeply, or has a number of
            thousands of digits.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("is nested too deeply") from None


def place(path: Path, number: int) -> str:
    """A file and a line in it, for a message."""
    return f"{path}, line {number}"


def once(seen: dict[str, str], name: str, told: Vetted, field: str = "id") -> None:
    """Takes note of the id of a request, and of where it stands.

    Raises:
        LogError: another one has it.
    """
    if name in seen:
        told.refuse(field, f"{shown(name)} is on another line too: {seen[name]}")
    seen[name] = told.where
