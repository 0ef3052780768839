"""Packed with zstd: whether a file is whole, and its lines.

Python has no zstd before 3.14, so DuckDB unpacks it. A file that was cut short is read
up to there without a word, so the frames are walked first, block by block, which needs
no unpacking (RFC 8878, section 3.1).
"""

import os
from contextlib import closing
from pathlib import Path
from typing import BinaryIO

from admitperf.core.errors import LogError
from admitperf.reports.extra import needed

_FRAME = b"\x28\xb5\x2f\xfd"
_SKIPPABLE = 0x184D2A50  # the last 4 bits are free
_SKIPPABLE_BITS = ~0xF
_HAS_CHECKSUM = 1 << 2
_ONE_SEGMENT = 1 << 5
_DICTIONARY_BYTES = (0, 1, 2, 4)
_SIZE_BYTES = (0, 2, 4, 8)
_LAST_BLOCK = 1
_RUN_LENGTH_BLOCK = 1
_LONGEST_LINE_BYTES = 1 << 25  # twice what is read of a line: a longer one raises

_COPY = """
COPY (
    SELECT line FROM read_csv(
        $path, compression = 'zstd', columns = {'line': 'VARCHAR'},
        delim = '\x01\x02\x03', quote = '', escape = '', comment = '', nullstr = '\x02',
        header = false, auto_detect = false, strict_mode = false, new_line = '\\n',
        max_line_size = $longest
    )
) TO $to (FORMAT csv, HEADER false, DELIMITER '\x01', QUOTE '', ESCAPE '')
"""
"""One column of text: the marks between columns and for null stand in no JSON."""


def is_whole(file: BinaryIO) -> bool:
    """Whether every frame of a file stands in it to its end.

    Args:
        file: at its first byte; must be seekable.
    """
    end = os.fstat(file.fileno()).st_size
    try:
        while file.tell() < end:
            _skip_frame(file)
    except EOFError:
        return False
    return file.tell() == end


def unpack(path: Path, to: Path) -> None:
    """Writes the lines of a packed file, without blank ones, to a plain one.

    Raises:
        LogError: it cannot be unpacked; the text says why, without the path.
    """
    duckdb = needed("duckdb")
    values = {"path": str(path), "to": str(to), "longest": _LONGEST_LINE_BYTES}
    with closing(duckdb.connect()) as database:
        database.execute("SET threads = 1")  # lines come in order, few at a time
        database.execute("SET enable_progress_bar = false")  # or it is in our output
        try:
            database.execute(_COPY, values)
        except duckdb.Error as error:
            why = str(error).partition("\n")[0]
            raise LogError(f"{why}; unpack it with zstd -d") from None


def _skip_frame(file: BinaryIO) -> None:
    """Goes behind one frame.

    Raises:
        EOFError: it is cut short, or is none.
    """
    magic = _read(file, 4)
    if int.from_bytes(magic, "little") & _SKIPPABLE_BITS == _SKIPPABLE:
        file.seek(_number(file, 4), os.SEEK_CUR)
        return
    if magic != _FRAME:
        raise EOFError
    descriptor = _number(file, 1)
    _read(file, _header_bytes(descriptor))
    last = False
    while not last:
        block = _number(file, 3)
        last = bool(block & _LAST_BLOCK)
        size = 1 if block >> 1 & 3 == _RUN_LENGTH_BLOCK else block >> 3
        file.seek(size, os.SEEK_CUR)
    _read(file, 4 if descriptor & _HAS_CHECKSUM else 0)


def _header_bytes(descriptor: int) -> int:
    """How much of a frame's header comes behind its descriptor."""
    one_segment = bool(descriptor & _ONE_SEGMENT)
    size = _SIZE_BYTES[descriptor >> 6] or int(one_segment)
    return (not one_segment) + _DICTIONARY_BYTES[descriptor & 3] + size


def _number(file: BinaryIO, size: int) -> int:
    return int.from_bytes(_read(file, size), "little")


def _read(file: BinaryIO, size: int) -> bytes:
    found = file.read(size)
    if len(found) < size:
        raise EOFError
    return found
