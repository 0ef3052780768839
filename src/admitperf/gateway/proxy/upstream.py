"""Connections to replicas: aiohttp's connector, its pool and its parser.

aiohttp's `ClientSession` is left out: cookies, redirects, traces and a task for each
body cost more than all the rest does, and a proxy needs none of them.
"""

import asyncio
from functools import partial
from typing import cast

import aiohttp
from aiohttp import ClientRequest, ClientTimeout, TCPConnector
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from yarl import URL

from admitperf.gateway.proxy.balance import Replica
from admitperf.gateway.proxy.headers import Outgoing

HEAD_BYTES = 65_536
"""Longest line of an answer's head. Plain choice: eight times aiohttp's own."""

READ_BYTES = 65_536
"""An answer is read ahead of its caller by twice this at most. Plain choice: bounds the
memory of a slow reader; an event has some 200 bytes."""

COPIED_BYTES = 16_384
"""Up to this a body is copied behind its head, which is faster. Plain choice: a copy
that long takes a microsecond."""


class UnreachableError(Exception):
    """A replica takes no connection; it was sent nothing.

    Attributes:
        in_time: it was refused at once; else there was no answer in time.
    """

    def __init__(self, *, in_time: bool) -> None:
        super().__init__()
        self.in_time = in_time


class _Handler(ResponseHandler):
    """aiohttp's, which remembers that it has served."""

    used = False

    def resume_reading(self, *args: bool, **named: bool) -> None:
        """Only after a pause: aiohttp parses nothing anew after each read."""
        if self._reading_paused:
            super().resume_reading(*args, **named)


class _Connector(TCPConnector):
    def __init__(self) -> None:
        super().__init__(limit=0)
        handler: type[ResponseHandler] = _Handler
        self._factory = partial(handler, loop=self._loop)


class Connections:
    """Open connections to all replicas; made on the loop it is first used on."""

    def __init__(self) -> None:
        self._connector: _Connector | None = None
        self._targets: dict[str, ClientRequest] = {}
        self._timeouts: dict[float, ClientTimeout] = {}

    async def open(
        self, replica: Replica, connect_s: float, *, fresh: bool = False
    ) -> tuple[Connection, bool]:
        """A connection, and whether it had served before.

        Args:
            replica: where to.
            connect_s: how long that may take.
            fresh: one that has not; idle ones that come up are closed.

        Raises:
            UnreachableError: there is none to be had.
        """
        connector, target = self._to(replica)
        timeout = self._timeouts.get(connect_s)
        if timeout is None:
            timeout = ClientTimeout(total=None, connect=connect_s)
            self._timeouts[connect_s] = timeout
        try:
            conn = await connector.connect(target, [], timeout)
            while fresh and _handler(conn).used:
                conn.close()
                conn = await connector.connect(target, [], timeout)
        except TimeoutError:
            raise UnreachableError(in_time=False) from None
        except (aiohttp.ClientError, OSError):
            raise UnreachableError(in_time=True) from None
        handler = _handler(conn)
        pooled, handler.used = handler.used, True
        return conn, pooled

    async def close(self) -> None:
        """Closes every connection, those in use too."""
        if self._connector is not None:
            await self._connector.close()

    def _to(self, replica: Replica) -> tuple[_Connector, ClientRequest]:
        """The connector, and the request that stands for all to this replica."""
        if self._connector is None:
            self._connector = _Connector()
        target = self._targets.get(replica.url)
        if target is None:
            loop = asyncio.get_running_loop()
            target = ClientRequest("GET", URL(replica.url), loop=loop)
            self._targets[replica.url] = target
        return self._connector, target


def _handler(conn: Connection) -> _Handler:
    return cast("_Handler", conn.protocol)


def write(conn: Connection, replica: Replica, outgoing: Outgoing) -> None:
    """Sends a request; who reads the answer hears if the connection was closed."""
    protocol, transport = conn.protocol, conn.transport
    if protocol is None or transport is None:
        return
    protocol.set_response_params(
        skip_payload=outgoing.bodiless,
        read_until_eof=True,
        auto_decompress=False,
        read_bufsize=READ_BYTES,
        max_line_size=HEAD_BYTES,
        max_field_size=HEAD_BYTES,
    )
    head = outgoing.head(replica.host, replica.prefix)
    body = outgoing.body
    if len(body) > COPIED_BYTES:
        transport.writelines((head, body))
    else:
        transport.write(head + body)


def silent(error: Exception) -> bool:
    """Whether a connection ended before a byte of an answer."""
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return isinstance(error.message, str)  # else what there was of a head
    return isinstance(error, aiohttp.ClientOSError | ConnectionError)


def give_back(conn: Connection, *, whole: bool) -> None:
    """Ends the use of a connection.

    Args:
        conn: of a request.
        whole: its answer was read to the end; else the engine is to notice at once
            that nobody wants the rest.
    """
    transport = conn.transport
    if transport is None or (whole and not transport.get_write_buffer_size()):
        conn.release()
        return
    transport.abort()
    conn.close()
