"""Text in which marks between brackets or quotes mean nothing."""

import json
import re
from collections.abc import Iterator
from reprlib import Repr

from admitperf.core.errors import ConfigError

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|.', re.DOTALL)
_WORD = re.compile(r"[\w.:/@+-]+")
_SHOWN = Repr()
_SHOWN.maxstring = _SHOWN.maxother = 80
_SHOWN.maxlevel = 3


def pieces(text: str, marks: str) -> list[str]:
    """The parts of a text between marks that stand in no brackets and no quotes.

    Raises:
        ConfigError: the brackets or the quotes do not match.
    """
    found, begin, depth = list[str](), 0, 0
    for token, depth in _depths(text):
        if depth == 0 and token[0] in marks:
            found.append(text[begin : token.start()])
            begin = token.end()
    if depth:
        fault = f"brackets do not match, or quotes, in {shown(text)}"
        raise ConfigError("policies", [fault])
    found.append(text[begin:])
    return [one.strip() for one in found if one.strip()]


def enclosed(text: str) -> str | None:
    """What stands in the brackets or the quotes around the whole of it, if any do."""
    if text.startswith('"'):
        return _unquoted(text)
    if not text.startswith("("):
        return None
    for token, depth in _depths(text):
        if depth <= 0:
            closed = depth == 0 and token.end() == len(text)
            return text[1:-1].strip() if closed else None
    return None


def bracketed(text: str) -> str:
    """It as `enclosed` reads it: in brackets, or in quotes where those do not match."""
    try:
        pieces(text, "")
    except ConfigError:
        return json.dumps(text)
    return f"({text})" if text == text.strip() else json.dumps(text)


def quoted(name: str) -> str:
    """A name as `named` reads it: as JSON writes it, if it has a mark in it."""
    return name if _WORD.fullmatch(name) else json.dumps(name)


def named(text: str) -> str:
    """The name that somebody wrote, with or without quotes."""
    found = _unquoted(text)
    return text if found is None else found


def shown(value: object) -> str:
    """A value for a fault, whatever its size and depth."""
    return _SHOWN.repr(value)


def _unquoted(text: str) -> str | None:
    if not text.startswith('"'):
        return None
    try:
        found = json.loads(text, strict=False)
    except ValueError:
        return None
    return found if isinstance(found, str) else None


def _depths(text: str) -> Iterator[tuple[re.Match[str], int]]:
    """Its letters, with the brackets open after each; what is quoted is one.

    The last one has a depth below 0 when a bracket or a quote has no other.
    """
    depth = 0
    for token in _TOKEN.finditer(text):
        depth += (token[0] == "(") - (token[0] == ")")
        if depth < 0 or token[0] == '"':
            yield token, -1
            return
        yield token, depth
