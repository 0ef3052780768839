"""The example FastAPI app is admitted to, refused, and measured by its middleware."""

import json
import re
import subprocess
import sys
from contextlib import ExitStack, closing, contextmanager
from http.client import HTTPConnection

import pytest
from tests.real.process import running, until

START_S = 30


@pytest.fixture
def app(root, tmp_path):
    """The running app: its address, and the path of its log."""
    log, out = tmp_path / "decisions.jsonl", tmp_path / "out.txt"
    command = [sys.executable, root / "examples" / "fastapi_app.py"]
    found = []

    def address():
        said = out.read_text(encoding="utf-8")
        found[:] = re.findall(r"running on http://([\d.:]+)", said)
        return found or server.poll() is not None

    with (
        out.open("w") as said,
        running(
            [*command, "--port", "0", "--log", log],
            stdout=said,
            stderr=subprocess.STDOUT,
        ) as server,
    ):
        assert until(address, START_S)
        assert found, out.read_text(encoding="utf-8")
        yield found[0], log
    assert "Traceback" not in out.read_text(encoding="utf-8")


@contextmanager
def asked(address, path="/v1/chat/completions", tokens=3):
    """One request under way: its response."""
    wish = {"model": "m", "max_tokens": tokens, "stream": True, "messages": []}
    with closing(HTTPConnection(address, timeout=20)) as connection:
        body = json.dumps(wish) if path.startswith("/v1") else None
        header = {"content-type": "application/json"}
        connection.request("POST" if body else "GET", path, body, header)
        yield connection.getresponse()


def lines(log, kind):
    """The lines of one kind that are written so far."""
    text = log.read_text(encoding="utf-8") if log.exists() else ""
    whole = text[: text.rfind("\n") + 1].splitlines()
    return [line for line in map(json.loads, whole) if line["k"] == kind]


def test_an_answer_is_streamed_and_measured(app):
    """Under the decision's id; the log has its first token and its end."""
    address, log = app
    with asked(address) as reply:
        assert reply.status == 200
        assert reply.headers["x-admitperf-decision-id"]
        body = reply.read()
    assert body.count(b"word") == 3
    assert body.endswith(b"data: [DONE]\n\n")
    assert until(lambda: lines(log, "outcome"), seconds=5)
    (outcome,) = lines(log, "outcome")
    assert outcome["ok"]
    assert outcome["finish_reason"] == "length"
    assert 0 < outcome["ttft_ms"] <= outcome["e2e_ms"]


def test_one_too_many_is_refused_and_others_pass(app):
    """With a status and a wait; health and metrics are asked for all the same."""
    address, log = app
    with ExitStack() as four:
        for _ in range(4):
            four.enter_context(asked(address, tokens=1000))
        assert until(lambda: len(lines(log, "decision")) == 4, seconds=5)
        with asked(address) as reply:
            assert reply.status == 503
            assert int(reply.headers["retry-after"]) >= 1
            error = json.loads(reply.read())["error"]
            assert error["code"] == "in_flight_cap"
        with asked(address, "/health") as reply:
            assert reply.status == 200
        with asked(address, "/metrics") as reply:
            page = reply.read().decode()
        assert 'admitperf_leases{pool="default"} 4.0' in page
        assert 'reason="in_flight_cap"' in page
    assert until(lambda: len(lines(log, "outcome")) == 4, seconds=5)
    assert {one["error"] for one in lines(log, "outcome")} == {"client_closed"}
    with asked(address, tokens=4) as reply:  # that other call was told to wait
        assert reply.status == 200
