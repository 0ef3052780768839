"""The fields of a request body that are facts, read in one pass and without a tree.

msgspec reads them where it is installed: it skips everything else, base64 images
included. It gives a body up when one field has a wrong type, or half a character that
a client cut in two; such a body, and every body where msgspec is missing, is read by
`json`, which leaves out what is wrong and keeps the rest. Both end in the same fields.
"""

import json
import math
from collections.abc import Callable
from typing import Any, TypeVar

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
        ValueError: it is no JSON object, or a number in it is out of range.
        RecursionError: it nests too deeply.
    """
    if _DECODER is None:
        return parse_by_json(body)
    try:
        return _DECODER.decode(body)
    except DecodeError:
        return parse_by_json(body)


def parse_by_json(body: bytes) -> Fields:
    """As `parse`, with the standard library; a field of a wrong type is left out."""
    tree = json.loads(body.decode(), parse_constant=_no_number, parse_float=_finite)
    if not isinstance(tree, dict):
        raise ValueError("a body is a JSON object")  # noqa: TRY004  one kind of error
    return _filled(Fields, tree)


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is no number in JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("a number is out of range")
    return number


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

_DECODER = None if Decoder is None else Decoder(Fields)
