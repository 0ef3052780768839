"""What a request body asks for, in numbers and names; its text is counted, not kept.

Of a body with very many parts, or that nests very deeply, only the names and numbers
at the top are read, and its text is the bytes of the members that hold the prompt: a
bound that counts names, brackets and base64 too. Large bodies are read one at a time.
"""

import re
from dataclasses import dataclass
from threading import Lock

from admitperf.core.request import bounded
from admitperf.gateway.facts.fields import (
    Content,
    Fields,
    Part,
    TooManyError,
    parse,
    parse_top,
)

_MOST = 1 << 53
"""Largest count that survives a reader with 64-bit floats."""

_KINDS = {
    "image_url": "images",
    "image": "images",
    "input_image": "images",
    "computer_screenshot": "images",
    "input_audio": "audio",
    "audio": "audio",
    "audio_url": "audio",
    "file": "files",
    "input_file": "files",
    "document": "files",
    "video_url": "files",
    "input_video": "files",
}
"""Part types that are no text. Origin: the OpenAI and Anthropic APIs; vLLM's own."""


LARGE_BYTES = 1 << 20
"""Bytes of a body over which one is read at a time. Plain choice: more than the front
door reads on its loop, which must not wait."""

_TURN = Lock()

_ID_BYTES = 4
"""Text that a token id beside text counts as. Origin: `tokens.START_BYTES`."""

_NO_IDS = re.compile(rb"[^0-9,\[\] \t\n\r]")
_SLICE = 1 << 20


@dataclass(slots=True, kw_only=True)
class Wish:
    """What one body asks for. None = not said, or not in a usable way.

    Names longer than 256 characters are cut and end in a digest.

    Attributes:
        model: name asked for.
        stream: whether events are wanted.
        max_output_tokens: bound on the answer.
        n: answers wanted.
        text_bytes: UTF-8 bytes of all prompt text, tools included.
        images, audio, files: parts that are no text.
        prompt_tokens: exact, where token ids are all that the body has.
        priority: as vLLM and LiteLLM take it: lower is served first.
        service_tier: OpenAI's.
        cache_key: `prompt_cache_key`.
        user: `safety_identifier`, else `user`, else `metadata.user_id`.
        hint_priority, hint_osl: Dynamo's `nvext.agent_hints`; the second is the
            answer's expected length in tokens.
        estimated: `text_bytes` is a bound, and what is no text was not told apart.
        readable: the body is a JSON object. If not, nothing above is known.
    """

    model: str | None = None
    stream: bool | None = None
    max_output_tokens: int | None = None
    n: int | None = None
    text_bytes: int = 0
    images: int = 0
    audio: int = 0
    files: int = 0
    prompt_tokens: int | None = None
    priority: int | None = None
    service_tier: str | None = None
    cache_key: str | None = None
    user: str | None = None
    hint_priority: int | None = None
    hint_osl: int | None = None
    estimated: bool = False
    readable: bool = True


def read_wish(body: bytes) -> Wish:
    """Reads a body of any of the judged paths. Never raises.

    A field of a wrong type is not known and spoils no other.
    """
    if len(body) <= LARGE_BYTES:
        return _read(body)
    with _TURN:
        return _read(body)


def _read(body: bytes) -> Wish:
    try:
        return _whole(body)
    except ValueError:
        return Wish(readable=False)
    except (TooManyError, RecursionError):
        pass
    try:
        return _top(body)
    except ValueError:
        return Wish(readable=False)


def _whole(body: bytes) -> Wish:
    fields = parse(body)
    wish = _named(fields)
    _measure(wish, fields)
    return wish


def _top(body: bytes) -> Wish:
    fields, prompts, unread_bytes = parse_top(body)
    wish = _named(fields)
    wish.estimated = True
    wish.text_bytes = unread_bytes
    ids = 0
    for name, raw in prompts.items():
        found = _ids(raw) if name in ("prompt", "input") else 0
        ids += found
        if not found:
            wish.text_bytes += _extent(raw)
    _count_ids(wish, ids)
    return wish


def _ids(raw: memoryview) -> int:
    """Token ids in one list, or in lists of them; 0 = it is something else."""
    commas = 0
    for at in range(0, len(raw), _SLICE):
        piece = bytes(raw[at : at + _SLICE])
        if _NO_IDS.search(piece):
            return 0
        commas += piece.count(b",")
    return commas + 1 if bytes(raw[:1]) == b"[" and commas else 0


def _extent(raw: memoryview) -> int:
    """Bytes of a text without its quotes, or of what stands in brackets; else none."""
    first = bytes(raw[:1])
    if first == b'"':
        return len(raw) - 2
    return len(raw) if first in (b"{", b"[") else 0


def _named(fields: Fields) -> Wish:
    hints = fields.nvext and fields.nvext.agent_hints
    most = fields.max_completion_tokens
    if most is None:
        most = fields.max_tokens
    return Wish(
        model=bounded(fields.model),
        stream=fields.stream,
        max_output_tokens=_count(
            fields.max_output_tokens if most is None else most, least=0
        ),
        n=_count(fields.n, least=1),
        priority=_count(fields.priority, least=-_MOST),
        service_tier=bounded(fields.service_tier),
        cache_key=bounded(fields.prompt_cache_key),
        user=bounded(_user(fields)),
        hint_priority=_count(hints.priority, least=-_MOST) if hints else None,
        hint_osl=_count(hints.osl, least=0) if hints else None,
    )


def _count(value: float | None, *, least: int) -> int | None:
    if value is None or not least <= value <= _MOST or value != int(value):
        return None
    return int(value)


def _user(fields: Fields) -> str | None:
    if fields.safety_identifier is not None:
        return fields.safety_identifier
    if fields.user is None and fields.metadata is not None:
        return fields.metadata.user_id
    return fields.user


def _measure(wish: Wish, fields: Fields) -> None:
    ids = 0
    for prompt in (fields.prompt, fields.input):
        if prompt is not None:
            ids += _content(wish, prompt)
    for content in (fields.messages, fields.system, fields.instructions):
        if content is not None:
            _content(wish, content)
    wish.text_bytes += _size(fields.tools) + _size(fields.functions)
    _count_ids(wish, ids)


def _count_ids(wish: Wish, ids: int) -> None:
    """Token ids are exact where they are all there is; else they count as text.

    Nobody knows here which field the engine will look at.
    """
    if wish.text_bytes or wish.images or wish.audio or wish.files:
        wish.text_bytes += ids * _ID_BYTES
    elif ids:
        wish.prompt_tokens = ids


def _content(wish: Wish, content: Content) -> int:
    """Adds what is in it to the counts; returns how many token ids that was."""
    if isinstance(content, str):
        wish.text_bytes += _bytes(content)
        return 0
    if isinstance(content, Part):
        _part(wish, content)
        return 0
    ids = 0
    for item in content or ():
        if isinstance(item, int):
            ids += 1
        elif isinstance(item, list) and (not item or isinstance(item[0], int)):
            ids += len(item)
        else:
            _content(wish, item)
    return ids


def _part(wish: Wish, part: Part) -> None:
    content = part.content
    if type(content) is str and part.type is part.tool_calls is part.name is None:
        wish.text_bytes += _bytes(content)  # a plain message, as most are
        return
    kind = _KINDS.get(part.type) if part.type is not None else None
    if kind is not None and not _is_text(part):
        setattr(wish, kind, getattr(wish, kind) + 1)
        return
    for text in (part.text, part.thinking, part.name):
        if text is not None:
            wish.text_bytes += _bytes(text)
    if content is not None:
        _content(wish, content)
    if part.type != "text":
        _rest(wish, part)


def _is_text(part: Part) -> bool:
    """Whether it is a document that holds its text itself, as Anthropic's may."""
    return part.source is not None and part.source.type == "text"


def _rest(wish: Wish, part: Part) -> None:
    """Calls of tools and their answers: the model reads them too."""
    wish.text_bytes += _size(part.arguments) + _size(part.input)
    if part.source is not None and _is_text(part):
        wish.text_bytes += _size(part.source.data)
    for content in (part.output, part.summary, part.function, part.tool_calls):
        if content is not None:
            _content(wish, content)


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _size(raw: object) -> int:
    """Bytes of JSON as it was sent; `null` is nothing."""
    size = len(raw)  # type: ignore[arg-type]
    return 0 if size == len(b"null") and bytes(raw) == b"null" else size  # type: ignore[call-overload]
