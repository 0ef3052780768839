"""What field cases ask for: the tool, a case's files, and logs made from them."""

import json
import os
import re
import subprocess
import sys
from contextlib import ExitStack

import pytest
from click.testing import CliRunner
from tests.gateway.conformance.door import gateway, stub_engine
from tests.real.process import running
from tests.reports.byhand import jsonl

from admitperf.cli import main

PROGRAM = "from admitperf.cli import main; main()"


@pytest.fixture
def case(data, request):
    """The folder of the case whose id is in the test's name: `test_s_bm_03_...`."""
    group, number = re.match(r"test_s_([a-z]+)_(\d+)", request.node.name).groups()
    return data / "cases" / f"s-{group}-{number}"


@pytest.fixture
def admitperf(monkeypatch, tmp_path):
    """Run a command line in this process, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ADMITPERF_TOKEN", raising=False)

    def _run(*args, stdin=None, **environment):
        args = [str(one) for one in args]
        return CliRunner().invoke(main, args, input=stdin, env=environment)

    return _run


@pytest.fixture
def told(admitperf):
    """Run a command with `--json`: what it says, read strictly, and its exit code."""

    def refuse(constant):
        raise AssertionError(constant)

    def _told(*args, **given):
        shown = admitperf(*args, "--json", **given)
        assert shown.stdout, shown.output
        return json.loads(shown.stdout, parse_constant=refuse), shown.exit_code

    return _told


@pytest.fixture
def run_of(told):
    """The one run that a report has on these files."""

    def _run_of(*args):
        report, code = told("report", *args)
        assert code == 0
        (run,) = report["runs"]
        return run

    return _run_of


@pytest.fixture
def write(tmp_path):
    """Write lines, or bytes, to a file under the working folder."""

    def _write(content, name="run.jsonl"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = content if isinstance(content, bytes) else jsonl(*content).encode()
        path.write_bytes(text)
        return path

    return _write


@pytest.fixture
def shell(tmp_path):
    """Run a shell line in which `admitperf` is a process of its own."""

    def _shell(line, **environment):
        line = f'admitperf() {{ "{sys.executable}" -c "{PROGRAM}" "$@"; }}; {line}'
        return subprocess.run(
            ["bash", "-c", line], cwd=tmp_path, env={**os.environ, **environment},
            capture_output=True, check=False, timeout=120,
        )  # fmt: skip

    return _shell


@pytest.fixture
def stub(data):
    """Start the engine that misbehaves, with some options; its address."""
    script = data / "cases" / "_tools" / "stub_engine.py"
    started = []

    def _stub(*options):
        command = [sys.executable, script, "--port", "0", *map(str, options)]
        process = running(command, stdout=subprocess.PIPE, text=True)
        started.append(process)
        return process.__enter__().stdout.readline().split()[-1]

    yield _stub
    for process in started:
        process.__exit__(None, None, None)


@pytest.fixture
def opened():
    """What a test opened: closed when it is over, the last one first."""
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def engine(opened, tmp_path):
    """Start the engine that misbehaves, with some options, and see what it saw."""
    return lambda **options: opened.enter_context(stub_engine(tmp_path, **options))


@pytest.fixture
def door(opened, tmp_path):
    """Start a gateway, with some words of its command line."""

    def _door(*words, **more):
        folder = tmp_path / f"door-{len(list(tmp_path.iterdir()))}"
        return opened.enter_context(gateway(folder, *words, **more))

    return _door
