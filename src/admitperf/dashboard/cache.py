"""What was read from logs, kept until they change.

An entry is a folder: `document.json`, and `decisions.parquet` where rows are browsed.
Its name is made of what the logs are (path, size, time) and of how they were read, so
an entry is never stale; one that is damaged is made again.
"""

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from admitperf._version import __version__
from admitperf.reports.runs.store import UnreadableError

MOST_BYTES = 2 << 30
"""Plain choice: of all entries together; the ones used longest ago go first."""

VARIABLE = "ADMITPERF_CACHE"
"""Names another folder than the user's own."""

_END_BYTES = 1 << 16
DOCUMENT, DECISIONS = "document.json", "decisions.parquet"

Document = dict[str, Any]


def folder() -> Path:
    """Where entries are kept."""
    own = os.environ.get(VARIABLE)
    if own:
        return Path(own)
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        return Path(base or Path.home() / ".cache") / "admitperf"
    except RuntimeError:  # a user without a home: nothing is kept
        return Path(os.devnull) / "admitperf"


def key(paths: Iterable[Path], how: object) -> str:
    """The name of an entry.

    Args:
        paths: every file that is read.
        how: whatever else changes what comes out, as plain values.
    """
    said = [__version__, how, [_state(path) for path in paths]]
    return hashlib.sha256(json.dumps(said, default=str).encode()).hexdigest()[:32]


def _state(path: Path) -> tuple[str, int, int]:
    try:
        found = path.stat()
    except OSError:  # it has gone since it was found
        return str(path.absolute()), -1, 0
    return str(path.absolute()), found.st_size, found.st_mtime_ns


def read(name: str) -> Document | None:
    """The document of an entry; None when there is none, or it is not as written."""
    place = folder() / name
    try:
        seal, _, text = (place / DOCUMENT).read_text(encoding="utf-8").partition("\n")
        os.utime(place)
        if seal != _seal(text, place / DECISIONS):
            return None
        held: Document = json.loads(text)
    except (OSError, ValueError):
        return None
    return held


def decisions(name: str) -> Path | None:
    """The rows of an entry that was read; None when it has none."""
    path = folder() / name / DECISIONS
    return path if path.is_file() else None


def write(name: str, made: Document, rows: Callable[[Path], None] | None) -> bool:
    """Keeps an entry; whole, or not at all.

    Args:
        name: of `key`.
        made: the document.
        rows: writes the Parquet file; None = the entry has none.

    Returns:
        Whether it is kept: not on a full disk, nor where nothing may be written.
    """
    root = folder()
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        new = Path(tempfile.mkdtemp(prefix=".new-", dir=root))
    except OSError:
        return False
    try:
        if rows is not None:
            rows(new / DECISIONS)
        text = json.dumps(made)
        sealed = f"{_seal(text, new / DECISIONS)}\n{text}"
        (new / DOCUMENT).write_text(sealed, encoding="utf-8")
        shutil.rmtree(root / name, ignore_errors=True)
        new.rename(root / name)
    except (OSError, UnreadableError):
        shutil.rmtree(new, ignore_errors=True)
        return (root / name / DOCUMENT).is_file()
    _tidy(root, keep=name)
    return True


def _seal(text: str, rows: Path) -> str:
    """What tells an entry that was written whole from one that was damaged since.

    Of the rows their ends are looked at: a file cut short or grown has other ones.
    """
    seal = hashlib.sha256(text.encode())
    if rows.is_file():
        with rows.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(size - _END_BYTES, 0))
            seal.update(f"{size}".encode() + file.read())
    return seal.hexdigest()


def _tidy(root: Path, keep: str) -> None:
    """Removes what was used longest ago, until the rest is small enough."""
    entries = sorted(_entries(root), key=lambda one: one[0], reverse=True)
    total = 0
    for _, size, place in entries:
        total += size
        if total > MOST_BYTES and place.name != keep:
            shutil.rmtree(place, ignore_errors=True)


def _entries(root: Path) -> Iterable[tuple[float, int, Path]]:
    for place in root.iterdir():
        try:
            size = sum(one.stat().st_size for one in place.iterdir())
            yield place.stat().st_mtime, size, place
        except OSError:
            continue
