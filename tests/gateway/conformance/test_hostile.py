"""What a hostile caller sends to the gateway reaches no engine and no log."""

import json
import socket
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.gateway.conformance.door import (
    before,
    configured,
    gateway,
    pause,
    pool,
    scripted_engine,
)
from tests.gateway.conformance.wire import CHAT, Caller, get, post, raw, wish
from tests.real.process import until

KEY = "sk-a-key-that-must-not-be-seen"
PROMPT = "a-prompt-that-must-not-be-seen"


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """A scripted engine, and a gateway before it that lets everything in."""
    folder = tmp_path_factory.mktemp("hostile")
    with scripted_engine() as engine, gateway(folder, *before(engine, "says")) as door:
        yield engine, door


BODY = wish(CHAT, "ok")
HEAD = f"POST {CHAT} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
HIDDEN = b"GET /seen?hidden HTTP/1.1\r\nhost: x\r\n\r\n"
CHUNKED = b"%x\r\n" % len(BODY) + BODY + b"\r\n0\r\n\r\n"
SMUGGLED = {
    "both lengths": f"content-length: {len(CHUNKED)}\r\ntransfer-encoding: chunked\r\n",
    "two lengths": f"content-length: {len(BODY)}\r\ncontent-length: 5\r\n",
    "a list of lengths": f"content-length: {len(BODY)}, 5\r\n",
    "a signed length": f"content-length: +{len(BODY)}\r\n",
    "a negative length": "content-length: -1\r\n",
    "a name before a colon with a space": f"content-length : {len(BODY)}\r\n",
    "coding twice": "transfer-encoding: chunked\r\ntransfer-encoding: identity\r\n",
    "an unknown coding": "transfer-encoding: xchunked\r\n",
    "a folded header": f"x-a: b\r\n x: 0\r\ncontent-length: {len(BODY)}\r\n",
}


@pytest.mark.parametrize("kind", SMUGGLED)
def test_ambiguous_framing_is_refused_or_made_plain(pair, kind):
    """What the engine gets has one length, and no second request rides along."""
    engine, _ = pair
    seen = json.loads(get(engine, "/seen")[1])
    body = CHUNKED if "transfer" in SMUGGLED[kind] else BODY
    sent = (HEAD + SMUGGLED[kind] + "connection: close\r\n\r\n").encode() + body
    came = raw(pair[1].url, sent)
    arrived = json.loads(get(engine, "/seen")[1])[len(seen) :]
    assert len(arrived) <= 1
    status = int(came.split()[1]) if came else 400
    if arrived:
        assert arrived[0]["headers"]["content-length"] == str(arrived[0]["bytes"])
        assert "transfer-encoding" not in arrived[0]["headers"]
        assert status == 200
    else:
        assert status in (400, 501)


@pytest.mark.parametrize(
    "chunks", [b"zz\r\nabc\r\n0\r\n\r\n", b"-5\r\nabcde\r\n", b"ffffffffffffffffff\r\n"]
)
def test_bad_chunks_reach_nobody(pair, chunks):
    """A body that cannot be told apart from what follows it is none."""
    engine, door = pair
    seen = len(json.loads(get(engine, "/seen")[1]))
    sent = f"{HEAD}transfer-encoding: chunked\r\nconnection: close\r\n\r\n".encode()
    came = raw(door.url, sent + chunks + HIDDEN)
    assert not came or int(came.split()[1]) == 400
    assert came.count(b"HTTP/1.1") <= 1
    assert len(json.loads(get(engine, "/seen")[1])) == seen


def test_headers_beyond_the_bound_are_refused(pair):
    """Megabytes of headers cost a connection, not memory."""
    _, door = pair
    before_bytes = door.resident_bytes()
    huge = f"x-big: {'x' * (1 << 20)}\r\n" * 4
    came = raw(door.url, f"{HEAD}{huge}\r\n".encode())
    assert not came or int(came.split()[1]) in (400, 413, 431)
    assert door.resident_bytes() - before_bytes < 16 << 20


def test_a_huge_identity_is_cut(pair):
    """Names of thousands of characters stand neither in the log nor in metrics."""
    _, door = pair
    name = "n" * 7000
    headers = {"x-session-id": name, "x-request-id": name, "x-tenant-id": name}
    assert post(door.url, CHAT, wish(CHAT, "ok", text="huge"), headers)[0].status == 200
    lines = door.waits_for("decision")
    assert len(json.dumps(lines[-1])) < 4000
    assert "nnnn" not in "".join(door.metrics())


@pytest.mark.parametrize("model", ["ok", "defer:slots", "status-500", "cut"])
def test_keys_and_prompts_are_written_nowhere(pair, model):
    """Not in the log, the printed lines, the metrics or the state, come what may."""
    _, door = pair
    for stream in (True, False):
        for header in ("authorization", "x-api-key", "api-key"):
            value = f"Bearer {KEY}" if header == "authorization" else KEY
            body = wish(CHAT, model, stream=stream, text=PROMPT)
            post(door.url, CHAT, body, {header: value})
    door.waits_for("decision", 6)
    pages = [get(door.url, page)[1] for page in ("/metrics", "/admitperf/state")]
    written = door.log.read_text() + door.said() + b"".join(pages).decode()
    assert KEY not in written
    assert PROMPT not in written


def test_a_websocket_is_501(pair):
    """It is not silently something else."""
    sent = (
        "GET /v1/realtime HTTP/1.1\r\nhost: x\r\nupgrade: websocket\r\n"
        "connection: Upgrade\r\nsec-websocket-version: 13\r\n"
        "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
    with Caller(pair[1].url) as caller:
        caller._connection.connect()
        caller._connection.sock.sendall(sent.encode())
        assert caller._connection.sock.recv(4096).split()[1] == b"501"


def test_hop_by_hop_headers_go_no_further(pair):
    """Nor what Connection names; everything else arrives as it was sent."""
    engine, door = pair
    headers = {
        "connection": "keep-alive, x-private", "x-private": "1", "te": "trailers",
        "proxy-authorization": "secret", "x-request-id": "hops", "anthropic-beta": "b",
        "x-own": "kept",
    }  # fmt: skip
    post(door.url, CHAT, wish(CHAT, "ok", text="hops"), headers)
    seen = json.loads(get(engine, "/seen")[1])
    (got,) = [n["headers"] for n in seen if n["headers"].get("x-request-id") == "hops"]
    assert not {"x-private", "te", "proxy-authorization"} & set(got)
    assert (got["x-own"], got["anthropic-beta"]) == ("kept", "b")


def test_paths_and_queries_arrive_as_they_were_sent(pair):
    """Escapes are neither undone nor added."""
    engine, door = pair
    path = "/v1/odd%2Fname/%C3%A9?q=a%20b+c&x=%26"
    post(door.url, path, b"{}", {"x-request-id": "odd"})
    seen = json.loads(get(engine, "/seen")[1])
    (got,) = [n for n in seen if n["headers"].get("x-request-id") == "odd"]
    assert got["raw_path"] == path.partition("?")[0]


def test_on_the_way_down_streams_may_end_and_nobody_new_is_let_in(tmp_path):
    """After SIGTERM the open stream comes whole, /ready is 503, and the exit is 0."""
    with scripted_engine() as engine:
        words = configured(tmp_path, pools=[pool(engine, "says")])
        with gateway(tmp_path / "door", *words) as door, Caller(door.url) as caller:
            body = wish(CHAT, "slow", stream=True)
            reply = caller.ask(CHAT, body)
            assert reply.piece()
            door._process.terminate()
            pause(0.5)
            assert door._process.poll() is None
            # The stream takes ten seconds; the end of the process waits for it.
            assert reply.rest().endswith(b"data: [DONE]\n\n")
            assert until(lambda: door._process.poll() == 0, 10), door.said()
    outcomes = door.lines("outcome")
    assert [one["ok"] for one in outcomes] == [True]


@pytest.fixture(scope="module")
def hasty(tmp_path_factory):
    """A gateway that gives callers a second for a head or a piece of body.

    And an engine half a second to its first token.
    """
    folder = tmp_path_factory.mktemp("hasty")
    with scripted_engine() as engine:
        words = configured(
            folder,
            pools=[pool(engine, "says", timeouts={"first_token_s": 0.5})],
            server={"keep_alive_s": 1.0},
            limits={"body_s": 1.0},
        )
        with gateway(folder / "door", *words) as door:
            yield engine, door


SLOW = {
    "head": HEAD.encode(),
    "body": f"{HEAD}content-length: {len(BODY)}\r\n\r\n".encode() + BODY[:-5],
    "chunks": f"{HEAD}transfer-encoding: chunked\r\n\r\n5\r\nab".encode(),
}


@pytest.mark.parametrize("stop", SLOW)
def test_who_sends_nothing_more_is_not_waited_for(hasty, stop):
    """Its connection ends within seconds, and meanwhile others are served."""
    engine, door = hasty
    seen = len(json.loads(get(engine, "/seen")[1]))
    where = door.url.removeprefix("http://").split(":")
    with socket.create_connection((where[0], int(where[1])), 10) as line:
        line.sendall(SLOW[stop])
        assert post(door.url, CHAT, wish(CHAT, "ok", text=stop))[0].status == 200
        came = line.recv(65536)  # raises after ten seconds
    assert not came or int(came.split()[1]) in (400, 408)
    assert len(json.loads(get(engine, "/seen")[1])) == seen + 1
    assert door.empties()


@pytest.mark.parametrize("model", ["silent", "stalled"])
@pytest.mark.parametrize("stream", [False, True])
def test_an_engine_that_says_no_more_than_a_head_is_given_up(hasty, model, stream):
    """As 504 while nothing has been passed on, else by an event in the stream."""
    engine, door = hasty
    reply, body = post(door.url, CHAT, wish(CHAT, model, stream=stream), timeout_s=5)
    if model == "stalled" and stream:
        assert reply.status == 200
        assert body.startswith(b'data: {"error":')
        assert body.endswith(b"data: [DONE]\n\n")
    else:
        assert reply.status == 504
        assert json.loads(body)["error"]["code"] == "timeout_first_token"
        assert reply.one("x-request-id")
    assert door.empties()
    assert until(lambda: json.loads(get(engine, "/seen")[1])[-1]["end"] == "left", 2)


def test_a_connection_that_was_slow_to_open_stretches_no_timeout(tmp_path):
    """Half a second to the first token begins when the request has been sent."""
    with (
        scripted_engine() as engine,
        socket.create_server(("127.0.0.1", 0), backlog=0) as deaf,
    ):
        where = deaf.getsockname()
        upstream = {
            "url": f"http://127.0.0.1:{where[1]}",
            "metrics_url": f"{engine}/metrics",
        }
        one = {"upstreams": [upstream], "timeouts": {"first_token_s": 0.5}}
        words = configured(tmp_path, pools=[one])
        with (
            gateway(tmp_path / "door", *words) as door,
            socket.create_connection(where),  # its queue of one is full
            ThreadPoolExecutor(1) as beside,
        ):
            ask = beside.submit(post, door.url, CHAT, wish(CHAT), timeout_s=5)
            pause(0.3)
            with deaf.accept()[0]:  # there is room: the kernel tries again after 1 s
                reply, _ = ask.result()
            assert reply.status == 504


def test_two_requests_in_one_packet_are_two_requests(pair):
    """Whoever does not wait for answers gets them in order."""
    engine, door = pair
    seen = len(json.loads(get(engine, "/seen")[1]))
    one = f"{HEAD}content-length: {len(BODY)}\r\n".encode()
    sent = one + b"\r\n" + BODY + one + b"connection: close\r\n\r\n" + BODY
    came = raw(door.url, sent)
    assert came.count(b"HTTP/1.1 200") == 2
    assert len(json.loads(get(engine, "/seen")[1])) == seen + 2
    assert door.empties()


def test_the_old_version_is_answered_in_its_own_way(pair):
    """HTTP/1.0 knows no chunks: a stream ends with its connection."""
    _, door = pair
    for stream in (False, True):
        body = wish(CHAT, "ok", stream=stream, text=f"old {stream}")
        head = HEAD.replace("HTTP/1.1", "HTTP/1.0")
        came = raw(
            door.url, f"{head}content-length: {len(body)}\r\n\r\n".encode() + body
        )
        assert came.split()[1] == b"200"
        answer = came.partition(b"\r\n\r\n")
        assert b"transfer-encoding" not in answer[0].lower()
        assert answer[2].startswith(b"data: {" if stream else b"{")


def test_a_caller_that_does_not_read_costs_no_memory(pair):
    """The engine is kept waiting too, and told when the caller leaves at last."""
    engine, door = pair
    before_bytes = door.resident_bytes()
    with Caller(door.url) as caller:
        body = wish(CHAT, "flood", stream=True)
        reply = caller.ask(CHAT, body, {"x-request-id": "unread"})
        assert reply.piece()
        pause(1)
        assert door.resident_bytes() - before_bytes < 16 << 20

    def end():
        seen = json.loads(get(engine, "/seen")[1])
        return [n["end"] for n in seen if n["headers"]["x-request-id"] == "unread"]

    assert until(lambda: end() != [""], 3)
    assert door.empties()

    def outcome():
        return [one["error"] for one in door.lines("outcome") if one["id"] == "unread"]

    assert until(lambda: outcome() == ["client_closed"], 5)
