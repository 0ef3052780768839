"""What the events and bodies of each dialect say.

A reader takes one of them, notes in `Answer` what stays known, and says what kind of
output it carried.
"""

from collections.abc import Callable, Mapping
from functools import partial

from admitperf.gateway.answers import Dialect
from admitperf.gateway.watching.events import Event
from admitperf.gateway.watching.shapes import (
    AnthropicEvent,
    AnthropicMessage,
    Block,
    Choice,
    Completion,
    Function,
    Item,
    Message,
    Reader,
    Response,
    ResponseEvent,
    Usage,
)

ABORTED = frozenset({"abort", "error"})
"""Finish reasons of an answer that did not end properly. Origin: vLLM and SGLang."""

NONE, OTHER, TEXT = 0, 1, 2
"""What an event carried: nothing generated, something, or text to be shown. Plain
numbers, since members of an enum are slow to get at."""

_ENDS = frozenset(
    {
        "response.completed",
        "response.incomplete",
        "response.failed",
        "response.cancelled",
    }
)
"""Events that end a stream of the Responses API. Origin: openai-python 3.57."""

_LATER = frozenset({"queued", "in_progress"})
"""A response that says so promises the work for later, as its caller asked."""

_GENERATED = ("tool_use", "redacted_thinking")
"""Blocks of the Messages API that carry output from their start: the name of a tool
has been generated, and so has what is redacted."""

_MOST = 1 << 53
"""Largest count that survives a reader with 64-bit floats, digit by digit."""


class Answer:
    """What one answer has said so far. None = not said.

    Attributes:
        finish_reason: why it ended; of several choices, one that did not end properly.
        input_tokens: of the prompt, those found in the cache included.
        cached_tokens, output_tokens: as the engine counts them.
        ended: its end was seen.
        error: the event or body that was an error.
    """

    __slots__ = (
        "_finished", "_open", "cached_tokens", "ended", "error", "finish_reason",
        "input_tokens", "output_tokens",
    )  # fmt: skip

    def __init__(self) -> None:
        self.finish_reason: str | None = None
        self.input_tokens: int | None = None
        self.cached_tokens: int | None = None
        self.output_tokens: int | None = None
        self.ended = False
        self.error: bytes | None = None
        self._open: set[int] = set()
        self._finished: set[int] = set()

    def fail(self, data: bytes) -> None:
        """This event or body is an error; the first one counts."""
        if self.error is None:
            self.error = data

    @property
    def finished(self) -> bool:
        """Whether every choice that began gave its reason to end."""
        return bool(self._finished) and self._open <= self._finished

    def goes_on(self, index: int) -> None:
        """A choice of this number exists."""
        self._open.add(index)

    def finish(self, reason: str, index: int | None = None) -> None:
        """It, or this choice of it, ended."""
        if index is not None:
            self._finished.add(index)
        if self.finish_reason not in ABORTED:
            self.finish_reason = reason

    def used(
        self, prompt: int | None, cached: int | None, output: int | None = None
    ) -> None:
        """The engine counted; what it does not say stays as it was."""
        if _counts(prompt):
            self.input_tokens = prompt
        if _counts(cached):
            self.cached_tokens = cached
        if _counts(output):
            self.output_tokens = output


Read = Callable[[bytes, Answer], int]


def event_reader(dialect: Dialect) -> Callable[[Event, Answer], int]:
    """Reads events of a stream in this dialect."""
    return partial(_event, _EVENTS[dialect])


def body_reader(dialect: Dialect) -> Read:
    """Reads whole bodies in this dialect; `ended` says whether it was one."""
    return _BODIES[dialect]


def _event(read: Read, event: Event, answer: Answer) -> int:
    if event.data.startswith(b"[DONE]"):
        answer.ended = True
        return NONE
    if event.name == b"error":
        answer.fail(event.data)
        return NONE
    return read(event.data, answer)


def _completion(
    reader: Reader[Completion], data: bytes, answer: Answer, *, whole: bool = False
) -> int:
    said = reader.read(data)
    if said is None:
        return NONE
    output = OTHER if said.data else NONE
    for choice in said.choices or ():
        output = max(output, _choice(choice, answer))
    if said.usage is not None:
        _usage(said.usage, answer)
    if said.timings is not None:
        answer.used(None, said.timings.cache_n)
    if said.error or said.object == "error":
        answer.fail(data)
    answer.ended |= whole
    return output


def _choice(choice: Choice, answer: Answer) -> int:
    if choice.finish_reason:  # some engines send an empty one until the end
        answer.finish(choice.finish_reason, choice.index)
    else:
        answer.goes_on(choice.index)
    message = choice.delta or choice.message
    if choice.text or (message is not None and message.content):
        return TEXT
    if choice.token_ids or (message is not None and _generates(message)):
        return OTHER
    return NONE


def _generates(message: Message) -> bool:
    """Whether a message without content carries anything that was generated."""
    return bool(
        message.reasoning_content
        or message.reasoning
        or message.refusal
        or any(
            call.custom or _called(call.function) for call in message.tool_calls or ()
        )
        or _called(message.function_call)
        or (message.audio and (message.audio.data or message.audio.transcript))
    )


def _called(function: Function | None) -> bool:
    """Whether a call carries a name or arguments: both are generated."""
    return function is not None and bool(function.name or function.arguments)


def _usage(usage: Usage, answer: Answer) -> None:
    details = usage.prompt_tokens_details or usage.input_tokens_details
    cached = details.cached_tokens if details is not None else None
    prompt = usage.prompt_tokens
    output = usage.completion_tokens
    answer.used(
        usage.input_tokens if prompt is None else prompt,
        cached,
        usage.output_tokens if output is None else output,
    )


def _response_event(reader: Reader[ResponseEvent], data: bytes, answer: Answer) -> int:
    said = reader.read(data)
    if said is None:
        return NONE
    kind = said.type or ""
    if kind.endswith(".delta"):
        return _delta(kind, said.delta)
    if kind == "response.output_item.added":
        return _item(said.item)
    if kind == "error" or said.error:
        answer.fail(data)
    if said.response is not None and kind in _ENDS:
        _response(said.response, data, answer)
    return NONE


def _item(item: Item | None) -> int:
    """A new item: of a call, the name has been generated."""
    called = item is not None and item.type is not None and item.type.endswith("_call")
    return OTHER if called else NONE


def _delta(kind: str, delta: str | None) -> int:
    if not delta:
        return NONE
    return TEXT if kind == "response.output_text.delta" else OTHER


def _response(response: Response, data: bytes, answer: Answer) -> int:
    """A response that is complete, or never will be."""
    answer.ended = True
    if response.usage is not None:
        _usage(response.usage, answer)
    if response.error or response.status == "failed":
        answer.fail(data)
    why = response.incomplete_details and response.incomplete_details.reason
    # The one reason that has another name in the other dialects.
    reason = "length" if why == "max_output_tokens" else why or response.status
    if reason is not None:
        answer.finish(reason)
    return _items(response)


def _items(response: Response) -> int:
    if response.status in _LATER:
        return OTHER
    items = response.output or ()
    if any(item.type == "message" and item.content for item in items):
        return TEXT
    return OTHER if any(i.type != "message" for i in items) else NONE


def _response_body(reader: Reader[Response], data: bytes, answer: Answer) -> int:
    said = reader.read(data)
    return NONE if said is None else _response(said, data, answer)


def _anthropic_event(
    reader: Reader[AnthropicEvent], data: bytes, answer: Answer
) -> int:
    said = reader.read(data)
    if said is None:
        return NONE
    match said.type:
        case "content_block_delta" if said.delta is not None:
            return _block(said.delta)
        case "content_block_start" if said.content_block is not None:
            return _block(said.content_block)
        case "message_stop":
            answer.ended = True
        case _:
            _anthropic_rest(said, data, answer)
    return NONE


def _anthropic_rest(said: AnthropicEvent, data: bytes, answer: Answer) -> None:
    if said.type == "error" or said.error:
        answer.fail(data)
    if said.message is not None and said.message.usage is not None:
        # Tokens of output in the first event are none that anybody has seen.
        _anthropic_usage(said.message.usage, None, answer)
    if said.usage is not None:
        _anthropic_usage(said.usage, said.usage.output_tokens, answer)
    if said.delta is not None and said.delta.stop_reason:
        answer.finish(said.delta.stop_reason)


def _block(block: Block) -> int:
    if block.text:
        return TEXT
    called = block.type is not None and block.type.endswith(_GENERATED)
    generated = called or block.thinking or block.partial_json
    return OTHER if generated else NONE


def _anthropic_usage(usage: Usage, output: int | None, answer: Answer) -> None:
    cached = usage.cache_read_input_tokens
    prompt = usage.input_tokens
    if prompt is not None:
        prompt += (cached or 0) + (usage.cache_creation_input_tokens or 0)
    answer.used(prompt, cached, output)


def _anthropic_body(
    reader: Reader[AnthropicMessage], data: bytes, answer: Answer
) -> int:
    said = reader.read(data)
    if said is None:
        return NONE
    answer.ended = True
    if said.type == "error" or said.error:
        answer.fail(data)
    if said.usage is not None:
        _anthropic_usage(said.usage, said.usage.output_tokens, answer)
    if said.stop_reason:
        answer.finish(said.stop_reason)
    return max(map(_block, said.content or ()), default=NONE)


def _counts(tokens: int | None) -> bool:
    return tokens is not None and 0 <= tokens < _MOST


_COMPLETION = Reader(Completion)
_EVENTS: Mapping[Dialect, Read] = {
    "openai": partial(_completion, _COMPLETION),
    "responses": partial(_response_event, Reader(ResponseEvent)),
    "anthropic": partial(_anthropic_event, Reader(AnthropicEvent)),
}
_BODIES: Mapping[Dialect, Read] = {
    "openai": partial(_completion, _COMPLETION, whole=True),
    "responses": partial(_response_body, Reader(Response)),
    "anthropic": partial(_anthropic_body, Reader(AnthropicMessage)),
}
