"""Heads of requests and answers on their way through: what stays, what goes.

Headers that belong to one connection (RFC 9110, 7.6.1) end here, both ways. The length
of a request is always that of the body that was read, so that nothing can be smuggled
behind it.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Header = tuple[bytes, bytes]

HOP_BY_HOP = frozenset(
    {
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)
"""Origin: RFC 9110, 7.6.1, and the list of RFC 2616, 13.5.1."""

_OURS = b"x-admitperf-decision-id"

_NOT_SENT = HOP_BY_HOP | {b"host", b"content-length", b"expect", b"http2-settings"}
_NOT_PASSED = HOP_BY_HOP | {_OURS}
_PLAIN_CODINGS = frozenset({b"chunked", b"identity", b""})
_HARMLESS = frozenset({b"keep-alive", b"close", b"upgrade", b"te", b""})
_WITH_BODY = ("POST", "PUT", "PATCH")
_UNBUFFERED = {b"x-accel-buffering": b"no", b"cache-control": b"no-cache"}
_EVENTS = b"text/event-stream"


class Outgoing:
    """A request, as every replica would get it.

    Args:
        scope: the ASGI scope it came with.
        body: all of it.
        request_id: sent as `x-request-id` when the caller gave none; None = not.

    Attributes:
        body: as given.
        bodiless: its answer has no body (HEAD).
        packed: its body has a transfer coding that nobody undid: it cannot be sent.
    """

    __slots__ = ("_method", "_rest", "_target", "bodiless", "body", "packed")

    def __init__(
        self, scope: Mapping[str, Any], body: bytes, request_id: str | None
    ) -> None:
        method: str = scope["method"]
        query: bytes = scope["query_string"]
        path: bytes = scope["raw_path"]
        self.body = body
        self.bodiless = method == "HEAD"
        self._method = method.encode("ascii") + b" "
        self._target = b"%b?%b" % (path, query) if query else path
        headers: Sequence[Header] = scope["headers"]
        given = dict(headers)
        self.packed = b"transfer-encoding" in given and packed(headers)
        dropped = _NOT_SENT
        repeats = len(given) < len(headers)
        if repeats or given.get(b"connection", b"") not in _HARMLESS:
            dropped = dropped | _named(headers)
        lines = [b"%b: %b\r\n" % one for one in headers if one[0] not in dropped]
        if b"x-request-id" not in given and request_id and _plain(request_id):
            lines.append(b"x-request-id: %b\r\n" % request_id.encode("ascii"))
        if body or method in _WITH_BODY:
            lines.append(b"content-length: %d\r\n" % len(body))
        lines.append(b"\r\n")
        self._rest = b"".join(lines)

    def head(self, host: bytes, prefix: bytes) -> bytes:
        """The request without its body."""
        target = prefix + self._target
        line = b" HTTP/1.1\r\nhost: "
        return b"".join((self._method, target, line, host, b"\r\n", self._rest))


def answer_headers(raw: Sequence[Header]) -> list[Header]:
    """What the caller gets of an answer's headers.

    Names become lower case, as ASGI wants them; order, repeats and values stay. Streams
    of events are marked as not to be buffered, where the engine did not do it. An id of
    a decision is left out: only ours can be explained here.
    """
    headers: list[Header] = []
    events = chunked = False
    dropped = _NOT_PASSED
    for given, value in raw:
        name = given.lower()
        if name in dropped:
            chunked = chunked or name == b"transfer-encoding"
            if name == b"connection":
                dropped = dropped | _named(((name, value),))
            continue
        if name == b"content-type":
            events = value[: len(_EVENTS)].lower() == _EVENTS
        headers.append((name, value))
    if dropped is not _NOT_PASSED or chunked:
        also = dropped | {b"content-length"} if chunked else dropped
        headers = [one for one in headers if one[0] not in also]
    if events:
        present = {name for name, _ in headers}
        headers += [one for one in _UNBUFFERED.items() if one[0] not in present]
    return headers


def packed(headers: Iterable[Header]) -> bool:
    """Whether a body has a transfer coding besides the framing, which parsers undo."""
    return any(
        name.lower() == b"transfer-encoding"
        and not _PLAIN_CODINGS.issuperset(
            one.strip() for one in value.lower().split(b",")
        )
        for name, value in headers
    )


def upgrades(headers: Iterable[Header]) -> bool:
    """Whether a request asks for a WebSocket."""
    wanted = (value for name, value in headers if name == b"upgrade")
    return any(value.strip().lower() == b"websocket" for value in wanted)


def has(headers: Iterable[Header], wanted: bytes) -> bool:
    """Whether there is a header of this name, in lower case."""
    return any(name == wanted for name, _ in headers)


def _plain(text: str) -> bool:
    """Whether a header can hold it."""
    return text.isascii() and text.isprintable()


def _named(headers: Iterable[Header]) -> frozenset[bytes]:
    """Headers that `connection` says belong to it."""
    values = [value for name, value in headers if name == b"connection"]
    if not values:
        return frozenset()
    listed = b",".join(values).lower().split(b",")
    return frozenset(one.strip() for one in listed) - _HARMLESS
