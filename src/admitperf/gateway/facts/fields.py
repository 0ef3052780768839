"""The fields of a request body that are facts, read in one pass and without a tree.

msgspec reads them where it is installed: it skips everything else, base64 images
included. It gives a body up when one field has a wrong type, or half a character that
a client cut in two, or is written as only Python reads it: with `NaN`, a byte order
mark, in UTF-16. Such a body, and every body where msgspec is missing, is read by
`json`, which leaves out what is wrong and keeps the rest. Both end in the same fields.

Engines read with `json`, so what it takes must not be unreadable here: a caller could
choose to have no sizes and no model. Of a body that would make too many objects only
the members at the top are read.
"""

import json
import math
from collections.abc import Callable
from typing import Any, TypeVar

from admitperf.gateway.facts.skim import members

try:
    from msgspec import DecodeError, Raw, Struct
    from msgspec.json import Decoder
except ImportError:  # inside a host that does not bring it

    class Struct:  # type: ignore[no-redef]
        """A plain class, where msgspec has a faster one."""

        def __init_subclass__(cls, *, gc: bool) -> None:
            """Takes what msgspec's takes."""

    Raw = bytes  # type: ignore[assignment, misc]
    Decoder = None  # type: ignore[assignment, misc]

T = TypeVar("T")
ABSENT = Raw(b"")

_OBJECTS_MOST = 1 << 18
"""Commas and opening brackets of a body that is read whole: each can make an object.
Plain choice: a few tens of MB and a tenth of a second; 2 MB of dense text have less."""

_TREE_BYTES_MOST = 16 << 20
"""Largest body that `json` reads whole. Plain choice: its text can take four times as
much, twice."""

_MEMBERS_MOST = 10_000
"""Members of one object that `parse_top` looks at. Plain choice: a fifth of a second at
worst, and a body has some twenty."""

_SLICE = 1 << 20
_SEPARATORS = (b",", b"{", b"[")


class TooManyError(Exception):
    """Reading the body whole would build too much."""


class Source(Struct, gc=False):
    """What an Anthropic image or document is; `data`, as JSON, is text or base64."""

    type: str | None = None
    data: Raw = ABSENT


class Part(Struct, gc=False):
    """A message, a part of one, a tool call, an item: they nest in each other.

    `arguments` and `input` are JSON as it was sent.
    """

    type: str | None = None
    content: "Content" = None
    text: str | None = None
    thinking: str | None = None
    name: str | None = None
    arguments: Raw = ABSENT
    input: Raw = ABSENT
    output: "Content" = None
    summary: "Content" = None
    function: "Content" = None
    tool_calls: "Content" = None
    source: Source | None = None


Content = str | list[str | int | list[int] | Part] | Part | None


class Metadata(Struct, gc=False):
    """Anthropic's `metadata`."""

    user_id: str | None = None


class Hints(Struct, gc=False):
    """Dynamo's `nvext.agent_hints`."""

    priority: int | float | None = None
    osl: int | float | None = None


class Nvext(Struct, gc=False):
    """Dynamo's `nvext`."""

    agent_hints: Hints | None = None


class Fields(Struct, gc=False):
    """A body of any of the judged paths; None or `ABSENT` = absent or wrong."""

    model: str | None = None
    stream: bool | None = None
    max_tokens: int | float | None = None
    max_completion_tokens: int | float | None = None
    max_output_tokens: int | float | None = None
    n: int | float | None = None
    prompt: Content = None
    input: Content = None
    messages: Content = None
    system: Content = None
    instructions: Content = None
    tools: Raw = ABSENT
    functions: Raw = ABSENT
    priority: int | float | None = None
    service_tier: str | None = None
    prompt_cache_key: str | None = None
    safety_identifier: str | None = None
    user: str | None = None
    metadata: Metadata | None = None
    nvext: Nvext | None = None


def parse(body: bytes) -> Fields:
    """Reads a body.

    Raises:
        ValueError: it is no JSON object.
        TooManyError: only `parse_top` may read it.
        RecursionError: so it is, since it nests too deeply.
    """
    if len(body) > _OBJECTS_MOST and _many(body):
        raise TooManyError
    if _DECODER is not None:
        try:
            return _DECODER.decode(body)
        except DecodeError:
            pass
    if len(body) > _TREE_BYTES_MOST:
        raise TooManyError
    return parse_by_json(body)


def _many(body: bytes) -> bool:
    found = 0
    for at in range(0, len(body), _SLICE):
        found += sum(body.count(mark, at, at + _SLICE) for mark in _SEPARATORS)
        if found > _OBJECTS_MOST:
            return True
    return False


def parse_by_json(body: bytes) -> Fields:
    """As `parse`, with the standard library; a field of a wrong type is left out."""
    tree = _loads(body.decode(json.detect_encoding(body), "surrogatepass"))
    if not isinstance(tree, dict):
        raise ValueError("a body is a JSON object")  # noqa: TRY004  one kind of error
    return _filled(Fields, tree)


def _loads(text: str) -> object:
    """As `json.loads`, but what is no finite number is None."""
    return json.loads(text, parse_constant=_unknown, parse_float=_finite)


def _unknown(_text: str) -> None:
    return None


def _finite(text: str) -> float | None:
    number = float(text)
    return number if math.isfinite(number) else None


def parse_top(body: bytes) -> tuple[Fields, dict[str, memoryview], int]:
    """Reads the names and numbers at the top of a body of any size, and no text.

    Returns:
        The fields; as it was sent, what of `PROMPTS` is there; how many bytes come
        after so many members that they were not looked at.

    Raises:
        ValueError: it is no JSON object.
    """
    whole = _utf8(body)
    found, unread_bytes = _places(whole, Fields)
    tree = {
        name: _value(whole[begin:end], Fields, name)
        for name, (begin, end) in found.items()
        if name not in PROMPTS
    }
    prompts = {
        name: memoryview(whole)[slice(*found[name])]
        for name in PROMPTS
        if name in found
    }
    return _filled(Fields, tree), prompts, unread_bytes


def _utf8(body: bytes) -> bytes:
    encoding = json.detect_encoding(body)
    if encoding == "utf-8":
        return body
    return body.decode(encoding, "surrogatepass").encode("utf-8", "surrogatepass")


def _places(body: bytes, shape: type) -> tuple[dict[str, tuple[int, int]], int]:
    """Where members of this shape are, the last of a name; bytes not looked at."""
    found = {}
    for rank, (name, begin, end) in enumerate(members(body), start=1):
        if name in _READERS[shape]:
            found[name] = (begin, end)
        if rank == _MEMBERS_MOST:
            return found, len(body) - end
    return found, 0


def _value(raw: bytes, shape: type, name: str) -> object:
    """A member's value, with nothing in it that its shape does not have."""
    inner = _INNER.get((shape, name))
    if raw[:1] == b"{" and inner is not None:
        return {
            each: _value(raw[begin:end], inner, each)
            for each, (begin, end) in _places(raw, inner)[0].items()
        }
    if raw[:1] in (b"{", b"["):
        return None
    return _loads(raw.decode("utf-8", "surrogatepass"))


def _filled(shape: type[T], tree: dict[str, object]) -> T:
    filled = shape()
    for name, read in _READERS[shape].items():
        value = tree.get(name)
        if value is not None:
            setattr(filled, name, read(value))
    return filled


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _flag(value: object) -> bool | None:
    return value if isinstance(value, bool) else None


def _number(value: object) -> int | float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value


def _raw(value: object) -> bytes:
    written = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return written.encode("utf-8", "surrogatepass")


def _shape(shape: type[T]) -> Callable[[object], T | None]:
    return lambda value: _filled(shape, value) if isinstance(value, dict) else None


def _content(value: object) -> Content:
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return _filled(Part, value)
    if not isinstance(value, list):
        return None
    items = (_item(item) for item in value)
    return [item for item in items if item is not None]


def _item(value: object) -> str | int | list[int] | Part | None:
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return _filled(Part, value)
    if isinstance(value, list):
        return [item for item in map(_token, value) if item is not None]
    return _token(value)


def _token(value: object) -> int | None:
    number = _number(value)
    return int(number) if number is not None and number == int(number) else None


_READERS: dict[type, dict[str, Callable[[Any], object]]] = {
    Source: {"type": _text, "data": _raw},
    Part: {
        **dict.fromkeys(("type", "text", "thinking", "name"), _text),
        **dict.fromkeys(("arguments", "input"), _raw),
        **dict.fromkeys(
            ("content", "output", "summary", "function", "tool_calls"), _content
        ),
        "source": _shape(Source),
    },
    Metadata: {"user_id": _text},
    Hints: {"priority": _number, "osl": _number},
    Nvext: {"agent_hints": _shape(Hints)},
    Fields: {
        "model": _text,
        "stream": _flag,
        **dict.fromkeys(
            ("max_tokens", "max_completion_tokens", "max_output_tokens"), _number
        ),
        **dict.fromkeys(("n", "priority"), _number),
        **dict.fromkeys(
            ("prompt", "input", "messages", "system", "instructions"), _content
        ),
        **dict.fromkeys(("tools", "functions"), _raw),
        **dict.fromkeys(
            ("service_tier", "prompt_cache_key", "safety_identifier", "user"), _text
        ),
        "metadata": _shape(Metadata),
        "nvext": _shape(Nvext),
    },
}

PROMPTS = (
    "prompt",
    "input",
    "messages",
    "system",
    "instructions",
    "tools",
    "functions",
)
"""Members that the model reads."""

_INNER: dict[tuple[type, str], type] = {
    (Fields, "metadata"): Metadata,
    (Fields, "nvext"): Nvext,
    (Nvext, "agent_hints"): Hints,
}

_DECODER = None if Decoder is None else Decoder(Fields)
