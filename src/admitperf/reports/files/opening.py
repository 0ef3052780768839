"""Opens what a log is kept in: a file, plain or gzip, or standard input."""

import gzip
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, Literal, cast

from admitperf.core.errors import LogError

Compression = Literal["gzip", "zstd"]

STDIN = "-"
BUFFER_BYTES = 1 << 20  # plain choice
_MAGIC: dict[bytes, Compression] = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
_MAGIC_BYTES = max(map(len, _MAGIC))


@contextmanager
def opened(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """The bytes of a file, unpacked when they are gzip; "-" is standard input.

    Raises:
        LogError: it cannot be opened, or needs to be unpacked first.
    """
    with raw(path) as file:
        try:
            packed = compression(file)
        except OSError as error:
            raise LogError(f"{path}: {why(error)}") from None
        if packed == "zstd":
            raise LogError(f"{path}: packed with zstd; unpack it with zstd -d")
        yield gzip.GzipFile(fileobj=file) if packed else file  # type: ignore[misc]


@contextmanager
def raw(path: str | os.PathLike[str]) -> "Iterator[io.BufferedReader[Any]]":
    """The bytes of a file or of standard input, as they are.

    Raises:
        LogError: it cannot be opened.
    """
    if path == STDIN:
        yield _stdin()
        return
    try:
        file = io.BufferedReader(io.FileIO(path), BUFFER_BYTES)
    except (OSError, ValueError) as error:
        raise LogError(f"{path}: {why(error)}") from None
    with file:
        yield file


def compression(file: "io.BufferedReader[Any]") -> Compression | None:
    """How the bytes that come next are packed; None when they are not."""
    head = file.peek(_MAGIC_BYTES)
    names = (name for magic, name in _MAGIC.items() if head.startswith(magic))
    return next(names, None)


def why(error: OSError | ValueError) -> str:
    """What went wrong, without the path."""
    code = getattr(error, "errno", None)
    return os.strerror(code).lower() if isinstance(code, int) else str(error)


def _stdin() -> "io.BufferedReader[Any]":
    if sys.stdin is None or sys.stdin.closed:
        raise LogError("standard input is closed; name a file instead of '-'")
    stream: Any = sys.stdin.buffer
    if not hasattr(stream, "peek"):
        stream = io.BufferedReader(stream)
    return cast("io.BufferedReader[Any]", stream)
