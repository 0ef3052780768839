"""What the how-to page on fleets says for a laptop is done on this machine."""

import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from tests.real.conftest import free_port

pytestmark = pytest.mark.real_engine

LONGEST_S = 90
ENDED = "set -e; trap '[ $? = 0 ] || kill $(jobs -p)' EXIT\n"
"""When it fails, nothing it started is left to hold its output open."""


@pytest.fixture
def block(root):
    """The page's commands, on ports that nobody has."""
    page = (root / "docs" / "how-to" / "fleet.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"^```bash\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    for port in ("18200", "18300"):
        assert port in text
        text = text.replace(port, str(free_port()))
    return text


@pytest.fixture
def checkout(root, serve, tmp_path):
    """A folder to work in, with the server built and the paths of a checkout."""
    for name in ("examples", "infra", ".cache"):
        (tmp_path / name).symlink_to(root / name)
    assert serve.exists()
    return tmp_path


@pytest.fixture
def bash(checkout):
    """Run a script; whatever it leaves running is ended with it."""

    def _bash(script):
        tools = Path(sys.executable).parent
        path = f"{tools}:{os.environ['PATH']}"
        child = subprocess.Popen(
            ["bash", "-c", f"{ENDED}{script}"],
            cwd=checkout, text=True, start_new_session=True,
            env={**os.environ, "PATH": path, "PYTHON": sys.executable},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        try:
            printed, _ = child.communicate(timeout=LONGEST_S)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
        return printed, child.returncode

    return _bash


def test_the_page_on_fleets_is_true_on_a_laptop(block, bash, capsys):
    """An engine is watched while a gateway sheds load, and both reports say so."""
    printed, code = bash(block)
    with capsys.disabled():
        sys.stdout.write(f"\n\nthe page on fleets\n{printed}")
    assert code == 0, printed
    counts = dict(re.findall(r"^ *(\d+) (200|503)$", printed, re.MULTILINE))
    assert set(counts.values()) == {"200", "503"}
    assert "Traceback" not in printed
    watched = printed.partition("Could it")[0]
    assert re.search(r"Run of queue_depth\n +would fire +on \d+ of [1-9]", watched)
    assert "LIVE" in printed
