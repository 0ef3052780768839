"""A simulated target: the same bytes each time, and no engine that cannot be."""

import pytest

from admitperf.bench.callers.callers import Callers, planned
from admitperf.bench.callers.client import CLIENTS
from admitperf.bench.harness.target import Arm
from admitperf.bench.harness.virtual import virtual
from admitperf.bench.workloads import workload
from admitperf.core.errors import ConfigError
from admitperf.simulator.profile import profile

ARM = Arm(name="a", policy="queue_depth", parameters={"max_waiting": 1})


@pytest.fixture
def engine():
    """One with four places."""
    return virtual(profile("a100-40-qwen2.5-7b"), {"max_num_seqs": 4})


def drive(engine, log, **changed):
    """Fifty requests, more than it can carry."""
    offered = workload("chat").fitting(engine.longest_tokens())
    begun = offered.begun(5.0, 10.0, 1)
    plan = planned(begun, 10.0, (0.0, 10.0), CLIENTS["none"], noun="request")
    asking = Callers(plan, CLIENTS["none"], 1)
    how = {
        "seed": 1,
        "notes": {},
        "slo": {"ttft_ms": 500},
        "run": "x1-b1",
        "experiment": "e",
        "until_s": 60.0,
    }
    driven = engine.drive(ARM, log, asking, **{**how, **changed})
    return asking, driven


def test_the_log_is_the_same_to_the_byte(engine, tmp_path):
    """Also from another process: nothing in it is random or of this machine."""
    logs = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    for log in logs:
        drive(engine, log)
    assert logs[0].read_bytes() == logs[1].read_bytes()
    assert '"run":"e-a-x1-b1"' in logs[0].read_text().partition("\n")[0]


def test_without_a_log_nothing_is_written(engine, tmp_path, monkeypatch):
    """Not even under experiments/, where a policy with a name would write."""
    monkeypatch.chdir(tmp_path)
    asking, driven = drive(engine, None)
    assert list(tmp_path.iterdir()) == []
    assert len(driven.decide_ns) == len(asking.records()) == 50


def test_a_run_ends_when_it_is_said_to(engine):
    """What is inside then is unfinished."""
    asking, driven = drive(engine, None, until_s=11.0)
    assert driven.seconds <= 11.0
    assert any(one.ended == "unfinished" for one in asking.records())


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ({"max_seqs": 4}, "engine.max_seqs is unknown"),
        ({"max_num_seqs": "4"}, "engine.max_num_seqs '4' is no whole number"),
        ({"max_num_seqs": 0}, "max_num_seqs = 0 is not"),
        ({"max_num_seqs": 4, "max_num_batched_tokens": 2}, "below max_num_seqs"),
    ],
)
def test_sizes_that_no_engine_has_are_told(sizes, said):
    """In one line."""
    with pytest.raises(ConfigError) as caught:
        virtual(profile("a100-40-qwen2.5-7b"), sizes)
    assert said in str(caught.value)


def test_what_differs_from_the_profile_is_noted(engine):
    """And that nothing was measured, and that it cannot drift."""
    notes = engine.notes()
    assert notes["engine_changed"] == "max_num_seqs=4"
    assert notes["simulated"] is True
    assert engine.probe() is None
    assert "vllm:num_requests_waiting" in engine.reading().raw
