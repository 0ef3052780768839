"""Field cases s-ui-01 and the dashboard's half of s-ui-02."""

import contextlib
import os
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from tests.cases.conftest import PROGRAM
from tests.real.process import running, until


@pytest.fixture
def started(tmp_path):
    """Starts it as the case does: an empty home, no input, output to a file."""
    from contextlib import ExitStack

    home = tmp_path / "home"
    home.mkdir()
    with ExitStack() as stack:

        def start(*words):
            out = tmp_path / f"out{len(list(tmp_path.iterdir()))}"
            file = stack.enter_context(out.open("w", encoding="utf-8"))
            child = stack.enter_context(
                running(
                    [sys.executable, "-c", PROGRAM, "dashboard", *words],
                    stdin=subprocess.DEVNULL,
                    stdout=file,
                    stderr=subprocess.STDOUT,
                    cwd=tmp_path,
                    env={**os.environ, "HOME": str(home)},
                )
            )
            until(lambda: "http" in out.read_text() or child.poll() is not None, 60)
            return child, out.read_text()

        yield start


def answers(said):
    """What is served at the address that was printed."""
    url = next(word for word in said.split() if word.startswith("http"))
    with urllib.request.urlopen(url, timeout=10) as answer:
        return url, answer.read().decode()


def test_s_ui_01_it_starts_without_a_terminal(started, tmp_path):
    """Serving, its URL printed, nothing asked, and on loopback only."""
    child, said = started()
    assert child.poll() is None, said
    assert said.startswith("dashboard at http://127.0.0.1:")
    assert len(said.splitlines()) == 1
    url, page = answers(said)
    assert "streamlit" in page.lower()
    with urllib.request.urlopen(f"{url}/_stcore/host-config", timeout=10) as answer:
        assert answer.status == 200
    assert "email" not in said.lower()
    listens = {line.split()[1] for line in _sockets(child.pid)}
    assert listens
    assert all(one.startswith("0100007F:") for one in listens), listens


def _sockets(pid):
    """The lines of the listening TCP sockets of a process."""
    inodes = set()
    for fd in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            target = str(fd.readlink())
            if target.startswith("socket:["):
                inodes.add(target[8:-1])
    table = Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]
    return [
        line for line in table if line.split()[3] == "0A" and line.split()[9] in inodes
    ]


def test_s_ui_01_no_statistics_are_gathered():
    """The setting that Streamlit reads is off, whatever the user's own says."""
    from admitperf.dashboard.start import SETTINGS

    assert SETTINGS["browser.gatherUsageStats"] == "false"
    assert SETTINGS["server.headless"] == "true"
    assert SETTINGS["server.showEmailPrompt"] == "false"


def test_s_ui_02_a_taken_port_is_passed_over_and_the_url_is_its_own(started):
    """The next free one is printed, and it is the dashboard that answers there."""
    taken = socket.socket()
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    with contextlib.suppress(OSError):  # taken by somebody else, which is as good
        taken.bind(("127.0.0.1", 8501))
        taken.listen()
    with taken:
        child, said = started()
        assert child.poll() is None, said
        url, page = answers(said)
        assert not url.endswith(":8501")
        assert "streamlit" in page.lower()


def test_s_ui_02_a_taken_port_that_was_asked_for_is_one_line(started):
    """No traceback, no URL, and a code that is not 0."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        child, said = started("--port", str(port))
        assert child.wait(timeout=30) == 2
    assert said == f"Error: port {port} is in use: choose another with --port\n"
