"""Answers of Anthropic's `/v1/messages`."""

from collections.abc import Sequence
from typing import Any

from admitperf.simulator.server.part import Part
from admitperf.simulator.server.refusal import ANTHROPIC_SECOND, Refusal
from admitperf.simulator.server.wire.form import Form, Fragments, named

_STOPS = {"stop": "end_turn", "length": "max_tokens"}


class Messages(Form):
    """A message: blocks of content, of which there is one."""

    _delta = Fragments(
        named(
            "content_block_delta",
            {
                "type": "content_block_delta",
                "delta": {"type": "text_delta", "text": Fragments.HOLE},
                "index": 0,
            },
        )
    )

    def begun(self, part: Part) -> Sequence[bytes]:
        """The message without its content, and the beginning of that."""
        message: dict[str, Any] = {
            **self._head(),
            "content": [],
            "model": self.head.model,
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {"input_tokens": part.tokens, "output_tokens": 0},
        }
        block = {"type": "text", "text": ""}
        start = {"type": "content_block_start", "content_block": block, "index": 0}
        return (
            named("message_start", {"type": "message_start", "message": message}),
            named("content_block_start", start),
        )

    def token(self, part: Part, place: int) -> bytes:
        """The event with a token."""
        return self._delta.filled(self.word(part, place))

    def closing(self) -> Sequence[bytes]:
        """The end of the content, why it ended and what was used, the end."""
        part = self.parts[0]
        delta = {"stop_reason": _STOPS[part.finish], "stop_sequence": None}
        end = {"type": "message_delta", "delta": delta, "usage": self._used(part)}
        stop = {"type": "content_block_stop", "index": 0}
        return (
            named("content_block_stop", stop),
            named("message_delta", end),
            named("message_stop", {"type": "message_stop"}),
        )

    def refused(self, refusal: Refusal) -> Sequence[bytes]:  # noqa: ARG002
        """One event with the error, as vLLM's, which does not say what it is."""
        error = {"type": "internal_error", "message": ANTHROPIC_SECOND}
        return (named("error", {"type": "error", "error": error}),)

    def whole(self) -> dict[str, Any]:
        """The message, and what was used."""
        part = self.parts[0]
        return {
            **self._head(),
            "content": [{"type": "text", "text": self.text(part)}],
            "model": self.head.model,
            "stop_reason": _STOPS[part.finish],
            "usage": self._used(part),
        }

    def error(self, refusal: Refusal) -> dict[str, Any]:
        """The body of an error, in Anthropic's shape."""
        return refusal.anthropic()

    def _used(self, part: Part) -> dict[str, int]:
        """What was read from the cache is not input here."""
        return {
            "input_tokens": part.tokens - part.cached,
            "output_tokens": part.given,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": part.cached,
        }

    def _head(self) -> dict[str, str]:
        return {
            "id": f"chatcmpl-{self.head.id}",
            "type": "message",
            "role": "assistant",
        }
