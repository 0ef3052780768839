"""A whole experiment on the wall clock: against a simulated engine behind HTTP."""

import json

import pytest
from tests.bench.harness.small import Heard, small

from admitperf.bench.harness import alone, capacity
from admitperf.bench.harness.experiment import Experiment

pytest.importorskip("aiohttp")

QUICK = {
    capacity: {
        "WALL_TRY_S": 0.5,
        "WALL_MEASURE_S": 1.0,
        "WALL_SETTLE_S": 0.3,
        "WALL_CLIENTS_MOST": 4,
    },
    alone: {"UNLOADED_WALL": 8, "UNLOADED_CLASS": 2, "UNLOADED": 8},
}
"""The measurements before and after, shorter; nothing else is otherwise."""


@pytest.fixture
def quick(monkeypatch):
    """Each constant in place of a longer one."""
    for module, constants in QUICK.items():
        for name, value in constants.items():
            monkeypatch.setattr(module, name, value)
    monkeypatch.setattr("admitperf.bench.harness.http._PROBES", 1)
    monkeypatch.setattr("admitperf.bench.harness.http._LOOK_S", 0.05)


def test_a_whole_experiment_over_http_ends_with_findings(tmp_path, quick):
    """From the calibration to the second look at the capacity, each run on its own."""
    config = small(
        tmp_path,
        target={
            "profile": "a10-qwen2.5-0.5b",
            "engine": {"max_num_seqs": 2},
            "over": "http",
            "scrape_interval_s": 0.05,
        },
        workload={
            "name": "chat",
            "parameters": {"input_tokens": [20, 60], "output_tokens": [8, 16]},
        },
        arms=[{"policy": "queue_depth", "parameters": {"max_waiting": 1}}],
        loads=[1.5],
        lasts_s=0.4,
        warmup_s=0,
    )
    heard = Heard()
    with Experiment(config, heard) as experiment:
        planned = experiment.planned()
        assert experiment.run(planned)
        found = experiment.found
    assert len(heard.runs) == len(found.runs) == planned.design.runs == 12
    told = json.loads((config.folder / "experiment.json").read_text())
    assert told["partial"] is False
    assert told["capacity"]["after"]["per_s"] > 0
    assert len(told["findings"]) == 12
    assert {told["findings"]["no_admission/x1.5-b1"]["word"]} == {"BASELINE"}
    for run in found.runs:
        assert run.manifest["simulated"] is True
        assert run.manifest["probe_ms"] > 0
        assert run.manifest["restarts"] == 0
        assert run.summary["sent"] == run.summary["offered"] > 0
        assert run.summary["late_ms"]["p50"] >= 0
        assert run.manifest["plan"] == told["plans"][run.folder.name]
