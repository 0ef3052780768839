"""What the four forms of an answer have in common."""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from admitperf.simulator.server.ask import Ask
from admitperf.simulator.server.part import Part
from admitperf.simulator.server.refusal import Refusal
from admitperf.simulator.server.words import Tape

FINGERPRINT = "vllm-0.32.0-simulated"
DONE = b"data: [DONE]\n\n"


def plain(value: object) -> bytes:
    """JSON without blanks, as pydantic writes it."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()


def data(value: object) -> bytes:
    """One event without a name."""
    return b"data: " + plain(value) + b"\n\n"


def named(name: str, value: object) -> bytes:
    """One event with a name."""
    return b"event: " + name.encode() + b"\n" + data(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """What all chunks of an answer carry.

    Attributes:
        id: of the answer, without its prefix.
        created: in whole seconds since the Unix epoch.
        model: the name it is served under.
    """

    id: str
    created: int
    model: str


class Form(ABC):
    """How one request is answered.

    Args:
        head: what all chunks carry.
        ask: the request.
        parts: its prompts and their answers.
        tape: the words of answers.
    """

    def __init__(self, head: Head, ask: Ask, parts: Sequence[Part], tape: Tape) -> None:
        self.head = head
        self.ask = ask
        self.parts = parts
        self.tape = tape

    def opening(self) -> Sequence[bytes]:
        """Events that come with the headers."""
        return ()

    def begun(self, part: Part) -> Sequence[bytes]:  # noqa: ARG002
        """Events that come just before a part's first token."""
        return ()

    @abstractmethod
    def token(self, part: Part, place: int) -> bytes:
        """The event with a token.

        Args:
            part: whose.
            place: of the token in its answer, from 0.
        """

    @abstractmethod
    def closing(self) -> Sequence[bytes]:
        """Events after the last token of the last part."""

    @abstractmethod
    def refused(self, refusal: Refusal) -> Sequence[bytes]:
        """What a stream says that began with 200 and gets no answer."""

    @abstractmethod
    def whole(self) -> dict[str, Any]:
        """The answer in one piece."""

    def error(self, refusal: Refusal) -> dict[str, Any]:
        """The body of an error."""
        return refusal.openai()

    def text(self, part: Part) -> str:
        """A part's answer as text."""
        return self.tape.text(part.start, part.length, bare=self.ask.bare)

    def word(self, part: Part, place: int) -> bytes:
        """One token as text."""
        return self.tape.word(part.start + place, bare=self.ask.bare and not place)

    def usage(self, details: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """What was used, as completions and chat say it.

        Args:
            details: beside `cached_tokens`; None = the details are left out.
        """
        prompt = sum(part.tokens for part in self.parts)
        answer = sum(part.given for part in self.parts)
        used: dict[str, Any] = {
            "prompt_tokens": prompt,
            "total_tokens": prompt + answer,
            "completion_tokens": answer,
        }
        if details is not None:
            cached = sum(part.cached for part in self.parts)
            used["prompt_tokens_details"] = {"cached_tokens": cached, **details}
        return used


def refused_openai(refusal: Refusal) -> Sequence[bytes]:
    """The error inside a stream of completions or chat, with blanks as the real one."""
    said = json.dumps(refusal.openai()).encode()
    return b"data: " + said + b"\n\n", DONE


class Fragments:
    """An event cut where the word goes, so that a token costs no JSON.

    Args:
        event: the whole event, with `HOLE` for the word.
    """

    HOLE = "\x00"
    _HOLE = b"\\u0000"

    def __init__(self, event: bytes) -> None:
        self.before, _, self.after = event.partition(self._HOLE)

    def filled(self, word: bytes) -> bytes:
        """The event with a word that needs no escape."""
        return self.before + word + self.after
