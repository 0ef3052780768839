"""`vllm bench serve`, as people measure engines with it, against the gateway."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from tests.gateway.conformance.door import before, gateway, scripted_engine

pytestmark = pytest.mark.real_vllm

PROMPTS = 20


def test_vllm_bench_serve_measures_through_the_gateway(tmp_path):
    """All its streams complete, and the log has the same number of good ends."""
    names = ("ADMITPERF_VLLM_VENV", "ADMITPERF_VLLM_MODEL")
    absent = [name for name in names if not os.environ.get(name)]
    if absent:
        pytest.skip(f"no vLLM to measure with: {' and '.join(absent)} not set")
    venv, model = (Path(os.environ[name]) for name in names)
    with (
        scripted_engine() as engine,
        gateway(tmp_path, *before(engine, "says")) as door,
    ):
        done = subprocess.run(
            [venv / "bin" / "vllm", "bench", "serve", "--backend", "openai",
             "--base-url", door.url, "--endpoint", "/v1/completions", "--model", "ok",
             "--tokenizer", model, "--dataset-name", "random",
             "--random-input-len", "16", "--random-output-len", "6",
             "--num-prompts", str(PROMPTS), "--save-result", "--result-dir", tmp_path,
             "--result-filename", "result.json"],
            env={**os.environ, "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"},
            cwd=tmp_path, capture_output=True, text=True, check=False, timeout=180,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-3000:]
        result = json.loads((tmp_path / "result.json").read_text())
        # One more than was asked for: the tool tries its wish first.
        outcomes = door.waits_for("outcome", PROMPTS)
    assert result["completed"] == PROMPTS
    assert result["failed"] == 0
    assert all(one["ok"] for one in outcomes)
    assert all(one["ttft_ms"] > 0 for one in outcomes)
