"""Whether a caller is still there, asked of the system.

A server hears of an end once it has read all that comes before it. Bytes behind a
request (a line break, the next request) are not read before that one is answered, so
they hide that their sender left. The system knows, and says so of one connection
without going through all there are (Linux, NETLINK_SOCK_DIAG).
An end behind more bytes than the system takes in does not reach it, and elsewhere than
on Linux nobody is asked: such a caller counts as there until a timeout.
"""

import asyncio
import socket
import struct
from collections.abc import Mapping
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any, NamedTuple

from admitperf.gateway.intake import Message, Receive

LOOKED_EACH_S = 1.0
"""Time between two looks at one caller. Plain choice: the time in which an engine is to
be told that its caller left."""

_SOCK_DIAG = 4
_BY_FAMILY = 20
_REQUEST = 1
_ESTABLISHED = 1
_ASKED = struct.Struct("=IHHIIBBBxI")
_TOLD = struct.Struct("=IHHII")
_PORTS = struct.Struct("!HH")
_IDS_BYTES = 48
_STATE_AT = 17
_COOKIE = slice(60, 68)
_ANSWER_BYTES = 4096
_ANY_STATE = 0xFFFFFFFF
_ANY_DEVICE = bytes(4)
_ANY_COOKIE = b"\xff" * 8
"""Origin of all of these: linux/netlink.h, linux/sock_diag.h and linux/inet_diag.h."""

_Address = IPv4Address | IPv6Address
_End = tuple[str, str | int]


class Line(NamedTuple):
    """One TCP connection to us.

    Attributes:
        family: of its addresses.
        ends: ports and addresses, ours first, as the system takes them.
        cookie: the system's own number of it: another one between the same ends has
            another.
    """

    family: int
    ends: bytes
    cookie: bytes = _ANY_COOKIE


class Callers:
    """Watches callers for leaving."""

    def __init__(self) -> None:
        self._system = _system()
        self._asked = 0
        if self._system is not None and not self._works():
            self.close()

    @property
    def watches(self) -> bool:
        """Whether this system tells."""
        return self._system is not None

    def of(self, scope: Mapping[str, Any], receive: Receive) -> Receive:
        """The `receive` of a request, which hears of a caller that left.

        Args:
            scope: of the request.
            receive: of the server; the same where nobody can be asked.
        """
        client, server = scope.get("client"), scope.get("server")
        if self._system is None or not client or not server:
            return receive
        return _Caller(self, client, server, receive).receive

    def line(self, client: _End, server: _End) -> Line | None:
        """The connection between two ends; None = not known.

        Args:
            client: address and port of the caller.
            server: of ours; the address may be that of all interfaces.
        """
        with suppress(OSError, ValueError, struct.error):
            line = _line(client, server)
            _, cookie = self._told(line)
            return line._replace(cookie=cookie)
        return None

    def there(self, line: Line) -> bool:
        """Whether a caller still listens; one that ended its side has left."""
        try:
            state, _ = self._told(line)
        except FileNotFoundError:
            return False
        except OSError:
            return True  # not known
        return state == _ESTABLISHED

    def close(self) -> None:
        """Asks no more."""
        system, self._system = self._system, None
        if system is not None:
            system.close()

    def _told(self, line: Line) -> tuple[int, bytes]:
        """State and cookie of a connection.

        Raises:
            FileNotFoundError: there is none.
            OSError: the system does not say.
        """
        if self._system is None:
            raise OSError
        self._asked = asked = (self._asked + 1) & 0xFFFFFFFF
        size = _ASKED.size + _IDS_BYTES
        head = _ASKED.pack(
            *(size, _BY_FAMILY, _REQUEST, asked, 0),
            *(line.family, socket.IPPROTO_TCP, 0, _ANY_STATE),
        )
        self._system.send(head + line.ends + _ANY_DEVICE + line.cookie)
        told = self._system.recv(_ANSWER_BYTES)
        _, kind, _, answered, _ = _TOLD.unpack_from(told)
        if answered != asked:
            raise OSError
        if kind != _BY_FAMILY:
            raise FileNotFoundError
        return told[_STATE_AT], told[_COOKIE]

    def _works(self) -> bool:
        """Whether it finds a connection that is there."""
        try:
            with (
                socket.create_server(("127.0.0.1", 0)) as held,
                socket.create_connection(held.getsockname()) as made,
            ):
                return self.line(made.getpeername(), made.getsockname()) is not None
        except OSError:
            return False


class _Caller:
    """The `receive` of one request."""

    __slots__ = ("_callers", "_client", "_line", "_receive", "_server", "_whole")

    def __init__(
        self, callers: Callers, client: _End, server: _End, receive: Receive
    ) -> None:
        self._callers = callers
        self._client = client
        self._server = server
        self._receive = receive
        self._line: Line | None = None
        self._whole = False

    async def receive(self) -> Message:
        """A piece of the body; after the last one, that the caller left."""
        if not self._whole:
            message = await self._receive()
            self._whole = not message.get("more_body", False)
            return message
        line = self._line or self._callers.line(self._client, self._server)
        if line is None:
            return await self._receive()
        self._line = line
        heard = asyncio.ensure_future(self._receive())
        try:
            while self._callers.there(line):
                await asyncio.wait({heard}, timeout=LOOKED_EACH_S)
                if heard.done():
                    return heard.result()
        finally:
            heard.cancel()
        return {"type": "http.disconnect"}


def _system() -> socket.socket | None:
    """What tells of connections; None = this system has no such thing."""
    try:
        family: int = socket.AF_NETLINK
        made = socket.socket(family, socket.SOCK_DGRAM, _SOCK_DIAG)
        made.settimeout(0)
        made.connect((0, 0))
    except (AttributeError, OSError):
        return None
    return made


def _line(client: _End, server: _End) -> Line:
    there, here = _address(client), _address(server)
    family = socket.AF_INET if there.version == 4 else socket.AF_INET6  # noqa: PLR2004
    if here.is_unspecified:
        here = _facing(there, family)
    ports = _PORTS.pack(int(server[1]), int(client[1]))
    ends = ports + here.packed.ljust(16, b"\0") + there.packed.ljust(16, b"\0")
    return Line(family, ends)


def _address(end: _End) -> _Address:
    """An address; one of IPv4 that came over IPv6 is what it was."""
    address = ip_address(end[0])
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


def _facing(there: _Address, family: int) -> _Address:
    """Our address as that one sees it: the way to it tells. Nothing is sent."""
    with socket.socket(family, socket.SOCK_DGRAM) as way:
        way.connect((str(there), 9))
        return ip_address(way.getsockname()[0])
