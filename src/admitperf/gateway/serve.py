"""The gateway's process: its socket, its server, its signals and its end."""

import asyncio
import errno
import gc
import os
import resource
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from traceback import walk_tb
from typing import Any

import uvloop
from granian._granian import SocketHolder
from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.server.embed import Server as Granian

from admitperf.core.errors import ConfigError
from admitperf.core.notice import say
from admitperf.gateway.broke import UpstreamBroke
from admitperf.gateway.config.configured import Server
from admitperf.gateway.edge import Edge
from admitperf.gateway.intake import Receive
from admitperf.gateway.middleware import AdmissionMiddleware, App, Scope
from admitperf.gateway.proxy.app import proxy_of
from admitperf.gateway.proxy.callers import Callers
from admitperf.gateway.proxy.own import Own
from admitperf.gateway.readings import Readings
from admitperf.gateway.relay import Send, send_reply
from admitperf.gateway.voice import tell

_CUT_OFF = 1
_FLUSHED_S = 1.0
"""How long the last bytes may take to their callers. Plain choice: they are in the
system's hands already, mostly."""
_COLLECTED = 20_000, 10, 10
"""When garbage is looked for. A request leaves no cycle behind, so a look finds nothing
and holds up every stream: fewer of them. Plain choice: thirty times Python's own."""
_CONNECTIONS = 1 << 20
"""Open connections: bounded by the system's file handles, not here."""


def listening(server: Server) -> socket.socket:
    """A socket that listens, which nobody else may share.

    Raises:
        ConfigError: the address cannot be had; in one line.
    """
    where = f"{server.host}:{server.port}"
    family = socket.AF_INET6 if ":" in server.host else socket.AF_INET
    try:
        made = socket.create_server(
            (server.host, server.port), family=family, backlog=server.backlog
        )
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise ConfigError(where, [f"port {server.port} is in use"]) from None
        number = error.errno or 0
        why = os.strerror(number) if number > 0 else error.strerror or str(error)
        raise ConfigError(where, [why.lower()]) from None
    made.settimeout(0)
    return made


def serve(
    server: Server, edge: Edge, held: socket.socket, ready: Callable[[], None]
) -> int:
    """Serves until a signal ends it.

    The first SIGTERM, SIGINT or SIGHUP has `/ready` say 503 for `grace_s`, in which all
    else is served; then no more is accepted, who is held is answered, and open requests
    go on for `drain_s`. A second signal, or the end of that time, cuts them.

    Args:
        server: how.
        edge: what decides; closed at the end, its logs written.
        held: listens already.
        ready: called when requests are answered.

    Returns:
        The exit code: 1 if something open was cut off, else 0.
    """
    _many_files()
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(_Serving(server, edge, held, ready).run())
    finally:  # whatever was cut has reported its end by now
        edge.close()


class _Server(Granian):
    """The server, on a socket of ours: its own may be shared with another process."""

    def __init__(self, app: App, server: Server, held: socket.socket) -> None:
        super().__init__(
            app,
            interface=Interfaces.ASGINL,
            http=HTTPModes.http1,
            websockets=False,
            backlog=server.backlog,
            backpressure=_CONNECTIONS,
            http1_settings=HTTP1Settings(
                header_read_timeout=round(server.keep_alive_s * 1000),
                max_buffer_size=server.header_bytes,
            ),
            log_enabled=False,
        )
        holder: Any = SocketHolder  # whose constructor has no stub
        self._held = holder(held.detach(), False, server.backlog)  # noqa: FBT003

    def _init_shared_socket(self) -> None:
        self._shd = self._held


class _Serving:
    """One gateway from its first request to its last."""

    def __init__(
        self,
        server: Server,
        edge: Edge,
        held: socket.socket,
        ready: Callable[[], None],
    ) -> None:
        self._grace_s, self._drain_s = server.grace_s, server.drain_s
        self._edge = edge
        self._ready = ready
        self._proxy = proxy_of(edge)
        self._callers = Callers()
        self._app = AdmissionMiddleware(self._proxy, edge=edge)
        self._server = _Server(self._answer, server, held)
        self._open: set[asyncio.Task[Any] | None] = set()
        self._over = asyncio.Event()
        self._leaving = self._draining = False

    async def run(self) -> int:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(_one_line)
        for one in _endings():
            loop.add_signal_handler(one, self._told)
        for pool in self._edge.pools.values():
            if isinstance(pool.seen, Readings):
                pool.seen.speak_for(pool.name)
        self._edge.start()
        gc.freeze()  # what is there now stays: no collection looks at it again
        gc.set_threshold(*_COLLECTED)
        serving = loop.create_task(self._server.serve())
        over = loop.create_task(self._over.wait())
        self._ready()
        await asyncio.wait({serving, over}, return_when=asyncio.FIRST_COMPLETED)
        cut = await self._cut_off()
        await self._proxy.close()
        self._callers.close()
        await asyncio.wait({serving}, timeout=_FLUSHED_S)
        if serving.done():
            serving.result()  # a server that failed says so
        tell(f"ended: {cut} cut")
        return _CUT_OFF if cut else 0

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request. A fault is said in one line, and the server cuts it off."""
        task = asyncio.current_task()
        self._open.add(task)
        try:
            if self._leaving and scope["path"] == "/ready":
                await _not_ready(scope, send)
            else:
                await self._app(scope, self._callers.of(scope, receive), send)
        except (ConnectionError, UpstreamBroke):
            raise
        except Exception as error:
            say(f"gateway: a request failed: {_where(error)}")
            raise
        finally:
            self._open.discard(task)
            if self._draining:
                self._end_if_idle()

    def _told(self) -> None:
        """A signal: the first begins the end, the second cuts."""
        again, self._leaving = self._leaving, True
        if again or self._grace_s <= 0:
            self._drain()
        else:
            tell(
                f"leaving: /ready says 503, all else is served for {self._grace_s:g} s"
            )
            asyncio.get_running_loop().call_later(self._grace_s, self._drain)
        if again:
            self._over.set()

    def _drain(self) -> None:
        """No more is accepted from now on, and what is open may finish."""
        if self._draining:
            return
        self._draining = True
        held = sum(len(pool.queue) for pool in self._edge.pools.values())
        tell(f"draining: {len(self._open) - held} open, {held} held")
        self._edge.drain()
        self._server.stop()  # type: ignore[no-untyped-call]
        asyncio.get_running_loop().call_later(self._drain_s, self._over.set)
        self._end_if_idle()

    def _end_if_idle(self) -> None:
        """Connections on which nothing was asked hold up nobody."""
        if not self._open:
            asyncio.get_running_loop().call_later(_FLUSHED_S, self._over.set)

    async def _cut_off(self) -> int:
        """Ends what is still open where it stands; each reports its end.

        Returns:
            How many there were.
        """
        left = [task for task in self._open if task is not None]
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left, timeout=_FLUSHED_S)
        return len(left)


def _endings() -> list[signal.Signals]:
    """Signals that end it. A SIGHUP that `nohup` has switched off stays off."""
    hung_up = signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN
    return [signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hung_up else [])]


_LEAVING = Own(bytes, dict, lambda _: None, lambda: ["this process was told to end"])
"""Pages of a process that still serves but wants no more."""


async def _not_ready(scope: Scope, send: Send) -> None:
    """`/ready` of a process that was told to end."""
    reply = _LEAVING.answer(scope)
    if reply is not None:
        await send_reply(send, reply, bodiless=scope["method"] == "HEAD")


def _where(error: BaseException) -> str:
    """Which fault, and where. Its own words may hold what a caller sent."""
    said = type(error).__name__
    for frame, line in walk_tb(error.__traceback__):
        said = f"{type(error).__name__} in {frame.f_globals['__name__']}, line {line}"
    return said


def _many_files() -> None:
    """As many open connections as the system lets us have."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):  # a system may promise more than it gives
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _one_line(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """What nobody handles is said in one line, without what it was about."""
    error = context.get("exception")
    what = _where(error) if error else context.get("message")
    print(f"gateway: {what}", file=sys.stderr)  # noqa: T201
