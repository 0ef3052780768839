"""Reads whole logs: files in, runs out."""

import os
from collections.abc import Iterable
from dataclasses import dataclass, field

from admitperf.core.errors import LogError
from admitperf.reports.lines import STDIN, Line, LogFile
from admitperf.reports.run import Run, runs
from admitperf.reports.tally import Tally
from admitperf.reports.wording import plural

MOST_FAULTS_NAMED = 5


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
    """

    paths: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    lines: int = 0
    unusable: dict[str, int] = field(default_factory=dict)
    first: list[str] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)

    def blame(self, path: str, line: Line) -> None:
        """Counts a line that cannot be used."""
        why = line.fault or ""
        self.unusable[why] = self.unusable.get(why, 0) + 1
        if len(self.first) < MOST_FAULTS_NAMED:
            self.first.append(f"{path}:{line.number} {line.fault}")


def read(paths: Iterable[str]) -> tuple[list[Run], Files]:
    """Reads the files of one log or several; their order does not matter.

    A file that cannot be opened, holds no records or is no such log is left out and
    named in `Files.unread`.

    Raises:
        LogError: none could be read; it has one argument for each, which says why.
    """
    tallies: dict[str, Tally] = {}
    files = Files()
    for path in _distinct(paths, files):
        try:
            _read(path, tallies, files)
        except LogError as error:
            files.unread.append(str(error))
    if not files.paths and files.unread:
        raise LogError(*files.unread)
    return runs(tallies.values()), files


def _distinct(paths: Iterable[str], files: Files) -> list[str]:
    """The paths without those that name a file a second time."""
    kept: dict[str, str] = {}
    for path in paths:
        real = path if path == STDIN else _real(path)
        if real in kept:
            files.notices.append(f"{path} is {kept[real]}: read once")
        kept.setdefault(real, path)
    return list(kept.values())


def _real(path: str) -> str:
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):  # no path at all, or the working folder is gone
        return path


def _read(path: str, tallies: dict[str, Tally], files: Files) -> None:
    log, used, first_fault = LogFile(path), 0, ""
    lines_before = files.lines
    for line in log:
        files.lines += 1
        if line.fields is None:
            first_fault = first_fault or f"line {line.number}: {line.fault}"
            files.blame(path, line)
        else:
            used += 1
            _tally(line.fields["run"], tallies).add(line.fields)
    if not used:
        why = log.cut or first_fault
        raise LogError(_no_records(path, files.lines - lines_before, why))
    files.paths.append(path)
    _notice(log, files)


def _tally(run: str, tallies: dict[str, Tally]) -> Tally:
    if run not in tallies:
        tallies[run] = Tally(run)
    return tallies[run]


def _notice(log: LogFile, files: Files) -> None:
    if log.nul_bytes:
        found = plural(log.nul_bytes, "NUL byte")
        files.notices.append(f"{log.path}: {found} passed over")
    if log.cut:
        files.notices.append(f"{log.path}: ends early: {log.cut}")


def _no_records(path: str, lines: int, why: str) -> str:
    if lines:
        why = f"none of {plural(lines, 'line')} is one of an AdmitPerf log ({why})"
    return f"{path}: no records" + (f": {why}" if why else "")
