"""Everything that can break between a caller and an engine, and what is left of it."""

import asyncio
import gc
import socket
import struct
from contextlib import contextmanager

import pytest
from aiohttp import ClientPayloadError
from aiohttp.base_protocol import BaseProtocol
from aiohttp.streams import StreamReader
from tests.gateway.proxy.rig import (
    EVENT,
    JSON,
    STREAM,
    ask,
    chunk,
    door,
    engine,
    get,
    head_of,
    piece,
    pool,
    post,
    rest,
    run,
    until,
    whole,
)

from admitperf.core.clock import SYSTEM
from admitperf.gateway.broke import UpstreamBroke
from admitperf.gateway.proxy.callers import Callers
from admitperf.gateway.proxy.passage import Passage
from admitperf.gateway.setup import Timeouts

SHORT_S = 0.3
_REFUSED = "http://127.0.0.1:1"


def _reset(writer):
    """Closes a connection so that the other side sees a reset."""
    sock = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


@contextmanager
def _full():
    """The URL of an engine that takes no more connections, and refuses none."""
    full = socket.create_server(("127.0.0.1", 0), backlog=0)
    full.settimeout(0)
    fill = [socket.socket() for _ in range(4)]
    for one in fill:
        one.settimeout(0)
        one.connect_ex(full.getsockname())
    try:
        yield f"http://127.0.0.1:{full.getsockname()[1]}"
    finally:
        for one in [full, *fill]:
            one.close()


async def _silence(request, reader, writer):
    await asyncio.wait_for(reader.read(), 15)
    writer.close()


# Connections that were kept.


@pytest.mark.parametrize("end", ["close", "reset"])
def test_a_kept_connection_that_died_is_replaced_unnoticed(end):
    """The caller sees its answer, and the engine sees the request once."""

    async def test():
        died = []

        async def script(request, reader, writer):
            if request.number == 1:
                died.append(far.requests.pop())  # read, but never worked on
                _reset(writer) if end == "reset" else writer.close()
                return
            writer.write(whole())

        async with engine(script) as far, door(pool(far.url)) as near:
            first = await ask(near.port, post())
            second = await ask(near.port, post(b'{"n":2}'))
            assert (first.status, second.status) == (200, 200)
            assert len(died) == 1
            assert [one.body for one in far.requests] == [b"{}", b'{"n":2}']
            assert near.in_flight == 0

    run(test)


def test_the_second_try_is_on_a_connection_of_its_own():
    """Where every kept connection is dead, one retry is enough."""

    async def test():
        async def script(request, reader, writer):
            if request.number:
                writer.close()
                return
            await both.wait()
            writer.write(whole())

        both = asyncio.Barrier(5)
        async with engine(script) as far, door(pool(far.url)) as near:
            calls = [ask(near.port, post()) for _ in range(4)]
            asked = [asyncio.create_task(one) for one in calls]
            await both.wait()
            await asyncio.gather(*asked)
            both = asyncio.Barrier(1)
            assert (await ask(near.port, post())).status == 200

    run(test)


def test_a_new_connection_that_dies_is_not_tried_again():
    """What an engine may have begun is not sent twice; the caller gets 502."""

    async def script(request, reader, writer):
        writer.close()

    async def test():
        async with engine(script) as far, door(pool(far.url)) as near:
            got = await ask(near.port, post())
            assert len(far.requests) == 1
        assert got.status == 502
        assert near.tickets[0].why == "upstream_ended_early"
        assert near.in_flight == 0

    run(test)


def test_a_kept_connection_that_dies_late_is_not_replaced():
    """After a second the engine was at work; what it did is not done twice."""

    class Late:
        ahead_ns = 0
        wall_ns = SYSTEM.wall_ns

        def monotonic_ns(self):
            return SYSTEM.monotonic_ns() + self.ahead_ns

    async def test():
        clock = Late()

        async def script(request, reader, writer):
            if request.number:
                clock.ahead_ns += 1_100_000_000
                writer.close()
            else:
                writer.write(whole())

        async with engine(script) as far, door(pool(far.url), clock=clock) as near:
            await ask(near.port, post())
            got = await ask(near.port, post())
            assert len(far.requests) == 2
        assert got.status == 502

    run(test)


def test_half_a_head_on_a_kept_connection_is_not_tried_again():
    """The engine had begun to answer."""

    async def script(request, reader, writer):
        if request.number:
            writer.write(b"HTTP/1.1 200 OK\r\nX-")
            writer.close()
        else:
            writer.write(whole())

    async def test():
        async with engine(script) as far, door(pool(far.url)) as near:
            await ask(near.port, post())
            got = await ask(near.port, post())
            assert len(far.requests) == 2
        assert got.status == 502

    run(test)


def test_an_answer_that_is_no_http_is_a_fault():
    """Garbage gives 502, and its connection is not used again."""

    async def script(request, reader, writer):
        writer.write(b"220 mail ready\r\n\r\n")

    async def test():
        async with engine(script) as far, door(pool(far.url)) as near:
            for _ in range(2):
                assert (await ask(near.port, post())).status == 502
            assert [one.number for one in far.requests] == [0, 0]

    run(test)


# Replicas that are not there.


def test_a_replica_that_refuses_is_passed_over():
    """The next one serves, and the ticket names it."""

    async def script(request, reader, writer):
        writer.write(whole())

    async def test():
        async with engine(script) as far, door(pool(_REFUSED, far.url)) as near:
            for _ in range(4):
                assert (await ask(near.port, post())).status == 200
        assert {one.replica for one in near.tickets} == {"r1"}
        assert {one.why for one in near.tickets} == {None}

    run(test)


def test_no_replica_at_all_is_a_bad_gateway():
    """502 in the caller's dialect, with a word the outcome can have."""

    async def test():
        async with door(pool(_REFUSED, "http://127.0.0.1:2")) as near:
            got = await ask(near.port, post())
            other = await ask(near.port, get())
        assert (got.status, other.status) == (502, 502)
        assert b"upstream_unreachable" in got.body
        assert near.tickets[0].why == "upstream_unreachable"
        assert near.in_flight == 0

    run(test)


def test_a_replica_that_does_not_take_the_connection_is_a_timeout():
    """504 once the time to connect is over."""

    async def test():
        with _full() as url:
            async with door(pool(url, connect_s=SHORT_S)) as near:
                got = await ask(near.port, post())
        assert got.status == 504
        assert near.tickets[0].why == "upstream_unreachable"

    run(test)


# Engines that are slow.


def test_an_engine_that_never_answers_is_a_timeout():
    """504 once the time to the first token is over; the engine is let go."""

    async def test():
        async with (
            engine(_silence) as far,
            door(pool(far.url, first_token_s=SHORT_S)) as near,
        ):
            got = await ask(near.port, post())
            await until(lambda: far.open == 0)
        assert got.status == 504
        assert near.tickets[0].why == "timeout_first_token"

    run(test)


def test_a_head_alone_is_no_token():
    """The time to the first token runs until the first byte of a body."""

    async def script(request, reader, writer):
        await rest(SHORT_S / 2)
        writer.write(STREAM)
        await _silence(request, reader, writer)

    async def test():
        async with (
            engine(script) as far,
            door(pool(far.url, first_token_s=SHORT_S, gap_s=9.0)) as near,
        ):
            got = await ask(near.port, post())
            await until(lambda: far.open == 0)
        assert (got.status, got.cut) == (200, True)
        assert near.broke == ["timeout_first_token"]

    run(test)


def test_an_engine_that_falls_silent_is_cut():
    """What it had sent stays, the proxy says why, and no slot is kept."""

    async def script(request, reader, writer):
        writer.write(STREAM + chunk(EVENT % 1))
        await _silence(request, reader, writer)

    async def test():
        async with engine(script) as far, door(pool(far.url, gap_s=SHORT_S)) as near:
            got = await ask(near.port, post())
            await until(lambda: far.open == 0)
        assert (got.body, got.cut) == (EVENT % 1, True)
        assert near.broke == ["timeout_gap"]
        assert near.in_flight == 0

    run(test)


def test_events_keep_a_stream_open_past_the_gap():
    """Only silence counts, however long the whole answer takes."""

    async def script(request, reader, writer):
        writer.write(STREAM)
        for n in range(10):
            writer.write(chunk(EVENT % n))
            await rest(SHORT_S / 3)
        writer.write(b"0\r\n\r\n")

    async def test():
        async with engine(script) as far, door(pool(far.url, gap_s=SHORT_S)) as near:
            got = await ask(near.port, post())
        assert not got.cut
        assert near.broke == []

    run(test)


def test_an_answer_has_its_time_as_a_whole():
    """The total timeout cuts a stream that never pauses."""

    async def script(request, reader, writer):
        writer.write(STREAM)
        while not writer.is_closing():
            writer.write(chunk(EVENT % 1))
            await writer.drain()
            await rest(0.02)

    async def test():
        async with engine(script) as far, door(pool(far.url, total_s=SHORT_S)) as near:
            got = await ask(near.port, post())
            await until(lambda: far.open == 0)
        assert got.cut
        assert near.broke == ["timeout_total"]

    run(test)


# Engines that break off.


@pytest.mark.parametrize("framing", ["chunked", "length"])
@pytest.mark.parametrize("end", ["close", "reset"])
def test_a_broken_answer_is_never_passed_as_whole(framing, end):
    """What came arrives, the connection is cut, and the proxy says so."""

    async def script(request, reader, writer):
        if framing == "chunked":
            writer.write(STREAM + chunk(EVENT % 1))
        else:
            writer.write(whole(JSON * 2).removesuffix(JSON))
        await rest(0.05)
        _reset(writer) if end == "reset" else writer.close()

    async def test():
        async with engine(script) as far, door(pool(far.url)) as near:
            got = await ask(near.port, post())
        assert got.body == (EVENT % 1 if framing == "chunked" else JSON)
        assert got.cut
        assert near.broke == ["upstream_ended_early"]
        assert near.in_flight == 0

    run(test)


def test_the_last_bytes_before_a_break_are_not_lost():
    """A piece that came before the end, but was not read yet, is still sent."""
    sent = []

    async def send(message):
        sent.append(message["body"])

    async def test():
        passage = Passage(Timeouts(), None, send)
        payload = StreamReader(BaseProtocol(asyncio.get_running_loop()), 65536)
        payload.feed_data(b"last")
        payload.set_exception(ClientPayloadError("torn"))
        with passage, pytest.raises(UpstreamBroke):
            await passage._read(payload)
        assert sent == [b"last"]

    run(test)


def test_an_answer_with_a_transfer_coding_is_no_answer():
    """What nobody unpacked is not passed on as if it were plain."""

    async def script(request, reader, writer):
        packed = STREAM.replace(b"chunked", b"gzip, chunked")
        writer.write(packed + chunk(b"packed") + b"0\r\n\r\n")

    async def test():
        async with engine(script) as far, door(pool(far.url)) as near:
            got = await ask(near.port, post())
        assert got.status == 502
        assert near.tickets[0].why == "upstream_ended_early"
        assert near.in_flight == 0

    run(test)


# Callers that leave.


@pytest.mark.parametrize("begun", [False, True])
def test_a_caller_that_leaves_frees_the_engine(begun):
    """The engine sees it within a second, before its first token and after."""

    async def script(request, reader, writer):
        if begun:
            writer.write(STREAM + chunk(EVENT % 1))
        await far.sees_it_leave(reader)

    async def test():
        nonlocal far
        async with engine(script) as far, door(pool(far.url)) as near:
            reader, writer = await asyncio.open_connection("127.0.0.1", near.port)
            writer.write(post())
            await until(lambda: far.requests)
            if begun:
                await head_of(reader)
                await piece(reader)
            writer.close()
            await until(lambda: far.left, within_s=1.0)
            await until(lambda: near.in_flight == 0)
        assert near.broke == []
        assert near.tickets[0].why == "client_closed"

    far = None
    run(test)


@pytest.mark.parametrize("end", ["close", "reset"])
@pytest.mark.parametrize("behind", [b"\r\n", b"P", post()])
def test_bytes_behind_a_request_do_not_hide_that_its_caller_left(behind, end):
    """The engine is let go within seconds, whatever lies unread behind the request."""
    callers = Callers()
    watches = callers.watches
    callers.close()
    if not watches:
        pytest.skip("this system does not tell of connections")

    async def script(request, reader, writer):
        await far.sees_it_leave(reader)

    async def test():
        nonlocal far
        async with engine(script) as far, door(pool(far.url)) as near:
            _, writer = await asyncio.open_connection("127.0.0.1", near.port)
            writer.write(post() + behind)
            await until(lambda: far.requests)
            await rest(0.2)  # it is watched by now
            _reset(writer) if end == "reset" else writer.close()
            await until(lambda: far.left)
            await until(lambda: near.in_flight == 0)
        assert near.tickets[0].why == "client_closed"

    far = None
    run(test)


def test_nobody_connects_for_a_caller_that_left():
    """The slot is free at once, not when the time to connect is over."""

    async def test():
        with _full() as url:
            async with door(pool(url, connect_s=9.0)) as near:
                _, writer = await asyncio.open_connection("127.0.0.1", near.port)
                writer.write(post())
                await until(lambda: near.in_flight == 1)
                writer.close()
                await until(lambda: near.in_flight == 0)
        assert near.tickets[0].why == "client_closed"
        assert near.broke == []

    run(test)


def test_the_time_for_all_includes_connecting():
    """504 when it is over, though the time to connect is not."""

    async def test():
        with _full() as url:
            async with door(pool(url, connect_s=9.0, total_s=SHORT_S)) as near:
                got = await ask(near.port, post())
        assert got.status == 504
        assert near.tickets[0].why == "timeout_total"
        assert near.in_flight == 0

    run(test)


def test_a_caller_that_stops_reading_is_given_up():
    """One that takes nothing for the length of a gap holds no engine for ever."""

    async def script(request, reader, writer):
        writer.write(STREAM)
        while not writer.is_closing():
            writer.write(chunk(b"x" * 65536))
            await writer.drain()

    async def test():
        async with engine(script) as far, door(pool(far.url, gap_s=SHORT_S)) as near:
            _, writer = await asyncio.open_connection("127.0.0.1", near.port)
            writer.transport.pause_reading()
            writer.write(post())
            await until(lambda: near.in_flight == 1)
            await until(lambda: near.in_flight == 0, within_s=10.0)
            await until(lambda: far.open == 0)
            writer.transport.abort()
        assert near.tickets[0].why == "client_closed"
        assert near.broke == []

    run(test)


def test_a_slow_reader_is_not_the_engines_fault():
    """A caller that pauses longer than the gap, but reads on, gets every byte."""

    async def script(request, reader, writer):
        writer.write(STREAM + chunk(b"x" * 9_000_000) + b"0\r\n\r\n")
        await writer.drain()

    async def test():
        async with engine(script) as far, door(pool(far.url, gap_s=2.0)) as near:
            reader, writer = await asyncio.open_connection(
                "127.0.0.1", near.port, limit=1 << 16
            )
            writer.write(post())
            await head_of(reader)
            size = 0
            while part := await reader.read(2_000_000):
                size += len(part)
                if part.endswith(b"0\r\n\r\n"):
                    break
            writer.close()
        assert size > 9_000_000
        assert near.broke == []

    run(test)


def test_many_that_leave_at_any_time_leave_nothing():
    """Three hundred callers leave after 0 to 60 ms: no request, no connection stays."""

    async def script(request, reader, writer):
        writer.write(STREAM + chunk(EVENT % 1))
        await far.sees_it_leave(reader)

    async def leaves(near, after_s):
        _, writer = await asyncio.open_connection("127.0.0.1", near.port)
        writer.write(post())
        await rest(after_s)
        writer.transport.abort()

    async def test():
        nonlocal far
        async with engine(script) as far, door(pool(far.url)) as near:
            for _ in range(3):
                calls = [leaves(near, n * 0.0006) for n in range(100)]
                await asyncio.gather(*calls)
            await until(lambda: near.in_flight == 0)
            await until(lambda: far.open == 0)
            await until(lambda: _passages() == 0)

    far = None
    run(test)


def _passages():
    """How many are in memory."""
    gc.collect()
    return sum(type(one) is Passage for one in gc.get_objects())
