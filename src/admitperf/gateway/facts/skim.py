"""The members of a large JSON object, found without building what is in them.

A body of many small parts is cheap to send and dear to read: 60 MB of `{},` are
gigabytes of objects. Here such a body is only walked over, in pieces: strings are
skipped, brackets are counted, and between two pieces other threads get their turn.
What is inside a member is not checked: whoever decodes it sees whether it is JSON.
"""

import json
import re
from collections.abc import Iterator
from itertools import accumulate, islice

_PIECE = 1 << 16
"""Bytes walked over in one go. Plain choice: a few milliseconds at worst."""

_FIRST = 1 << 8
"""Bytes of a value's first piece; each next one is larger. Plain choice: most values
are short."""

_DEEPEST = 10_000
"""Nesting past it is no body. Origin: the deepest C recursion of any CPython, 3.12's;
`json` gives up before."""

_STRING = rb'"[^"\\]*(?:\\.[^"\\]*)*"'
_STRINGS = re.compile(_STRING, re.DOTALL)
_WHOLE = re.compile(rb'(?:[^"]+|' + _STRING + rb")*", re.DOTALL)
_INSIDE = re.compile(rb'[^"\\]*(?:\\.[^"\\]*)*', re.DOTALL)
_TO_BRACKET = re.compile(rb'(?:[^"{}\[\]]|' + _STRING + rb")*[{}\[\]]", re.DOTALL)
_SPACE = re.compile(rb"[ \t\n\r]*")
_SCALAR = re.compile(
    rb"true|false|null|NaN|-?Infinity"
    rb"|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?"
)
_STEPS = bytes.maketrans(b"{[]}", b"\x01\x01\xff\xff")
_PAIR = b"\x01\xff"
_NO_BRACKET = bytes(set(range(256)) - set(b"{}[]"))


def members(body: bytes) -> Iterator[tuple[str, int, int]]:
    """The names in a JSON object, each with where its value begins and ends.

    Args:
        body: UTF-8, without a byte order mark.

    Raises:
        ValueError: it is no object, or not a whole one.
    """
    at = _after(body, _past_space(body, 0), b"{")
    if body[at : at + 1] == b"}":
        at += 1
    else:
        more = True
        while more:
            if body[at : at + 1] != b'"':
                raise ValueError("a member has a name")
            end = _string_end(body, at)
            name = json.loads(body[at:end].decode("utf-8", "surrogatepass"))
            begin = _after(body, _past_space(body, end), b":")
            end = _value_end(body, begin)
            yield name, begin, end
            at = _past_space(body, end)
            more = body[at : at + 1] == b","
            at = _after(body, at, b"," if more else b"}")
    if at != len(body):
        raise ValueError("something comes after the object")


def _past_space(body: bytes, at: int) -> int:
    match = _SPACE.match(body, at)
    return match.end() if match else at


def _after(body: bytes, at: int, mark: bytes) -> int:
    if body[at : at + 1] != mark:
        raise ValueError(f"{mark.decode()} is missing")
    return _past_space(body, at + 1)


def _value_end(body: bytes, at: int) -> int:
    first = body[at : at + 1]
    if first == b'"':
        return _string_end(body, at)
    if first in (b"{", b"["):
        return _nested_end(body, at)
    scalar = _SCALAR.match(body, at)
    if scalar is None:
        raise ValueError("a member has a value")
    return scalar.end()


def _string_end(body: bytes, at: int) -> int:
    at += 1
    while match := _INSIDE.match(body, at, at + _PIECE):
        end = match.end()
        if body[end : end + 1] == b'"':
            return end + 1
        if end == at:
            break
        at = end
    raise ValueError("a string does not end")


def _nested_end(body: bytes, at: int) -> int:
    """Where the list or object that begins here ends; any bracket closes any."""
    depth, size = 0, _FIRST
    while match := _WHOLE.match(body, at, at + size):
        end = match.end()
        size = min(size * 4, _PIECE)
        if end == at:  # inside a string, or at the end
            at = _string_end(body, at)
            continue
        steps = _STRINGS.sub(b"", body[at:end]).translate(_STEPS, _NO_BRACKET)
        depths = _depths(steps.replace(_PAIR, b""), depth)
        if max(depths, default=0) > _DEEPEST:
            raise ValueError("it nests too deeply")
        if depth == 0 or 0 in depths:
            depths = _depths(steps, depth)
            if 0 in depths:
                return _bracket_end(body, at, end, depths.index(0))
        depth, at = depths[-1] if depths else depth, end
    raise ValueError("a list or an object does not end")


def _depths(steps: bytes, depth: int) -> list[int]:
    return list(accumulate(memoryview(steps).cast("b"), initial=depth))[1:]


def _bracket_end(body: bytes, at: int, end: int, rank: int) -> int:
    brackets = _TO_BRACKET.finditer(body, at, end)
    return next(islice(brackets, rank, None)).end()
