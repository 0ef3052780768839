"""A request's way from its bytes to its answer."""

import asyncio
import re
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from socket import SO_LINGER, SOL_SOCKET

from aiohttp import HttpVersion11, web
from aiohttp.http_exceptions import HttpProcessingError

from admitperf.simulator.server.ask import Ask, chat, completion, message, response
from admitperf.simulator.server.body import Body, parsed
from admitperf.simulator.server.faults import Fault
from admitperf.simulator.server.house import House
from admitperf.simulator.server.intake import Entry
from admitperf.simulator.server.refusal import (
    Refusal,
    bad,
    broken,
    busy,
    no_json_type,
    unknown_model,
)
from admitperf.simulator.server.reply import Outcome, Reply, Streaming
from admitperf.simulator.server.trouble import Trouble
from admitperf.simulator.server.wire.chat import Chat
from admitperf.simulator.server.wire.completions import Completions
from admitperf.simulator.server.wire.form import Form, Head, plain
from admitperf.simulator.server.wire.messages import Messages
from admitperf.simulator.server.wire.responses import Responses


@dataclass(frozen=True, slots=True)
class Api:
    """One of the four.

    Attributes:
        read: makes a request of a body.
        form: how its answers look.
        named: the caller's `x-request-id` becomes part of the answer's id.
    """

    read: Callable[[Body], Ask]
    form: type[Form]
    named: bool = True


APIS: Mapping[str, Api] = {
    "/v1/completions": Api(completion, Completions),
    "/v1/chat/completions": Api(chat, Chat),
    "/v1/responses": Api(response, Responses, named=False),
    "/v1/messages": Api(message, Messages),
}
_EVENTS = "text/event-stream; charset=utf-8"
_ID = re.compile(r"[\w.:-]{1,128}", re.ASCII)


class Answering:
    """Answers requests of the four APIs.

    Args:
        house: the engine and what belongs to it.
        trouble: faults that hold.
    """

    def __init__(self, house: House, trouble: Trouble) -> None:
        self._house = house
        self._trouble = trouble

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Answers one request.

        Raises:
            Refusal: it gets an error instead.
        """
        if self._trouble.struck("hang"):
            await asyncio.get_running_loop().create_future()
        if self._trouble.struck("failing"):
            raise broken()
        api = APIS[request.path]
        body = await read(request)
        ask = api.read(body)
        self.check_model(body)
        self._check_busy()
        entries = self._house.intake.entries(ask)
        form = self._form(api, ask, entries, request)
        if ask.stream:
            return await self._stream(request, form, entries)
        return await self._at_once(form, entries)

    def check_model(self, body: Body) -> None:
        """Sees that the model asked for is the one served.

        Raises:
            Refusal: it is not.
        """
        asked, served = body.text("model"), self._house.setup.model
        body.check()
        if asked is not None and asked != served:
            raise unknown_model(asked[:256], served)

    def _check_busy(self) -> None:
        self._house.wall.catch_up()
        limit = self._house.wall.engine.busy()
        if limit:
            raise busy(limit)

    def _form(
        self, api: Api, ask: Ask, entries: Sequence[Entry], request: web.Request
    ) -> Form:
        given = request.headers.get("x-request-id", "")
        own = api.named and _ID.fullmatch(given)
        head = Head(
            id=given if own else self._house.new_id(),
            created=self._house.second,
            model=self._house.setup.model,
        )
        parts = [entry.part for entry in entries]
        return api.form(head, ask, parts, self._house.tape)

    async def _at_once(self, form: Form, entries: Sequence[Entry]) -> web.Response:
        reply = Reply(form, self._house.served)
        with self._inside(reply, entries):
            outcome = await reply.outcome
        if outcome is Outcome.REFUSED:
            raise self._second()
        if outcome is Outcome.DIED:
            raise ConnectionResetError
        return answered(form.whole())

    async def _stream(
        self, request: web.Request, form: Form, entries: Sequence[Entry]
    ) -> web.StreamResponse:
        made = web.StreamResponse(headers={"content-type": _EVENTS})
        chunked = request.version >= HttpVersion11
        if chunked:
            made.enable_chunked_encoding()
        else:
            made.force_close()
        cut = self._trouble.struck("cut")
        await made.prepare(request)
        if request.transport is None:
            raise ConnectionResetError
        reply = Streaming(
            form,
            self._house.served,
            request.transport,
            chunked=chunked,
            cut_after=int(cut.number("after")) if cut else None,
        )
        outcome = await self._streamed(reply, entries)
        return await self._end(request.transport, reply, made, outcome, cut)

    async def _streamed(self, reply: Streaming, entries: Sequence[Entry]) -> Outcome:
        """Streams until it is over."""
        reply.write(reply.form.opening())
        if self._trouble.struck("reject_in_stream"):
            return Outcome.REFUSED
        with self._inside(reply, entries):
            return await reply.outcome

    async def _end(
        self,
        transport: asyncio.Transport,
        reply: Streaming,
        made: web.StreamResponse,
        outcome: Outcome,
        cut: Fault | None,
    ) -> web.StreamResponse:
        if outcome is Outcome.REFUSED:
            events = reply.form.refused(self._second())
            reply.write(events)
            if not events:  # the real one breaks off
                transport.close()
        if outcome is Outcome.DIED:
            transport.abort()
        if outcome is Outcome.CUT and cut and cut.word("how") == "reset":
            _reset(transport)
        if transport.is_closing():
            raise ConnectionResetError
        await made.write_eof()
        return made

    @contextmanager
    def _inside(self, reply: Reply, entries: Sequence[Entry]) -> Iterator[None]:
        """Has the engine work on all prompts; whatever happens, none stays behind."""
        wall = self._house.wall
        try:
            for entry in entries:
                if not wall.submit(entry.arrival, reply.listener(entry.part)):
                    reply.settle(Outcome.REFUSED)
                    break
            yield
        finally:
            for entry in entries:
                wall.leave(entry.arrival.id)

    def _second(self) -> Refusal:
        """The 503 of the second check, which does not say which limit it was."""
        reqs = self._house.setup.engine.max_num_queued_reqs
        tokens = self._house.setup.engine.max_num_queued_tokens
        by_tokens = reqs is None and tokens is not None
        return busy("max_num_queued_tokens" if by_tokens else "max_num_queued_reqs")


async def read(request: web.Request) -> Body:
    """The body of a request.

    Raises:
        Refusal: it is no JSON object, or does not say it is.
    """
    if request.content_type != "application/json":
        raise no_json_type()
    return Body(parsed(await received(request)))


async def received(request: web.Request) -> bytes:
    """What a request sent.

    Raises:
        Refusal: it is packed, which vLLM does not undo, or broken.
    """
    packed = request.headers.get("content-encoding", "identity").strip().lower()
    if packed not in {"", "identity"}:
        raise bad("a body with a content-encoding is not read")
    try:
        return await request.read()
    except (HttpProcessingError, web.RequestPayloadError):
        raise bad("the body is not sent as its headers say") from None


def answered(value: object, status: int = 200) -> web.Response:
    """An answer in JSON."""
    return web.Response(
        body=plain(value), status=status, content_type="application/json"
    )


def _reset(transport: asyncio.Transport) -> None:
    """Ends a connection so that the other side sees a reset."""
    sock = transport.get_extra_info("socket")
    if sock is not None:
        sock.setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()
