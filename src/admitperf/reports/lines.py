"""The lines of a log, from a file, a gzip file or standard input.

Nothing a file holds raises here: a line that cannot be used comes back as a fault with
its number. Only a file that cannot be opened raises. One line is held at a time, and
never more than `LONGEST_LINE_BYTES` of it.
"""

import gzip
import io
import json
import os
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import chain
from typing import Any, BinaryIO, NamedTuple, NoReturn, cast

from admitperf.core.errors import LogError
from admitperf.reports import shape
from admitperf.reports.shape import Fields

STDIN = "-"
MOST_UNUSABLE_AT_FIRST = 100  # plain choice; more, and it is some other file
LONGEST_LINE_BYTES = 1 << 24  # plain choice; a line with 10,000 series is about 1 MB
_PIECE_BYTES = 1 << 20
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_GZIP_MAGIC = b"\x1f\x8b"


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
        with _opened(self.path) as stream:
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
            clean = piece.translate(None, b"\0") if b"\0" in piece else piece
            self.nul_bytes += len(piece) - len(clean)
            size += len(clean)
            parts = [*parts, clean] if size <= LONGEST_LINE_BYTES else []
            if piece.endswith(b"\n"):
                yield b"".join(parts) if size <= LONGEST_LINE_BYTES else None
                parts, size = [], 0
        if size:
            yield b"".join(parts) if size <= LONGEST_LINE_BYTES else None

    def _piece(self, stream: BinaryIO) -> bytes:
        try:
            return stream.readline(_PIECE_BYTES)
        except (OSError, EOFError, zlib.error) as error:
            self.cut = str(error) or type(error).__name__
            return b""


def parse(number: int, raw: bytes) -> Line:
    """A line from its bytes, with its end when it has one."""
    body = raw.removesuffix(b"\n").removesuffix(b"\r").removeprefix(_BYTE_ORDER_MARK)
    try:
        text = body.decode()
    except UnicodeDecodeError:
        text = body.decode(errors="surrogateescape")
        return Line(number, text, None, "not UTF-8")
    try:
        fields = _DECODER.decode(text)
    except _NotStrictError:
        return Line(number, text, None, "NaN or Infinity, which is not JSON")
    except (ValueError, RecursionError):
        fault = "not JSON" if raw.endswith(b"\n") else "torn: it has no end"
        return Line(number, text, None, fault)
    if not isinstance(fields, dict):
        return Line(number, text, None, "not an object")
    fault_of_shape = shape.fault(fields)
    return Line(number, text, None if fault_of_shape else fields, fault_of_shape)


class _NotStrictError(Exception):
    """A token that Python's reader takes and JSON has not."""


def _refuse(token: str) -> NoReturn:
    raise _NotStrictError(token)


_DECODER: json.JSONDecoder = json.JSONDecoder(parse_constant=_refuse)


@contextmanager
def _opened(path: str) -> Iterator[BinaryIO]:
    if path == STDIN:
        yield _plain(_stdin())
        return
    try:
        file = io.BufferedReader(io.FileIO(path), _PIECE_BYTES)
    except (OSError, ValueError) as error:
        raise LogError(f"{path}: {_why(error)}") from None
    with file:
        yield _plain(file)


def _why(error: OSError | ValueError) -> str:
    code = getattr(error, "errno", None)
    return os.strerror(code).lower() if isinstance(code, int) else str(error)


def _stdin() -> "io.BufferedReader[Any]":
    if sys.stdin is None or sys.stdin.closed:
        raise LogError("standard input is closed; name a file instead of '-'")
    raw: Any = sys.stdin.buffer
    return raw if hasattr(raw, "peek") else io.BufferedReader(raw)


def _plain(file: "io.BufferedReader[Any]") -> BinaryIO:
    """The file's own bytes, whether it is compressed or not."""
    try:
        packed = file.peek(len(_GZIP_MAGIC)).startswith(_GZIP_MAGIC)
    except OSError as error:
        raise LogError(f"{file.name}: {_why(error)}") from None
    return cast("BinaryIO", gzip.GzipFile(fileobj=file)) if packed else file
