"""A simulated server in a thread of its own, and ways to look at it from outside."""

import asyncio
import http.client
import json
import threading
from contextlib import ExitStack, contextmanager, suppress

import pytest

from admitperf.simulator.engine.model import EngineModel
from admitperf.simulator.server.faults import faults as faults_of
from admitperf.simulator.server.serving import Serving
from admitperf.simulator.server.setup import Setup

LONGEST_WAIT_S = 20.0
QUICK = {
    "max_num_seqs": 16,
    "kv_blocks": 400,
    "step_ms": 2.0,
    "front_ms": 1.0,
    "max_model_len": 1024,
}


class Answer:
    """An HTTP answer."""

    def __init__(self, answer):
        self.status = answer.status
        self.headers = dict(answer.getheaders())
        self.body = answer.read()

    def json(self):
        """The body as JSON."""
        return json.loads(self.body)

    def events(self):
        """The events of a stream: name or None, and text."""
        found = []
        for block in self.body.decode().strip().split("\n\n"):
            lines = dict(line.split(": ", 1) for line in block.splitlines())
            found.append((lines.get("event"), lines["data"]))
        return found


class Running:
    """A server that runs."""

    def __init__(self, serving, loop, port):
        self.serving = serving
        self.loop = loop
        self.port = port
        self.url = f"http://127.0.0.1:{port}"

    @property
    def engine(self):
        """The engine inside."""
        return self.serving.front.house.wall.engine

    def call(self, method, path, body=None, headers=None):
        """One request on a connection of its own."""
        connection = http.client.HTTPConnection(
            "127.0.0.1", self.port, timeout=LONGEST_WAIT_S
        )
        try:
            connection.request(method, path, body, headers or {})
            return Answer(connection.getresponse())
        finally:
            connection.close()

    def get(self, path):
        """GET."""
        return self.call("GET", path)

    def post(self, path, body, kind="application/json", **headers):
        """POST of JSON, or of bytes as they are."""
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        told = {"content-type": kind, **headers}
        return self.call("POST", path, raw, told)

    def ask(self, prompt="hello world", **more):
        """A completion."""
        return self.post("/v1/completions", {"prompt": prompt, **more})

    def fault(self, kind, **values):
        """Tell a fault from now on."""
        told = {"faults": [{"kind": kind, **values}]}
        answer = self.post("/admin/faults", told)
        assert answer.status == 200, answer.body

    def clear(self):
        """End all faults."""
        assert self.call("DELETE", "/admin/faults").status == 200

    def within(self, work):
        """Run a function where the server runs; its result."""
        done = threading.Event()
        result = []

        def run():
            try:
                result.append(work())
            finally:
                done.set()

        self.loop.call_soon_threadsafe(run)
        assert done.wait(LONGEST_WAIT_S)
        return result[0]

    def until(self, holds):
        """Wait until something holds inside."""
        pause = threading.Event()
        for _ in range(int(LONGEST_WAIT_S / 0.01)):
            if self.within(holds):
                return
            pause.wait(0.01)
        pytest.fail("it never came to hold")

    def ended(self):
        """Wait until it is over; its exit code."""
        over, pause = self.serving._over, threading.Event()
        for _ in range(int(LONGEST_WAIT_S / 0.01)):
            if over.done():
                return over.result()
            pause.wait(0.01)
        return pytest.fail("it never ended")

    def empty(self):
        """Whether nothing is left inside, the engine brought up to now."""
        wall = self.serving.front.house.wall
        wall.catch_up()
        inside = wall.engine.running + wall.engine.waiting + wall.inside
        return inside + self.serving.front.open == 0


@contextmanager
def running(setup, faults=(), shutdown="hang"):
    """Run a server in a thread; it must end when it is told."""
    ready, made = threading.Event(), []

    async def main():
        """The server, in the loop of its thread."""
        serving = Serving(setup, faults, shutdown)

        def listening(_host, port):
            """It listens."""
            made.append(Running(serving, asyncio.get_running_loop(), port))
            ready.set()

        await serving.run("127.0.0.1", 0, listening, signals=())

    thread = threading.Thread(target=lambda: asyncio.run(main()))
    thread.start()
    try:
        assert ready.wait(LONGEST_WAIT_S)
        yield made[0]
    finally:
        with suppress(RuntimeError):  # it has ended already
            for _ in range(2):  # the second one ends whatever is open
                made[0].loop.call_soon_threadsafe(made[0].serving.end)
        thread.join(LONGEST_WAIT_S)
        assert not thread.is_alive()


@pytest.fixture(scope="module")
def shared_server():
    """A quick server that tests share which leave it as it was."""
    with running(Setup(engine=EngineModel(**QUICK), model="tiny", seed=1)) as server:
        yield server


@pytest.fixture
def server(shared_server):
    """The shared server; afterwards nothing may be left inside."""
    yield shared_server
    shared_server.until(shared_server.empty)


@pytest.fixture
def start():
    """Start a server of one's own; afterwards nothing may be left inside."""
    with ExitStack() as stack:

        def _start(faults=(), shutdown="hang", setup=None, **engine):
            made = Setup(
                engine=EngineModel(**{**QUICK, **engine}),
                model="tiny",
                **{"seed": 1, **(setup or {})},
            )
            told = faults_of(list(faults), "test")
            server = stack.enter_context(running(made, told, shutdown))
            over = server.serving._over
            stack.callback(lambda: over.done() or server.until(server.empty))
            return server

        yield _start
