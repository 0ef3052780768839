"""The middleware inside a real vLLM: one API server, two of them, and none.

Needs what `tests/real/test_vllm_probe.py` needs.
"""

import json
import os
import re
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial
from http.client import HTTPConnection
from importlib.metadata import distribution
from pathlib import Path

import pytest
from tests.real.conftest import free_port, is_healthy
from tests.real.process import running, until

pytestmark = pytest.mark.real_vllm

CHAT, MESSAGES = "/v1/chat/completions", "/v1/messages"
LONG = 900
QUEUED = 6
START_S = 180
KEY = "sesame"
UP = "Application startup complete"
MOST_TRIED = 40
DONE = b"data: [DONE]\n\n"


@pytest.fixture(scope="module")
def paths():
    """The venv and the model that the environment names."""
    names = ("ADMITPERF_VLLM_VENV", "ADMITPERF_VLLM_MODEL")
    absent = [name for name in names if not os.environ.get(name)]
    if absent:
        pytest.skip(f"no real vLLM: {' and '.join(absent)} not set")
    return tuple(Path(os.environ[name]) for name in names)


@pytest.fixture(scope="module")
def command(paths, root, tmp_path_factory):
    """The command and the variables of a vLLM that has our middleware.

    Its environment has not got AdmitPerf: the sources are on its path, beside what an
    installed one says about its policies.
    """
    venv, model = paths
    told = tmp_path_factory.mktemp("told") / "admitperf-0.dist-info"
    told.mkdir()
    (told / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: admitperf\nVersion: 0\n"
    )
    points = distribution("admitperf").read_text("entry_points.txt")
    (told / "entry_points.txt").write_text(points)
    serve = [venv / "bin" / "vllm", "serve", model, "--served-model-name", "tiny"]
    serve += ["--host", "127.0.0.1", "--dtype", "float32", "--max-num-seqs", "4"]
    serve += ["--max-model-len", "1024", "--enforce-eager", "--block-size", "32"]
    serve += ["--num-gpu-blocks-override", "160"]
    serve += ["--middleware", "admitperf.gateway.vllm.AdmissionMiddleware"]
    variables = {
        "PYTHONPATH": os.pathsep.join((str(root / "src"), str(told.parent))),
        "HF_HUB_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "OMP_NUM_THREADS": "1",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    }
    return serve, os.environ | variables


@contextmanager
def started(command, folder, *options, **variables):
    """A server that is ready; its address, and where its decisions go."""
    serve, usual = command
    port, out = free_port(), folder / "engine.log"
    address, log = f"127.0.0.1:{port}", folder / "decisions.jsonl"
    told = {f"ADMITPERF_{name}": text for name, text in variables.items()}
    with (
        out.open("w") as said,
        running(
            [*serve, "--port", str(port), *options],
            env=usual | told | {"ADMITPERF_LOG": str(log)},
            stdout=said,
            stderr=said,
            start_new_session=True,
        ) as server,
    ):
        text = partial(out.read_text, encoding="utf-8")
        servers = 2 if "--api-server-count" in options else 1
        until(lambda: server.poll() is not None or text().count(UP) == servers, START_S)
        assert is_healthy(address), text()[-4000:]
        yield address, log
    with suppress(ProcessLookupError):  # a worker may outlive its server
        os.killpg(server.pid, signal.SIGKILL)


@pytest.fixture(scope="module")
def one(command, tmp_path_factory):
    """One API server, which refuses by itself from six requests on."""
    options = ("--max-num-queued-reqs", str(QUEUED))
    params = "max_in_flight=100,max_per_session=1"
    with started(
        command,
        tmp_path_factory.mktemp("one"),
        *options,
        POLICY="in_flight_cap",
        PARAMS=params,
        SLO="ttft_ms=1500",
    ) as served:
        yield served


@pytest.fixture(scope="module")
def two(command, tmp_path_factory):
    """Two API servers with a key, which share a limit of four."""
    options = ("--api-server-count", "2", "--api-key", KEY)
    with started(
        command,
        tmp_path_factory.mktemp("two"),
        *options,
        POLICY="in_flight_cap",
        PARAMS="max_in_flight=4",
    ) as served:
        yield served


@contextmanager
def asked(address, path=CHAT, tokens=12, *, stream=True, **headers):
    """One request under way: its response."""
    wish = {"model": "tiny", "max_tokens": tokens, "stream": stream, "temperature": 0}
    wish["messages"] = [{"role": "user", "content": "hello"}]
    if path == CHAT:
        wish |= {"ignore_eos": True}
        wish |= {"stream_options": {"include_usage": True}} if stream else {}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    named["content-type"] = "application/json"
    with closing(HTTPConnection(address, timeout=60)) as connection:
        connection.request("POST", path, json.dumps(wish), named)
        yield connection.getresponse()


def answer(address, *how, **more):
    """Status, headers (names in lower case) and body of a request's answer."""
    with asked(address, *how, **more) as reply:
        headers = {name.lower(): value for name, value in reply.getheaders()}
        return reply.status, headers, reply.read()


def lines(log, kind):
    """The lines of one kind that are written so far."""
    text = log.read_text(encoding="utf-8") if log.exists() else ""
    whole = text[: text.rfind("\n") + 1].splitlines()
    return [line for line in map(json.loads, whole) if line["k"] == kind]


def ended(log, name):
    """How a request ended, by its id, once it has."""
    found = []

    def is_known():
        found[:] = [line for line in lines(log, "outcome") if line["id"] == name]
        return bool(found)

    assert until(is_known, seconds=10)
    (outcome,) = found
    return outcome


def page(address):
    """The server's own metrics."""
    with closing(HTTPConnection(address, timeout=60)) as connection:
        connection.request("GET", "/metrics")
        reply = connection.getresponse()
        assert reply.status == 200
        return reply.read().decode()


def number(address, name):
    """The sum of a metric over its labels."""
    found = re.findall(rf"^{name}(?:[^ ]*}})? (.+)$", page(address), re.MULTILINE)
    assert found, name
    return sum(map(float, found))


def is_quiet(address):
    """Whether nothing of ours is open and the engine says the same."""
    names = ("admitperf_leases", "admitperf_lease_drift", "vllm:num_requests_running")
    return not any(number(address, name) for name in names)


def test_a_stream_arrives_as_the_engine_made_it(one):
    """Every event of it and its end, under our ids; the log has what it measured."""
    address, log = one
    status, headers, body = answer(address, x_request_id="mine")
    assert status == 200
    assert body.endswith(DONE)
    assert headers["x-request-id"] == headers["request-id"] == "mine"
    events = [line for line in body.split(b"\n\n") if line]
    assert all(line.startswith(b"data: ") for line in events)
    assert 12 <= len(events) <= 16  # tokens, the role, the usage, the end
    outcome = ended(log, headers["x-request-id"])
    assert outcome["ok"]
    assert outcome["output_tokens"] == 12
    assert outcome["finish_reason"] == "length"
    assert 0 < outcome["ttft_ms"] <= outcome["e2e_ms"]


def test_an_answer_in_one_piece_is_measured_by_its_end(one):
    """Its tokens are counted; there is no first one."""
    address, log = one
    status, headers, body = answer(address, stream=False)
    assert status == 200
    assert json.loads(body)["usage"]["completion_tokens"] == 12
    outcome = ended(log, headers["x-request-id"])
    assert outcome["ok"]
    assert outcome["output_tokens"] == 12
    assert "ttft_ms" not in outcome


def test_the_engine_is_seen_from_within(one):
    """While a stream runs, the next decision knows of it and of the cache's size."""
    address, log = one
    with asked(address, tokens=LONG) as reply:
        assert reply.readline().startswith(b"data: ")
        assert until(lambda: number(address, "vllm:num_requests_running"), 5)
        running = 'admitperf_signal{[^}]*signal="running"'
        assert until(lambda: number(address, running) == 1, 5)
        _, headers, _ = answer(address)
    ended(log, headers["x-request-id"])
    seen = next(
        line["signals"]
        for line in lines(log, "decision")
        if line["id"] == headers["x-request-id"]
    )
    assert seen["running"] >= 1
    assert seen["queue_depth"] == 0
    assert seen["kv_capacity_tokens"] == 160 * 32
    assert seen["in_flight"] == 1
    assert until(lambda: is_quiet(address), 5)


def test_a_refusal_is_in_the_caller_s_dialect(one):
    """With a wait and our ids, for a second call of a session that may have one."""
    address, _ = one
    with asked(address, tokens=LONG, x_session_id="s") as reply:
        assert reply.readline().startswith(b"data: ")
        for path in (CHAT, MESSAGES):
            status, headers, body = answer(address, path, x_session_id="s")
            assert status in {429, 503}
            assert headers["x-admitperf-reason"]
            assert headers["x-request-id"] == headers["request-id"]
            error = json.loads(body)
            assert error["error"]["message"]
            assert error.get("type") == (None if path == CHAT else "error")
        assert answer(address, x_session_id="t")[0] == 200
    assert until(lambda: is_quiet(address), 5)


def test_a_refusal_inside_a_stream_becomes_a_status(one):
    """Of many at once those that vLLM has no room for get its 503, and a wait."""
    address, log = one
    with ThreadPoolExecutor(14) as pool:
        told = list(pool.map(lambda _: answer(address, tokens=60), range(14)))
    served = [body for status, _, body in told if status == 200]
    refused = [(headers, body) for status, headers, body in told if status == 503]
    assert len(served) + len(refused) == 14
    assert QUEUED <= len(served) < 14
    assert all(body.endswith(DONE) and b'"error"' not in body for body in served)
    for headers, body in refused:
        assert json.loads(body)["error"]["message"].startswith("The engine is")
        outcome = ended(log, headers["x-request-id"])
        assert (outcome["ok"], outcome["error"]) == (False, "upstream_refused")
    assert until(lambda: is_quiet(address), 5)


def test_who_hangs_up_gives_everything_back(one):
    """Our lease, and within a second the engine's slot."""
    address, log = one
    with asked(address, tokens=LONG) as reply:
        assert reply.readline().startswith(b"data: ")
        name = reply.headers["x-request-id"]
    outcome = ended(log, name)
    assert (outcome["ok"], outcome["error"]) == (False, "client_closed")
    assert until(lambda: is_quiet(address), 5)


def test_who_has_no_key_is_not_decided_about(two):
    """Two servers or one, vLLM itself says 401, and the log knows nothing of it."""
    address, log = two
    for headers in ({}, {"authorization": "Bearer other"}, {"x_api_key": KEY}):
        status, told, _ = answer(address, **headers)
        assert status == 401
        assert "x-admitperf-decision-id" not in told
    assert lines(log, "decision") == []


def test_two_servers_share_a_limit(two):
    """Each takes half of it, of as many streams as it takes to reach both."""
    address, log = two
    key = {"authorization": f"Bearer {KEY}"}
    with ExitStack() as held:
        statuses = []
        while len(statuses) < MOST_TRIED and statuses.count(200) < 4:
            reply = held.enter_context(asked(address, tokens=LONG, **key))
            statuses.append(reply.status)
            assert reply.status == 200 or int(reply.headers["retry-after"]) >= 1
        assert set(statuses) <= {200, 503}
        assert statuses.count(200) == 4
        for _ in range(8):
            reply = held.enter_context(asked(address, tokens=LONG, **key))
            assert reply.status == 503
    assert until(lambda: len(lines(log, "run")) == 2, 5)
    runs = lines(log, "run")
    assert len({run["pid"] for run in runs}) == 2
    assert {run["params"]["max_in_flight"] for run in runs} == {2}
    assert {run["notes"]["processes"] for run in runs} == {2}
    assert until(lambda: len(lines(log, "outcome")) == 4, 5)
    assert KEY not in log.read_text(encoding="utf-8")


def test_two_servers_have_one_page(two):
    """What each decided is summed on it, and what each sees is there once."""
    address, log = two
    assert answer(address, authorization=f"Bearer {KEY}")[0] == 200
    decided = len(lines(log, "decision"))
    counted = "admitperf_decisions_total"
    assert until(lambda: number(address, counted) >= decided, 5)
    assert number(address, counted) == len(lines(log, "decision"))
    assert until(lambda: number(address, "admitperf_leases") == 0, 5)
    assert page(address).count('signal="kv_capacity_tokens"') == 1
    assert 'signal="queue_depth"' in page(address)


def test_a_server_that_is_set_up_wrongly_ends_with_one_line(command, tmp_path):
    """It does not serve undecided."""
    serve, usual = command
    told = {"ADMITPERF_POLICY": "queue_depth", "ADMITPERF_PARAMS": "max_waiting=x"}
    ran = subprocess.run(
        [*serve, "--port", str(free_port())],
        env=usual | told,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=START_S,
        check=False,
    )
    assert ran.returncode != 0
    said = [line for line in ran.stderr.splitlines() if "admitperf: " in line]
    assert len(said) == 1
    assert "max_waiting = 'x' is not int" in said[0]
