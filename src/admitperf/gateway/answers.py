"""What the gateway itself says to callers, in the dialect of the path they called.

A refusal is a real HTTP status with a JSON body that both official SDKs understand.
Inside a stream that has begun, only an event can say what went wrong.
"""

import json
from collections.abc import Mapping
from typing import Literal, NamedTuple

from admitperf.core.decision import Decision
from admitperf.gateway.watching.said import Said

Dialect = Literal["openai", "responses", "anthropic"]
"""Whose words a path speaks; embeddings and completions are "openai"."""

JUDGED: frozenset[str] = frozenset(
    {
        "/v1/completions",
        "/v1/chat/completions",
        "/v1/responses",
        "/v1/embeddings",
        "/v1/messages",
    }
)
"""Paths that a policy decides about. Origin: the issue of the gateway."""

Headers = list[tuple[bytes, bytes]]

_UNAVAILABLE = 503
_LEAST_WAIT = b"1"
"""Seconds; every 503 carries a wait. Origin: the product brief, section 6; both SDKs
ignore 0."""

_LONGEST_VALUE = 256
"""Characters of a header value made of what a caller or a plug-in said. Plain
choice: five times a UUID, and no server refuses it."""

_ANTHROPIC_TYPES: Mapping[int, str] = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}
"""Origin: the error types of anthropic-sdk-python 2.14; 503 has none of its own."""

_OPENAI_TYPES: Mapping[int, str] = {
    401: "authentication_error",
    403: "permission_error",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
    529: "overloaded_error",
}

_SERVER_FAULT = 500


class Reply(NamedTuple):
    """A whole answer.

    Attributes:
        status: HTTP status as an int.
        headers: lower-case names and values, `content-length` among them.
        body: JSON.
    """

    status: int
    headers: Headers
    body: bytes


def dialect_of(path: str) -> Dialect:
    """The dialect that callers of this path speak; "openai" for unknown ones."""
    if path.startswith("/v1/messages"):
        return "anthropic"
    return "responses" if path.startswith("/v1/responses") else "openai"


def refusal(
    d: Decision, dialect: Dialect, *, request_id: str, decision_id: str
) -> Reply:
    """A decision not to start a request, as its caller reads it.

    Args:
        d: a decision that is not `admitted`.
        dialect: the caller's.
        request_id: the caller's own, or the one that was made for it.
        decision_id: what the log finds the decision by.
    """
    told = d.headers()
    hints = [(name.lower().encode(), header_value(told[name])) for name in told]
    if d.status == _UNAVAILABLE and d.retry_after_ms is None:
        hints.append((b"retry-after", _LEAST_WAIT))
    hints.append((b"x-admitperf-decision-id", header_value(decision_id)))
    error = d.body()["error"]
    return _reply(
        d.status, _in(dialect, d.status, error, request_id), request_id, hints
    )


def fault(
    status: int,
    code: str,
    message: str,
    dialect: Dialect,
    *,
    request_id: str,
    retry: bool = False,
) -> Reply:
    """Something that is not the policy's doing: too large, no engine, no such path.

    Args:
        status: HTTP status.
        code: one word for programs, such as "upstream_unreachable".
        message: for people; no secret, no text of a prompt.
        dialect: the caller's.
        request_id: the caller's own, or the one that was made for it.
        retry: whether the same request can succeed later.
    """
    hints = [(b"x-should-retry", b"true" if retry else b"false")]
    if status == _UNAVAILABLE:
        hints.append((b"retry-after", _LEAST_WAIT))
    error = _error(_openai_type(status), message, code)
    return _reply(status, _in(dialect, status, error, request_id), request_id, hints)


def closing(
    dialect: Dialect,
    message: str,
    *,
    mid_event: bool,
    code: str = "upstream_ended_early",
) -> bytes:
    """What ends a stream that broke off, so that its caller notices.

    Args:
        dialect: the caller's.
        message: for people.
        mid_event: the stream stopped inside an event.
        code: one word for programs.
    """
    error = _error("server_error", message, code)
    if dialect == "anthropic":
        said = _anthropic(_SERVER_FAULT, error)
        # A torn event becomes a ping, which nobody parses: the last name counts.
        return (b"\nevent: ping\n\n" if mid_event else b"") + _event(b"error", said)
    before = b"\n\n" if mid_event else b""
    if dialect == "responses":
        # The documented event is flat; the SDK raises only on what is in `error`.
        flat = {"type": "error", "code": code, "message": message, "param": None}
        return before + _event(b"error", {**flat, "sequence_number": 0, "error": error})
    return before + b"data: " + _json({"error": error}) + b"\n\ndata: [DONE]\n\n"


def from_event(event_data: bytes, dialect: Dialect, *, request_id: str) -> Reply | None:
    """An error with which a stream began, as the status it would have had.

    Args:
        event_data: the data of the stream's first event.
        dialect: the caller's.
        request_id: the caller's own, or the one that was made for it.

    Returns:
        The engine's words under a real status, without a wait that the engine did not
        name, except that a 503 always has one. None = it does not say what it means.
    """
    said = Said.of(event_data)
    status = said.status
    if status is None:
        return None
    hints: Headers = []
    if status == _UNAVAILABLE:
        hints.append((b"retry-after", _LEAST_WAIT))
    kind = said.kind if said.kind not in {None, "error"} else _openai_type(status)
    error = _error(kind, said.message, said.code, said.param)
    return _reply(status, _in(dialect, status, error, request_id), request_id, hints)


def _error(
    kind: str | None, message: str, code: str | int | None, param: str | None = None
) -> dict[str, object]:
    return {"message": message, "type": kind, "param": param, "code": code}


def _openai_type(status: int) -> str:
    usual = "server_error" if status >= _SERVER_FAULT else "invalid_request_error"
    return _OPENAI_TYPES.get(status, usual)


def _in(
    dialect: Dialect, status: int, error: object, request_id: str
) -> dict[str, object]:
    """The body that says so in this dialect."""
    if dialect != "anthropic" or not isinstance(error, dict):
        return {"error": error}
    return {**_anthropic(status, error), "request_id": _text(request_id)}


def _anthropic(status: int, error: Mapping[str, object]) -> dict[str, object]:
    usual = "api_error" if status >= _SERVER_FAULT else "invalid_request_error"
    told = {name: error[name] for name in error if error[name] is not None}
    told["type"] = _ANTHROPIC_TYPES.get(status, usual)
    if isinstance(error["code"], str):
        # Where this SDK looks for a code: `APIStatusError.error_code`.
        told["details"] = {"error_code": error["code"]}
    return {"type": "error", "error": told}


def _reply(
    status: int, told: Mapping[str, object], request_id: str, hints: Headers
) -> Reply:
    body = _json(told)
    made = header_value(request_id)
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        *hints,
        # openai-python reads the first spelling, anthropic-sdk-python the second.
        (b"x-request-id", made),
        (b"request-id", made),
    ]
    return Reply(status, headers, body)


def _event(name: bytes, told: Mapping[str, object]) -> bytes:
    return b"event: " + name + b"\ndata: " + _json(told) + b"\n\n"


def _json(told: object) -> bytes:
    return json.dumps(told, separators=(",", ":")).encode()


def header_value(text: str) -> bytes:
    """A header value that cannot end its line."""
    return _text(text).encode("latin-1", "replace")


def _text(text: str) -> str:
    if len(text) <= _LONGEST_VALUE and text.isprintable():
        return text.strip()
    return "".join(filter(str.isprintable, text))[:_LONGEST_VALUE].strip()
