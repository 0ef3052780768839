"""Reads whole logs: files in, tables out."""

import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from admitperf.core.errors import LogError
from admitperf.reports.files import vet, zstd
from admitperf.reports.files.discover import Found, LogSource, discover
from admitperf.reports.files.gunzip import gunzip
from admitperf.reports.runs import first_look, tables
from admitperf.reports.runs.fields import Names
from admitperf.reports.runs.first_look import Looked
from admitperf.reports.runs.store import Store, UnreadableError
from admitperf.reports.runs.tables import (
    LONGEST_BYTES,
    LONGEST_PLAIN_BYTES,
    Texts,
)
from admitperf.reports.wording import plural

MOST_FAULTS_NAMED = 5
_HEAD_BYTES = 1 << 12


@dataclass(slots=True)
class Files:
    """The files a report was made from, and what was wrong with them.

    Attributes:
        paths: those that could be read, in the order given.
        unread: for each of the others one line that says why.
        lines: lines that are not blank.
        unusable: lines that could not be used, by why.
        first: the first of them, as `path:line why`.
        notices: what was passed over without losing a record.
        cut: by path, why reading it ended before it did.
    """

    paths: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    lines: int = 0
    unusable: dict[str, int] = field(default_factory=dict)
    first: list[str] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    cut: dict[str, str] = field(default_factory=dict)

    def blame(self, path: str, cleaned: vet.Cleaned) -> None:
        """Counts the lines of a file that cannot be used."""
        for why, n in cleaned.unusable.items():
            self.unusable[why] = self.unusable.get(why, 0) + n
        room = MOST_FAULTS_NAMED - len(self.first)
        self.first += [f"{path}:{line} {why}" for line, why in cleaned.faults[:room]]


@dataclass(frozen=True, slots=True)
class Log:
    """A log in tables.

    Attributes:
        store: holds them.
        files: what was read.
        sources: the files by the number that rows carry.
        texts: where their lines are, cleaned where that was needed.
        names: the signals and facts with columns of their own.
    """

    store: Store
    files: Files
    sources: dict[int, LogSource]
    texts: Texts
    names: Names


@contextmanager
def opened(paths: Iterable[str], memory_limit: str | None = None) -> Iterator[Log]:
    """Reads the files of one log or several; their order does not matter.

    A file that cannot be opened, holds no records or is no such log is left out and
    named in `Files.unread`.

    Args:
        paths: files, plain or packed, and folders; "-" is standard input.
        memory_limit: such as "2GB"; None = `store.MEMORY_LIMIT`.

    Raises:
        LogError: none could be read; it has one argument for each, which says why.
        MissingExtra, ConfigError: as for `Store`.
    """
    with discover(paths) as found, Store(found.folder, memory_limit) as store:
        try:
            log = _Reader(store, found).read()
        except OSError as error:  # of the private folder, as on a full disk
            raise LogError(f"{found.folder}: {error.strerror or error}") from None
        yield log


class _Reader:
    """Puts files into tables, cleaned where they need it."""

    def __init__(self, store: Store, found: Found) -> None:
        self.store = store
        self.sources = dict(enumerate(found.logs))
        self.files = Files(unread=found.unread, notices=found.notices)
        self.looked = Looked()
        self.used: set[int] = set()
        self.longest_bytes = LONGEST_PLAIN_BYTES

    def read(self) -> Log:
        good = self._good([number for number in self.sources if self._place(number)])
        self.used |= good
        for number in sorted(self.sources.keys() - good):
            self._clean(number)
        try:
            self._load()
        except UnreadableError:
            # Rare, as when a file grows while it is read. Which it was is not said.
            self.used -= good
            for number in sorted(good):
                del self.looked.lines[number]
                self._clean(number)
            self._load()
        return self._log()

    def _place(self, number: int) -> bool:
        """Puts a file where the tables look for it; False when that takes cleaning."""
        source, place = self.sources[number], self._path(number)
        try:
            if source.compression is None and not _holed(source.real):
                place.symlink_to(source.real.absolute())
            elif source.compression == "gzip":
                gunzip(source.real, place)
            elif source.compression == "zstd" and vet.prescan(source) is None:
                zstd.unpack(source.real, place)
        except (OSError, EOFError, zlib.error, LogError):
            place.unlink(missing_ok=True)
        return place.exists()

    def _path(self, number: int) -> Path:
        return self.store.folder / f"{number}.jsonl"

    def _good(self, numbers: Sequence[int]) -> set[int]:
        """Those of some files of which every line is as ours are written.

        All at once, unless one of them cannot be read.
        """
        try:
            looked = self._look(numbers) if numbers else Looked()
        except UnreadableError:
            if len(numbers) == 1:
                return set()
            return set().union(*(self._good([number]) for number in numbers))
        good = {one for one in numbers if looked.lines[one]} - looked.odd
        for number in set(numbers) - good:
            del looked.lines[number]
        self.looked.add(looked)
        return good

    def _clean(self, number: int) -> None:
        """Puts a cleaned copy in the place of a file, unless it holds no record."""
        source = self.sources[number]
        try:
            cleaned = vet.clean(source, self.store.folder)
        except LogError as error:
            self.files.unread.append(str(error))
            return
        if not cleaned.used:
            self.files.unread.append(_no_records(source.path, cleaned))
            return
        place = self._path(number)
        place.unlink(missing_ok=True)
        cleaned.path.rename(place)
        self.used.add(number)
        self.files.lines += cleaned.lines - cleaned.used
        self.files.blame(source.path, cleaned)
        self.files.notices += cleaned.notices
        if cleaned.cut:
            self.files.cut[source.path] = cleaned.cut
        self.looked.add(self._look_at_copy(number))

    def _look_at_copy(self, number: int) -> Looked:
        try:
            return self._look([number], cleaned=True)
        except UnreadableError:  # a line longer than most are
            self.longest_bytes = LONGEST_BYTES
            return self._look([number], cleaned=True)

    def _look(self, numbers: Sequence[int], *, cleaned: bool = False) -> Looked:
        texts = Texts(numbers, self.longest_bytes)
        return first_look.look(self.store, texts, cleaned=cleaned)

    @property
    def _texts(self) -> Texts:
        return Texts(sorted(self.used), self.longest_bytes)

    def _load(self) -> None:
        if not self.used:
            raise LogError(*(self.files.unread or ["no log files"]))
        tables.load(self.store, self._texts, self.looked.names)

    def _log(self) -> Log:
        self.files.paths = [self.sources[one].path for one in self._texts.numbers]
        self.files.lines += self.looked.lines.total()
        return Log(self.store, self.files, self.sources, self._texts, self.looked.names)


def _holed(path: Path) -> bool:
    """Whether a file begins with a hole, which may be long: no line to look at."""
    with path.open("rb") as file:
        return b"\0" in file.read(_HEAD_BYTES)


def _no_records(path: str, cleaned: vet.Cleaned) -> str:
    first = "; ".join(f"line {line}: {why}" for line, why in cleaned.faults[:1])
    why = cleaned.cut or first
    if cleaned.lines:
        number = plural(cleaned.lines, "line")
        why = f"none of {number} is one of an AdmitPerf log ({why})"
    return f"{path}: no records" + (f": {why}" if why else "")
