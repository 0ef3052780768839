"""An engine, a gateway and a log that are well, and what spoils them."""

import json
import subprocess
from contextlib import ExitStack

import pytest
from click.testing import CliRunner
from tests.gateway.conformance.door import TOOL, gateway
from tests.lab.doctor.between import Pages, Proxy, Spoil, serving
from tests.real.process import running

from admitperf.cli import main


@pytest.fixture(scope="session")
def engine_url():
    """A simulated engine that is well."""
    command = [*TOOL, "sim", "serve", "--port", "0"]
    with running(command, stdout=subprocess.PIPE, text=True) as process:
        yield process.stdout.readline().split()[2]


@pytest.fixture(scope="session")
def door(engine_url, tmp_path_factory):
    """A gateway before it that is well, with a log."""
    folder = tmp_path_factory.mktemp("door")
    words = ["--upstream", engine_url, "--policy", "front_door"]
    with gateway(folder, *words) as found:
        yield found


@pytest.fixture
def opened():
    """What a test started: gone when it is over."""
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def between(opened):
    """Put a proxy before a server; its address."""

    def _between(target, **spoilt):
        return opened.enter_context(serving(Proxy(target, Spoil(**spoilt)))).url

    return _between


@pytest.fixture
def pages(opened):
    """Start a server of pages; its address."""
    return lambda given: opened.enter_context(serving(Pages(given))).url


@pytest.fixture
def doctor(monkeypatch, tmp_path):
    """Run the doctor: what it found, as JSON, and its exit code."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ADMITPERF_TOKEN", raising=False)

    def _doctor(*words):
        words = ["doctor", *map(str, words), "--json"]
        ran = CliRunner().invoke(main, words)
        assert ran.stdout, ran.output
        made = json.loads(ran.stdout)
        return made, ran.exit_code

    return _doctor


def at(made, *levels):
    """The checks that found something of these levels."""
    return {one["check"] for one in made["findings"] if one["level"] in levels}


def said(made, check):
    """What one check said, and its fix."""
    found = [one for one in made["findings"] if one["check"] == check]
    assert found, (check, made)
    return found[0]
