"""One suite, three homes of the same middleware: what each of them is started from."""

import json
import os
import signal
import subprocess
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from tests.gateway.conformance.door import (
    configured,
    environment,
    gateway,
    lines_of,
    pause,
    pool,
    scripted_engine,
)
from tests.gateway.conformance.engine import LIMIT
from tests.gateway.conformance.wire import get
from tests.real.conftest import free_port, is_healthy
from tests.real.process import running, until

from admitperf.core.clock import SYSTEM

VLLM_START_S = 180


class Home:
    """One home, running.

    Attributes:
        name: "app", "gateway" or "vllm".
        url: where callers go.
        direct: an engine without us before it, to compare with; None = there is none.
        log: path of the decision log.
    """

    def __init__(self, name, url, direct, log):
        self.name = name
        self.url = url
        self.direct = direct
        self.log = log
        self._behind = direct if name == "gateway" else url

    def lines(self, kind):
        """Lines of one kind in its log."""
        return [line for line in lines_of(self.log) if line["k"] == kind]

    def line(self, kind, request_id, seconds=5):
        """The one line of a kind about a request, once it is there."""
        found = []

        def there():
            found[:] = [one for one in self.lines(kind) if one["id"] == request_id]
            return found

        end_ns = SYSTEM.monotonic_ns() + seconds * 1e9
        while not there() and SYSTEM.monotonic_ns() < end_ns:
            pause(0.01)
        assert found, (kind, request_id, self.lines(kind)[-3:])
        assert len(found) == 1, found
        return found[0]

    def seen(self, request_id):
        """What the engine behind it noted of a request."""
        noted = json.loads(get(self._behind, "/seen")[1])
        return [n for n in noted if n["headers"].get("x-request-id") == request_id]


@contextmanager
def app(folder):
    """Home one: an ASGI app in uvicorn."""
    log = folder / "decisions.jsonl"
    with scripted_engine() as direct, scripted_engine(log) as url:
        yield Home("app", url, direct, log)


@contextmanager
def proxied(folder):
    """Home two: the gateway process."""
    with scripted_engine() as engine:
        words = configured(
            folder, pools=[pool(engine, "says")], limits={"body_bytes": LIMIT}
        )
        with gateway(folder / "door", *words) as door:
            yield Home("gateway", door.url, engine, door.log)


@contextmanager
def vllm(folder):
    """Home three: inside a real vLLM, which serves the model `ok`."""
    names = ("ADMITPERF_VLLM_VENV", "ADMITPERF_VLLM_MODEL")
    absent = [name for name in names if not os.environ.get(name)]
    if absent:
        pytest.skip(f"no real vLLM: {' and '.join(absent)} not set")
    venv, model = (Path(os.environ[name]) for name in names)
    port, log, out = free_port(), folder / "decisions.jsonl", folder / "vllm.log"
    command = [venv / "bin" / "vllm", "serve", model, "--served-model-name", "ok"]
    command += ["--host", "127.0.0.1", "--port", str(port), "--dtype", "float32"]
    command += ["--max-model-len", "1024", "--max-num-seqs", "4", "--enforce-eager"]
    command += ["--middleware", "admitperf.gateway.vllm.AdmissionMiddleware"]
    source = str(Path(__file__).resolve().parents[3] / "src")
    told = environment(
        folder, HF_HUB_OFFLINE="1", VLLM_NO_USAGE_STATS="1", DO_NOT_TRACK="1",
        VLLM_CPU_KVCACHE_SPACE="1", OMP_NUM_THREADS="1", ADMITPERF_POLICY="says",
        VLLM_CPU_OMP_THREADS_BIND="nobind", ADMITPERF_LOG=str(log),
    )  # fmt: skip
    told["PYTHONPATH"] += os.pathsep + source
    with (
        out.open("w") as said,
        running(
            command, env=told, stdout=said, stderr=subprocess.STDOUT, cwd=folder,
            start_new_session=True,
        ) as server,
    ):  # fmt: skip
        address = f"127.0.0.1:{port}"
        until(lambda: server.poll() is not None or is_healthy(address), VLLM_START_S)
        assert is_healthy(address), out.read_text(encoding="utf-8")[-4000:]
        yield Home("vllm", f"http://{address}", None, log)
    with suppress(ProcessLookupError):  # a worker may outlive its server
        os.killpg(server.pid, signal.SIGKILL)


@contextmanager
def _home(kind, tmp_path_factory):
    folder = tmp_path_factory.mktemp(kind)
    with {"app": app, "gateway": proxied, "vllm": vllm}[kind](folder) as one:
        yield one


ALL = ["app", "gateway", pytest.param("vllm", marks=pytest.mark.real_vllm)]


@pytest.fixture(scope="package", params=ALL)
def home(request, tmp_path_factory):
    """Each home in turn."""
    with _home(request.param, tmp_path_factory) as one:
        yield one


@pytest.fixture
def scripted(home):
    """Each home before whose engine the test's wishes mean something."""
    if home.name == "vllm":
        pytest.skip("a real engine does not misbehave when told to")
    return home


@pytest.fixture
def rid(request):
    """An id for the request of this test, and of no other."""
    return f"{request.node.name[:60]}-{os.urandom(4).hex()}"
