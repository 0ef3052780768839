"""Whatever comes in, one clear line goes out, and nothing stays in the engine."""

import gzip
import json
import socket
import threading

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

JSON_TYPE = "application/json"
PATHS = ("/v1/completions", "/v1/chat/completions", "/v1/responses", "/v1/messages")
MINIMAL = {
    "/v1/completions": {"prompt": "x"},
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "x"}]},
    "/v1/responses": {"input": "x"},
    "/v1/messages": {"messages": [{"role": "user", "content": "x"}], "max_tokens": 2},
}
VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(["role", "content", "type", "text"]), inner),
    max_leaves=6,
)  # fmt: skip
FIELD = st.sampled_from(
    ["prompt", "messages", "input", "max_tokens", "max_completion_tokens", "model",
     "stream_options", "n", "temperature", "top_p", "tools", "system", "instructions",
     "ignore_eos", "priority", "seed", "metadata", "user", "max_output_tokens",
     "previous_response_id", "return_token_ids", "tool_choice"]
)  # fmt: skip


def said(answer):
    """The text of an error, which is one and short."""
    told = answer.json()["error"]["message"]
    assert "Traceback" not in told
    assert len(answer.body) < 2000
    return told


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[1]", b"7", b'"x"', b"null", b"\xff\xfe", b'{"prompt": NaN}',
     b'{"max_tokens": Infinity}', b'{"temperature": 1e999}',
     b'{"n": ' + b"9" * 9999 + b"}", b"[" * 100_000, b'{"a":' * 100_000,
     b'{"prompt": "\x00"}', b'{"prompt": 3.5}'],
    ids=range(15),
)  # fmt: skip
def test_what_makes_no_sense_is_400(server, path, body):
    """Said in words, on every path."""
    answer = server.post(path, body)
    assert answer.status == 400
    assert said(answer)


@settings(
    deadline=None, max_examples=150,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)  # fmt: skip
@given(path=st.sampled_from(PATHS), more=st.dictionaries(FIELD, VALUE, max_size=5))
def test_fields_of_any_kind_are_answered_or_refused(server, path, more):
    """Never with 500, and never with half an answer."""
    answer = server.post(path, {"max_tokens": 3, **MINIMAL[path], **more})
    assert answer.status in {200, 400, 404}
    json.loads(answer.body, parse_constant=pytest.fail)
    if answer.status != 200:
        assert answer.json()["error"]["message"]


DEEP = [b"[" * 490 + b"]" * 490, b'{"a":' * 490 + b"1" + b"}" * 490,
        b"[" * 110 + b"]" * 110]  # fmt: skip
WORSE = {
    "/v1/completions": [b'{"prompt": %b}'],
    "/v1/chat/completions": [
        b'{"messages": [{"content": %b}]}',
        b'{"messages": [{"content": "x"}], "tools": [%b]}',
        b'{"messages": [{"role": %b}]}',
    ],
    "/v1/responses": [b'{"input": "x", "metadata": {"a": %b}}', b'{"input": [%b]}'],
    "/v1/messages": [b'{"max_tokens": 2, "messages": [{"content": %b}]}'],
}  # fmt: skip


@pytest.mark.parametrize("path", PATHS)
def test_a_body_that_is_nested_too_deeply_is_400(server, path):
    """Wherever in it, before anything walks it."""
    for body in WORSE[path]:
        for deep in DEEP:
            answer = server.post(path, body % deep)
            assert answer.status == 400
            assert "nested too deeply" in said(answer)
    assert server.ask("[{" * 999, max_tokens=1).status in {200, 400}


@pytest.mark.parametrize("kind", [[], {}, [1], 7, None, True])
def test_a_part_of_any_type_is_taken_as_it_is(server, kind):
    """What is no text counts as the JSON it is."""
    part = {"type": kind, "text": "x"}
    for path in PATHS[1:]:
        field = "input" if path == "/v1/responses" else "messages"
        told = {field: [{"role": "user", "content": [part]}], "max_tokens": 2}
        assert server.post(path, told).status == 200


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("field", ["temperature", "top_p", "n", "max_tokens", "seed"])
@pytest.mark.parametrize("value", [10**400, -(10**400)])
def test_a_number_that_no_float_holds_is_400(server, path, field, value):
    """Or not looked at, as a field that an API does not have."""
    answer = server.post(path, {**MINIMAL[path], field: value})
    if answer.status == 200:
        assert (path, field) == ("/v1/responses", "max_tokens")
    else:
        assert answer.status == 400
        assert said(answer)


@pytest.mark.parametrize("path", [*PATHS, "/admin/faults"])
@pytest.mark.parametrize("packed", ["gzip", "deflate", "br", "zstd"])
def test_a_body_that_says_it_is_packed_is_400(server, path, packed):
    """On every path that reads one, whether it is or not, and at once."""
    plain = json.dumps(MINIMAL.get(path, {})).encode()
    for body in (plain, b"{}", gzip.compress(plain)):
        answer = server.post(path, body, **{"content-encoding": packed})
        assert answer.status == 400
        assert said(answer)


def test_more_prompts_than_are_taken_at_once_are_400(server):
    """Others would wait while they are taken in."""
    answer = server.ask([[1]] * 1025, max_tokens=1)
    assert answer.status == 400
    assert "at most 1024 prompts" in said(answer)
    assert len(server.ask(["a"] * 1024, max_tokens=1).json()["choices"]) == 1024


@pytest.mark.parametrize("shutdown", ["hang", "drain", "cut"])
def test_half_a_request_does_not_hold_up_the_end(start, shutdown, capfd):
    """It never reached the engine; nobody is told to wait for it."""
    server = start(shutdown=shutdown)
    head = (
        b"POST /v1/completions HTTP/1.1\r\nhost: x\r\n"
        b"content-type: application/json\r\ncontent-length: 100\r\n\r\n"
    )
    held = []
    for _ in range(5):
        sock = socket.create_connection(("127.0.0.1", server.port), timeout=20)
        sock.sendall(head + b'{"prompt"')
        held.append(sock)
    server.until(lambda: server.serving.front.open == 5)
    server.within(server.serving.end)
    assert server.ended() == 0
    for sock in held:
        sock.close()
    assert capfd.readouterr().err == ""


def test_a_huge_body_is_413_without_reading_all_of_it(start):
    """In OpenAI's shape; the limit is said."""
    server = start(setup={"most_bytes": 1000})
    answer = server.ask("x" * 2000)
    assert answer.status == 413
    assert said(answer) == "the body is larger than 1000 bytes"


def test_bytes_that_are_no_http_end_the_connection_alone(server, capfd):
    """Header bombs, wrong lines and silence: no traceback anywhere."""
    long = b"GET /health HTTP/1.1\r\nhost: x\r\n"
    for raw in (
        b"\x16\x03\x01\x02\x00",
        b"GET / HTTP/9.9\r\n\r\n",
        long + b"x: " + b"a" * 100_000 + b"\r\n\r\n",
        long + b"".join(b"h%d: x\r\n" % i for i in range(5000)) + b"\r\n",
        b"POST /v1/completions HTTP/1.1\r\ncontent-length: -5\r\n\r\n",
        b"POST /v1/completions HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
    ):
        with socket.create_connection(("127.0.0.1", server.port), timeout=20) as sock:
            sock.sendall(raw)
            sock.shutdown(socket.SHUT_WR)
            answer = sock.recv(4096)
        assert b"Traceback" not in answer
        assert answer.startswith((b"HTTP/1.1 400", b"HTTP/1.0 400")) or not answer
    assert server.get("/health").status == 200
    shown = capfd.readouterr()
    assert "Traceback" not in shown.out + shown.err


def test_half_a_request_holds_nothing_up(server):
    """A body that never comes is not in the engine; others are served."""
    head = (
        b"POST /v1/completions HTTP/1.1\r\nhost: x\r\n"
        b"content-type: application/json\r\ncontent-length: 100\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as sock:
        sock.sendall(head + b'{"prompt"')
        assert server.ask("x", max_tokens=2).status == 200
        assert server.within(lambda: server.engine.running) == 0
    server.until(server.empty)


def test_callers_that_leave_at_any_moment_leave_nothing_behind(start):
    """Streamed or not, before or after the first token, reset or closed."""
    server = start(max_num_seqs=2, step_ms=3.0, front_ms=5.0)
    pause = threading.Event()
    for place in range(24):
        path = PATHS[place % 4]
        told = {"max_tokens": 500, "ignore_eos": True, "stream": place % 3 > 0}
        body = json.dumps({**MINIMAL[path], **told}).encode()
        sock = socket.create_connection(("127.0.0.1", server.port), timeout=20)
        sock.sendall(
            b"POST %b HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
            b"content-length: %d\r\n\r\n%b" % (path.encode(), len(body), body)
        )
        pause.wait(place % 5 * 0.004)
        if place % 2:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        sock.close()
    server.until(server.empty)
    assert server.engine.tally.ended == 0
    assert server.engine.kv_fraction == 0


def test_a_slow_reader_does_not_hold_up_the_others(start):
    """What it does not read waits for it alone."""
    server = start(step_ms=1.0)
    body = json.dumps({"prompt": "x", "max_tokens": 900, "stream": True,
                       "ignore_eos": True}).encode()  # fmt: skip
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16384)
        sock.sendall(
            b"POST /v1/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\n"
            b"content-type: application/json\r\ncontent-length: %d\r\n\r\n%b"
            % (len(body), body)
        )
        assert server.ask("y", max_tokens=300, ignore_eos=True).status == 200
        raw = b"".join(iter(lambda: sock.recv(65536), b""))
    assert raw.count(b"data: ") == 901


def test_faults_are_told_from_this_machine_only(server):
    """Anybody else gets 403."""
    from types import SimpleNamespace

    from admitperf.simulator.server.front import _only_from_here
    from admitperf.simulator.server.refusal import Refusal

    for near in ("127.0.0.1", "::1", "127.9.9.9"):
        _only_from_here(SimpleNamespace(remote=near))
    for far in ("10.0.0.1", "2001:db8::1", "", None, "localhost.example"):
        with pytest.raises(Refusal) as caught:
            _only_from_here(SimpleNamespace(remote=far))
        assert caught.value.status == 403


@pytest.mark.parametrize("raw", [b"{", b"[" * 99_999, b"7", b'{"faults": [{}]}'])
def test_faults_that_are_none_are_400(server, raw):
    """With what is wrong."""
    answer = server.post("/admin/faults", raw)
    assert answer.status == 400
    assert said(answer).startswith("faults: ")
