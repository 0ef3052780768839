"""Text of a log made safe to show: nothing invisible, nothing endless."""

import re
from collections.abc import Mapping
from typing import Any

LONGEST = 1000
"""Plain choice, in characters: a sentence of ours is shorter, a name by far."""
_HIDDEN = re.compile(
    "[\\x00-\\x1f\\x7f-\\x9f\\ud800-\\udfff\\u061c\\u200b\\u200e\\u200f\\u2028-\\u202e"
    "\\u2060-\\u2069\\ufeff\\ufff9-\\ufffb]"
)
"""Control characters, halves of a character, and what turns the direction of text."""


def plain(value: Any) -> Any:  # noqa: ANN401  any part of a document
    """A document with every text in it, names too, as `shown` has it."""
    if isinstance(value, str):
        return shown(value)
    if isinstance(value, Mapping):
        return {shown(str(name)): plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return value


def shown(text: str) -> str:
    """The text with U+FFFD for what cannot be seen, cut when it is long."""
    clean = visible(text)
    if len(clean) <= LONGEST:
        return clean
    return f"{clean[:LONGEST]}... ({len(text)} characters)"


def visible(text: str) -> str:
    """The text, however long, with U+FFFD for what cannot be seen."""
    return _HIDDEN.sub("\ufffd", text)
