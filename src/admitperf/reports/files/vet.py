"""Looks at a log's bytes before DuckDB reads it, and cleans what it would misread."""

import codecs
import json
import zlib
from dataclasses import dataclass, field
from pathlib import Path

from admitperf.core.errors import LogError
from admitperf.core.record import dumps
from admitperf.reports.files.discover import LogSource
from admitperf.reports.files.lines import BYTE_ORDER_MARK, Line, LogFile
from admitperf.reports.files.opening import BUFFER_BYTES, opened, raw
from admitperf.reports.files.shape import Fields
from admitperf.reports.files.zstd import is_whole, unpack
from admitperf.reports.wording import plural

MOST_NAMED = 20
"""Faults kept with their line. Plain choice: more than a report prints."""

_CHUNK_BYTES = 1 << 21  # plain choice


@dataclass(slots=True)
class Cleaned:
    """A copy of a log that holds only lines that can be used.

    Attributes:
        path: the copy: plain UTF-8, whole lines, no blank ones. Every line loads
            without an error, and means what the original meant.
        lines: lines of the original that are not blank.
        used: lines in the copy.
        faults: the first lines that could not be used, as (line number, why).
        unusable: how many there were, by why.
        notices: what was passed over without losing a record, each beginning with the
            path.
        cut: why reading ended before the file did; None when it did not.
    """

    path: Path
    lines: int = 0
    used: int = 0
    faults: list[tuple[int, str]] = field(default_factory=list)
    unusable: dict[str, int] = field(default_factory=dict)
    notices: list[str] = field(default_factory=list)
    cut: str | None = None

    def blame(self, line: Line) -> None:
        """Counts a line that cannot be used."""
        why = line.fault or ""
        self.unusable[why] = self.unusable.get(why, 0) + 1
        if len(self.faults) < MOST_NAMED:
            self.faults.append((line.number, why))


def prescan(source: LogSource) -> str | None:
    """Why a log's bytes need cleaning before DuckDB reads them; None = none seen.

    Finds what DuckDB would pass over in silence, or read in another way: NUL bytes, a
    byte-order mark, carriage returns, text that is not UTF-8, and packed files that are
    damaged or cut short. A torn last line is no line of `grammar.LINE`, and a file that
    cannot be opened is left to `clean`, which says so.
    """
    try:
        if source.compression == "zstd":
            with raw(source.real) as packed:
                return None if is_whole(packed) else "cut short"
        with opened(source.real) as file:
            scan = _Scan()
            while chunk := file.read(_CHUNK_BYTES):
                if why := scan.look(chunk):
                    return why
            return scan.end()
    except (OSError, EOFError, zlib.error) as error:
        return f"ends early: {error}"
    except LogError:
        return None


def clean(source: LogSource, folder: Path) -> Cleaned:
    """Writes a cleaned copy of a log into `folder`.

    A line that cannot be used is left out and counted; a half of a surrogate pair is
    written as AdmitPerf writes it, as the text of its escape.

    Raises:
        LogError: it cannot be opened, or not be unpacked.
    """
    number = sum(1 for _ in folder.iterdir())
    cleaned = Cleaned(folder / f"cleaned-{number}.jsonl")
    log = LogFile(str(_unpacked(source, cleaned)))
    with cleaned.path.open("wb", buffering=BUFFER_BYTES) as copy:
        for line in log:
            cleaned.lines += 1
            if line.fields is None:
                cleaned.blame(line)
            else:
                cleaned.used += 1
                copy.write(_written(line.text, line.fields))
    cleaned.cut = cleaned.cut or log.cut
    if log.nul_bytes:
        passed = plural(log.nul_bytes, "NUL byte")
        cleaned.notices.append(f"{source.path}: {passed} passed over")
    if cleaned.cut:
        cleaned.notices.append(f"{source.path}: ends early: {cleaned.cut}")
    return cleaned


def _unpacked(source: LogSource, cleaned: Cleaned) -> Path:
    """The file itself, or what a zstd file holds."""
    if source.compression != "zstd":
        return source.real
    if prescan(source):
        cleaned.cut = "cut short"
    plain = cleaned.path.with_suffix(".unpacked")
    try:
        unpack(source.real, plain)
    except LogError as error:
        raise LogError(f"{source.path}: {error}") from None
    return plain


def _written(text: str, fields: Fields) -> bytes:
    """The line of the copy."""
    if "\\ud" in text or "\\uD" in text:
        try:
            json.dumps(fields, ensure_ascii=False).encode()
        except UnicodeEncodeError:  # half of a surrogate pair
            return dumps(fields).encode() + b"\n"
    # Between values only, where one is white space; readers of text end a line there.
    return text.replace("\r", " ").encode() + b"\n"


class _Scan:
    """Looks at the chunks of a file, one after the other."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._first = True

    def look(self, chunk: bytes) -> str | None:
        """Why a chunk needs cleaning."""
        first, self._first = self._first, False
        if first and chunk.startswith(BYTE_ORDER_MARK):
            return "a byte-order mark"
        if b"\0" in chunk:
            return "NUL bytes"
        if b"\r" in chunk:
            return "carriage returns"
        return self._decoded(chunk)

    def end(self) -> str | None:
        """Why the file as a whole needs cleaning."""
        return self._decoded(b"", final=True)

    def _decoded(self, chunk: bytes, *, final: bool = False) -> str | None:
        try:
            self._decoder.decode(chunk, final)
        except UnicodeDecodeError:
            return "not UTF-8"
        return None
