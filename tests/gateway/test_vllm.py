"""The middleware that vLLM builds, in a server that only looks like vLLM's."""

import asyncio
import json
import logging
from types import SimpleNamespace

import pytest
from prometheus_client import REGISTRY, Gauge, generate_latest
from tests.gateway.asgi import DONE, Caller, event, scope, streams
from tests.real.process import until

from admitperf.gateway.in_process import RegistryPage
from admitperf.gateway.vllm import AdmissionMiddleware, bearer, digests

CHAT = json.dumps({"model": "tiny", "stream": True, "messages": []}).encode()
POLICY = {
    "ADMITPERF_POLICY": "queue_depth",
    "ADMITPERF_PARAMS": "max_waiting=2",
    "ADMITPERF_INTERVAL_S": "0.01",
}


@pytest.fixture(autouse=True)
def _own_voice():
    """The logger as it was."""
    voice = logging.getLogger("admitperf")
    before = voice.level, voice.handlers[:]
    yield
    voice.setLevel(before[0])
    voice.handlers[:] = before[1]


@pytest.fixture
def waiting():
    """What the engine says about its queue, in the process's own registry."""
    gauge = Gauge("vllm:num_requests_waiting", "", ["engine"])
    yield gauge.labels("0")
    REGISTRY.unregister(gauge)


class Server:
    """Starts and ends an app as uvicorn does, and sends it requests meanwhile."""

    def __init__(self, monkeypatch, variables, **args):
        for name, text in variables.items():
            monkeypatch.setenv(name, text)
        usual = {"api_server_count": None, "api_key": None, "served_model_name": ["m"]}
        self.app = SimpleNamespace(state=SimpleNamespace(args=SimpleNamespace(**usual)))
        vars(self.app.state.args).update(args)
        self.reached = []
        self.middleware = AdmissionMiddleware(self.engine)
        self.said = []

    async def engine(self, scope, receive, send):
        """The app behind."""
        if scope["type"] == "lifespan":
            for word in ("startup", "shutdown"):
                assert (await receive())["type"] == f"lifespan.{word}"
                await send({"type": f"lifespan.{word}.complete"})
            return
        self.reached.append(scope["path"])
        await streams(event(), event("", "stop"), DONE)(scope, receive, send)

    async def alive(self, *steps):
        """Takes steps between start and end; what each gave."""
        words = asyncio.Queue()
        words.put_nowait({"type": "lifespan.startup"})

        async def send(message):
            self.said.append(message)

        born = {"type": "lifespan", "app": self.app}
        living = asyncio.create_task(self.middleware(born, words.get, send))
        while not self.said:
            await asyncio.wait({living}, timeout=0.01)
        given = [await step() for step in steps]
        words.put_nowait({"type": "lifespan.shutdown"})
        await living
        return given

    def ask(self, path="/v1/chat/completions", **headers):
        """A step: one request; who asked, and what was answered."""

        async def step():
            caller = Caller(CHAT)
            named = scope(path, headers=headers.items()) | {"app": self.app}
            await self.middleware(named, caller.receive, caller.send)
            return caller

        return step

    def says(self, gauge, value):
        """A step: the engine's word changes, and is read."""

        async def step():
            gauge.set(value)
            seen = self.middleware._door._seen
            enough = seen.rounds + 2
            assert await asyncio.to_thread(until, lambda: seen.rounds >= enough, 5)

        return step

    def run(self, *steps):
        """The same, from outside of a loop."""
        return asyncio.run(self.alive(*steps))


@pytest.fixture
def server(monkeypatch):
    """Makes servers."""

    def made(variables=POLICY, **args):
        return Server(monkeypatch, variables, **args)

    return made


def test_the_engine_is_read_in_its_own_process(server, waiting):
    """A full one is seen within a moment, and an empty one again."""
    one = server()
    steps = [one.ask(), one.says(waiting, 5), one.ask(), one.says(waiting, 0)]
    other = {"x-session-id": "other"}  # the first is back before its time
    served, _, refused, _, again = one.run(*steps, one.ask(**other))
    assert [c.status for c in (served, refused, again)] == [200, 503, 200]
    assert served.body.endswith(DONE)
    assert refused.headers["x-admitperf-reason"] == "queue_depth"
    assert len(one.reached) == 2
    assert [m["type"] for m in one.said] == [
        "lifespan.startup.complete",
        "lifespan.shutdown.complete",
    ]


def test_our_metrics_are_on_the_server_s_page_while_it_lives(server, waiting):
    """Beside the engine's."""
    one, pages = server(), []
    waiting.set(1)

    async def look():
        pages.append(generate_latest(REGISTRY).decode())

    one.run(one.ask(), look)
    assert 'admitperf_outcomes_total{outcome="ok",pool="default"} 1.0' in pages[0]
    assert "vllm:num_requests_waiting" in pages[0]
    assert "admitperf" not in generate_latest(REGISTRY).decode()


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": "Bearer wrong"},
        {"authorization": "sesame"},
        {"authorization": "Basic sesame"},
        {"authorization": "Bearer  sesame"},
        {"x-api-key": "sesame"},
    ],
)
def test_who_has_no_key_is_not_decided_about(server, waiting, headers):
    """vLLM itself says 401, even when the engine is full, and nothing is counted."""
    waiting.set(5)
    one = server(api_key=["sesame", "other"])
    asked, full = one.run(one.ask(**headers), one.ask(authorization="bearer other"))
    assert asked.status == 200  # of the stand-in behind, which checks no key
    assert "x-admitperf-decision-id" not in asked.headers
    assert full.status == 503


def test_the_key_may_come_from_the_environment(server, waiting):
    """As with vLLM, the option stands over the variable."""
    waiting.set(5)
    one = server(POLICY | {"VLLM_API_KEY": "sesame"})
    asked, full = one.run(one.ask(), one.ask(authorization="Bearer sesame"))
    assert (asked.status, full.status) == (200, 503)
    args = SimpleNamespace(api_key=["told"])
    assert digests(args, {"VLLM_API_KEY": "sesame"}) == digests(args, {})
    assert digests(SimpleNamespace(api_key=None), {"VLLM_API_KEY": ""}) == []


@pytest.mark.parametrize(
    ("value", "key"),
    [
        (b"Bearer a", "a"),
        (b"bEARER a b", "a b"),
        (b"Bearer \xe9", "\xe9"),
        (b"Bearer", ""),
        (b"Token a", ""),
        (b"", ""),
    ],
)
def test_a_key_is_read_as_vllm_reads_it(value, key):
    """Any case of the word, one space, and the rest as it is."""
    assert bearer(value) == key


def test_other_paths_pass(server, waiting):
    """Health and models are asked for also while the engine is full."""
    waiting.set(5)
    one = server()
    for asked in one.run(one.ask("/health"), one.ask("/v1/models"), one.ask("/v1/x")):
        assert asked.status == 200
    assert one.reached == ["/health", "/v1/models", "/v1/x"]


def test_a_limit_is_divided_among_api_servers(server, waiting, tmp_path):
    """And the log says how many there are, of which model."""
    waiting.set(0)
    log = tmp_path / "log.jsonl"
    variables = {"ADMITPERF_POLICY": "in_flight_cap", "ADMITPERF_LOG": str(log)}
    variables["ADMITPERF_PARAMS"] = "max_in_flight=9"
    one = server(variables, api_server_count=2)
    one.run(one.ask())
    run = json.loads(log.read_text().splitlines()[0])
    assert run["params"]["max_in_flight"] == 5
    assert run["notes"]["processes"] == 2
    assert run["notes"]["model"] == "m"
    assert run["notes"]["engine"] == "vllm"


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({}, "ADMITPERF_POLICY: is not set"),
        (
            POLICY | {"ADMITPERF_PARAMS": "max_waiting=x"},
            "max_waiting = 'x' is not int",
        ),
        (POLICY | {"ADMITPERF_ENFORCE": "2"}, "enforce = 2"),
        (
            {"ADMITPERF_POLICY": "kv_threshold"},
            "kv_pressure is not supplied",
        ),
    ],
)
def test_a_server_that_is_set_up_wrongly_does_not_start(
    server, waiting, variables, said
):
    """It says why in one line, through the server's own way to fail."""
    waiting.set(0)
    one = server(variables)
    one.run()
    (failed,) = one.said
    assert failed["type"] == "lifespan.startup.failed"
    assert said in failed["message"]
    assert "\n" not in failed["message"]


def test_metrics_that_cannot_be_read_stop_the_start(server, waiting, monkeypatch):
    """And it is said that this is why, not that a signal is missing."""
    one = server(POLICY | {"PROMETHEUS_MULTIPROC_DIR": "/"})

    def broken(_page):
        raise OSError("no space")

    monkeypatch.setattr(RegistryPage, "__call__", broken)
    one.run()
    (failed,) = one.said
    assert failed["message"].endswith(
        "vLLM's metrics: cannot be read: OSError: no space"
    )


def test_a_slip_of_the_pen_and_the_policy_are_said_at_start(server, waiting, caplog):
    """In the server's own log, without what may be a secret."""
    waiting.set(0)
    one = server(POLICY | {"ADMITPERF_POLCY": "x"}, api_key=["sesame"])
    one.run()
    first, line = caplog.messages
    assert first == "ADMITPERF_POLCY means nothing; ADMITPERF_POLICY does"
    assert line.startswith("queue_depth (max_waiting=2, action=defer) stands before")
    assert "sesame" not in caplog.text


def test_who_is_held_is_let_in_when_the_engine_has_room(server, waiting):
    """A reading of this process wakes who waits for it."""
    waiting.set(5)
    one = server(POLICY | {"ADMITPERF_DEFER": "hold"})

    async def both():
        asked = asyncio.ensure_future(one.ask()())
        await one.says(waiting, 6)()
        assert not asked.done()
        await one.says(waiting, 0)()
        return await asyncio.wait_for(asked, timeout=5)

    (held,) = one.run(both)
    assert held.status == 200


def test_who_is_held_is_answered_when_the_server_ends(server, waiting):
    """It would wait for them, and they for an engine that is going."""
    waiting.set(5)
    one = server(POLICY | {"ADMITPERF_DEFER": "hold"})
    one.app.state.server = SimpleNamespace(should_exit=False)

    async def both():
        asked = asyncio.ensure_future(one.ask()())
        await one.says(waiting, 6)()
        assert not asked.done()
        one.app.state.server.should_exit = True
        return await asyncio.wait_for(asked, timeout=5)

    (held,) = one.run(both)
    assert held.status == 503
    assert int(held.headers["retry-after"]) >= 1


def test_a_server_without_a_start_is_set_up_by_its_first_request(server, waiting):
    """Some hosts run no lifespan."""
    waiting.set(5)
    one = server()
    assert asyncio.run(one.ask()()).status == 503
    one.middleware._door.close()
