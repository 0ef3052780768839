"""Fetches one metrics page over HTTP.

Everything that can go wrong has one clear message, and none of them holds a token.
Redirects stay on the same scheme, host and port, so that a token stays there too.
"""

import http.client
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import unquote

from admitperf.core.clock import SYSTEM, Clock
from admitperf.engines.exposition import MAX_BODY_BYTES, Page, inflated
from admitperf.scrape.address import Address
from admitperf.scrape.fault import ScrapeError
from admitperf.scrape.limits import TIMEOUT_S
from admitperf.scrape.token import HOW_TO_PASS, MASK, blanked

MAX_BYTES = 16 * 2**20
"""Longest page. Plain choice: 80 times that of four vLLM ranks (200 kB)."""

MAX_REDIRECTS = 3
"""Plain choice: a mount point needs one."""

ACCEPT = "text/plain;version=0.0.4"
_NOT_THERE = (HTTPStatus.NOT_FOUND, HTTPStatus.NOT_IMPLEMENTED)
_NO_TOKEN = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
_REDIRECTS = (301, 302, 303, 307, 308)
_SWITCHES = (
    "some engines serve metrics only when told to: llama.cpp with --metrics, SGLang"
    " with --enable-metrics; TensorRT-LLM also has /prometheus/metrics"
)


@dataclass(frozen=True, slots=True)
class Fetched:
    """One answer.

    Attributes:
        body: as it came; one that holds the given token is unpacked and the token
            blanked, however it is written.
        content_type: the header; empty = none.
        took_s: from asking to the last byte, redirects included.
        asked_ns: when, on the monotonic clock.
        cut: the connection ended before the body did.
    """

    body: bytes
    content_type: str
    took_s: float
    asked_ns: int
    cut: bool


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    location: str | None
    content_type: str
    body: bytes
    cut: bool


def fetch(
    url: str | Address,
    *,
    token: str | None = None,
    timeout_s: float = TIMEOUT_S,
    max_bytes: int = MAX_BYTES,
    clock: Clock = SYSTEM,
) -> Fetched:
    """Gets a metrics page.

    Args:
        url: an address, or `host:port`.
        token: sent as a bearer token to the host of `url`, and nowhere else.
        timeout_s: for the whole exchange.
        max_bytes: longest body taken.
        clock: source of time.

    Raises:
        ScrapeError: there is none.
    """
    address = url if isinstance(url, Address) else Address.of(url)
    try:
        return _fetched(address, token, timeout_s, max_bytes, clock)
    except ScrapeError as error:  # a server may have put the token into an address
        told = (blanked(said, token) for said in (error.target, error.what, error.fix))
        raise ScrapeError(error.kind, *told) from None


def _fetched(
    address: Address,
    token: str | None,
    timeout_s: float,
    max_bytes: int,
    clock: Clock,
) -> Fetched:
    asked_ns = clock.monotonic_ns()
    for _ in range(MAX_REDIRECTS + 1):
        left_s = timeout_s - (clock.monotonic_ns() - asked_ns) / 1e9
        answer = _ask(address, token, left_s, timeout_s, max_bytes)
        if answer.status not in _REDIRECTS or not answer.location:
            break
        address = _followed(address, answer.location, token)
    else:
        what = f"still redirects after {MAX_REDIRECTS} redirects"
        raise ScrapeError("redirect", address.shown, what, "give the last address")
    _check(address, answer, token)
    took_s = (clock.monotonic_ns() - asked_ns) / 1e9
    body, cut = _without(token, answer, address)
    return Fetched(body, answer.content_type, took_s, asked_ns, cut)


def _without(
    token: str | None, answer: _Answer, address: Address
) -> tuple[bytes, bool]:
    """The body without the token, and whether it was cut."""
    if not token:
        return answer.body, answer.cut
    page = Page()
    plain = inflated(answer.body, page)
    if page.oversized:
        raise too_large(address.shown, MAX_BODY_BYTES)
    text = plain.decode("latin-1")  # each byte a character, and back
    clean = blanked(text, token)
    if clean == text:
        return answer.body, answer.cut
    body = clean.encode("latin-1")
    if inflated(body, page) is not body:  # packed twice: who reads it would unpack it
        raise ScrapeError("binary", address.shown, "binary data, no metrics page")
    return body, answer.cut or page.truncated


def _followed(address: Address, location: str, token: str | None) -> Address:
    try:
        target = address.joined(location)
    except ScrapeError:
        what = "redirects to what is no web address"
        raise ScrapeError("redirect", address.shown, what) from None
    if target.origin != address.origin:
        what = f"redirects to another host, {_shown(target, token)}: not followed"
        fix = "if you trust it, give that address itself"
        raise ScrapeError("redirect", address.shown, what, fix)
    return target


def _shown(target: Address, token: str | None) -> str:
    """A redirect's target; a server may have put the token into it."""
    plain = unquote(target.shown)
    if blanked(plain, token) == plain:
        return target.shown
    return blanked(f"{target.scheme}://{target.host}:{target.port}/{MASK}", token)


def _ask(
    address: Address, token: str | None, left_s: float, timeout_s: float, max_bytes: int
) -> _Answer:
    """One request and its answer, to the last byte."""
    expired = threading.Event()
    try:
        if left_s <= 0:
            raise TimeoutError
        with connected(address, left_s, expired) as connection:
            connection.request(
                "GET", address.resource, headers=_headers(address, token)
            )
            answer = _answer(connection.getresponse(), max_bytes, address)
        if expired.is_set():
            raise TimeoutError
    except (OSError, ValueError, http.client.HTTPException) as error:
        met = TimeoutError() if expired.is_set() else error
        raise _fault(address, met, timeout_s) from None
    return answer


@contextmanager
def connected(
    address: Address, left_s: float, expired: threading.Event
) -> Iterator[http.client.HTTPConnection]:
    """A connection that is cut when its time is up, however slowly bytes drip in.

    Args:
        address: where to.
        left_s: for connecting and for all that follows, each.
        expired: set when it was cut.
    """
    secure = address.scheme == "https"
    kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
    with closing(kind(address.host, address.port, timeout=left_s)) as connection:
        connection.connect()
        # Kept here: a connection lets go of its socket once the answer has begun.
        timer = threading.Timer(left_s, _cut, (connection.sock, expired))
        timer.daemon = True
        timer.start()
        try:
            yield connection
        finally:
            timer.cancel()


def _cut(sock: socket.socket, expired: threading.Event) -> None:
    expired.set()
    with suppress(OSError):
        # Of the plain socket: TLS would want to say goodbye first.
        socket.socket.shutdown(sock, socket.SHUT_RDWR)


def _headers(address: Address, token: str | None) -> dict[str, str]:
    headers = {"Accept": ACCEPT, "User-Agent": "admitperf", "Connection": "close"}
    authorization = address.authorization(token)
    return headers | ({"Authorization": authorization} if authorization else {})


def _answer(
    response: http.client.HTTPResponse, max_bytes: int, address: Address
) -> _Answer:
    body, cut = b"", False
    if response.status == HTTPStatus.OK:
        body, cut = _body(response, max_bytes, address)
    return _Answer(
        response.status,
        response.headers.get("location"),
        response.headers.get("content-type", ""),
        body,
        cut,
    )


def _body(
    response: http.client.HTTPResponse, max_bytes: int, address: Address
) -> tuple[bytes, bool]:
    try:
        body, cut = response.read(max_bytes + 1), False
    except http.client.IncompleteRead as error:
        body, cut = error.partial, True
    if len(body) > max_bytes:
        raise too_large(address.shown, max_bytes)
    return body, cut or (response.length or 0) > 0


def too_large(target: str, max_bytes: int) -> ScrapeError:
    """The fault of a page beyond every bound."""
    what = f"longer than {max_bytes / 2**20:g} MiB: no metrics page"
    return ScrapeError("too_large", target, what)


def _fault(address: Address, error: Exception, timeout_s: float) -> ScrapeError:
    """A failed exchange in words that hold nothing a server said."""
    match error:
        case TimeoutError():
            told = ("timeout", f"no answer within {timeout_s:g} s", "see --timeout")
        case ssl.SSLCertVerificationError():
            fix = "for a private authority set SSL_CERT_FILE"
            told = ("tls", f"certificate not trusted: {error.verify_message}", fix)
        case ssl.SSLError():
            reason = (error.reason or "no reason given").lower().replace("_", " ")
            told = ("tls", f"TLS failed: {reason}", "is it http:// there?")
        case socket.gaierror() | UnicodeError():
            told = ("unknown_host", "the host's name is not known", "")
        case ConnectionRefusedError():
            fix = "is the engine up, and is this its port?"
            told = ("refused", "connection refused: nothing listens there", fix)
        case ConnectionResetError() | BrokenPipeError():  # as of a server that dies
            fix = "is it the engine's HTTP port, or https:// there?"
            told = ("no_http", "connection closed before it was answered", fix)
        case http.client.HTTPException() | ValueError():
            fix = "is it the engine's HTTP port, or https:// there?"
            told = ("no_http", "what answered does not speak HTTP", fix)
        case _:
            why = getattr(error, "strerror", None) or type(error).__name__
            told = ("unreachable", f"not reachable: {why.lower()}", "")
    kind, what, fix = told
    return ScrapeError(kind, address.shown, what, fix)


def _check(address: Address, answer: _Answer, token: str | None) -> None:
    status = answer.status
    if status in _NO_TOKEN:
        what = "does not accept the token" if token else "wants a token"
        raise ScrapeError("token", address.shown, f"{status}, {what}", HOW_TO_PASS)
    if status in _NOT_THERE:
        what = f"{status}, no metrics at this path"
        raise ScrapeError("not_found", address.shown, what, _SWITCHES)
    if status != HTTPStatus.OK:
        what = f"{status}{_phrase(status)} instead of a page"
        raise ScrapeError("status", address.shown, what)


def _phrase(status: int) -> str:
    return f" {HTTPStatus(status).phrase}" if status in set(HTTPStatus) else ""
