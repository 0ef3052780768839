"""The parts of answers that are read, and how bytes become them.

Every shape is a dataclass whose fields may all be missing. msgspec fills one in a
single pass where it is installed; where it is not, or finds a value of a wrong type,
`json` does, and a wrong value is then as good as missing. Both read the same.
"""

import dataclasses
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from importlib import import_module
from operator import or_
from types import ModuleType, UnionType
from typing import Any, Generic, TypeVar, cast, get_args, get_origin, get_type_hints

T = TypeVar("T")
Fit = Callable[[object], object]


@dataclass(slots=True)
class Something:
    """An object of which nobody reads more than that it is there."""


Saying = str | list[Something] | None
"""Text, or parts of it; engines send both."""


@dataclass(slots=True)
class InputDetails:
    """What is known of a prompt's tokens."""

    cached_tokens: int | None = None


@dataclass(slots=True)
class Usage:
    """Tokens, by the names of all dialects."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: InputDetails | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    input_tokens_details: InputDetails | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None


@dataclass(slots=True)
class Timings:
    """What llama.cpp adds; `cache_n` are prompt tokens found in its cache."""

    cache_n: int | None = None


@dataclass(slots=True)
class Function:
    """A call's name and arguments, or a piece of them."""

    name: str | None = None
    arguments: str | None = None


@dataclass(slots=True)
class ToolCall:
    """One call, or a piece of it."""

    function: Function | None = None
    custom: Something | None = None


@dataclass(slots=True)
class Audio:
    """Speech, or a piece of it."""

    data: str | None = None
    transcript: str | None = None


@dataclass(slots=True)
class Message:
    """A chat message, or a delta of one; reasoning has two names in the field."""

    content: Saying = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    tool_calls: list[ToolCall] | None = None
    function_call: Function | None = None
    audio: Audio | None = None


@dataclass(slots=True)
class Choice:
    """One of `n` answers. `token_ids` are vLLM's, when asked for."""

    index: int = 0
    delta: Message | None = None
    finish_reason: str | None = None
    text: str | None = None
    message: Message | None = None
    token_ids: list[int] | None = None


@dataclass(slots=True)
class Completion:
    """A chunk or a body of completions, chat completions and embeddings.

    `object` is "error" where an engine sends an error that is not in `error`.
    """

    object: str | None = None
    choices: list[Choice] | None = None
    usage: Usage | None = None
    error: Something | str | None = None
    timings: Timings | None = None
    data: list[Something] | None = None


@dataclass(slots=True)
class Incomplete:
    """Why a response is not complete."""

    reason: str | None = None


@dataclass(slots=True)
class Item:
    """One output item of a response; `type` says which kind."""

    type: str | None = None
    content: list[Something] | None = None


@dataclass(slots=True)
class Response:
    """The response object of the Responses API."""

    status: str | None = None
    usage: Usage | None = None
    incomplete_details: Incomplete | None = None
    output: list[Item] | None = None
    error: Something | str | None = None


@dataclass(slots=True)
class ResponseEvent:
    """An event of the Responses API."""

    type: str | None = None
    delta: str | None = None
    response: Response | None = None
    item: Item | None = None
    error: Something | str | None = None


@dataclass(slots=True)
class Block:
    """A content block of a message, or a delta of one."""

    type: str | None = None
    text: str | None = None
    thinking: str | None = None
    partial_json: str | None = None
    stop_reason: str | None = None


@dataclass(slots=True)
class AnthropicMessage:
    """A message of the Messages API."""

    type: str | None = None
    content: list[Block] | None = None
    stop_reason: str | None = None
    usage: Usage | None = None
    error: Something | str | None = None


@dataclass(slots=True)
class AnthropicEvent:
    """An event of the Messages API."""

    type: str | None = None
    delta: Block | None = None
    content_block: Block | None = None
    message: AnthropicMessage | None = None
    usage: Usage | None = None
    error: Something | str | None = None


class Reader(Generic[T]):
    """Reads one shape.

    Args:
        shape: a dataclass of this module.
        fast: whether to use msgspec where it is installed.
    """

    def __init__(self, shape: type[T], *, fast: bool = True) -> None:
        self._fit = _fit_shape(shape)
        self._fast = _decoder(shape) if fast else None

    def read(self, data: bytes) -> T | None:
        """The shape; None = this is no JSON object."""
        if self._fast is not None:
            try:
                return self._fast(data)
            except (ValueError, RecursionError):
                pass  # msgspec is strict about the whole; `json` may still make sense
        try:
            told = json.loads(data.decode(errors="replace"))
        except (ValueError, RecursionError):
            return None
        return cast("T | None", self._fit(told))


def _decoder(shape: type[T]) -> Callable[[bytes], T] | None:
    try:
        msgspec = import_module("msgspec")
    except ImportError:
        return None
    return cast(
        "Callable[[bytes], T]", msgspec.json.Decoder(_struct(msgspec, shape)).decode
    )


def _struct(msgspec: ModuleType, wanted: Any) -> Any:  # noqa: ANN401  types of types
    """The type with msgspec's structs for dataclasses: filled ten times as fast."""
    if dataclasses.is_dataclass(wanted):
        hints = get_type_hints(wanted)
        fields = [
            (field.name, _struct(msgspec, hints[field.name]), field.default)
            for field in dataclasses.fields(wanted)
        ]
        return msgspec.defstruct(getattr(wanted, "__name__", ""), fields, gc=False)
    if get_origin(wanted) is list:
        return list[_struct(msgspec, get_args(wanted)[0])]  # type: ignore[misc]
    if get_origin(wanted) is UnionType:
        return reduce(or_, [_struct(msgspec, each) for each in get_args(wanted)])
    return wanted


def _fitting(wanted: Any) -> Fit:  # noqa: ANN401  types of types
    """Makes a value that type; None where it is none."""
    if dataclasses.is_dataclass(wanted):
        return _fit_shape(wanted)
    if get_origin(wanted) is list:
        return _fit_list(_fitting(get_args(wanted)[0]))
    if get_origin(wanted) is UnionType:
        return _fit_first([_fitting(each) for each in get_args(wanted)])
    return lambda value: value if type(value) is wanted else None


def _fit_first(fits: list[Fit]) -> Fit:
    def fit(value: object) -> object:
        return next(
            (found for each in fits if (found := each(value)) is not None), None
        )

    return fit


def _fit_list(each: Fit) -> Fit:
    def fit(value: object) -> object:
        if not isinstance(value, list):
            return None
        return [found for one in value if (found := each(one)) is not None]

    return fit


def _fit_shape(shape: Any) -> Fit:  # noqa: ANN401  types of types
    fits = {name: _fitting(hint) for name, hint in get_type_hints(shape).items()}

    def fit(value: object) -> object:
        if not isinstance(value, dict):
            return None
        made = shape()
        for name in fits.keys() & value.keys():
            found = fits[name](value[name])
            if found is not None:
                setattr(made, name, found)
        return made

    return fit
