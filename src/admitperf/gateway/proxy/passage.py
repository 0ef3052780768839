"""One request on its way to a replica, and its answer on the way back.

Every reason to stop (the caller left, the engine is silent for too long) does the same:
it notes why and cuts the connection to the engine, which wakes whoever waits for it.
"""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Self

import aiohttp
from aiohttp.connector import Connection
from aiohttp.http import HttpProcessingError, RawResponseMessage
from aiohttp.streams import EofStream, StreamReader

from admitperf.core.clock import SYSTEM, Clock
from admitperf.gateway.broke import UpstreamBroke
from admitperf.gateway.proxy.balance import Replica
from admitperf.gateway.proxy.headers import Outgoing, answer_headers, packed
from admitperf.gateway.proxy.upstream import Connections, give_back, silent, write
from admitperf.gateway.setup import Timeouts

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

WATCHED_AFTER_S = 0.05
"""A caller is watched for leaving from then on: a task for each request costs a fifth
of what a short one does. Plain choice: the engine works on for so long in vain."""

LOOKED_EACH_S = 60.0
"""Longest time between two looks at the clock. Plain choice."""

RETRIED_WITHIN_NS = 1_000_000_000
"""Origin: the contract of the gateway. A kept connection that died later worked."""

CLIENT_LEFT = "client_closed"
EARLY = "upstream_ended_early"
_NS = 1_000_000_000
_INFORMATION = range(100, 200)
_SWITCHING = 101
_BROKEN = (aiohttp.ClientError, HttpProcessingError, EofStream, OSError)


class ClientLeftError(Exception):
    """The caller went away, or has stopped reading."""


class Passage:
    """Carries one request and its answer; a context manager that leaves nothing open.

    Args:
        timeouts: how long the engine may take.
        receive: of the server; only asked whether the caller has left.
        send: of the server.
        clock: source of time.
    """

    __slots__ = (
        "_began_ns",
        "_conn",
        "_limit_s",
        "_loop",
        "_now_ns",
        "_opening",
        "_payload",
        "_receive",
        "_send",
        "_since_ns",
        "_soonest_s",
        "_stalled",
        "_task",
        "_timeouts",
        "_timer",
        "_watcher",
        "_whole",
        "_why",
        "_word",
    )

    def __init__(
        self, timeouts: Timeouts, receive: Receive, send: Send, clock: Clock = SYSTEM
    ) -> None:
        self._timeouts = timeouts
        self._receive = receive
        self._send = send
        self._now_ns = clock.monotonic_ns
        self._conn: Connection | None = None
        self._payload: StreamReader | None = None
        self._whole = False
        self._why: str | None = None
        self._watcher: asyncio.Task[None] | None = None
        self._task = asyncio.current_task()
        self._stalled = self._opening = False
        self._began_ns = self._since_ns = self._now_ns()
        self._limit_s: float | None = None
        self._word = ""
        limits_s = timeouts.first_token_s, timeouts.gap_s, LOOKED_EACH_S
        self._soonest_s = min(one for one in limits_s if one is not None)
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(WATCHED_AFTER_S, self._tick)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        watcher, self._watcher = self._watcher, None  # it holds this: no cycle is left
        if watcher is not None:
            watcher.cancel()
        self._drop()

    async def ask(
        self, connections: Connections, replica: Replica, outgoing: Outgoing
    ) -> RawResponseMessage:
        """Sends the request; the head of its answer.

        A kept connection that was dead already is replaced once, unnoticed.

        Raises:
            UnreachableError: nothing was sent.
            UpstreamBroke: it was, and no answer comes.
            ClientLeftError: nobody waits for one any more.
        """
        if self._why is not None:
            raise self._broken()
        sent_ns, pooled = await self._sent(connections, replica, outgoing, fresh=False)
        try:
            return await self._head()
        except _BROKEN as error:
            late = self._now_ns() - sent_ns > RETRIED_WITHIN_NS
            if self._why or late or not pooled or not silent(error):
                raise self._broken() from None
        self._drop()
        await self._sent(connections, replica, outgoing, fresh=True)
        try:
            return await self._head()
        except _BROKEN:
            raise self._broken() from None

    async def answer(self, head: RawResponseMessage) -> None:
        """Sends the answer on, one write a read, until it ends.

        Raises:
            UpstreamBroke: it did not end properly.
            ClientLeftError: nobody reads it any more.
        """
        payload = self._payload
        if payload is None:
            raise self._broken()
        headers = answer_headers(head.raw_headers)
        start = {"type": "http.response.start", "status": head.code, "headers": headers}
        await self._hand_on(start)
        more = True
        while more:
            data = await self._read(payload)
            more = not payload.at_eof()
            await self._pass(data, more=more)
        self._whole = True

    async def _sent(
        self,
        connections: Connections,
        replica: Replica,
        outgoing: Outgoing,
        *,
        fresh: bool,
    ) -> tuple[int, bool]:
        conn, pooled = await self._opened(connections, replica, fresh=fresh)
        self._conn = conn
        if self._why is not None:
            raise self._broken()
        write(conn, replica, outgoing)
        self._await(self._timeouts.first_token_s, "timeout_first_token")
        return self._since_ns, pooled

    async def _opened(
        self, connections: Connections, replica: Replica, *, fresh: bool
    ) -> tuple[Connection, bool]:
        """A connection; nobody waits for one any longer than its caller does."""
        self._opening = True
        try:
            return await connections.open(
                replica, self._timeouts.connect_s, fresh=fresh
            )
        except asyncio.CancelledError:
            if self._why is None or self._task is None or self._task.uncancel():
                raise
            raise self._broken() from None
        finally:
            self._opening = False

    async def _head(self) -> RawResponseMessage:
        protocol = self._conn.protocol if self._conn is not None else None
        if protocol is None:
            raise self._broken()
        while True:
            head, payload = await protocol.read()
            if head.code not in _INFORMATION:
                break
            if head.code == _SWITCHING:
                raise self._broken()
        if self._why is not None or packed(head.raw_headers):
            raise self._broken()
        self._payload = payload
        return head

    async def _read(self, payload: StreamReader) -> bytes:
        try:
            data = await payload.readany()
        except _BROKEN:
            # What came before the end is still the caller's.
            rest = b"".join(payload._buffer)  # noqa: SLF001  no other way to it
            if rest and self._why is None:
                await self._pass(rest, more=True)
            raise self._broken() from None
        if self._why is not None:
            raise self._broken()
        return data

    async def _pass(self, data: bytes, *, more: bool) -> None:
        """Hands one piece to the caller, who may be slow, but not for ever."""
        self._await(self._timeouts.gap_s, CLIENT_LEFT)
        await self._hand_on(
            {"type": "http.response.body", "body": data, "more_body": more}
        )
        self._await(self._timeouts.gap_s, "timeout_gap")

    async def _hand_on(self, message: Message) -> None:
        try:
            await self._send(message)
        except asyncio.CancelledError:
            if not self._stalled or self._task is None:
                raise
            self._task.uncancel()
            raise ClientLeftError from None
        except OSError:
            raise ClientLeftError from None

    # Reasons to stop.

    def _await(self, limit_s: float | None, word: str) -> None:
        """From now on something has so long, or this is what went wrong."""
        self._limit_s = limit_s
        self._word = word
        self._since_ns = self._now_ns()

    def _tick(self) -> None:
        """Looks whether a limit is over; the only timer, however many events pass."""
        if self._watcher is None:
            self._watcher = asyncio.ensure_future(self._watch())
        now_ns = self._now_ns()
        left_s = self._soonest_s  # a limit set after this look runs out after the next
        for limit_s, since_ns, word in (
            (self._timeouts.total_s, self._began_ns, "timeout_total"),
            (self._limit_s, self._since_ns, self._word),
        ):
            if limit_s is not None:
                rest_s = limit_s - (now_ns - since_ns) / _NS
                if rest_s <= 0:
                    self._over(word)
                else:
                    left_s = min(left_s, rest_s)
        self._timer = self._loop.call_later(left_s, self._tick)

    def _over(self, word: str) -> None:
        if word == CLIENT_LEFT and not self._stalled and self._task is not None:
            self._stalled = True
            self._task.cancel()  # it waits for the caller, whom nothing else wakes
        self._cut(word)

    async def _watch(self) -> None:
        """Ends when the caller leaves."""
        try:
            while (await self._receive())["type"] != "http.disconnect":
                pass
        except Exception:  # noqa: BLE001  a server that cannot say has lost it
            self._cut(CLIENT_LEFT)
        else:
            self._cut(CLIENT_LEFT)

    def _cut(self, why: str) -> None:
        if self._opening and self._why is None and self._task is not None:
            self._task.cancel()  # there is no connection yet that could be cut
        if self._why is None:
            self._why = why
        if self._conn is not None and self._conn.transport is not None:
            self._conn.transport.abort()

    def _broken(self) -> Exception:
        if self._why == CLIENT_LEFT:
            return ClientLeftError()
        return UpstreamBroke(self._why or EARLY)

    def _drop(self) -> None:
        if self._conn is not None:
            give_back(self._conn, whole=self._whole)
            self._conn = None
