"""A scripted engine, and the proxy behind the real server, all in one loop."""

import asyncio
import socket
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import uvloop
from granian._granian import SocketHolder
from granian.constants import HTTPModes, Interfaces
from granian.server.embed import Server

from admitperf.core.clock import SYSTEM
from admitperf.gateway.broke import UpstreamBroke
from admitperf.gateway.proxy.app import ProxyApp
from admitperf.gateway.proxy.balance import Balancer
from admitperf.gateway.proxy.callers import Callers
from admitperf.gateway.setup import Limits, PoolSetup, Timeouts, Upstream
from admitperf.gateway.ticket import Ticket

JSON = b'{"id":"c1","object":"chat.completion"}'
EVENT = b'data: {"n":%d}\n\n'
DONE = b"data: [DONE]\n\n"
STREAM = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n"
)


def whole(body=JSON, *headers, status=b"200 OK"):
    """A complete answer."""
    lines = [b"HTTP/1.1 " + status, b"Content-Length: %d" % len(body), *headers]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def chunk(data):
    """One chunk of a chunked body."""
    return b"%x\r\n%b\r\n" % (len(data), data)


END = b"0\r\n\r\n"


@dataclass
class Request:
    """What the engine got."""

    head: bytes
    body: bytes
    number: int

    @property
    def lines(self):
        """Of the head."""
        return self.head.split(b"\r\n")

    def header(self, name):
        """Every value of a header."""
        pairs = [line.split(b": ", 1) for line in self.lines[1:] if line]
        return [value for key, value in pairs if key.lower() == name]


@dataclass
class Engine:
    """Answers with what `script` writes; a script that ends keeps the connection."""

    script: object
    requests: list = field(default_factory=list)
    left: list = field(default_factory=list)
    open: int = 0

    async def talk(self, reader, writer):
        """One connection."""
        self.open += 1
        number = 0
        try:
            while (request := await self._read(reader, number)) is not None:
                self.requests.append(request)
                await self.script(request, reader, writer)
                number += 1
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            self.open -= 1
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _read(self, reader, number):
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            line = await reader.readline()
            if not line:
                return None
            head += line
        request = Request(head[:-4], b"", number)
        length = request.header(b"content-length")
        if length:
            request.body = await reader.readexactly(int(length[0]))
        return request

    async def sees_it_leave(self, reader):
        """Waits until the other side has closed."""
        with suppress(OSError):
            while await reader.read(65536):
                pass
        self.left.append(True)


@asynccontextmanager
async def engine(script):
    """An engine, and the URL it has."""
    made = Engine(script)
    server = await asyncio.start_server(made.talk, "127.0.0.1", 0, limit=1 << 26)
    made.port = server.sockets[0].getsockname()[1]
    made.url = f"http://127.0.0.1:{made.port}"
    try:
        yield made
    finally:
        server.close()


def pool(*urls, **timeouts):
    """A pool of replicas that are named r0, r1, ..."""
    upstreams = tuple(
        Upstream(url=url, metrics_url=url, name=f"r{n}") for n, url in enumerate(urls)
    )
    return PoolSetup(upstreams=upstreams, timeouts=Timeouts(**timeouts))


class Door:
    """The proxy behind granian; POSTs come with a ticket, as behind the middleware."""

    def __init__(self, setup, limits, own, clock):
        self.balancer = Balancer(setup)
        pools = {"default": self.balancer}
        self.proxy = ProxyApp(pools, limits=limits, own=own, clock=clock)
        self.callers = Callers()
        self.tickets = []
        self.broke = []

    async def app(self, scope, receive, send):
        """What the server runs."""
        receive = self.callers.of(scope, receive)
        if scope["method"] == "POST" and scope["path"].startswith("/v1/chat"):
            body, more = b"", True
            while more:
                message = await receive()
                body += message["body"]
                more = message["more_body"]
            ticket = Ticket("default", body, "made-1")
            self.tickets.append(ticket)
            scope["admitperf"] = ticket
        try:
            await self.proxy(scope, receive, send)
        except UpstreamBroke as broke:
            self.broke.append(broke.why)
            raise

    @property
    def in_flight(self):
        """Requests the proxy counts, all replicas together."""
        return sum(one.in_flight for one in self.balancer.replicas)


class _Server(Server):
    def __init__(self, app):
        super().__init__(
            app,
            interface=Interfaces.ASGINL,
            http=HTTPModes.http1,
            websockets=False,
            log_enabled=False,
        )
        held = socket.create_server(("127.0.0.1", 0), backlog=128)
        held.settimeout(0)
        self.port = held.getsockname()[1]
        self._held = SocketHolder(held.detach(), False, 128)  # noqa: FBT003

    def _init_shared_socket(self):
        self._shd = self._held


@asynccontextmanager
async def door(setup, *, limits=None, own=None, clock=SYSTEM):
    """The proxy, listening at `.port`."""
    made = Door(setup, limits or Limits(), own, clock)
    server = _Server(made.app)
    made.port = server.port
    serving = asyncio.create_task(server.serve())
    try:
        yield made
    finally:
        server.stop()
        await serving
        await made.proxy.close()
        made.callers.close()


@dataclass
class Answer:
    """What a client got."""

    status: int
    head: bytes
    body: bytes
    cut: bool = False

    def header(self, name):
        """Every value of a header."""
        pairs = [line.split(b": ", 1) for line in self.head.split(b"\r\n")[1:]]
        return [value for key, value in pairs if key.lower() == name]


def post(body=b"{}", path=b"/v1/chat/completions", *headers):
    """The bytes of a request."""
    lines = [b"POST " + path + b" HTTP/1.1", b"Host: gate"]
    lines += [b"Content-Length: %d" % len(body), *headers]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def get(path=b"/v1/models", *headers, method=b"GET"):
    """The bytes of a request without a body."""
    lines = [method + b" " + path + b" HTTP/1.1", b"Host: gate", *headers]
    return b"\r\n".join(lines) + b"\r\n\r\n"


async def ask(port, raw, *, bodiless=False):
    """Sends bytes on a connection of its own; reads one answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 26)
    try:
        writer.write(raw)
        return await read(reader, bodiless=bodiless)
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


async def head_of(reader):
    """Reads the head of an answer."""
    head = await reader.readuntil(b"\r\n\r\n")
    return Answer(int(head.split(b" ", 2)[1]), head[:-4], b"")


async def read(reader, *, bodiless=False):
    """Reads one answer; `cut` if the connection ended in its body."""
    answer = await head_of(reader)
    if bodiless or answer.status in {204, 304}:
        return answer
    try:
        length = answer.header(b"content-length")
        if length:
            answer.body = await reader.readexactly(int(length[0]))
        else:
            await _chunks(reader, answer)
    except asyncio.IncompleteReadError as error:
        answer.body += error.partial
        answer.cut = True
    return answer


async def _chunks(reader, answer):
    while True:
        size = int((await reader.readuntil(b"\r\n")).strip(), 16)
        data = await reader.readexactly(size + 2)
        if not size:
            return
        answer.body += data[:-2]


async def piece(reader):
    """Reads one chunk of an answer."""
    size = int((await reader.readuntil(b"\r\n")).strip(), 16)
    return (await reader.readexactly(size + 2))[:-2]


async def rest(seconds):
    """Lets the loop run for so long."""
    await asyncio.wait({asyncio.get_running_loop().create_future()}, timeout=seconds)


async def until(true, within_s=3.0):
    """Waits for a condition.

    Raises:
        TimeoutError: it did not come true.
    """
    async with asyncio.timeout(within_s):
        while not true():
            await rest(0.01)


def run(test, within_s=20.0):
    """Runs a test in a loop of its own, of the kind the gateway has."""

    async def limited():
        async with asyncio.timeout(within_s):
            await test()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(limited())
