"""Whether the logs that a file names can be written."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from admitperf.core.settings import Settings
from admitperf.gateway.setup import PoolSetup

_IDENTITY = ("log", "experiment", "run")
"""Settings that say where a log goes."""


def faults(pool: PoolSetup, path: str) -> Iterator[str]:
    """Why a pool's log cannot be written, with its path in the file.

    Args:
        pool: what was told.
        path: where it stands, such as `pools[1]`.
    """
    told: dict[str, Any] = {
        name: pool.settings[name] for name in _IDENTITY if name in pool.settings
    }
    place = Settings(**told).path(pool.policy)
    why = unwritable(place) if isinstance(place, str) else None
    if why is not None:
        yield f"{path}.log.path = {place!r} {why}"


def unwritable(place: str) -> str | None:
    """Why no log can be written at a path; None = it can. Nothing is made."""
    if "\0" in place:
        return "cannot be made: it holds a null character"
    file = Path(place).absolute()
    try:
        there = next(one for one in (file, *file.parents) if one.exists())
        folder = there.is_dir()
    except OSError as error:
        return f"cannot be made: {(error.strerror or str(error)).lower()}"
    if there == file and folder:
        return "is a directory"
    if there != file and not folder:
        return f"cannot be made: {there} is no directory"
    if os.access(there, os.W_OK | (os.X_OK if folder else 0)):
        return None
    return "may not be written" if there == file else f"may not be made in {there}"
