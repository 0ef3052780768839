"""Field cases about metrics, on `watch`: what cannot be read is never a zero."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cases.conftest import PROGRAM
from tests.real.process import running
from tests.scrape.server import http, servers

TOKEN = "s3cret-token-of-this-test"
PAGE = "constructed_vllm_0.33.0_dp2.prom"
BRIEFLY = ("--for", "1s", "--interval", "0.25s")


@pytest.fixture
def serve():
    """Start a server on bytes, or on a function of the request."""
    with servers() as start:
        yield start


@pytest.fixture
def watch(admitperf):
    """Watch some targets for a second; what was shown, and the lines of the trace."""

    def _watch(*targets, **environment):
        shown = admitperf("watch", *targets, *BRIEFLY, "-o", "t.jsonl", **environment)
        path = Path("t.jsonl")
        text = path.read_text("utf-8") if path.exists() else ""
        return shown, [json.loads(line) for line in text.splitlines()]

    return _watch


def sampled(lines):
    """Every value of a signal that a trace holds."""
    return [
        value
        for line in lines
        if line["k"] == "decision"
        for value in line["signals"].values()
    ]


def failures(lines):
    """The failed scrapes of a trace."""
    return [line for line in lines if line.get("event") == "scrape_failed"]


@pytest.mark.parametrize("status", [401, 403])
def test_s_met_09_metrics_behind_an_api_key(watch, stub, status):
    """The address, the status and how to pass a token; no signal is 0."""
    engine = stub("--metrics-status", status)
    shown, lines = watch(engine)
    assert shown.exit_code not in (0, None)
    said = " ".join(shown.stderr.split())
    assert f"{engine}/metrics" in said
    assert str(status) in said
    assert "ADMITPERF_TOKEN" in said
    assert "--token-env" in said
    assert "--token-file" in said
    assert "Traceback" not in shown.output
    assert sampled(lines) == []
    assert not lines or failures(lines)


@pytest.mark.parametrize("way", ["default", "--token-env", "--token-file"])
def test_s_met_09_the_token_opens_and_is_seen_nowhere(serve, tmp_path, way):
    """Not in the process list, not in what is printed, not in the trace."""
    lock = f"Authorization: Bearer {TOKEN}\r\n".encode()
    cmdlines = []

    def answer(request):
        path = Path(f"/proc/{child.pid}/cmdline")
        cmdlines.append(path.read_bytes() if path.exists() else b"not to be seen")
        if lock in request:
            return http(f'vllm:num_requests_waiting{{who="{TOKEN}"}} 4\n'.encode())
        return http(status="401 Unauthorized")

    server, trace = serve(answer), tmp_path / "t.jsonl"
    words, environment = [], {}
    if way == "--token-file":
        (tmp_path / "token").write_text(f"{TOKEN}\n", encoding="utf-8")
        words = [way, str(tmp_path / "token")]
    else:
        name = "ADMITPERF_TOKEN" if way == "default" else "ENGINE_KEY"
        environment = {name: TOKEN}
        words = [] if way == "default" else [way, name]
    tool = [sys.executable, "-c", PROGRAM, "watch", server.url, *BRIEFLY]
    with running(
        [*tool, "-o", trace, *words],
        env={**os.environ, **environment}, cwd=tmp_path, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as child:  # fmt: skip
        stdout, stderr = child.communicate(timeout=60)
    assert child.returncode == 0, stderr
    lines = [json.loads(line) for line in trace.read_text("utf-8").splitlines()]
    assert 4 in sampled(lines)
    assert TOKEN not in stdout + stderr + trace.read_text("utf-8")
    assert cmdlines
    assert all(TOKEN.encode() not in line for line in cmdlines)


def test_s_met_09_a_server_that_echoes_the_token_cannot_make_us_keep_it(watch, serve):
    """Whatever comes back, the token is not in the output and not in the trace."""
    body = f"<html>{TOKEN}</html>".encode()
    server = serve(http(body, "401 Unauthorized", www_authenticate=TOKEN))
    shown, lines = watch(server.url, ADMITPERF_TOKEN=TOKEN)
    assert shown.exit_code not in (0, None)
    assert TOKEN not in shown.output
    assert TOKEN not in json.dumps(lines)


def test_s_met_10_a_redirect_to_the_slashed_path_is_read(watch, stub, data):
    """/metrics answers 307 to /metrics/, and the samples are there."""
    engine = stub("--metrics-redirect", data / "fixtures" / PAGE)
    shown, lines = watch(engine)
    assert shown.exit_code == 0, shown.stderr
    assert 0.8125 in sampled(lines)
    assert failures(lines) == []


def test_s_met_10_a_redirect_to_another_host_gets_no_token(watch, serve):
    """The target is named and never asked, and that is no success."""
    other = serve(http(b"vllm:num_requests_waiting 4\n"))
    server = serve(http(status="307 Temporary Redirect", location=other.url))
    shown, lines = watch(server.url, ADMITPERF_TOKEN=TOKEN)
    assert shown.exit_code not in (0, None)
    assert other.url in " ".join(shown.stderr.split())
    assert other.requests == []
    assert sampled(lines) == []
    assert TOKEN not in shown.output + json.dumps(lines)
