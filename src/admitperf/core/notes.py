"""What a run says about itself that its log cannot know."""

import sys
from collections.abc import Mapping

Note = str | float | bool | None
Notes = str | Mapping[str, Note]
"""Free text, or facts about the run by name."""


def faults(notes: object) -> list[str]:
    """Everything that is wrong with notes, in words.

    Args:
        notes: text, or a flat mapping of names to strings, finite numbers, booleans
            or None; None = no notes.
    """
    if notes is None or isinstance(notes, str):
        return []
    if not isinstance(notes, Mapping):
        return [f"notes = {notes!r} is no text and no mapping"]
    return [
        *(f"notes: {name!r} is no name" for name in notes if not _is_name(name)),
        *(
            f"notes: {name} = {value!r} is no text, finite number, boolean or None"
            for name, value in notes.items()
            if not _is_plain(value)
        ),
    ]


def _is_name(name: object) -> bool:
    return isinstance(name, str) and bool(name)


def _is_plain(value: object) -> bool:
    if value is None or isinstance(value, (str, bool)):
        return True
    return isinstance(value, (int, float)) and abs(value) <= sys.float_info.max
