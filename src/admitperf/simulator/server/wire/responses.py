"""Answers of OpenAI's `/v1/responses`."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from admitperf.simulator.server.part import Part
from admitperf.simulator.server.refusal import Refusal
from admitperf.simulator.server.wire.form import Form, Fragments, named

_AFTER_NUMBER = b',"type":"response.output_text.delta"}\n\n'
_BEFORE_FIRST_TOKEN = 4  # events: created, in progress, item, part of it


class Responses(Form):
    """A response: items of output, of which there is one message."""

    def opening(self) -> Sequence[bytes]:
        """That it was taken in, and is being worked on; before the engine sees it."""
        state = self._response("in_progress", [], None)
        return tuple(
            named(kind, {"response": state, "sequence_number": place, "type": kind})
            for place, kind in enumerate(("response.created", "response.in_progress"))
        )

    def begun(self, part: Part) -> Sequence[bytes]:  # noqa: ARG002
        """The message without its content, and the beginning of that."""
        item = self._item("in_progress", [])
        return (
            self._event("output_item.added", 2, item=item),
            self._event(
                "content_part.added",
                3,
                content_index=0,
                item_id=self._item_id,
                part=self._text("", []),
            ),
        )

    def token(self, part: Part, place: int) -> bytes:
        """The event with a token; each has its number."""
        number = b"%d" % (_BEFORE_FIRST_TOKEN + place)
        return self._delta.filled(self.word(part, place)) + number + _AFTER_NUMBER

    @cached_property
    def _delta(self) -> Fragments:
        event = self._event(
            "output_text.delta",
            0,
            content_index=0,
            delta=Fragments.HOLE,
            item_id=self._item_id,
            logprobs=[],
        )
        return Fragments(event.removesuffix(b"0" + _AFTER_NUMBER))

    def closing(self) -> Sequence[bytes]:
        """The content, the message and the response, each whole."""
        answer = self.parts[0]
        number, text = _BEFORE_FIRST_TOKEN + answer.length, self.text(answer)
        where: dict[str, Any] = {"content_index": 0, "item_id": self._item_id}
        part = self._text(text)
        item = self._item("completed", [part])
        kind = "response.completed"
        last = {"response": self.whole(), "sequence_number": number + 3, "type": kind}
        return (
            self._event("output_text.done", number, **where, logprobs=[], text=text),
            self._event("content_part.done", number + 1, **where, part=part),
            self._event("output_item.done", number + 2, item=item),
            named(kind, last),
        )

    def refused(self, refusal: Refusal) -> Sequence[bytes]:  # noqa: ARG002
        """Nothing more: vLLM's stream breaks off after its opening."""
        return ()

    def whole(self) -> dict[str, Any]:
        """The response with all that was answered and used."""
        part = self.parts[0]
        item = self._item("completed", [self._text(self.text(part))])
        status = "incomplete" if part.finish == "length" else "completed"
        return self._response(status, [item], self._used(part))

    @staticmethod
    def _used(part: Part) -> dict[str, Any]:
        return {
            "input_tokens": part.tokens,
            "input_tokens_details": {
                "cached_tokens": part.cached,
                "cache_write_tokens": 0,
                "input_tokens_per_turn": [],
                "cached_tokens_per_turn": [],
            },
            "output_tokens": part.given,
            "output_tokens_details": {
                "reasoning_tokens": 0,
                "tool_output_tokens": 0,
                "output_tokens_per_turn": [],
                "tool_output_tokens_per_turn": [],
            },
            "total_tokens": part.tokens + part.given,
        }

    @property
    def _item_id(self) -> str:
        return f"msg_{self.head.id}"

    def _item(self, status: str, content: list[Any]) -> dict[str, Any]:
        return {
            "id": self._item_id,
            "content": content,
            "role": "assistant",
            "status": status,
            "type": "message",
            "phase": None,
        }

    @staticmethod
    def _text(text: str, logprobs: list[Any] | None = None) -> dict[str, Any]:
        return {
            "annotations": [],
            "text": text,
            "type": "output_text",
            "logprobs": logprobs,
        }

    @staticmethod
    def _event(kind: str, number: int, **fields: Any) -> bytes:  # noqa: ANN401
        name = f"response.{kind}"
        event = {"output_index": 0, "sequence_number": number, "type": name}
        return named(name, dict(sorted({**fields, **event}.items())))

    def _response(
        self, status: str, output: list[Any], usage: dict[str, Any] | None
    ) -> dict[str, Any]:
        echoed = self.ask.echoed
        cut = {"reason": "max_output_tokens"} if status == "incomplete" else None
        response = {
            "id": f"resp_{self.head.id}",
            "created_at": self.head.created,
            "incomplete_details": cut,
            "instructions": echoed["instructions"],
            "metadata": echoed["metadata"],
            "model": self.head.model,
            "object": "response",
            "output": output,
            "parallel_tool_calls": True,
            "temperature": echoed["temperature"],
            "tool_choice": echoed["tool_choice"],
            "tools": echoed["tools"],
            "top_p": echoed["top_p"],
            "background": False,
            "max_output_tokens": self._most(),
            "max_tool_calls": None,
            "previous_response_id": None,
            "prompt": None,
            "reasoning": None,
            "service_tier": "auto",
            "status": status,
        }
        return {**response, **_REST, "usage": usage, "user": echoed["user"], **_LAST}

    def _most(self) -> int:
        """What was asked for; else what the model had room for."""
        asked: int | None = self.ask.echoed["max_output_tokens"]
        return self.ask.most or 0 if asked is None else asked


_REST = {"text": None, "top_logprobs": None, "truncation": "disabled"}
_LAST = {
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "kv_transfer_params": None,
    "ec_transfer_params": None,
    "input_messages": None,
    "output_messages": None,
}
