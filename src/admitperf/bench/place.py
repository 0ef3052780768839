"""Where a demo's logs go, and what it may replace there."""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from admitperf.core.errors import AdmitPerfError

_LONGEST_LINE = 65_536

Is = Callable[[Mapping[str, Any]], bool]
"""Whether a run line is that of a log which may be replaced."""


class DemoError(AdmitPerfError):
    """The demo's logs cannot be put where they were asked for."""


def clear(folders: Iterable[Path], ours: Is) -> None:
    """Makes empty folders for logs; those of an earlier demo go.

    Raises:
        DemoError: something in one of them is no log of a demo, and then nothing is
            removed; or a folder or file cannot be written.
    """
    folders = list(folders)
    for folder in folders:
        refuse_file(folder)
    old: list[Path] = []
    for folder in folders:
        with telling(folder):
            folder.mkdir(parents=True, exist_ok=True)
            old += sorted(folder.iterdir())
    for path in old:
        refuse_other(path, ours)
    for path in old:
        with telling(path):
            path.unlink()


def refuse_file(folder: Path) -> None:
    """Says so when a file stands where a folder is needed.

    Raises:
        DemoError: one does.
    """
    with telling(folder):
        for place in (folder, *folder.parents):
            if place.exists() and not place.is_dir():
                raise DemoError(f"{place} is a file, not a folder")


def refuse_other(path: Path, ours: Is) -> None:
    """Says so when a file is no log of a demo; an empty one may be.

    Raises:
        DemoError: it is not, or cannot be read.
    """
    with telling(path):
        if not (path.is_file() and _is(path, ours)):
            what = "is there and no log of a demo; name another folder with -o"
            raise DemoError(f"{path}: {what}")


def name_run(path: Path, name: str) -> None:
    """Replaces the run's random id and the process's, so that bytes repeat.

    Raises:
        DemoError: the log is empty.
    """
    with telling(path):
        text = path.read_text(encoding="ascii")
        if not text:
            raise DemoError(f"{path}: nothing of the log could be written")
        run = json.loads(text.partition("\n")[0])["run"]
        text = text.replace(f'"run":"{run}"', f'"run":"{name}"')
        path.write_text(text.replace(f'"pid":{os.getpid()},', '"pid":0,'), "ascii")


def _is(path: Path, ours: Is) -> bool:
    with path.open(encoding="utf-8", errors="replace") as file:
        first = file.readline(_LONGEST_LINE)
    if not first:
        return True
    try:
        return bool(ours(json.loads(first)))
    except (ValueError, TypeError, KeyError, AttributeError):
        return False


@contextmanager
def telling(path: Path) -> Iterator[None]:
    """Turns a fault of the disk, or of a path, into one line that names the path.

    Raises:
        DemoError: in its place.
    """
    try:
        yield
    except (OSError, ValueError) as error:
        why = (getattr(error, "strerror", None) or "not a path").lower()
        raise DemoError(f"{path}: {why}") from None
