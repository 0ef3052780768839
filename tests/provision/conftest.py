"""Engines to bring up: a simulated one, and one that does only what a test says."""

import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress

import pytest
from click.testing import CliRunner

from admitperf.cli import main
from admitperf.core.clock import SYSTEM
from admitperf.provision import processes, state

PROGRAM = "from admitperf.cli import main; main()"
LONGEST_S = 30


def until(true, seconds=LONGEST_S):
    """Wait until something is true."""
    end_ns = SYSTEM.monotonic_ns() + seconds * 1e9
    while not true():
        assert SYSTEM.monotonic_ns() < end_ns, "it never came"
        threading.Event().wait(0.02)


def pids(path):
    """The pids that a state file names."""
    return [one["pid"] for one in json.loads(path.read_text("utf-8"))["processes"]]


def runs(pid):
    """Whether a process runs; a zombie does not."""
    return any(not row.zombie for row in processes._rows([pid]).values())


@pytest.fixture(autouse=True)
def bare(monkeypatch, tmp_path):
    """A folder of its own, no engine and no token whatever the machine has."""
    monkeypatch.chdir(tmp_path)
    for name in ("ADMITPERF_TOKEN", "ADMITPERF_VLLM_VENV", "ADMITPERF_VLLM_MODEL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def path(tmp_path):
    """A state file's path; afterwards nothing of it may run."""
    found = tmp_path / ".admitperf" / "infra.json"
    yield found
    left = state.running(found, None)
    for one in left:
        with suppress(ProcessLookupError):
            os.kill(one.pid, signal.SIGKILL)
    assert left == []


@pytest.fixture
def infra(path):
    """Run `admitperf infra` with that state file in this process."""

    def _infra(command, *options, **environment):
        words = ["infra", command, "--state", str(path), *options]
        return CliRunner().invoke(main, words, env=environment)

    return _infra


@pytest.fixture
def begun(path):
    """Start `admitperf infra up` as a process of its own; gone afterwards."""
    started = []

    def _begun(*options):
        words = ["infra", "up", "--state", str(path), *options]
        one = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *words],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        started.append(one)
        return one

    yield _begun
    for one in started:
        one.kill()
        one.communicate()


@pytest.fixture
def engine(tmp_path, monkeypatch):
    """Put an engine on the PATH that is a script of the test's; options that use it."""

    def _engine(script):
        folder = tmp_path / "bin"
        folder.mkdir(exist_ok=True)
        program = folder / "llama-server"
        program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
        model = tmp_path / "some.gguf"
        model.write_bytes(b"GGUF")
        return ("--provider", "llamacpp", "--port", "0", "--model", str(model))

    return _engine
