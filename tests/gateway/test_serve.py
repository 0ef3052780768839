"""The gateway's process: its socket, its signals and its end."""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.real.process import running, until

from admitperf.gateway.config.configured import Server
from admitperf.gateway.serve import _where

ROOT = Path(__file__).resolve().parents[2]
STUB = ROOT / "tests" / "data" / "cases" / "_tools" / "stub_engine.py"
TOOL = [sys.executable, "-c", "from admitperf.cli import main; main()"]
CHAT = "/v1/chat/completions"
START_S = 20


def free_port():
    """A port that nobody has at the moment."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


@contextmanager
def engine(**options):
    """Run the stub engine; its address."""
    given = {"port": 0, **options}
    words = [f"--{name.replace('_', '-')}={value}" for name, value in given.items()]
    with running(
        [sys.executable, STUB, *words], stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True,
    ) as process:  # fmt: skip
        yield process.stdout.readline().split()[-1]


class Gateway:
    """A running gateway and what it printed."""

    def __init__(self, process, folder):
        self.process = process
        self._folder = folder
        self._connections = []

    def said(self, name="stdout"):
        """One of its outputs."""
        return (self._folder / name).read_text(encoding="utf-8")

    @property
    def port(self):
        """Where it says that it listens; None = it has not said so yet."""
        found = re.search(r"gateway on http://127\.0\.0\.1:(\d+)\n", self.said())
        return int(found[1]) if found else None

    def ask(self, path, **body):
        """A connection on which a request has been sent."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        method = "POST" if body else "GET"
        self._connections.append(connection)
        connection.request(method, path, json.dumps(body) if body else None)
        return connection

    def get(self, path):
        """Status and body."""
        connection = self.ask(path)
        with connection.getresponse() as response:
            found = response.status, response.read()
        connection.close()
        return found

    def told(self):
        """The lines on its standard error, without the times before them."""
        stamp = r"(?m)^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ "
        return re.sub(stamp, "", self.said("stderr")).splitlines()

    def kill(self):
        """End it and what leads to it."""
        self.process.kill()
        self.process.wait()
        for connection in self._connections:
            connection.close()

    def end(self, number=signal.SIGTERM):
        """Send it a signal."""
        self.process.send_signal(number)

    def exit_code(self):
        """Its exit code, once it has one."""
        return self.process.wait(timeout=20)

    def outcomes(self):
        """The ends of requests in its log."""
        lines = (self._folder / "d.jsonl").read_text(encoding="utf-8").splitlines()
        return [line for line in map(json.loads, lines) if line["k"] == "outcome"]


@pytest.fixture
def gateway(tmp_path):
    """Start gateways with some words; they are gone afterwards."""
    started = []

    def start(*words, wait=True, file=None):
        folder = tmp_path / str(len(started))
        folder.mkdir()
        words = [*TOOL, "gateway", *words]
        if file is not None:
            (folder / "g.yaml").write_text(json.dumps(file), encoding="utf-8")
            words += ["--config", "g.yaml"]
        with (folder / "stdout").open("w") as out, (folder / "stderr").open("w") as err:
            process = subprocess.Popen(
                words, cwd=folder, stdout=out, stderr=err,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )  # fmt: skip
        made = Gateway(process, folder)
        started.append(made)
        if wait:
            assert until(lambda: made.port, START_S), made.said("stderr")
        return made

    yield start
    for made in started:
        made.kill()


@pytest.fixture
def start(gateway):
    """Start a gateway before an engine."""

    def _start(url, **told):
        pool = {"upstreams": [url], "policy": "queue_depth", "log": "d.jsonl"}
        return gateway(file={"listen": "127.0.0.1:0", "pools": [pool], **told})

    return _start


@contextmanager
def stream(door):
    """A streamed answer that has begun."""
    asked = door.ask(CHAT, model="m", stream=True, messages=[])
    with asked.getresponse() as response:
        assert response.status == 200
        assert response.readline().startswith(b"data: ")
        yield response


def test_it_answers_where_it_says_that_it_listens(start):
    """And ends with exit code 0 when it is told to, with its log written."""
    with engine() as url:
        door = start(url)
        with door.ask(CHAT, model="m", messages=[]).getresponse() as answer:
            assert answer.status == 200
            assert json.loads(answer.read())["object"] == "chat.completion"
        door.end()
        assert door.exit_code() == 0
    assert [line["ok"] for line in door.outcomes()] == [True]
    assert door.told() == ["draining: 0 open, 0 held", "ended: 0 cut"]


def test_a_port_that_is_taken_is_one_line(gateway):
    """No traceback, and no address that it does not serve."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        door = gateway(
            "--upstream=127.0.0.1:9", f"--listen=127.0.0.1:{port}", wait=False
        )
        assert door.exit_code() == 2
    assert door.said("stderr") == f"Error: 127.0.0.1:{port}: port {port} is in use\n"
    assert door.said() == ""


def test_two_gateways_do_not_share_a_port(start, gateway):
    """The server underneath would let them, and each would get half of the requests."""
    with engine() as url:
        first = start(url)
        words = f"--upstream={url}", f"--listen=127.0.0.1:{first.port}"
        second = gateway(*words, wait=False)
        assert second.exit_code() == 2
        assert first.get("/health")[0] == 200


@pytest.mark.parametrize("host", ["nowhere.invalid", "203.0.113.1"])
def test_an_address_that_is_not_ours_is_one_line(gateway, host):
    """A name that means nothing, or somebody else's."""
    door = gateway("--upstream=127.0.0.1:9", f"--listen={host}:0", wait=False)
    assert door.exit_code() == 2
    assert re.fullmatch(rf"Error: {re.escape(host)}:0: .+\n", door.said("stderr"))


def test_what_is_open_may_finish_and_nothing_new_begins(start):
    """The first signal stops listening at once."""
    with engine(tokens=60, itl=0.02) as url:
        door = start(url)
        with stream(door) as answer:
            door.end()
            assert until(lambda: not listens(door.port), 5)
            assert answer.read().rstrip().endswith(b"data: [DONE]")
        assert door.exit_code() == 0
    assert [line["ok"] for line in door.outcomes()] == [True]


def listens(port):
    """Whether somebody takes connections there."""
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


def test_what_does_not_finish_in_time_is_cut_and_said_so(start):
    """After `drain_s`, with exit code 1 and an outcome in the log."""
    with engine(tokens=5000, itl=0.02) as url:
        door = start(url, server={"drain_s": 0.3})
        with stream(door):
            door.end()
            assert door.exit_code() == 1
    assert [line["error"] for line in door.outcomes()] == ["shutdown"]
    assert door.told() == ["draining: 1 open, 0 held", "ended: 1 cut"]


def test_a_second_signal_cuts_at_once(start, tmp_path):
    """Also an engine that hangs."""
    events = tmp_path / "events"
    with engine(chat="hang", events=events) as url:
        door = start(url)
        door.ask(CHAT, model="m", messages=[])
        assert until(events.exists, 5)
        door.end(signal.SIGINT)
        assert until(lambda: not listens(door.port), 5)
        door.end(signal.SIGINT)
        assert door.exit_code() == 1
    assert [line["error"] for line in door.outcomes()] == ["shutdown"]


def test_the_end_of_a_terminal_ends_it_like_any_signal(start):
    """What is open may finish."""
    with engine(tokens=30, itl=0.02) as url:
        door = start(url)
        with stream(door) as answer:
            door.end(signal.SIGHUP)
            assert answer.read().rstrip().endswith(b"data: [DONE]")
        assert door.exit_code() == 0


def test_nohup_keeps_it_alive(gateway):
    """Whoever has switched the signal off means it."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with engine() as url:
            door = gateway(f"--upstream={url}", "--listen=127.0.0.1:0")
            door.end(signal.SIGHUP)
            assert door.get("/ready")[0] == 200
    finally:
        signal.signal(signal.SIGHUP, before)


def test_who_is_held_at_the_end_is_counted(start):
    """Apart from what an engine works on."""
    policy = {"name": "in_flight_cap", "params": {"max_in_flight": 1}}
    with engine(tokens=100, itl=0.02) as url:
        pool = {"upstreams": [url], "policy": policy, "holding": "hold"}
        door = start(url, pools=[pool])
        with stream(door):
            door.ask(CHAT, model="m", messages=[])
            state = "/admitperf/state"
            assert until(lambda: b'"held": 1' in door.get(state)[1], 5)
            door.end()
            assert until(door.told, 5)
    assert door.told()[0] == "draining: 1 open, 1 held"


def test_for_a_while_it_serves_on_and_is_not_ready(start):
    """So that load balancers that ask `/ready` stop sending before it stops."""
    with engine() as url:
        door = start(url, server={"grace_s": 1.5})
        door.end()
        assert until(lambda: door.get("/ready")[0] == 503, 5)
        with door.ask(CHAT, model="m", messages=[]).getresponse() as answer:
            assert answer.status == 200
        assert door.exit_code() == 0
    assert door.told() == [
        "leaving: /ready says 503, all else is served for 1.5 s",
        "draining: 0 open, 0 held",
        "ended: 0 cut",
    ]


def test_a_second_signal_ends_the_while_too(start):
    """Nobody waits for it who is in a hurry."""
    with engine() as url:
        door = start(url, server={"grace_s": 600})
        door.end()
        assert until(door.told, 5)
        door.end()
        assert door.exit_code() == 0


def test_an_engine_that_dies_and_returns_is_a_line_each(start):
    """With its pool and its name, however often it was asked meanwhile."""
    port = free_port()
    name = f"127.0.0.1:{port}"
    with engine(port=port):
        door = start(name)
    assert until(lambda: len(door.told()) == 1, 10), door.said("stderr")
    with engine(port=port):
        again = f"pool default: replica {name} is read again"
        assert until(lambda: again in door.told(), 10)
    (died, *_) = door.told()
    assert died.startswith(f"pool default: replica {name} cannot be read: connection ")
    assert died.endswith("; none of the pool's can be")
    assert all(name in line for line in door.told())


def test_an_engine_that_cannot_be_read_yet_is_waited_for(start):
    """It is no reason not to start, but one not to be ready."""
    port = free_port()
    door = start(f"127.0.0.1:{port}")
    assert "cannot be read: connection refused" in door.said("stderr")
    status, reasons = door.get("/ready")
    assert (status, b"no reading" in reasons) == (503, True)
    with engine(port=port):
        assert until(lambda: door.get("/ready")[0] == 200, 10)


def test_an_engine_without_the_signal_ends_the_start(gateway, tmp_path):
    """With what was tried and what looks like it, and exit code 2."""
    page = tmp_path / "page"
    page.write_text("vllm:num_requests_running 1\nour_queue_depth 3\n")
    with engine(metrics=page) as url:
        words = "--listen=127.0.0.1:0", f"--upstream={url}", "--policy=queue_depth"
        door = gateway(*words, wait=False)
        assert door.exit_code() == 2
    (line,) = door.said("stderr").splitlines()
    assert line.startswith(
        "Error: pool default: policy queue_depth: queue_depth is not"
    )
    assert "our_queue_depth" in line
    assert "gateway on" not in door.said()


def test_a_head_that_is_too_large_is_refused(start):
    """Before anything of it is kept."""
    with engine() as url:
        door = start(url, server={"header_bytes": 8192})
        with socket.create_connection(("127.0.0.1", door.port), 10) as caller:
            caller.sendall(b"GET /health HTTP/1.1\r\nx: " + b"y" * 20_000)
            assert caller.recv(100).startswith(b"HTTP/1.1 431 ")


def test_a_connection_that_stands_idle_is_closed_in_time(start):
    """After `keep_alive_s`, and not before; so is one that sends half a head."""
    with engine() as url:
        door = start(url, server={"keep_alive_s": 1})
        for sent in (b"GET /health HTTP/1.1\r\nhost: a\r\n\r\n", b"GET /health HT"):
            with socket.create_connection(("127.0.0.1", door.port), 10) as caller:
                caller.sendall(sent)
                while caller.recv(1000):
                    pass


def test_a_connection_stands_longer_than_load_balancers_reuse_it():
    """They do so for a minute."""
    assert Server().keep_alive_s >= 65


def test_what_was_never_asked_does_not_hold_up_the_end(start):
    """A connection that was opened in advance, and one with half a head on it."""
    with engine() as url:
        door = start(url)
        with (
            socket.create_connection(("127.0.0.1", door.port), 10),
            socket.create_connection(("127.0.0.1", door.port), 10) as half,
        ):
            half.sendall(b"GET /health HT")
            assert door.get("/health")[0] == 200
            door.end()
            assert door.process.wait(timeout=10) == 0


def test_a_fault_of_ours_is_a_line_without_what_a_caller_sent():
    """Which kind, and in which line of which module."""
    fault = ValueError("the prompt")
    try:
        raise fault
    except ValueError:
        assert re.fullmatch(rf"ValueError in {__name__}, line \d+", _where(fault))
    assert _where(KeyError("the prompt")) == "KeyError"
