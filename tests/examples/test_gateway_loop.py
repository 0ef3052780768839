"""The example gateway gives back what it took, however a request ends."""

import json
import socket
import subprocess
import sys
import threading
from contextlib import closing
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from tests.real.process import running, until

METRICS = "llamacpp:requests_processing 1\nllamacpp:requests_deferred {}\n"
TOKEN = b'data: {"choices": [{"finish_reason": null, "text": "one"}]}\n\n'
LAST = (
    b'data: {"choices": [{"finish_reason": "length"}], "timings": {"predicted_n": 2}}'
    b"\n\ndata: [DONE]\n\n"
)
FAILED = b'data: {"error": {"message": "out of memory", "code": 500}}\n\n'
WHOLE = LAST.splitlines()[0].removeprefix(b"data: ")


class Engine(BaseHTTPRequestHandler):
    """Answers the way the prompt says."""

    waiting = "0"
    metrics_status = 200

    def do_GET(self):
        """Serve the metrics."""
        self.reply(self.metrics_status, METRICS.format(self.waiting).encode())

    def do_POST(self):
        """Serve a completion."""
        length = int(self.headers["content-length"])
        prompt = json.loads(self.rfile.read(length))["prompt"]
        getattr(self, prompt)()

    def reply(self, status, *parts):
        """Send a status and a body that ends with the connection."""
        self.send_response(status)
        self.end_headers()
        for part in parts:
            self.wfile.write(part)

    def stream(self):
        """End properly after two tokens."""
        self.reply(200, TOKEN, TOKEN, LAST)

    def whole(self):
        """Answer in one piece."""
        self.reply(200, WHOLE)

    def cut(self):
        """End before the last token."""
        self.reply(200, TOKEN)

    def fail(self):
        """Say in the stream that it failed."""
        self.reply(200, TOKEN, FAILED)

    def deny(self):
        """Refuse for a reason of its own."""
        self.reply(400, b'{"error": {"message": "too long", "code": 400}}')

    def vanish(self):
        """Close the connection without a word."""

    def endless(self):
        """Stream until the gateway leaves."""
        self.reply(200, *(TOKEN for _ in range(100_000)))

    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture
def engine():
    """A stub engine; class attributes are its queue depth and its metrics' status."""
    handler = type("Stub", (Engine,), {})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.handle_error = lambda *_: None
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield handler, f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
def command(root, engine, tmp_path):
    """The command line that starts the gateway before the stub."""
    script, log = root / "examples" / "gateway_loop.py", tmp_path / "log.jsonl"
    return [sys.executable, script, "--engine", engine[1], "--port", "0", "--log", log]


@pytest.fixture
def gateway(command, tmp_path):
    """The address of the gateway, which has nothing to complain about."""
    with (tmp_path / "stderr").open("w+", encoding="utf-8") as errors:
        with running(command, stdout=subprocess.PIPE, stderr=errors, text=True) as host:
            ready = host.stdout.readline()
            assert ready, (tmp_path / "stderr").read_text(encoding="utf-8")
            yield ready.split()[0].removeprefix("http://")
        errors.seek(0)
        assert errors.read() == ""


def ask(address, prompt, *, stream=True, **headers):
    """Send one request; its status, headers and body."""
    body = json.dumps({"prompt": prompt, "max_tokens": 2, "stream": stream})
    with closing(HTTPConnection(address, timeout=10)) as connection:
        connection.request("POST", "/v1/completions", body, headers)
        reply = connection.getresponse()
        return reply.status, reply.headers, reply.read()


def lines(command, kind):
    """The lines of one kind in the log."""
    log = command[-1]  # written within 50 ms of the first line
    text = log.read_text(encoding="utf-8") if log.exists() else ""
    return [line for line in map(json.loads, text.splitlines()) if line["k"] == kind]


def outcomes(command, count):
    """The outcomes in the log, once there are so many."""
    assert until(lambda: len(lines(command, "outcome")) >= count, seconds=5)
    return lines(command, "outcome")


def test_an_answer_arrives_byte_for_byte_and_is_measured(gateway, command):
    """The caller gets what the engine sent; the log gets times and tokens."""
    status, _, body = ask(gateway, "stream")
    assert (status, body) == (200, TOKEN + TOKEN + LAST)
    (outcome,) = outcomes(command, 1)
    assert outcome["ok"]
    assert outcome["output_tokens"] == 2
    assert outcome["finish_reason"] == "length"
    assert 0 <= outcome["max_gap_ms"] <= outcome["e2e_ms"]
    assert 0 < outcome["ttft_ms"] <= outcome["e2e_ms"]


def test_an_answer_in_one_piece_has_no_first_token(gateway, command):
    """What was not streamed has an end and no token times."""
    status, _, body = ask(gateway, "whole", stream=False)
    assert (status, body) == (200, WHOLE)
    (outcome,) = outcomes(command, 1)
    assert outcome["ok"]
    assert outcome["e2e_ms"] > 0
    assert "ttft_ms" not in outcome


@pytest.mark.parametrize(
    ("prompt", "status", "error"),
    [
        ("cut", 200, "unfinished"),
        ("fail", 200, "out of memory"),
        ("deny", 400, "too long"),
        ("vanish", 502, "RemoteDisconnected"),
    ],
)
def test_a_failure_of_the_engine_is_an_outcome(gateway, command, prompt, status, error):
    """An answer that did not end properly is not ok and says why."""
    assert ask(gateway, prompt)[0] == status
    (outcome,) = outcomes(command, 1)
    assert not outcome["ok"]
    assert error in outcome["error"]


def test_a_caller_that_leaves_gives_its_place_back(gateway, command):
    """A closed connection ends the request in the log, and its slot in the engine."""
    with closing(HTTPConnection(gateway, timeout=10)) as connection:
        connection.request("POST", "/v1/completions", json.dumps({"prompt": "endless"}))
        assert connection.getresponse().readline() == TOKEN.splitlines(keepends=True)[0]
    (outcome,) = outcomes(command, 1)
    assert not outcome["ok"]
    assert outcome["error"] in {"BrokenPipeError", "ConnectionResetError"}


def test_a_full_engine_is_not_asked(gateway, command, engine):
    """Over the bound the caller gets the refusal and the engine gets nothing."""
    engine[0].waiting = "99"
    refused = []

    def is_refused():
        refused[:] = ask(gateway, "stream", **{"x-request-id": "late"})
        return refused[0] == 503

    assert until(is_refused, seconds=5)
    _, headers, body = refused
    assert int(headers["Retry-After"]) >= 1
    assert headers["content-type"] == "application/json"
    assert headers["x-admitperf-reason"] == "queue_depth"
    assert json.loads(body)["error"]["code"] == "queue_depth"


@pytest.mark.parametrize("body", [b"", b"{", b"[1]", b"7"])
def test_a_request_that_is_no_request_is_not_decided(gateway, command, body):
    """What is no JSON object is answered 400 and leaves no line."""
    with closing(HTTPConnection(gateway, timeout=10)) as connection:
        connection.request("POST", "/v1/completions", body)
        assert connection.getresponse().status == 400
    assert ask(gateway, "stream")[0] == 200
    outcomes(command, 1)
    assert len(lines(command, "decision")) == 1


def refusal_to_start(command):
    """The one line with which a gateway that cannot start says why."""
    ran = subprocess.run(
        command, capture_output=True, text=True, timeout=20, check=False
    )
    assert ran.returncode == 2, ran.stderr
    assert ran.stdout == ""
    (line,) = ran.stderr.splitlines()
    return line


def test_an_engine_without_the_signal_stops_the_start(command, engine):
    """The gateway does not start blind: it names the signal that is missing."""
    engine[0].waiting = "NaN"
    assert "queue_depth is not supplied" in refusal_to_start(command)


def test_an_error_page_is_a_failed_scrape(command, engine):
    """Metrics under a status other than 200 are not believed."""
    engine[0].metrics_status = 503
    assert "/metrics answers 503" in refusal_to_start(command)


def test_an_engine_that_is_not_there_stops_the_start(command, tmp_path):
    """Nobody has to read a traceback to learn that the engine is down."""
    with socket.socket() as taken:  # bound and not listening: nothing answers
        taken.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{taken.getsockname()[1]}"
        line = refusal_to_start([address if "http:" in str(c) else c for c in command])
    assert address in line
    assert "refused" in line


@pytest.mark.parametrize(
    ("length", "status"),
    [
        ("100000000000000", 413),
        ("9" * 5000, 400),
        ("-1", 400),
        ("many", 400),
        ("", 400),
        (None, 400),
    ],
)
def test_a_length_that_is_none_is_answered(gateway, command, length, status):
    """Neither memory nor a thread is spent on what a caller only claims."""
    with closing(HTTPConnection(gateway, timeout=5)) as connection:
        connection.putrequest("POST", "/v1/completions")
        if length is not None:
            connection.putheader("content-length", length)
        connection.endheaders()
        reply = connection.getresponse()
        assert reply.status == status
        assert "message" in json.loads(reply.read())["error"]
    assert ask(gateway, "stream")[0] == 200
    outcomes(command, 1)
    assert len(lines(command, "decision")) == 1


def test_json_nested_without_end_is_answered(gateway, command):
    """It is no request, not a crash, and takes no place."""
    with closing(HTTPConnection(gateway, timeout=5)) as connection:
        connection.request("POST", "/v1/completions", b'{"prompt":' + b"[" * 200_000)
        assert connection.getresponse().status == 400
    assert ask(gateway, "stream")[0] == 200
    outcomes(command, 1)
    assert len(lines(command, "decision")) == 1
