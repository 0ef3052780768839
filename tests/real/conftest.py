"""A real llama.cpp server, and the example gateway in front of it."""

import os
import socket
import subprocess
import sys
from http.client import HTTPConnection, HTTPException

import pytest
from tests.real.process import running, until


def free_port():
    """A loopback port nobody listens on at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def is_healthy(address):
    """Whether a server says that it is ready."""
    connection = HTTPConnection(address, timeout=1)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status == 200
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()


@pytest.fixture(scope="session")
def serve(root):
    """The script that serves, with server and model built."""
    scripts = root / "infra" / "llamacpp"
    built = subprocess.run(
        ["sh", scripts / "build.sh"],
        env={**os.environ, "PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    return scripts / "serve.sh"


@pytest.fixture
def engine(serve, tmp_path):
    """Address of a llama.cpp server with four slots that has served nothing yet."""
    address, log = f"127.0.0.1:{free_port()}", tmp_path / "engine.log"
    command = ["sh", serve, address.split(":")[1], log]
    with running(command, stdout=subprocess.DEVNULL) as server:
        until(lambda: server.poll() is not None or is_healthy(address), seconds=30)
        assert is_healthy(address), log.read_text(encoding="utf-8")
        yield address


@pytest.fixture
def gateway(engine, root, tmp_path):
    """The example gateway before that engine: its address and the path of its log."""
    log = tmp_path / "decisions.jsonl"
    script = root / "examples" / "gateway_loop.py"
    command = [sys.executable, script, "--engine", f"http://{engine}", "--port", "0"]
    with (tmp_path / "stderr").open("w+", encoding="utf-8") as errors:
        with running(
            [*command, "--log", log], stdout=subprocess.PIPE, stderr=errors, text=True
        ) as host:
            ready = host.stdout.readline()
            assert ready, (tmp_path / "stderr").read_text(encoding="utf-8")
            yield ready.split()[0].removeprefix("http://"), log
        errors.seek(0)
        assert errors.read() == ""
