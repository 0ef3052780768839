"""Conversations as one text: what a chat template would make of them."""

import json
from collections.abc import Iterable
from typing import Any

_TEXTS = {"text", "input_text", "output_text"}


def conversation(head: Iterable[Any], messages: Iterable[dict[str, Any]]) -> str:
    """A conversation, up to where the answer begins.

    Args:
        head: what stands before the messages, such as descriptions of tools.
        messages: each with `role` and `content`, and perhaps more that counts.
    """
    parts = [f"<|tools|>\n{said(part)}\n" for part in head]
    parts += [_turn(message) for message in messages]
    return "".join((*parts, "<|assistant|>\n"))


def _turn(message: dict[str, Any]) -> str:
    role = message.get("role") or message.get("type") or "user"
    rest = {k: v for k, v in message.items() if k not in _KNOWN and v is not None}
    more = _plain(rest) if rest else ""
    return f"<|{role}|>\n{said(message.get('content'))}{more}\n"


# What a message consists of; an id is no text, and `status` is the server's own word.
_KNOWN = frozenset({"role", "content", "type", "id", "status", "phase", "refusal"})


def said(content: object) -> str:
    """The text of a message's content; what is no text counts as the JSON it is."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(said(part) for part in content)
    if isinstance(content, dict):
        kind = content.get("type")
        if isinstance(kind, str) and kind in _TEXTS:
            return said(content.get("text"))
        return _plain({k: v for k, v in content.items() if k != "cache_control"})
    return _plain(content)


def _plain(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
