"""What smoke sees of an engine that is up but not well."""

import json

import pytest
from tests.cli.conftest import is_plain
from tests.scrape.server import http, servers

PAGE = (
    b"vllm:num_requests_running 0\nvllm:num_requests_waiting 0\n"
    b"vllm:kv_cache_usage_perc 0.1\n"
)
EVENT = b'data: {"choices": [{"text": " a"}]}\n\n'
USAGE = b'data: {"choices": [], "usage": {"completion_tokens": %d}}\n\n'
STREAM = EVENT * 8 + USAGE % 8 + b"data: [DONE]\n\n"


class Engine:
    """Answers as a test says; keeps what it was asked to complete."""

    def __init__(self):
        self.page, self.stream, self.status = PAGE, STREAM, "200 OK"
        self.health = http(b"")

    def __call__(self, request):
        """The answer to one GET."""
        path = request.split()[1]
        if path == b"/metrics":
            return http(self.page)
        if path == b"/v1/models":
            return http(b'{"data": [{"id": "m"}]}')
        return self.health


@pytest.fixture
def engine():
    """What the engine says, to be changed by a test."""
    return Engine()


@pytest.fixture
def up(engine, infra, monkeypatch):
    """Bring the engine up by its address."""
    asked = []

    def talk(self, connection):
        request = connection.recv(65536)
        while b"\r\n\r\n" not in request:
            request += connection.recv(65536)
        if request.startswith(b"POST"):
            head, _, body = request.partition(b"\r\n\r\n")
            while not body.endswith(b"}"):
                body += connection.recv(65536)
            asked.append((head.decode(), json.loads(body)))
            connection.sendall(http(engine.stream, engine.status))
        else:
            connection.sendall(engine(request))

    monkeypatch.setattr("tests.scrape.server.Server._talk", talk)
    monkeypatch.setattr("admitperf.scrape.survey.BETWEEN_S", 0.01)
    with servers() as start:
        server = start(engine)
        ran = infra("up", "--url", f"127.0.0.1:{server.port}")
        assert ran.exit_code == 0, ran.output
        yield asked
        infra("down")


def checks(ran):
    """The checks of a smoke as JSON: name to whether it is well."""
    return {one["name"]: one["ok"] for one in json.loads(ran.stdout)["checks"]}


def said(ran, name):
    """What one check said."""
    (found,) = [
        one["said"] for one in json.loads(ran.stdout)["checks"] if one["name"] == name
    ]
    return found


def test_all_is_well(up, infra):
    """Every check is ok, and the request was one as a benchmark sends it."""
    ran = infra("smoke", ADMITPERF_TOKEN="tok-8f3a1c")
    assert ran.exit_code == 0, ran.output
    assert is_plain(ran.stdout)
    ((head, asked),) = up
    assert "authorization: Bearer tok-8f3a1c" in head
    assert (asked["model"], asked["max_tokens"]) == ("m", 8)
    assert (asked["ignore_eos"], asked["stream"]) == (True, True)
    assert all(isinstance(one, int) for one in asked["prompt"])


def test_an_answer_that_ends_early_is_told_as_ignore_eos(up, infra, engine):
    """Load would stay below plan."""
    engine.stream = EVENT * 3 + USAGE % 3 + b"data: [DONE]\n\n"
    ran = infra("smoke", "--json")
    assert ran.exit_code == 1
    assert checks(ran)["ignore_eos"] is False
    assert said(ran, "ignore_eos").startswith("not honoured: 3 of the 8")


@pytest.mark.parametrize(
    ("stream", "status", "words"),
    [
        (b'{"error": "no model"}', "404 Not Found", "status 404: {"),
        (b'data: {"error": {"code": 503}}\n\n', "200 OK", "an error in the stream"),
        (b"data: [DONE]\n\n", "200 OK", "a stream without a token"),
        (b"data: [1]\n\n", "200 OK", "an answer"),
        (b"data: {\n\n", "200 OK", "an answer"),
        (b'data: {"choices": [3]}\n\n', "200 OK", "an answer"),
        (b'data: {"choices": 3}\n\n', "200 OK", "an answer"),
        (
            b'data: {"usage": {"completion_tokens": "x"}}\n\n',
            "200 OK",
            "an answer",
        ),
        (b'data: {"usage": 3}\n\n', "200 OK", "an answer"),
    ],
)
def test_a_request_that_fails_says_how(up, infra, engine, stream, status, words):
    """A status, an error inside a stream, or a stream that is none."""
    engine.stream, engine.status = stream, status
    ran = infra("smoke", "--json")
    assert ran.exit_code == 1, ran.output
    assert checks(ran)["request"] is False
    assert said(ran, "request").startswith(words)
    assert checks(ran)["metrics"] is True


def test_a_signal_that_is_not_there_is_named(up, infra, engine):
    """Those that every run needs, and those of the named policies."""
    engine.page = b"vllm:num_requests_running 0\nvllm:num_requests_waiting 0\n"
    ran = infra("smoke", "--json")
    assert ran.exit_code == 0
    assert json.loads(ran.stdout)["unusable"]["kv_threshold"] == "kv_pressure"
    ran = infra("smoke", "--policy", "kv_threshold", "--json")
    assert ran.exit_code == 1
    assert "not supplied: kv_pressure" in said(ran, "signals")
    engine.page = b"vllm:kv_cache_usage_perc 0.1\n"
    ran = infra("smoke", "--json")
    assert ran.exit_code == 1
    assert "not supplied: queue_depth, running" in said(ran, "signals")


def test_a_page_that_is_none_fails_metrics_and_signals(up, infra, engine):
    """With why, and the request is told all the same; no policy is judged by it."""
    engine.page = b"<html>"
    ran = infra("smoke", "--json")
    assert ran.exit_code == 1
    found = checks(ran)
    assert found["request"]
    assert not found["metrics"]
    assert not found["signals"]
    assert json.loads(ran.stdout)["usable"] == []
    assert "policies" not in infra("smoke").stdout


def test_an_engine_that_is_not_healthy_any_more_is_told(up, infra, engine):
    """As every check."""
    engine.health = http(status="503 Service Unavailable")
    ran = infra("smoke")
    assert ran.exit_code == 1
    assert "health        NO" in ran.stdout
    assert is_plain(ran.stdout)


def test_a_policy_that_nobody_offers_is_one_line(up, infra):
    """With the nearest names."""
    ran = infra("smoke", "--policy", "queue_dept")
    assert ran.exit_code == 2
    assert "nearest: queue_depth" in ran.stderr


def test_nothing_that_is_up_is_one_line(infra):
    """Exit code 2, and what to do first."""
    ran = infra("smoke")
    assert ran.exit_code == 2
    assert ran.stderr.endswith("nothing is up; `admitperf infra up` first\n")
