"""The gateway, and engines behind it, as processes of their own."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

from tests.gateway.conformance.says import install
from tests.gateway.conformance.wire import get
from tests.real.process import running, until

ROOT = Path(__file__).resolve().parents[3]
STUB = ROOT / "tests" / "data" / "cases" / "_tools" / "stub_engine.py"
TOOL = [sys.executable, "-c", "from admitperf.cli import main; main()"]
START_S = 20


def pause(seconds):
    """Let so many seconds pass."""
    threading.Event().wait(seconds)


def lines_of(path):
    """The whole lines of a file of JSON lines, which need not be there yet."""
    if not path.exists():
        return []
    text = path.read_text(encoding="utf-8")
    return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]


class Stub:
    """A running stub engine.

    Attributes:
        url: where it listens.
    """

    def __init__(self, url, seen):
        self.url = url
        self._seen = seen

    def events(self, kind=None):
        """What it noted, or what of one kind."""
        noted = lines_of(self._seen)
        return [one for one in noted if kind in (None, one["event"])]

    def waits_for(self, kind, count=1, seconds=5):
        """Whether so many events of a kind are there, at last."""
        return until(lambda: len(self.events(kind)) >= count, seconds)


@contextmanager
def stub_engine(folder, port=0, **options):
    """Run the stub engine with options: `slots=8` is `--slots 8`."""
    seen = folder / f"events-{os.urandom(4).hex()}.jsonl"
    words = [f"--{k.replace('_', '-')}={v}" for k, v in options.items()]
    command = [sys.executable, STUB, f"--port={port}", f"--events={seen}", *words]
    quiet = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with running(command, text=True, **quiet) as process:
        yield Stub(process.stdout.readline().split()[-1], seen)


@contextmanager
def scripted_engine(log=None):
    """Run the scripted engine; with a log it stands behind our middleware."""
    module = [sys.executable, "-m", "tests.gateway.conformance.engine"]
    words = ["--policy=says", f"--log={log}"] if log else []
    with running(
        [*module, *words], cwd=ROOT, env=environment(log and log.parent),
        stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        yield process.stdout.readline().split()[-1]


def environment(folder=None, **more):
    """The environment of a child that finds our policy, if there is a folder for it."""
    paths = [str(ROOT)]
    if folder is not None:
        offered = folder / "installed"
        paths.append(str(offered if offered.exists() else install(offered)))
    given = os.environ.get("PYTHONPATH")
    path = os.pathsep.join([*paths, *([given] if given else [])])
    return {**os.environ, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1", **more}


class Door:
    """A running gateway.

    Attributes:
        url: where it listens.
        log: path of its decision log.
    """

    def __init__(self, url, process, folder):
        self.url = url
        self.pid = process.pid
        self.log = folder / "decisions.jsonl"
        self._folder = folder
        self._process = process

    def said(self):
        """All it printed so far."""
        return printed(self._folder)

    def lines(self, kind):
        """Lines of one kind in its log."""
        return [line for line in lines_of(self.log) if line["k"] == kind]

    def waits_for(self, kind, count=1, seconds=5):
        """Lines of one kind, once there are so many."""
        enough = until(lambda: len(self.lines(kind)) >= count, seconds)
        assert enough, (kind, count, self.lines(kind), self.said())
        return self.lines(kind)

    def state(self):
        """What it says of itself on loopback."""
        return json.loads(get(self.url, "/admitperf/state")[1])

    def metrics(self):
        """Its own metrics: the series as printed, and their values."""
        page = get(self.url, "/metrics")[1].decode()
        rows = [line for line in page.splitlines() if line and line[0] != "#"]
        return {
            name: float(value) for name, _, value in (r.rpartition(" ") for r in rows)
        }

    def open_requests(self):
        """Leases that are open."""
        return sum(one["in_flight"] for one in self.state()["pools"].values())

    def empties(self, seconds=5):
        """Whether nothing is open any more, here or by any other count, at last."""
        counts = ("in_flight", "live", "lease_drift", "held")

        def empty():
            pools = self.state()["pools"].values()
            return not any(one[count] for one in pools for count in counts)

        return until(empty, seconds)

    def resident_bytes(self):
        """Memory it holds now."""
        text = Path(f"/proc/{self.pid}/status").read_text(encoding="ascii")
        return int(re.search(r"VmRSS:\s+(\d+) kB", text)[1]) * 1024

    def stop(self):
        """Ask it to end; its exit code."""
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(timeout=60)


def printed(folder):
    """Both outputs of a gateway."""
    names = ("stdout", "stderr")
    return "".join((folder / name).read_text(encoding="utf-8") for name in names)


@contextmanager
def gateway(folder, *words, ready=True, log=True, **more):
    """Run `admitperf gateway` with some words on any port.

    It must not have printed a traceback, and must end when asked to.
    """
    folder.mkdir(parents=True, exist_ok=True)
    command = [*TOOL, "gateway", *map(str, words), "--listen=127.0.0.1:0"]
    command += [f"--log={folder / 'decisions.jsonl'}"] if log else []
    with (
        (folder / "stdout").open("w") as out,
        (folder / "stderr").open("w") as errors,
        running(
            command, env=environment(folder, **more),
            stdout=out, stderr=errors, cwd=folder,
        ) as process,
    ):  # fmt: skip
        door = Door(_address(process, folder), process, folder)
        if ready:
            assert until(lambda: is_ready(door.url), START_S), door.said()
        yield door
    assert "Traceback" not in printed(folder), printed(folder)
    assert process.returncode == 0, (process.returncode, printed(folder))


def is_ready(url):
    """Whether a gateway says that it can decide."""
    return get(url, "/ready")[0].status == 200


def _address(process, folder):
    """Where a gateway says that it listens."""
    found = []

    def told():
        found[:] = re.findall(
            r"gateway on (http://127\.0\.0\.1:\d+)\n", printed(folder)
        )
        return found or process.poll() is not None

    assert until(told, START_S), printed(folder)
    assert found, (process.returncode, printed(folder))
    return found[0]


def configured(folder, **fields):
    """Write a configuration and give the words that name it."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "gateway.yaml"
    path.write_text(json.dumps(fields), encoding="utf-8")  # JSON is YAML
    return ["--config", path]


def before(url, policy, **params):
    """The words that put a policy before one upstream."""
    words = [f"--param={name}={value}" for name, value in params.items()]
    return ["--upstream", url, "--policy", policy, *words]


def pool(url, policy, params=None, **more):
    """One pool of a configuration, of one upstream."""
    return {
        "name": "default",
        "upstreams": [{"url": url}],
        "policy": {"name": policy, "params": params or {}},
        **more,
    }
