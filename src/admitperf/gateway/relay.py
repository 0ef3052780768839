"""One answer on its way to its caller: watched, never changed but in three places.

An engine that refuses inside a stream, before anything else, is given its real status;
a stream that ends without its terminator gets one closing error event; ids are added to
the head. Every other byte passes as it came, one write a read.
"""

import asyncio
from collections.abc import Awaitable, Callable

from admitperf.core.clock import SYSTEM, Clock
from admitperf.gateway.answers import Dialect, Reply, closing, fault, from_event
from admitperf.gateway.intake import Message
from admitperf.gateway.watching.watch import Watch

Send = Callable[[Message], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

RENEWED_S = 60.0
"""How often a stream shows life to the ledger. Plain choice: a 15th of the lease."""

_NS = 1_000_000_000
_OK = 200
_GATEWAY_TIMEOUT = 504
_BAD_GATEWAY = 502
_WORDS = {
    "upstream_ended_early": "The engine ended the answer early",
    "upstream_unreachable": "The engine cannot be reached",
    "timeout_first_token": "The engine sent no token in time",
    "timeout_gap": "The engine fell silent in mid-answer",
    "timeout_total": "The answer took too long",
}


class Relay:
    """Passes one answer on.

    Args:
        send: of the server.
        watch: sees every byte.
        dialect: of the caller.
        ids: headers that are added where the answer has none of that name.
        request_id: of the request.
        peek_ms: longest time the head of a stream is held back.
        alive: called at the first token, and then once a minute.
        clock: source of time.

    Attributes:
        begun: the head is on its way.
        status: of the answer; 0 = none yet.
    """

    def __init__(  # noqa: PLR0913
        self,
        send: Send,
        watch: Watch,
        dialect: Dialect,
        *,
        ids: Headers,
        request_id: str,
        peek_ms: float,
        alive: Callable[[], None],
        clock: Clock = SYSTEM,
    ) -> None:
        self._send = send
        self._watch = watch
        self._dialect = dialect
        self._ids = ids
        self._request_id = request_id
        self._peek_s = peek_ms / 1000
        self._alive = alive
        self._now_ns = clock.monotonic_ns
        self._alive_ns = 0
        self._head: Message | None = None
        self._early = b""
        self._timer: asyncio.TimerHandle | None = None
        self._flushing: asyncio.Future[None] | None = None
        self._over = False
        self.begun = False
        self.status = 0

    async def send(self, message: Message) -> None:
        """The `send` of the app behind."""
        kind = message["type"]
        if self._over:
            return
        if kind == "http.response.body":
            await self._body(message)
        elif kind == "http.response.start":
            await self._start(message)
        else:
            await self._send(message)

    async def finish(self) -> None:
        """The app returned: what was held back goes out."""
        if self._head is not None:
            self._over = True
            end = {"type": "http.response.body", "body": self._early}
            await self._flush(self._taken_head(), end)
        elif self._flushing is not None:
            await self._flushing

    def close(self) -> None:
        """The request is over: nothing more is sent, not by a timer either."""
        self._hush()
        self._over = True
        flushing = self._flushing
        if flushing is not None and flushing.done() and not flushing.cancelled():
            flushing.exception()  # told to whoever waited for it, or to nobody
        elif flushing is not None:
            flushing.cancel()

    async def break_off(self, why: str) -> None:
        """The rest will not come: say so, in the stream or by status.

        Raises:
            ConnectionError: it is too late for either; the connection is to be cut.
        """
        if self._over:
            return
        if not self.begun:
            status = _GATEWAY_TIMEOUT if why.startswith("timeout") else _BAD_GATEWAY
            await self.reply(
                fault(
                    status, why, _WORDS[why], self._dialect, request_id=self._request_id
                )
            )
            return
        if self._flushing is not None:
            await self._flushing
        watch, self._over = self._watch, True
        if watch.done and watch.outcome(None, why)["ok"]:
            rest = b""  # all that matters has passed
        elif watch.streaming and not watch.done:
            rest = self._closing(why)
        else:
            raise ConnectionError(why)
        await self._send({"type": "http.response.body", "body": rest})

    async def reply(self, reply: Reply) -> None:
        """Sends an answer of our own in place of the app's."""
        self._hush()
        self._head = None
        self._over = self.begun = True
        self.status = reply.status
        headers = self._identified(reply.headers)
        await send_reply(self._send, reply._replace(headers=headers))

    async def _start(self, message: Message) -> None:
        headers = list(message.get("headers", ()))
        self.status = message["status"]
        self._watch.started(self.status, headers)
        message["headers"] = self._identified(headers)
        self._head = message  # until there is something to send it with
        if self._watch.streaming and self.status == _OK and self._peek_s > 0:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._peek_s, self._time_up)

    def _identified(self, headers: Headers) -> Headers:
        """With the ids that are not there; names are in lower case, as in ASGI."""
        known = {name for name, _ in headers}
        return [*headers, *(one for one in self._ids if one[0] not in known)]

    async def _body(self, message: Message) -> None:
        chunk = message.get("body", b"")
        if type(chunk) is not bytes:  # frameworks send memoryviews too
            chunk = message["body"] = bytes(chunk)
        more = message.get("more_body", False)
        if chunk:
            self._saw(chunk)
        if self._head is not None and not await self._released(chunk, more=more):
            return
        if self._flushing is not None and not self._flushing.done():
            await self._flushing
        if not more:
            self._over = True
            chunk += self._missing_end()
            message = {"type": "http.response.body", "body": chunk}
        await self._send(message)

    def _saw(self, chunk: bytes) -> None:
        now_ns = self._now_ns()
        watch = self._watch
        watch.took(chunk, now_ns)
        if now_ns >= self._alive_ns and watch.first_output_ns is not None:
            self._alive_ns = now_ns + int(RENEWED_S * _NS)
            self._alive()

    async def _released(self, chunk: bytes, *, more: bool) -> bool:
        """Whether the head is out; else the chunk waits with it, or became a status."""
        if self._timer is None:
            await self._send(self._taken_head())
            return True
        self._early += chunk
        watch = self._watch
        if watch.refused_in_band is not None:
            reply = from_event(
                watch.refused_in_band, self._dialect, request_id=self._request_id
            )
            if reply is not None:
                await self.reply(reply)
                return False
        if more and not watch.events:
            return False
        self._hush()
        before = self._early[: len(self._early) - len(chunk)]
        await self._send(self._taken_head())
        if before:
            await self._send(_part(before))
        return True

    def _time_up(self) -> None:
        if self._head is not None:
            head, early = self._taken_head(), self._early
            self._flushing = asyncio.ensure_future(self._flush(head, _part(early)))

    def _taken_head(self) -> Message:
        head, self._head = self._head, None
        self.begun = True
        return head or {}

    async def _flush(self, head: Message, part: Message) -> None:
        """Sends the head with a part, be it empty: some servers wait for one."""
        await self._send(head)
        await self._send(part)

    def _hush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _missing_end(self) -> bytes:
        watch = self._watch
        whole = not watch.streaming or watch.done or watch.error is not None
        return (
            b""
            if whole or self.status != _OK
            else self._closing("upstream_ended_early")
        )

    def _closing(self, why: str) -> bytes:
        torn = self._watch.mid_event
        return closing(self._dialect, _WORDS[why], mid_event=torn, code=why)


async def send_reply(send: Send, reply: Reply, *, bodiless: bool = False) -> None:
    """Sends an answer of our own.

    Args:
        send: of the server.
        reply: the answer.
        bodiless: it answers a HEAD.
    """
    start = {"status": reply.status, "headers": reply.headers}
    await send({"type": "http.response.start", **start})
    body = b"" if bodiless else reply.body
    await send({"type": "http.response.body", "body": body})


def _part(body: bytes) -> Message:
    return {"type": "http.response.body", "body": body, "more_body": True}
