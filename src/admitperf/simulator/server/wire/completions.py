"""Answers of `/v1/completions`."""

from collections.abc import Sequence
from typing import Any

from admitperf.simulator.server.ask import Ask
from admitperf.simulator.server.part import Part
from admitperf.simulator.server.refusal import Refusal
from admitperf.simulator.server.wire.form import (
    DONE,
    FINGERPRINT,
    Form,
    Fragments,
    Head,
    data,
    refused_openai,
)
from admitperf.simulator.server.words import Tape

_DETAILS = {"created_cache_tokens": None, "multimodal_tokens": None}


class Completions(Form):
    """A completion: text, with one choice for each prompt."""

    def __init__(self, head: Head, ask: Ask, parts: Sequence[Part], tape: Tape) -> None:
        super().__init__(head, ask, parts, tape)
        self._cut: dict[int, Fragments] = {}

    def token(self, part: Part, place: int) -> bytes:
        """The event with a token; the last one says why it is the last."""
        last = place == part.length - 1
        if last or self.ask.running_usage or self.ask.with_ids:
            return data(self._chunk(part, place, last=last))
        return self._fragments(part).filled(self.word(part, place))

    def _fragments(self, part: Part) -> Fragments:
        if part.index not in self._cut:
            chunk = self._chunk(part, 0, last=False)
            chunk["choices"][0]["text"] = Fragments.HOLE
            self._cut[part.index] = Fragments(data(chunk))
        return self._cut[part.index]

    def _chunk(self, part: Part, place: int, *, last: bool) -> dict[str, Any]:
        choice: dict[str, Any] = {
            "index": part.index,
            "text": self.word(part, place).decode(),
            "logprobs": None,
            "finish_reason": part.finish if last else None,
            "stop_reason": None,
            "prompt_token_ids": None,
            "token_ids": None,
        }
        if self.ask.with_ids:
            choice["prompt_token_ids"] = None if place else _ids(part)
            choice["token_ids"] = self.tape.ids(part.start + place, 1)
        chunk = {**self._head(), "choices": [choice]}
        if self.ask.running_usage:
            chunk["usage"] = self._running(part, place + 1)
        done = all(other.given >= other.length for other in self.parts)
        if last and done and not self.ask.usage:
            chunk["system_fingerprint"] = FINGERPRINT
        return chunk

    @staticmethod
    def _running(part: Part, given: int) -> dict[str, int]:
        return {
            "prompt_tokens": part.tokens,
            "total_tokens": part.tokens + given,
            "completion_tokens": given,
        }

    def closing(self) -> Sequence[bytes]:
        """What was used, if that was asked for, and the end."""
        if not self.ask.usage:
            return (DONE,)
        used = {**self._head(), "choices": [], "usage": self.usage({})}
        return data({**used, "system_fingerprint": FINGERPRINT}), DONE

    def refused(self, refusal: Refusal) -> Sequence[bytes]:
        """One event with the error, and the end."""
        return refused_openai(refusal)

    def whole(self) -> dict[str, Any]:
        """All choices, and what was used."""
        return {
            **self._head(),
            "choices": [self._choice(part) for part in self.parts],
            "service_tier": None,
            "system_fingerprint": FINGERPRINT,
            "usage": {**self.usage(_DETAILS), "completion_tokens_details": None},
            "kv_transfer_params": None,
            "ec_transfer_params": None,
            "metrics": None,
        }

    def _choice(self, part: Part) -> dict[str, Any]:
        ids = self.tape.ids(part.start, part.length) if self.ask.with_ids else None
        return {
            "index": part.index,
            "text": self.text(part),
            "logprobs": None,
            "finish_reason": part.finish,
            "stop_reason": None,
            "token_ids": ids,
            "prompt_logprobs": None,
            "prompt_token_ids": _ids(part) if self.ask.with_ids else None,
            "routed_experts": None,
        }

    def _head(self) -> dict[str, Any]:
        return {
            "id": f"cmpl-{self.head.id}",
            "object": "text_completion",
            "created": self.head.created,
            "model": self.head.model,
        }


def _ids(part: Part) -> tuple[int, ...] | None:
    """The prompt's ids; None = it was text, which is never turned into ids here."""
    return part.prompt if isinstance(part.prompt, tuple) else None
