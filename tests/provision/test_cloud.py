"""What is rented: the task as SkyPilot reads it, and what becomes of the money."""

import json
import sys
from types import SimpleNamespace

import pytest
from tests.provision.test_life import flat, one_line
from tests.scrape.server import http, servers

SKY = ("--provider", "skypilot")
TOKEN = "tok-8f3a1c"
MORE = ("--", "--max-num-seqs", "64", "--hf-overrides", '{"a": "b c"}')


class ClusterDoesNotExist(Exception):  # noqa: N818  SkyPilot's name
    """What SkyPilot says of a cluster that is gone."""


class Sky:
    """Stands in for the module `sky`: keeps what it is asked, fails when told."""

    def __init__(self, path):
        self.asked = []
        self.seen = None
        self.fails = {}
        self.endpoint = ""
        self.path = path
        self.Task = SimpleNamespace(from_yaml_str=self._task)

    def _task(self, text):
        task = SimpleNamespace(text=text, secrets={})
        task.update_secrets = task.secrets.update
        return task

    def _do(self, name, *what):
        self.asked.append((name, *what))
        return name

    def launch(self, task, cluster_name):
        """Ask for a machine."""
        self.task = task
        self.seen = json.loads(self.path.read_text("utf-8"))
        return self._do("launch", cluster_name)

    def endpoints(self, cluster, port):
        """Ask for an address."""
        return self._do("endpoints", cluster, port)

    def down(self, cluster):
        """Give it back."""
        return self._do("down", cluster)

    def stream_and_get(self, request):
        """Wait for what was asked for."""
        if request in self.fails:
            raise self.fails[request]
        return {8000: self.endpoint}

    get = stream_and_get


@pytest.fixture
def sky(monkeypatch, path):
    """A SkyPilot that is installed."""
    made = Sky(path)
    monkeypatch.setitem(sys.modules, "sky", made)
    return made


@pytest.fixture
def server():
    """The machine that was rented: healthy for those who have the token."""
    with servers() as start:
        yield start(http(b"{}"))


def task(infra, *words):
    """The rendered task."""
    ran = infra("up", *SKY, "--dry-run", *words)
    assert ran.exit_code == 0, ran.output
    return ran.stdout


def test_the_task_names_the_gpu_the_port_the_model_and_its_end(infra):
    """As YAML that anyone can launch by hand; nothing has to be installed for it."""
    yaml = pytest.importorskip("yaml")
    words = ("--gpu", "H100:2", "--port", "8100", "--model", "some/model")
    found = yaml.safe_load(task(infra, *words, "--ends-after", "90m", *MORE))
    assert found["name"] == "admitperf"
    assert found["resources"] == {
        "accelerators": "H100:2", "ports": [8100],
        "autostop": {"idle_minutes": 90, "down": True, "wait_for": "none"},
    }  # fmt: skip
    assert found["secrets"] == {"VLLM_API_KEY": None}
    assert found["run"].rstrip("\n") == (
        "~/vllm/bin/vllm serve some/model --host 0.0.0.0 --port 8100"
        " --enable-prompt-tokens-details --tensor-parallel-size 2"
        """ --max-num-seqs 64 --hf-overrides '{"a": "b c"}'"""
    )
    assert "vllm==0.32.0" in found["setup"]


def test_the_worked_example_is_what_is_rendered(infra, root):
    """So what was reviewed is what is launched."""
    shown = (root / "infra" / "skypilot" / "vllm.yaml").read_text("utf-8")
    words = ("--gpu", "A10:1", "--ends-after", "2h")
    assert task(infra, *words, "--", "--max-num-seqs", "64") == shown


def test_skypilot_itself_takes_the_task(infra, tmp_path, monkeypatch):
    """By its own schema, with one GPU and with several."""
    monkeypatch.setenv("SKYPILOT_DISABLE_USAGE_COLLECTION", "1")
    monkeypatch.setenv("HOME", str(tmp_path))
    sky = pytest.importorskip("sky")
    for gpu, count in (("A10", 1), ("H100:2", 2)):
        text = task(infra, "--gpu", gpu, *MORE)
        found = sky.Task.from_yaml_str(text.replace("KEY: null", 'KEY: ""'))
        (wanted,) = found.resources
        assert wanted.accelerators == {gpu.partition(":")[0]: count}
        assert wanted.ports == ["8000"]
        assert wanted.autostop_config.down
        assert wanted.autostop_config.idle_minutes == 120
        assert wanted.autostop_config.wait_for.value == "none"
        assert set(found.secrets) == {"VLLM_API_KEY"}


def test_it_is_noted_down_before_anything_costs(infra, sky, server, path):
    """And again when it is up; the token goes to the machine and into no file."""
    sky.endpoint = f"127.0.0.1:{server.port}"
    up = infra("up", *SKY, ADMITPERF_TOKEN=TOKEN)
    assert up.exit_code == 0, up.output
    assert (sky.seen["phase"], sky.seen["cluster"]) == ("starting", "admitperf")
    assert sky.task.secrets == {"VLLM_API_KEY": TOKEN}
    assert 'VLLM_API_KEY: ""' in sky.task.text
    told = json.loads(path.read_text("utf-8"))
    assert (told["phase"], told["url"]) == ("up", f"http://127.0.0.1:{server.port}")
    assert "which costs money until it is taken down" in flat(up)
    assert TOKEN not in path.read_text("utf-8") + up.output
    assert all(f"Authorization: Bearer {TOKEN}" in one for one in server.requests)


def test_down_gives_it_back_and_says_where_to_look(infra, sky, server, path):
    """Once; a second time there is nothing to do."""
    sky.endpoint = f"127.0.0.1:{server.port}"
    assert infra("up", *SKY, ADMITPERF_TOKEN=TOKEN).exit_code == 0
    assert "cluster admitperf" in one_line(infra("up", *SKY, ADMITPERF_TOKEN=TOKEN))
    done = infra("down")
    assert done.exit_code == 0, done.output
    assert ("down", "admitperf") in sky.asked
    assert "`sky status` does not list it" in flat(done)
    assert not path.exists()
    assert infra("down").output == "nothing was up\n"


@pytest.mark.parametrize("at", ["launch", "endpoints"])
def test_a_launch_that_fails_says_what_may_cost_and_down_ends_it(infra, sky, path, at):
    """The machine may be there all the same, so the file stays."""
    sky.fails = {at: RuntimeError(f"no\n A10 for {TOKEN}")}
    said = one_line(infra("up", *SKY, ADMITPERF_TOKEN=TOKEN))
    assert "cluster admitperf may exist and cost money: `admitperf infra down`" in said
    assert "no A10 for" in said
    assert path.exists()
    sky.fails = {}
    assert infra("down").exit_code == 0
    assert not path.exists()


def test_ctrl_c_during_a_launch_keeps_the_file_and_says_so(infra, sky, path):
    """What was asked for of a cloud comes all the same."""
    sky.fails = {"launch": KeyboardInterrupt()}
    ran = infra("up", *SKY, ADMITPERF_TOKEN=TOKEN)
    assert ran.exit_code == 1
    assert "may be left, and cost: `admitperf infra down --state " in ran.stderr
    assert path.exists()


def test_the_token_is_in_no_message_of_a_launch(infra, sky):
    """Whatever the cloud sends back."""
    sky.fails = {"launch": RuntimeError(f"bad secret {TOKEN}")}
    assert TOKEN not in infra("up", *SKY, ADMITPERF_TOKEN=TOKEN).output


def test_a_down_that_fails_keeps_the_file_and_says_what_to_type(infra, sky, path):
    """The next one tries again; a cluster that is gone is no failure."""
    sky.fails = {"launch": RuntimeError("x"), "down": RuntimeError("no credentials")}
    infra("up", *SKY, ADMITPERF_TOKEN=TOKEN)
    said = one_line(infra("down"))
    assert "no credentials" in said
    assert "may still run and cost money: `sky down admitperf`" in said
    assert path.exists()
    sky.fails = {"down": ClusterDoesNotExist("gone")}
    assert infra("down").exit_code == 0
    assert not path.exists()


def test_without_skypilot_nothing_is_noted_down(infra, path, monkeypatch):
    """One line that says how to get it; and down cannot claim that all is well."""
    monkeypatch.setitem(sys.modules, "sky", None)
    assert "SkyPilot is not installed here" in one_line(
        infra("up", *SKY, ADMITPERF_TOKEN=TOKEN)
    )
    assert not path.exists()


def test_a_port_that_is_open_to_everyone_needs_a_token(infra, sky):
    """Before anything is rented."""
    assert "put one into ADMITPERF_TOKEN" in one_line(infra("up", *SKY))
    assert sky.asked == []
