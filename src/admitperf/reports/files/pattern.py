r"""Parts of a pattern that recognises JSON of known types, in RE2's language.

They tell types apart in text that a JSON reader takes anyway: whether it is well-formed
is that reader's word. So `[{,]` may stand where only one of the two can, which halves a
pattern, and `\\.` need not be looked into. What a lenient reader takes and strict JSON
has not, `NaN` or a comma before a bracket, matches nothing here.

The patterns mean the same in Python's `re`.
"""

import re
from collections.abc import Iterable, Mapping
from itertools import pairwise

TEXT = r'"(?:[^"\\]|\\["\\/bfnrtu])*"'
FLAG = "(?:true|false)"
COUNT = "[0-9]{1,18}"
"""A whole number from 0 that 63 bits hold; those of 19 digits are left to Python."""

NUMBER = (
    r"-?[0-9]{1,19}(?:\.[0-9]+)?"
    r"(?:[eE](?:-[0-9]+|\+?(?:1?[0-9]{1,2}|2[0-8][0-9])))?"
)
"""A number below 1e308, so never one that becomes infinite; some below are left out."""

_SPACE = " ?"
_NAME_CHARACTERS = "".join(chr(code) for code in range(ord("#"), ord("~") + 1)).replace(
    "\\", ""
)


def either(*patterns: str) -> str:
    """Any one of the patterns."""
    return patterns[0] if len(patterns) == 1 else f"(?:{'|'.join(patterns)})"


def or_null(pattern: str) -> str:
    """The pattern, or `null`."""
    return either(pattern, "null")


def list_of(pattern: str) -> str:
    """A list whose items match."""
    return rf"(?:[\[,]{_SPACE}{pattern})*\[?\]"


def tuple_of(patterns: Iterable[str]) -> str:
    """A list of exactly these items."""
    return rf"\[{f',{_SPACE}'.join(patterns)}\]"


def object_of(pattern: str) -> str:
    """An object whose values match."""
    return _object(f"{TEXT}:{_SPACE}{pattern}")


def object_with(fields: Mapping[str, str], others: str) -> str:
    """An object whose fields of these names match, and every other value `others`."""
    return _object(members(fields, others, fields))


def anything(depth: int) -> str:
    """Any value that is nested at most so deep; every number in it is finite."""
    simple = (TEXT, NUMBER, "true", "false", "null")
    if depth == 0:
        return either(*simple)
    inner = rf"(?:{TEXT}:{_SPACE})?{anything(depth - 1)}"
    return either(*simple, rf"(?:[\[{{,]{_SPACE}{inner})*[\[{{]?[\]}}]")


def members(fields: Mapping[str, str], others: str, known: Iterable[str]) -> str:
    """One member of an object.

    Args:
        fields: what the value of each name must match.
        others: what the values of all names must match that are not known.
        known: the known names.
    """
    names: dict[str, list[str]] = {}
    for name, pattern in fields.items():
        names.setdefault(pattern, []).append(name)
    return either(
        *(f'"{either(*same)}":{_SPACE}{pattern}' for pattern, same in names.items()),
        f'"{_other_than(known)}":{_SPACE}{others}',
    )


def _object(member: str) -> str:
    return rf"(?:[{{,]{_SPACE}{member})*\{{?\}}"


def _other_than(names: Iterable[str]) -> str:
    """A name that at some character leaves every one of the names.

    RE2 has no look-ahead. A name that only begins one of them, or goes on behind one,
    is left out too.
    """
    return f"{_leaving(names)}[{_class(_NAME_CHARACTERS)}]*"


def _leaving(names: Iterable[str]) -> str:
    heads: dict[str, list[str]] = {}
    for name in names:
        if name:
            heads.setdefault(name[0], []).append(name[1:])
    free = "".join(c for c in _NAME_CHARACTERS if c not in heads)
    inner = (re.escape(head) + _leaving(rest) for head, rest in sorted(heads.items()))
    return either(f"[{_class(free)}]", *inner)


def _class(characters: str) -> str:
    """The inside of a character class, in ranges."""
    return "".join(
        f"{re.escape(run[0])}-{re.escape(run[-1])}" for run in _runs(characters)
    )


def _runs(characters: str) -> list[str]:
    """Cut where the codes do not follow each other."""
    runs = [characters[:1]]
    for last, character in pairwise(characters):
        if ord(character) == ord(last) + 1:
            runs[-1] += character
        else:
            runs.append(character)
    return runs
