"""What a run folder says about its run."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from admitperf.core.errors import LogError
from admitperf.reports.files.forms import is_stated
from admitperf.reports.files.opening import why

NAME = "manifest.json"
_LARGEST_BYTES = 1 << 20  # plain choice: facts about a run are a page


def manifest_beside(log: Path) -> Mapping[str, Any] | None:
    """What the `manifest.json` in a log's folder says; None when there is none.

    Raises:
        LogError: it is there and cannot be used.
    """
    path = log.parent / NAME
    try:
        with path.open("rb") as file:
            text = file.read(_LARGEST_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise LogError(f"{path}: left out: {why(error)}") from None
    try:
        stated: Any = json.loads(text) if len(text) <= _LARGEST_BYTES else None
    except (ValueError, RecursionError):
        stated = None
    if not is_stated(stated):
        raise LogError(f"{path}: left out: not a JSON object of plain values")
    facts: Mapping[str, Any] = stated
    return facts
