"""The server's sockets, its signals and its end."""

import asyncio
import logging
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Literal

from aiohttp import web

from admitperf.simulator.server.faults import Fault
from admitperf.simulator.server.front import Front
from admitperf.simulator.server.setup import Setup

Shutdown = Literal["hang", "drain", "cut"]

_BACKLOG = 2048  # uvicorn's
_CUT_OFF = 1
_PATIENCE_S = 10.0  # with a port that somebody took during a restart
_AGAIN_S = 0.1

_quiet = logging.getLogger("admitperf.simulator.server")
_quiet.addHandler(logging.NullHandler())
_quiet.propagate = False


class Serving:
    """A server from its first connection to its last.

    Args:
        setup: what it is made of.
        faults: told at its start.
        shutdown: what the first signal does to open requests: `hang`, they stand still
            until their callers leave, as with vLLM; `drain`, they are finished; `cut`,
            their connections end.

    Raises:
        ConfigError: the faults cannot hold together.
    """

    def __init__(
        self, setup: Setup, faults: Sequence[Fault] = (), shutdown: Shutdown = "hang"
    ) -> None:
        self._faults = faults
        self._shutdown = shutdown
        self.front = Front(setup, self._restart)
        self.front.check(faults, "faults")
        self._runner = web.AppRunner(
            self.front.app(),
            handler_cancellation=True,
            auto_decompress=False,  # what is packed is refused where it is read
            access_log=None,
            logger=_quiet,
            shutdown_timeout=0.5,
            handle_signals=False,
        )
        self._site: web.TCPSite | None = None
        self._address = ("", 0)
        self._down = self._refusing = 0  # restarts under way, and those of them
        self._tuning = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._over: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._signals = 0

    async def run(
        self,
        host: str,
        port: int,
        ready: Callable[[str, int], None],
        signals: Sequence[str] = ("SIGINT", "SIGTERM"),
    ) -> int:
        """Serves until it is told to end.

        Args:
            host: to listen on.
            port: likewise; 0 = any that is free.
            ready: called with the host and port it listens on.
            signals: by which it is told; without any, by `end`.

        Returns:
            The exit code: 1 if a second signal cut off what was open, else 0.

        Raises:
            OSError: the address cannot be listened on, at first or after a restart.
        """
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(_one_line)
        await self._runner.setup()
        try:
            self._address = (host, port)
            await self._listen()
            self._address = (host, self._port())
            for name in signals:
                loop.add_signal_handler(getattr(signal, name), self.end)
            self.front.trouble.tell(self._faults)
            ready(*self._address)
            return await self._over
        finally:
            await self._close()

    def end(self) -> None:
        """What a signal does: the first as set up, the second at once."""
        self._signals += 1
        self.front.cut_unsent()
        if self._signals == 1:
            self._spawn(self._ending())
            if self._shutdown == "hang":
                _say_open(self.front.open)
        elif not self._over.done():
            self._over.set_result(_CUT_OFF)

    async def _ending(self) -> None:
        await self._tune()
        self.front.cut_unsent()
        if self._runner.server is not None:
            self._runner.server.pre_shutdown()  # closes connections that are idle
        if self._shutdown == "hang":
            self.front.hold_for_good()
        if self._shutdown != "cut":
            await self.front.idle.wait()
        if not self._over.done():
            self._over.set_result(0)

    def _restart(self, fault: Fault) -> None:
        self._spawn(self._restarting(fault))

    async def _restarting(self, fault: Fault) -> None:
        """All connections die, and for some time nothing answers, or only with 503.

        Of several at once the last that is over makes it ready.
        """
        refuses = fault.word("meanwhile") == "refused"
        self._down += 1
        self._refusing += refuses
        self.front.unready = True
        await self._tune()
        self.front.house.restart()
        self._abort()
        await _pause(fault.number("down"))
        self._down -= 1
        self._refusing -= refuses
        if not self._down:
            self.front.house.restart()  # it has lived from now
            self.front.unready = False
        await self._tune()

    def _abort(self) -> None:
        """Ends every connection where it stands."""
        server = self._runner.server
        for connection in list(server.connections) if server else ():
            if connection.transport is not None:
                connection.transport.abort()

    async def _listen(self) -> None:
        host, port = self._address
        site = web.TCPSite(self._runner, host, port, backlog=_BACKLOG)
        try:
            await site.start()
        except OSError:
            await site.stop()  # the runner forgets it
            raise
        self._site = site

    @property
    def _deaf(self) -> bool:
        """Whether nobody may connect now."""
        return bool(self._refusing or self._signals)

    async def _tune(self) -> None:
        """Listens or does not, as it is due; one call after the other."""
        async with self._tuning:
            if self._deaf and self._site is not None:
                site, self._site = self._site, None
                await site.stop()
            elif not self._deaf and self._site is None:
                await self._listen_again()

    async def _listen_again(self) -> None:
        """Listens where it did; a port that was taken ends the server after a while."""
        failed = 0
        while not self._deaf:
            try:
                return await self._listen()
            except OSError as error:
                failed += 1
                if failed * _AGAIN_S > _PATIENCE_S:
                    self._fail(error)
                    return None
            await _pause(_AGAIN_S)
        return None

    def _fail(self, error: OSError) -> None:
        if not self._over.done():
            self._over.set_exception(error)

    def _port(self) -> int:
        return int(self._runner.addresses[0][1])

    async def _close(self) -> None:
        self.front.trouble.clear()
        self._abort()
        for task in self._tasks:
            task.cancel()
        await self._runner.cleanup()
        self.front.house.wall.stop()

    def _spawn(self, work: Any) -> None:  # noqa: ANN401  a coroutine
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _say_open(count: int) -> None:
    """Why the server does not end yet, on standard error; nothing open, not a word."""
    if not count:
        return
    who = "request open; it stands still until its caller leaves"
    if count > 1:
        who = "requests open; they stand still until their callers leave"
    with suppress(OSError):  # nobody reads it any more
        print(f"{count} {who}; signal again to end", file=sys.stderr, flush=True)  # noqa: T201


def _one_line(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """What nobody handles is said in one line."""
    said = context.get("exception") or context.get("message")
    print(f"server: {said!r}", file=sys.stderr)  # noqa: T201


async def _pause(seconds: float) -> None:
    await asyncio.wait([asyncio.get_running_loop().create_future()], timeout=seconds)
