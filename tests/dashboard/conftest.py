"""A dashboard on the demo's experiment, and a real browser before it."""

import json
import os
import shutil
import subprocess
import sys
import threading

import pytest
from click.testing import CliRunner
from tests.real.process import running, until

from admitperf.cli import main

PROGRAM = [sys.executable, "-c", "from admitperf.cli import main; main()"]


@pytest.fixture(scope="session")
def demo(tmp_path_factory):
    """A folder with one experiment of three arms and three repeats."""
    folder = tmp_path_factory.mktemp("demo")
    subprocess.run(
        [*PROGRAM, "demo", "--repeats", "3", "-o", folder],
        check=True, capture_output=True,
    )  # fmt: skip
    return folder


@pytest.fixture(scope="session")
def told(demo):
    """What the commands say of it as JSON, with a folder's logs or a file's."""

    def said(*words):
        ran = subprocess.run(
            [*PROGRAM, *map(str, words)], check=True, capture_output=True, text=True
        )
        return json.loads(ran.stdout)

    return said


@pytest.fixture(autouse=True)
def cache_folder(tmp_path, monkeypatch):
    """Each test has a cache of its own."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("ADMITPERF_CACHE", str(folder))
    return folder


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A command line in this process, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    return lambda *words: CliRunner().invoke(main, list(words))


class Served:
    """A dashboard that runs: its process, its address, and what it printed."""

    def __init__(self, child):
        self.child, self.lines = child, []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self.child.stdout:
            self.lines.append(line)

    @property
    def url(self):
        """Where it says that it serves; None = it has not said so yet."""
        said = [line for line in self.lines if line.startswith("dashboard at ")]
        return said[0].split()[2] if said else None


@pytest.fixture
def start(tmp_path):
    """Starts dashboards without a terminal and in an empty home, for a test."""
    from contextlib import ExitStack

    with ExitStack() as stack:

        def started(*words, seconds=60):
            environment = {**os.environ, "HOME": str(tmp_path / "home")}
            child = stack.enter_context(
                running(
                    [*PROGRAM, "dashboard", *map(str, words)],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                    env=environment,
                    cwd=tmp_path,
                )
            )
            served = Served(child)
            until(lambda: served.url or child.poll() is not None, seconds)
            return served

        yield started


@pytest.fixture(scope="module")
def browser():
    """A headless Chromium; Debian calls the packages chromium and chromium-driver."""
    programs = [shutil.which(name) for name in ("chromium", "chromedriver")]
    if not all(programs):
        why = "needs chromium and chromedriver on the PATH"
        if os.environ.get("CI"):
            pytest.fail(why)
        pytest.skip(why)
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = programs[0]
    for flag in ("headless", "no-sandbox", "disable-gpu", "hide-scrollbars"):
        options.add_argument(f"--{flag}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService(programs[1])
    driver = webdriver.Chrome(options=options, service=service)
    yield driver
    driver.quit()
