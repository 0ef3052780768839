"""Answers of `/v1/chat/completions`."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from admitperf.simulator.server.part import Part
from admitperf.simulator.server.refusal import Refusal
from admitperf.simulator.server.wire.form import (
    DONE,
    FINGERPRINT,
    Form,
    Fragments,
    data,
    refused_openai,
)


class Chat(Form):
    """A chat completion: one message of the assistant."""

    def begun(self, part: Part) -> Sequence[bytes]:  # noqa: ARG002
        """The role, in an event of its own."""
        choice = {
            "index": 0,
            "delta": {"role": "assistant", "content": ""},
            "logprobs": None,
            "finish_reason": None,
        }
        chunk = {**self._chunk(choice, 0), "prompt_token_ids": None}
        return (data({**chunk, "prompt_text": None}),)

    def token(self, part: Part, place: int) -> bytes:
        """The event with a token; the last one says why it is the last."""
        word = self.word(part, place)
        last = place == part.length - 1
        if not last and not self.ask.running_usage:
            return self._fragments.filled(word)
        ending = {"stop_reason": None} if last else {}
        choice = {
            "index": 0,
            "delta": {"content": word.decode()},
            "logprobs": None,
            "finish_reason": part.finish if last else None,
            **ending,
            "token_ids": None,
        }
        chunk = self._chunk(choice, place + 1)
        if last and not self.ask.usage:
            chunk["system_fingerprint"] = FINGERPRINT
        return data(chunk)

    @cached_property
    def _fragments(self) -> Fragments:
        choice = {
            "index": 0,
            "delta": {"content": Fragments.HOLE},
            "logprobs": None,
            "finish_reason": None,
            "token_ids": None,
        }
        return Fragments(data(self._chunk(choice, 0)))

    def _chunk(self, choice: dict[str, Any], given: int) -> dict[str, Any]:
        chunk = {**self._head("chat.completion.chunk"), "choices": [choice]}
        if self.ask.running_usage:
            tokens = self.parts[0].tokens
            chunk["usage"] = {
                "prompt_tokens": tokens,
                "total_tokens": tokens + given,
                "completion_tokens": given,
            }
        return chunk

    def closing(self) -> Sequence[bytes]:
        """What was used, if that was asked for, and the end."""
        if not self.ask.usage:
            return (DONE,)
        used = {
            **self._head("chat.completion.chunk"),
            "choices": [],
            "usage": self.usage({"created_cache_tokens": 0}),
            "system_fingerprint": FINGERPRINT,
        }
        return data(used), DONE

    def refused(self, refusal: Refusal) -> Sequence[bytes]:
        """One event with the error, and the end."""
        return refused_openai(refusal)

    def whole(self) -> dict[str, Any]:
        """The message, and what was used."""
        details = {"created_cache_tokens": 0, "multimodal_tokens": None}
        nothing = (
            "prompt_logprobs",
            "prompt_token_ids",
            "prompt_text",
            "kv_transfer_params",
            "ec_transfer_params",
            "metrics",
        )
        return {
            **self._head("chat.completion"),
            "choices": [self._choice(self.parts[0])],
            "service_tier": None,
            "system_fingerprint": FINGERPRINT,
            "usage": {**self.usage(details), "completion_tokens_details": None},
            **dict.fromkeys(nothing),
        }

    def _choice(self, part: Part) -> dict[str, Any]:
        nothing = ("refusal", "annotations", "audio", "function_call", "reasoning")
        content = {"role": "assistant", "content": self.text(part)}
        return {
            "index": 0,
            "message": {**content, **dict.fromkeys(nothing)},
            "logprobs": None,
            "finish_reason": part.finish,
            "stop_reason": None,
            "token_ids": None,
            "routed_experts": None,
        }

    def _head(self, kind: str) -> dict[str, Any]:
        return {
            "id": f"chatcmpl-{self.head.id}",
            "object": kind,
            "created": self.head.created,
            "model": self.head.model,
        }
