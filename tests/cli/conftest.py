"""The tool as a person meets it: in this process, and as a process of its own."""

import os
import subprocess
import sys

import pytest
from click.testing import CliRunner
from tests.scrape.server import servers

from admitperf.cli import main

PROGRAM = "from admitperf.cli import main; main()"
TOOL = (sys.executable, "-c", PROGRAM)


@pytest.fixture(autouse=True)
def bare(monkeypatch, tmp_path):
    """A folder of its own, and no token whatever the machine has."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ADMITPERF_TOKEN", raising=False)


@pytest.fixture
def run():
    """Run a command line in this process."""

    def _run(*args, stdin=None, **environment):
        return CliRunner().invoke(main, list(args), input=stdin, env=environment)

    return _run


@pytest.fixture
def shell():
    """Run a shell line in which `admitperf` is a process of its own."""

    def _shell(line, **environment):
        line = f'admitperf() {{ "{sys.executable}" -c "{PROGRAM}" "$@"; }}; {line}'
        return subprocess.run(
            ["bash", "-c", line], env={**os.environ, **environment},
            capture_output=True, check=False, timeout=60,
        )  # fmt: skip

    return _shell


@pytest.fixture
def serve():
    """Start a server on bytes, or on a function of the request."""
    with servers() as start:
        yield start


def is_plain(text):
    """Whether a text is printable ASCII in lines of at most 80 columns."""
    return all(
        line.isascii() and line.isprintable() and len(line) <= 80
        for line in text.splitlines()
    )
