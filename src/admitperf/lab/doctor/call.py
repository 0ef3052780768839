"""One HTTP exchange with the times at which the pieces of its answer came.

A server that hangs, drips or never ends is cut off when the time is up.
"""

import http.client
import json
import socket
import threading
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

from admitperf.core.clock import SYSTEM, Clock
from admitperf.lab.fault import LabError
from admitperf.scrape.address import Address
from admitperf.scrape.fetch import connected

MOST_BYTES = 2**22
"""Longest answer taken. Plain choice: a state of a thousand pools is a tenth of it."""

_PIECE = 65_536
_AGENT = "admitperf-doctor"
_GZIP = b"\x1f\x8b"
_GZIP_BITS = 31  # zlib's word for a gzip header


class UnansweredError(LabError):
    """No answer, or none that is HTTP; the text says why."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer.

    Attributes:
        status: of HTTP.
        headers: names in lower case; of one that comes twice the last.
        body: at most `MOST_BYTES` of it.
        pieces_s: when each piece of the body came, in seconds since it was asked for.
        ahead_s: how far the server's clock is ahead of ours for sure, by its `date`;
            below 0 = behind. None = it sends none.
        cut: it ended before it should.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    pieces_s: tuple[float, ...]
    ahead_s: float | None
    cut: bool

    def json(self) -> Any:  # noqa: ANN401  whatever a server sends
        """The body read as JSON; None when it is none."""
        try:
            return json.loads(_unpacked(self.body))
        except (ValueError, RecursionError, zlib.error):
            return None


def _unpacked(body: bytes) -> bytes:
    """As it was before a proxy packed it, at most `MOST_BYTES`."""
    if not body.startswith(_GZIP):
        return body
    return zlib.decompressobj(_GZIP_BITS).decompress(body, MOST_BYTES)


def call(  # noqa: PLR0913  one keyword a part of a request
    address: Address,
    path: str,
    timeout_s: float,
    *,
    token: str | None = None,
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
    clock: Clock = SYSTEM,
) -> Answer:
    """Asks once; redirects are not followed.

    Args:
        address: of the server; its own path is not used.
        path: as it goes on the wire.
        timeout_s: for all of it; what came by then of a body that is still coming is
            kept, and `cut` says so.
        token: sent as a bearer token.
        headers: besides ours.
        body: makes it a POST.
        clock: source of time.

    Raises:
        UnansweredError: there is no answer.
    """
    asked_ns, wall_s = clock.monotonic_ns(), clock.wall_ns() / 1e9
    expired = threading.Event()
    given = {"User-Agent": _AGENT, "Connection": "close", **(headers or {})}
    authorization = address.authorization(token)
    if authorization:
        given["Authorization"] = authorization
    try:
        with connected(address, timeout_s, expired) as connection:
            connection.request("GET" if body is None else "POST", path, body, given)
            response = connection.getresponse()
            now_s = clock.wall_ns() / 1e9
            ahead_s = _ahead_s(response.headers.get("date"), wall_s, now_s)
            found, cut = _pieces(response, asked_ns, clock)
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise UnansweredError(_why(error, expired, timeout_s)) from None
    return Answer(
        response.status,
        {name.lower(): value for name, value in response.headers.items()},
        b"".join(piece for _, piece in found),
        tuple(when_s for when_s, _ in found),
        ahead_s,
        cut or expired.is_set(),
    )


def _pieces(
    response: http.client.HTTPResponse, asked_ns: int, clock: Clock
) -> tuple[list[tuple[float, bytes]], bool]:
    """The pieces that came, each with its time, and whether more should have."""
    found: list[tuple[float, bytes]] = []
    taken = 0
    try:
        while taken < MOST_BYTES and (piece := response.read1(_PIECE)):
            taken += len(piece)
            found.append(((clock.monotonic_ns() - asked_ns) / 1e9, piece))
    except (OSError, ValueError, http.client.HTTPException):
        return found, True
    return found, (response.length or 0) > 0


def _ahead_s(date: str | None, asked_s: float, now_s: float) -> float | None:
    """How far a clock is ahead for sure.

    Its `date` names whole seconds and was set at some time while we waited: what that
    can explain is no difference.

    Args:
        date: the header; None = none.
        asked_s, now_s: our wall clock before and after.
    """
    try:
        said_s = parsedate_to_datetime(date or "").timestamp()
    except (ValueError, TypeError, OverflowError):
        return None
    return max(said_s - now_s, 0.0) + min(said_s + 1 - asked_s, 0.0)


def _why(error: Exception, expired: threading.Event, timeout_s: float) -> str:
    if expired.is_set() or isinstance(error, TimeoutError):
        return f"no answer within {timeout_s:g} s"
    if isinstance(error, socket.gaierror | UnicodeError):
        return "the host's name is not known"
    if isinstance(error, ConnectionRefusedError):
        return "connection refused: nothing listens there"
    if isinstance(error, ConnectionResetError | BrokenPipeError):
        return "connection closed before it was answered"
    if isinstance(error, OSError):
        return f"not reachable: {(error.strerror or type(error).__name__).lower()}"
    return "what answered does not speak HTTP"
