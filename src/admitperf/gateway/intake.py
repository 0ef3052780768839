"""A request's body and its caller: read whole, replayed to the app, watched leaving."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

from admitperf.gateway.setup import MIB, Limits

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Headers = Iterable[tuple[bytes, bytes]]

_DRAINED = 2
"""Times the limit that is still read, and thrown away, before a body is refused: a
client that is busy sending sees a reset instead of the answer. Plain choice."""


class BodyTooLargeError(Exception):
    """The body is over the limit, which its text names."""

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"The body is over the limit of {limit} bytes ({limit / MIB:g} MiB)"
        )


class BodyUnfinishedError(Exception):
    """The body never came whole: its caller left, stopped, or framed it wrongly."""

    def __init__(self) -> None:
        super().__init__("The body is not as long as announced, or stopped on its way")


def header(headers: Headers, name: bytes) -> bytes:
    """The first header of a name, lower case; empty = there is none."""
    return next((value for key, value in headers if key == name), b"")


def announced(headers: Headers) -> int | None:
    """How many bytes the head of a request says it has; None = it does not say."""
    length = header(headers, b"content-length")
    return int(length) if length.isdigit() else None


class Intake:
    """What comes from one caller.

    Args:
        receive: of the server.
        limits: how large a body may be, and how long its pauses.

    Attributes:
        gone: the caller left.
    """

    __slots__ = ("_body", "_late", "_limits", "_pending", "_receive", "gone")

    def __init__(self, receive: Receive, limits: Limits) -> None:
        self._receive = receive
        self._limits = limits
        self._body: bytes | None = None
        self._pending: asyncio.Task[None] | None = None
        self._late = False
        self.gone = False

    async def body(self, length: int | None) -> bytes:
        """The whole body.

        Args:
            length: its announced bytes; None = not announced.

        Raises:
            BodyTooLargeError, BodyUnfinishedError: see there.
        """
        limit = self._limits.body_bytes
        if length is not None and length > _DRAINED * limit:
            raise BodyTooLargeError(limit)
        parts, size = await self._parts(limit)
        if size > limit:
            raise BodyTooLargeError(limit)
        if length is not None and size != length:
            raise BodyUnfinishedError
        self._body = parts[0] if len(parts) == 1 else b"".join(parts)
        return self._body

    async def _parts(self, limit: int) -> tuple[list[bytes], int]:
        parts: list[bytes] = []
        size, more = 0, True
        while more and size <= _DRAINED * limit:
            message = await self._in_time()
            if message["type"] != "http.request":
                self.gone = True
                raise BodyUnfinishedError
            part = message.get("body", b"")
            size += len(part)
            more = message.get("more_body", False)
            if size <= limit:
                parts.append(part)
            else:
                parts.clear()
        return parts or [b""], size

    async def _in_time(self) -> Message:
        """What comes next, if it comes in time: `asyncio.timeout` by hand.

        That one costs a request as much as reading its body does.
        """
        task = asyncio.current_task()
        loop = asyncio.get_running_loop()
        timer = loop.call_later(self._limits.body_s, self._stop, task)
        try:
            return await self._receive()
        except asyncio.CancelledError:
            if not self._late or task is None:
                raise
            task.uncancel()
            raise BodyUnfinishedError from None
        finally:
            timer.cancel()

    def _stop(self, task: asyncio.Task[Any] | None) -> None:
        if task is not None:
            self._late = True
            task.cancel()

    @property
    def whole(self) -> bytes:
        """The body, for as long as nobody replayed it."""
        return self._body or b""

    async def replay(self) -> Message:
        """The `receive` of the app behind: the body in one piece, then the caller."""
        body, self._body = self._body, None
        if body is not None:
            return {"type": "http.request", "body": body, "more_body": False}
        if self._pending is not None and not self._pending.cancelled():
            await self._pending
        if self.gone:
            return {"type": "http.disconnect"}
        message = await self._receive()
        self.gone = message["type"] == "http.disconnect"
        return message

    def leaving(self) -> asyncio.Task[None]:
        """Ends when the caller leaves; for as long as no app reads."""
        if self._pending is None:
            self._pending = asyncio.ensure_future(self._left())
        return self._pending

    async def _left(self) -> None:
        while not self.gone:
            message = await self._receive()
            self.gone = message["type"] == "http.disconnect"

    def close(self) -> None:
        """Stops watching."""
        if self._pending is not None:
            self._pending.cancel()
