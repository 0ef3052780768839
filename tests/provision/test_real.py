"""Real engines: up, tried, and down with everything that they began."""

import json
import os
import signal
import subprocess
import sys

import pytest
from tests.provision.conftest import pids, runs, until

from admitperf.provision import state
from admitperf.provision.down import down

TINY = (
    "--dtype", "float32", "--max-model-len", "1024", "--max-num-seqs", "4",
    "--enforce-eager", "--block-size", "128", "--num-gpu-blocks-override", "16",
)  # fmt: skip
ON_CPU = {
    "HF_HUB_OFFLINE": "1", "VLLM_CPU_KVCACHE_SPACE": "1", "OMP_NUM_THREADS": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
}  # fmt: skip
NAMES = ("ADMITPERF_VLLM_VENV", "ADMITPERF_VLLM_MODEL")
NAMED = {name: os.environ.get(name, "") for name in NAMES}


def checks(infra, *options, **environment):
    """The checks of a smoke: name to whether it is well, and its document."""
    ran = infra("smoke", "--json", *options, **environment)
    told = json.loads(ran.stdout)
    return {one["name"]: one["ok"] for one in told["checks"]}, told


@pytest.mark.real_engine
def test_a_real_llamacpp_is_brought_up_tried_and_taken_down(infra, path, root):
    """By the scripts of the checkout; it has no KV pressure and says so."""
    built = subprocess.run(
        ["sh", root / "infra/llamacpp/build.sh"],
        env={**os.environ, "PYTHON": sys.executable}, check=False,
    )  # fmt: skip
    assert built.returncode == 0
    up = infra("up", "--provider", "llamacpp", "--port", "0", "--wait", "60s")
    assert up.exit_code == 0, up.output
    found, told = checks(infra)
    assert all(found.values()), told
    assert told["unusable"]["kv_threshold"] == "kv_pressure"
    assert not told["simulated"]
    (pid,) = pids(path)
    assert infra("down").exit_code == 0
    assert not runs(pid)


@pytest.fixture
def vllm(infra):
    """Bring a real vLLM up, on the processor."""
    absent = [name for name, value in NAMED.items() if not value]
    if absent:
        pytest.skip(f"no real vLLM to bring up: {' and '.join(absent)} not set")
    up = infra("up", "--port", "0", "--wait", "5m", "--", *TINY, **NAMED, **ON_CPU)
    assert up.exit_code == 0, up.output
    return up


@pytest.mark.real_vllm
def test_a_real_vllm_is_the_default_and_supplies_what_policies_need(vllm, infra, path):
    """Its workers are noted down too, and are gone afterwards."""
    assert vllm.stdout.startswith("vllm is up on http://127.0.0.1:")
    found, told = checks(infra, "--policy", "kv_threshold", "--policy", "queue_depth")
    assert all(found.values()), told
    assert told["unusable"] == {}
    begun = pids(path)
    assert len(begun) > 1
    assert infra("down").exit_code == 0
    assert not any(map(runs, begun))
    assert state.running(path, None) == []


@pytest.mark.real_vllm
def test_the_workers_of_a_vllm_that_was_killed_are_ended(vllm, path):
    """A worker can outlive its server, and keeps the memory."""
    first, *workers = pids(path)
    os.kill(first, signal.SIGKILL)
    until(lambda: not runs(first))
    down(path)
    assert not any(map(runs, workers))
    assert not path.exists()
