"""What an error inside an answer means, whoever's words it is in."""

import json
from dataclasses import dataclass
from typing import Self

REFUSALS = frozenset({429, 503, 529})
"""Statuses by which an engine says that it is full. Origin: vLLM 0.32 answers 503,
llm-d and SGLang's router 429, Anthropic and Dynamo 529."""

_STATUS_OF = {
    "invalidrequesterror": 400,
    "badrequesterror": 400,
    "authenticationerror": 401,
    "permissionerror": 403,
    "notfounderror": 404,
    "requesttoolarge": 413,
    "ratelimiterror": 429,
    "ratelimitexceeded": 429,
    "toomanyrequests": 429,
    "apierror": 500,
    "internalerror": 500,
    "internalservererror": 500,
    "servererror": 500,
    "serverisoverloaded": 503,
    "serviceunavailable": 503,
    "serviceunavailableerror": 503,
    "slowdown": 503,
    "unavailableerror": 503,
    "timeouterror": 504,
    "overloadederror": 529,
}
"""Words of `code` and `type`, letters only. Origin: the error types of both official
SDKs, vLLM, SGLang and llama.cpp."""

_FULL = ("busy", "overloaded", "queue is full", "too many requests", "at capacity")
"""Parts of messages by which an engine says that it is full, where its code and type
do not. Origin: vLLM 0.32 wraps its refusal on /v1/messages in an `internal_error`."""

_SERVER_FAULT = 500
_FULL_STATUS = 503


@dataclass(frozen=True, slots=True)
class Said:
    """One error.

    Attributes:
        message: its words; empty = none.
        kind: its `type`; None = none.
        code: its `code`, a word or a number; None = none.
        param: the parameter it speaks of; None = none.
    """

    message: str = ""
    kind: str | None = None
    code: str | int | None = None
    param: str | None = None

    @classmethod
    def of(cls, data: bytes) -> Self:
        """Reads an event or a body; what is no JSON object is all message."""
        text = data.decode(errors="replace")
        try:
            told = json.loads(text)
        except (ValueError, RecursionError):
            told = text
        while isinstance(told, dict):
            inner = told.get("error") or told.get("response")
            if not isinstance(inner, dict | str):
                return cls._of_object(told)
            told = inner
        return cls(told if isinstance(told, str) else "")

    @classmethod
    def _of_object(cls, told: dict[str, object]) -> Self:
        code = told.get("code")
        known = isinstance(code, str) or type(code) is int
        return cls(
            message=_text(told.get("message")) or "",
            kind=_text(told.get("type")),
            code=code if known else None,  # type: ignore[arg-type]
            param=_text(told.get("param")),
        )

    @property
    def status(self) -> int | None:
        """The HTTP status it would have had; None = not known."""
        number = _number(self.code)
        if number is not None:
            return number
        words = (_letters(word) for word in (self.code, self.kind))
        known = next((_STATUS_OF[word] for word in words if word in _STATUS_OF), None)
        if known in (None, _SERVER_FAULT):
            message = self.message.lower()
            if any(words in message for words in _FULL):
                return _FULL_STATUS
        return known


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _number(code: str | int | None) -> int | None:
    """A code that is a status of a refused or failed request."""
    if isinstance(code, str):
        code = int(code) if len(code) == len("503") and code.isdecimal() else None
    return code if code is not None and 400 <= code <= 599 else None  # noqa: PLR2004


def _letters(word: str | int | None) -> str:
    return "".join(filter(str.isalpha, word)).lower() if isinstance(word, str) else ""
