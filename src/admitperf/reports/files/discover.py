"""Finds the files of logs: in folders, rotated sets, packed files, standard input."""

import os
import re
import stat
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from admitperf.core.errors import LogError
from admitperf.reports.files.manifest import manifest_beside
from admitperf.reports.files.opening import STDIN, Compression, compression, raw, why

_LOG_NAME = re.compile(r".+\.jsonl(\.\d+)?(\.gz|\.zst)?|[^.]+\.(gz|zst)", re.DOTALL)
_NAMES = "*.jsonl, *.jsonl.N, *.gz, *.zst"
_PATTERN_MARKS = re.compile(r"[*?\[\]{}]")


@dataclass(frozen=True, slots=True)
class LogSource:
    """One file to read.

    Attributes:
        path: as the person named it, or as it was found; "-" is standard input.
        real: where its bytes are, as a path that is no pattern; for "-" and pipes a
            file in the private folder.
        compression: how it is packed, told by its bytes, never by its name; None = not.
        manifest: what the run folder's `manifest.json` says; None when there is none.
    """

    path: str
    real: Path
    compression: Compression | None = None
    manifest: Mapping[str, Any] | None = None


@dataclass(slots=True)
class Found:
    """The files behind some paths. Leave its `with` block to remove temporary files.

    Attributes:
        logs: what can be read, in the order given; a folder's files in order of name.
        unread: for each path that cannot be read one line that says why.
        notices: what was passed over without losing a record, as sentences.
    """

    logs: tuple[LogSource, ...] = ()
    unread: list[str] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    _temporary: tempfile.TemporaryDirectory[str] | None = None

    @property
    def folder(self) -> Path:
        """A private folder, made when it is first asked for, removed at the end."""
        if self._temporary is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="admitperf-")
        return Path(self._temporary.name)

    def close(self) -> None:
        """Removes the temporary files."""
        if self._temporary is not None:
            self._temporary.cleanup()
            self._temporary = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def discover(paths: Iterable[str]) -> Found:
    """Finds the log files behind paths, for a `with` statement.

    A folder stands for every `*.jsonl`, `*.jsonl.N`, `*.gz` and `*.zst` in it and below
    it that is not hidden. A file that is met twice, by whatever name, is read once.
    Standard input and pipes are copied to a private file. Nothing raises for what a
    path is: `Found.unread` says it.
    """
    found = Found()
    try:
        search = _Search(found)
        for path in paths:
            search.take(path)
        found.logs = tuple(search.sources.values())
    except BaseException:
        found.close()
        raise
    return found


class _Search:
    """Takes paths one after the other.

    Attributes:
        sources: what was found, by what makes it the same file.
    """

    def __init__(self, found: Found) -> None:
        self._found = found
        self.sources: dict[object, LogSource] = {}

    def take(self, path: str) -> None:
        """Takes a file or a folder, as a person named it."""
        if path != STDIN and os.path.isdir(path):  # noqa: PTH112  "" is no folder
            self._folder(path)
        else:
            self._tried(path)

    def _folder(self, path: str) -> None:
        names = list(_log_files(path, self._found.unread))
        if not names:
            none = f"{path}: no logs in this folder ({_NAMES})"
            self._found.unread.append(none)
        for name in names:
            self._tried(name)

    def _tried(self, path: str) -> None:
        try:
            self._file(path)
        except LogError as error:
            self._found.unread.append(str(error))
        except (OSError, ValueError) as error:
            self._found.unread.append(f"{path}: {why(error)}")

    def _file(self, path: str) -> None:
        """Takes one file.

        Raises:
            LogError, OSError, ValueError: it cannot be read.
        """
        status = None if path == STDIN else os.stat(path)  # noqa: PTH116  as above
        key = (status.st_dev, status.st_ino) if status else STDIN
        if key in self.sources:
            first = self.sources[key].path
            self._found.notices.append(f"{path} is {first}: read once")
            return
        if status is None or stat.S_ISFIFO(status.st_mode):
            real = self._spooled(path)
        elif stat.S_ISREG(status.st_mode):
            real = self._plainly_named(path)
        else:
            raise LogError(f"{path}: a device or socket, not a file")
        with raw(real) as file:
            packed = compression(file)
        manifest = None if path == STDIN else self._manifest(path)
        self.sources[key] = LogSource(path, real, packed, manifest)

    def _spooled(self, path: str) -> Path:
        copy = self._found.folder / f"piped-{len(self.sources)}"
        with raw(path) as pipe, copy.open("wb") as file:
            # Not `read`: a terminal says only once that its input is over.
            file.writelines(iter(pipe.read1, b""))
        return copy

    def _plainly_named(self, path: str) -> Path:
        """A path that DuckDB does not take for a pattern of names."""
        if not _PATTERN_MARKS.search(path):
            return Path(path)
        link = self._found.folder / f"linked-{len(self.sources)}"
        link.symlink_to(Path(path).absolute())
        return link

    def _manifest(self, path: str) -> Mapping[str, Any] | None:
        try:
            return manifest_beside(Path(path))
        except LogError as error:
            self._found.notices.append(str(error))
            return None


def _log_files(folder: str, unread: list[str]) -> Iterator[str]:
    """The logs in a folder and below, in order of name; hidden ones are left out."""

    def refused(error: OSError) -> None:
        unread.append(f"{error.filename}: {why(error)}")

    for place, folders, names in os.walk(folder, onerror=refused):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if _LOG_NAME.fullmatch(name) and not name.startswith("."):
                yield os.path.join(place, name)  # noqa: PTH118  as the person began it
