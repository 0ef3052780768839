"""The lines of a log, from a file, a gzip file or standard input.

Nothing a file holds raises here: a line that cannot be used comes back as a fault with
its number. Only a file that cannot be opened raises. One line is held at a time, and
never more than `LONGEST_LINE_BYTES` of it.
"""

import json
import os
import zlib
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from typing import Any, BinaryIO, NamedTuple, NoReturn

from admitperf.core.errors import LogError
from admitperf.reports.files import shape
from admitperf.reports.files.opening import BUFFER_BYTES, opened
from admitperf.reports.files.shape import Fields

MOST_UNUSABLE_AT_FIRST = 100  # plain choice; more, and it is some other file
LONGEST_LINE_BYTES = 1 << 24  # plain choice; a line with 10,000 series is about 1 MB
DEEPEST = 100  # DuckDB's JSON reader raises from 128 on
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Line(NamedTuple):
    """One line that is not blank.

    Attributes:
        number: counted from 1.
        text: as it stands in the file, without its end; bytes that are no UTF-8 are
            surrogate escapes. Empty when the line is too long to hold.
        fields: its JSON object, in the shape of its kind; None when it cannot be used.
        fault: why it cannot be used; None when it can.
    """

    number: int
    text: str
    fields: Fields | None
    fault: str | None


class LogFile:
    """One file of a log. Iterate it once; the notices are complete afterwards.

    Attributes:
        path: its path, or "-" for standard input.
        nul_bytes: how many NUL bytes were passed over. A writer that keeps its offset
            while the file is truncated leaves a hole of them.
        cut: why reading ended before the file did; None when it did not.
        status: what the system says about the file once it is open; None before, and
            when it says nothing.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.nul_bytes = 0
        self.cut: str | None = None
        self.status: os.stat_result | None = None

    def __iter__(self) -> Iterator[Line]:
        """Yields every line that is not blank.

        Raises:
            LogError: the file cannot be opened.
        """
        with opened(self.path) as stream:
            with suppress(OSError):  # what is no file of the system
                self.status = os.fstat(stream.fileno())
            for number, raw in enumerate(self._raw(stream), 1):
                if raw is None:
                    yield Line(number, "", None, "too long")
                elif raw.strip():
                    yield parse(number, raw)

    def checked(self) -> Iterator[Line]:
        """The same lines, once one of the first shows that this is a log.

        Raises:
            LogError: the file cannot be opened, holds no records, or is no such log.
        """
        lines, head = iter(self), list[Line]()
        for line in lines:
            head.append(line)
            if line.fields is not None:
                return chain(head, lines)
            if len(head) == MOST_UNUSABLE_AT_FIRST:
                break
        why = self.cut or (f"line {head[0].number}: {head[0].fault}" if head else "")
        raise LogError(f"{self.path}: no records" + (f": {why}" if why else ""))

    def _raw(self, stream: BinaryIO) -> Iterator[bytes | None]:
        """Yields whole lines with their ends; None for one that is too long."""
        parts: list[bytes] = []
        size = 0
        while piece := self._piece(stream):
            size += len(piece)
            if size <= LONGEST_LINE_BYTES:
                parts.append(piece)
            else:
                parts.clear()
            if piece.endswith(b"\n"):
                yield b"".join(parts) if size <= LONGEST_LINE_BYTES else None
                parts.clear()
                size = 0
        if size:
            yield b"".join(parts) if size <= LONGEST_LINE_BYTES else None

    def _piece(self, stream: BinaryIO) -> bytes:
        """The next line or a part of it, without NUL bytes; empty at the end."""
        try:
            while piece := stream.readline(BUFFER_BYTES):
                if b"\0" not in piece:
                    return piece
                clean = piece.translate(None, b"\0")
                self.nul_bytes += len(piece) - len(clean)
                if clean:
                    return clean
        except (OSError, EOFError, zlib.error) as error:
            self.cut = str(error) or type(error).__name__
        return b""


def parse(number: int, raw: bytes) -> Line:
    """A line from its bytes, with its end when it has one."""
    body = raw.removesuffix(b"\n").removesuffix(b"\r").removeprefix(BYTE_ORDER_MARK)
    try:
        text = body.decode()
    except UnicodeDecodeError:
        text = body.decode(errors="surrogateescape")
        return Line(number, text, None, "not UTF-8")
    try:
        fields = _decoded(text)
    except _RefusedError as error:
        return Line(number, text, None, str(error))
    except (ValueError, RecursionError):
        fault = "not JSON" if raw.endswith(b"\n") else "torn: it has no end"
        return Line(number, text, None, fault)
    if not isinstance(fields, dict):
        return Line(number, text, None, "not an object")
    found = shape.fault(fields) or _too_deep(text, fields)
    return Line(number, text, None if found else fields, found)


class _RefusedError(Exception):
    """JSON that Python's reader takes and another reads in another way, or not."""


def _refuse(token: str) -> NoReturn:
    del token
    raise _RefusedError("NaN or Infinity, which is not JSON")


def _each_once(pairs: list[tuple[str, Any]]) -> Fields:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise _RefusedError("a name that stands twice")
    return made


_DECODER = json.JSONDecoder(parse_constant=_refuse, object_pairs_hook=_each_once)


def _decoded(text: str) -> object:
    """The value that stands in a line.

    Raises:
        ValueError, RecursionError, _RefusedError: there is none.
    """
    if text.startswith("{"):  # the commonest case need not look for white space
        value, end = _DECODER.raw_decode(text)
        if end == len(text):
            return value
    return _DECODER.decode(text)


def _too_deep(text: str, fields: Fields) -> str | None:
    if text.count("[") + text.count("{") <= DEEPEST:
        return None
    level: list[object] = [fields]
    for _ in range(DEEPEST):
        level = [inner for one in level for inner in _inside(one)]
        if not level:
            return None
    return "nested too deep"


def _inside(value: object) -> list[object]:
    """The objects and lists in an object or a list."""
    inner = value.values() if isinstance(value, dict) else value
    return [one for one in inner if isinstance(one, (dict, list))]  # type: ignore[attr-defined]
