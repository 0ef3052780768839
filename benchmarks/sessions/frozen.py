"""The parameters of every arm, as the screen chose them and before any final run.

They stand in `frozen.json`, which `python -m benchmarks.sessions screen --write` makes.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.sessions.arms import Choice

FILE = Path(__file__).with_name("frozen.json")


def chosen(arm: str) -> Choice:
    """The one parameter set of an arm, `arm:metric` where it is tuned for each.

    Raises:
        KeyError: nothing was chosen for it.
    """
    return Choice(**_read()["arms"][arm])


def chosen_in(arm: str, engine: str, client: str, load: float) -> Choice:
    """What an arm that is tuned in each cell has in one, as `arm:metric`.

    Raises:
        KeyError: nothing was chosen for it there.
    """
    return Choice(**_read()["cells"][f"{engine}/{client}/{load:g}"][arm])


def write(arms: dict[str, Choice], cells: dict[str, dict[str, Choice]]) -> None:
    """Keeps what was chosen."""
    plain: dict[str, Any] = {
        "arms": {name: one._asdict() for name, one in sorted(arms.items())},
        "cells": {
            cell: {name: one._asdict() for name, one in sorted(some.items())}
            for cell, some in sorted(cells.items())
        },
    }
    FILE.write_text(json.dumps(plain, indent=2) + "\n")
    _read.cache_clear()


@cache
def _read() -> dict[str, Any]:
    read: dict[str, Any] = json.loads(FILE.read_text())
    return read
