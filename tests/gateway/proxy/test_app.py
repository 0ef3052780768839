"""The proxy behind the real server: what goes through, unchanged and at once."""

import asyncio
import gzip

import pytest
from tests.gateway.proxy.rig import (
    DONE,
    END,
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
    read,
    run,
    whole,
)

from admitperf.gateway.setup import Limits


def _says(raw):
    async def script(request, reader, writer):
        writer.write(raw)

    return script


def test_an_answer_arrives_as_the_engine_sent_it():
    """Status, values, repeated headers and every byte of a body pass unchanged."""
    body = bytes(range(256)) * 9
    sent = whole(
        body,
        b"Content-Type: application/x-odd",
        b"Retry-After: 7",
        b"X-Two: 1",
        b"X-Two: 2",
        b"Connection: keep-alive, X-Hop",
        b"X-Hop: secret",
        b"Keep-Alive: timeout=5",
        status=b"429 Slow Down",
    )

    async def test():
        async with engine(_says(sent)) as far, door(pool(far.url)) as near:
            got = await ask(near.port, post())
        assert got.status == 429
        assert got.body == body
        assert got.header(b"content-type") == [b"application/x-odd"]
        assert got.header(b"retry-after") == [b"7"]
        assert got.header(b"x-two") == [b"1", b"2"]
        assert got.header(b"x-hop") == got.header(b"keep-alive") == []

    run(test)


def test_a_request_arrives_as_the_caller_sent_it():
    """Method, path, query, body and headers are the same; the host is the engine's."""
    path = b"/v1/chat/completions//%2e%41?q=%20x&y"

    async def test():
        async with engine(_says(whole())) as far, door(pool(far.url)) as near:
            body = b'{"model":"m"}\xff'
            raw = post(body, path, b"X-A: 1", b"x-a: 2", b"Authorization: Bearer k")
            await ask(near.port, raw)
            (got,) = far.requests
        assert got.lines[0] == b"POST " + path + b" HTTP/1.1"
        assert got.body == body
        assert got.header(b"host") == [far.url[7:].encode()]
        assert got.header(b"x-a") == [b"1", b"2"]
        assert got.header(b"authorization") == [b"Bearer k"]
        assert got.header(b"x-request-id") == [b"made-1"]

    run(test)


def test_compressed_bodies_stay_compressed():
    """A gzip body keeps its bytes, length and encoding."""
    packed = gzip.compress(JSON * 50)

    async def test():
        sent = whole(packed, b"Content-Encoding: gzip")
        async with engine(_says(sent)) as far, door(pool(far.url)) as near:
            got = await ask(near.port, post())
        assert got.body == packed
        assert got.header(b"content-encoding") == [b"gzip"]
        assert got.header(b"content-length") == [b"%d" % len(packed)]

    run(test)


def test_no_event_waits_for_the_next():
    """The head comes before the first event, and each event before the next is made."""

    async def test():
        heard = asyncio.Queue()

        async def script(request, reader, writer):
            writer.write(STREAM)
            for n in range(5):
                await heard.get()
                writer.write(chunk(EVENT % n))
            await heard.get()
            writer.write(chunk(DONE) + END)

        async with engine(script) as far, door(pool(far.url)) as near:
            reader, writer = await asyncio.open_connection("127.0.0.1", near.port)
            writer.write(post())
            head = await head_of(reader)
            assert head.header(b"x-accel-buffering") == [b"no"]
            assert head.header(b"cache-control") == [b"no-cache"]
            for n in range(5):
                heard.put_nowait(None)
                assert await piece(reader) == EVENT % n
            heard.put_nowait(None)
            rest = await reader.readuntil(END)
            assert DONE in rest
            writer.close()
        assert near.in_flight == 0

    run(test)


def test_what_an_event_stream_says_of_caching_stays():
    """Headers against buffering are only added where the engine sent none."""
    sent = STREAM[:-2] + b"Cache-Control: private\r\n\r\n" + chunk(DONE) + END

    async def test():
        async with engine(_says(sent)) as far, door(pool(far.url)) as near:
            got = await ask(near.port, post())
        assert got.header(b"cache-control") == [b"private"]
        assert got.body == DONE

    run(test)


def test_a_body_without_length_ends_with_its_connection():
    """An HTTP/1.0 sort of answer is whole when the engine closes."""

    async def script(request, reader, writer):
        writer.write(b"HTTP/1.0 200 OK\r\n\r\n" + JSON)
        writer.close()

    async def test():
        async with engine(script) as far, door(pool(far.url)) as near:
            got = await ask(near.port, post())
        assert (got.body, got.cut) == (JSON, False)

    run(test)


@pytest.mark.parametrize("status", [b"204 No Content", b"304 Not Modified"])
def test_answers_without_a_body_end_at_once(status):
    """Two of them pass on one connection to the engine."""

    async def test():
        sent = b"HTTP/1.1 " + status + b"\r\nX-A: 1\r\n\r\n"
        async with engine(_says(sent)) as far, door(pool(far.url)) as near:
            first = await ask(near.port, post())
            await ask(near.port, post())
            assert [one.number for one in far.requests] == [0, 1]
        assert first.header(b"x-a") == [b"1"]

    run(test)


def test_head_requests_have_no_body_whatever_length_they_name():
    """HEAD passes, and its connection serves the next request."""

    async def script(request, reader, writer):
        head = request.lines[0].startswith(b"HEAD")
        writer.write(whole().removesuffix(JSON) if head else whole())

    async def test():
        async with engine(script) as far, door(pool(far.url)) as near:
            got = await ask(near.port, get(method=b"HEAD"), bodiless=True)
            after = await ask(near.port, get())
            assert [one.number for one in far.requests] == [0, 1]
        assert got.status == 200
        assert after.body == JSON

    run(test)


def test_early_hints_are_not_the_answer():
    """Informational answers before the real one are skipped."""
    sent = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + whole()

    async def test():
        async with engine(_says(sent)) as far, door(pool(far.url)) as near:
            got = await ask(near.port, post())
        assert (got.status, got.body) == (200, JSON)

    run(test)


def test_large_bodies_pass_both_ways():
    """Eight MiB arrive byte for byte, and come back."""
    body = bytes(range(251)) * 33421

    async def script(request, reader, writer):
        writer.write(whole(request.body))
        await writer.drain()

    async def test():
        async with engine(script) as far, door(pool(far.url)) as near:
            for path in (b"/v1/chat/completions", b"/v1/files"):
                got = await ask(near.port, post(body, path))
                assert got.body == body
        assert near.tickets[0].body == b""

    run(test)


def test_models_pass_unjudged_and_keep_their_id():
    """A request without a ticket passes, under the id its caller gave."""

    async def test():
        async with engine(_says(whole())) as far, door(pool(far.url)) as near:
            got = await ask(near.port, get(b"/v1/models", b"X-Request-Id: mine"))
            await ask(near.port, get(b"/v1/models"))
            first, second = far.requests
        assert got.body == JSON
        assert first.header(b"x-request-id") == [b"mine"]
        assert first.header(b"content-length") == []
        assert len(second.header(b"x-request-id")[0]) == 32

    run(test)


@pytest.mark.parametrize("announced", [True, False])
def test_a_body_over_the_limit_names_the_limit(announced):
    """413, without a wait, whether the length was announced or not; nothing is sent."""

    async def test():
        limits = Limits(body_bytes=1000)
        async with (
            engine(_says(whole())) as far,
            door(pool(far.url), limits=limits) as near,
        ):
            if announced:
                raw = post(b"x" * 1001, b"/v1/files")
            else:
                raw = (
                    b"POST /v1/files HTTP/1.1\r\nHost: g\r\nTransfer-Encoding: chunked"
                    b"\r\n\r\n" + chunk(b"x" * 1001) + END
                )
            got = await ask(near.port, raw)
            fits = await ask(near.port, post(b"x" * 1000, b"/v1/files"))
            assert len(far.requests) == 1
        assert (got.status, fits.status) == (413, 200)
        assert b"1000 bytes" in got.body
        assert got.header(b"retry-after") == []

    run(test)


def test_a_chunked_request_is_sent_with_its_length():
    """What was read is what the length says; no chunk framing passes."""

    async def test():
        async with engine(_says(whole())) as far, door(pool(far.url)) as near:
            raw = (
                b"POST /v1/chat/completions HTTP/1.1\r\nHost: g\r\n"
                b"Transfer-Encoding: chunked\r\n\r\n" + chunk(b"ab") + chunk(b"c") + END
            )
            await ask(near.port, raw)
            (got,) = far.requests
        assert got.body == b"abc"
        assert got.header(b"content-length") == [b"3"]
        assert got.header(b"transfer-encoding") == []

    run(test)


@pytest.mark.parametrize("path", [b"/v1/chat/completions", b"/v1/files"])
def test_a_packed_body_is_not_sent_as_a_plain_one(path):
    """501: no coding but chunked is undone here, so none is dropped unsaid."""

    async def test():
        async with engine(_says(whole())) as far, door(pool(far.url)) as near:
            raw = (
                b"POST " + path + b" HTTP/1.1\r\nHost: g\r\n"
                b"Transfer-Encoding: gzip, chunked\r\n\r\n" + chunk(b"packed") + END
            )
            got = await ask(near.port, raw)
            assert far.requests == []
        assert got.status == 501
        assert near.in_flight == 0

    run(test)


def test_no_websocket_is_opened():
    """An upgrade is told that there is none, and reaches no engine."""

    async def test():
        async with engine(_says(whole())) as far, door(pool(far.url)) as near:
            raw = get(b"/v1/realtime", b"Connection: Upgrade", b"Upgrade: WebSocket")
            got = await ask(near.port, raw)
            assert far.requests == []
        assert got.status == 501

    run(test)


def test_a_prefix_of_the_upstream_stays_before_each_path():
    """An engine under a path of its own gets it."""

    async def test():
        async with engine(_says(whole())) as far, door(pool(far.url + "/m/")) as near:
            await ask(near.port, get(b"/v1/models?x=1"))
            assert far.requests[0].lines[0] == b"GET /m/v1/models?x=1 HTTP/1.1"

    run(test)


def test_redirects_are_the_callers_to_follow():
    """A redirect passes as it is."""

    async def test():
        sent = whole(b"", b"Location: http://127.0.0.1:1/", status=b"307 Elsewhere")
        async with engine(_says(sent)) as far, door(pool(far.url)) as near:
            got = await ask(near.port, post())
            assert len(far.requests) == 1
        assert (got.status, got.header(b"location")) == (307, [b"http://127.0.0.1:1/"])

    run(test)


def test_one_connection_of_a_caller_serves_many_requests():
    """Answers come in order on a kept connection."""

    async def script(request, reader, writer):
        writer.write(whole(request.body))

    async def test():
        async with engine(script) as far, door(pool(far.url)) as near:
            reader, writer = await asyncio.open_connection("127.0.0.1", near.port)
            for n in range(20):
                writer.write(post(b"%d" % n))
                assert (await read(reader)).body == b"%d" % n
            writer.close()
            assert {one.number for one in far.requests} == set(range(20))

    run(test)
