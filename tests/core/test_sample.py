"""The sample of the README and of the brief runs as it is printed."""

from pathlib import Path

import pytest
from tests.core.rules import strict, wall

from admitperf.core.signals import KV_PRESSURE, QUEUE_DEPTH

SAMPLE = """\
from admitperf import Policy
from admitperf.core.signals import KV_PRESSURE, QUEUE_DEPTH

class KvWall(Policy):
    name = "kv_wall"

    def decide(self, metrics):
        if KV_PRESSURE.read(metrics) >= self.threshold:
            return self.reject("kv_pressure")
        if QUEUE_DEPTH.read(metrics) > self.max_waiting:
            return self.defer("queue_depth", retry_after_ms=200)
        return self.admit()

policy = KvWall(threshold=0.90, max_waiting=32, log="decisions.jsonl")
d = policy(raw_metrics, request_id=rid)          # raw_metrics: any mapping name -> number
if not d.admitted: ...                           # d.status, d.reason, d.retry_after_ms, d.verdict
policy.outcome(rid, ttft_ms=418, ok=True)        # optional; without it there is no goodput
"""  # noqa: E501  as it is printed


@pytest.fixture
def ran(tmp_path, monkeypatch):
    """The sample's names after it ran in an empty folder, by its raw metrics."""
    monkeypatch.chdir(tmp_path)

    def run(raw_metrics):
        names = {"raw_metrics": raw_metrics, "rid": "r-1"}
        exec(compile(SAMPLE, "sample", "exec"), names)
        names["policy"].close()
        return names

    return run


def lines(kind):
    """The lines of a kind in the sample's log."""
    every = [strict(line) for line in Path("decisions.jsonl").read_text().splitlines()]
    return [line for line in every if line["k"] == kind]


def test_the_sample_is_the_one_that_was_promised(shared):
    """What runs here is the text of the contract, to the letter."""
    assert SAMPLE in (shared / "brief.md").read_text(encoding="utf-8")


def test_the_sample_admits_below_both_bounds(ran):
    """Room in memory and a short queue: start it now."""
    d = ran({"vllm:kv_cache_usage_perc": 0.5, "vllm:num_requests_waiting": 4})["d"]
    assert (d.verdict, d.reason, d.admitted) == ("admit", None, True)
    assert (d.status, d.retry_after_ms, d.request_id) == (200, None, "r-1")


def test_the_sample_rejects_at_the_memory_bound(ran):
    """A full cache is refused with the reason's own status and a wait."""
    d = ran({"vllm:kv_cache_usage_perc": 0.9, "vllm:num_requests_waiting": 4})["d"]
    assert (d.verdict, d.reason, d.admitted) == ("reject", "kv_pressure", False)
    assert d.status == 503
    assert d.retry_after_ms >= 1


def test_the_sample_defers_behind_a_queue_with_its_own_wait(ran):
    """A long queue is a wait of the policy's own choosing."""
    d = ran({"vllm:kv_cache_usage_perc": 0.2, "vllm:num_requests_waiting": 33})["d"]
    assert (d.verdict, d.reason, d.status) == ("defer", "queue_depth", 503)
    assert d.retry_after_ms == 200


def test_the_samples_decision_line_holds_its_gates_and_signals(ran):
    """Each comparison stands in the log: signal, value, operator, bound, result."""
    ran({"vllm:kv_cache_usage_perc": 0.5, "vllm:num_requests_waiting": 40})
    (line,) = lines("decision")
    assert line["gates"] == [
        ["kv_pressure", 0.5, ">=", 0.9, False],
        ["queue_depth", 40.0, ">", 32.0, True],
    ]
    assert line["signals"] == {"kv_pressure": 0.5, "queue_depth": 40.0}
    assert line["id"] == "r-1"


def test_the_samples_header_names_policy_and_parameters(ran):
    """Free keywords are the parameters of a class that annotates none."""
    ran({"kv_pressure": 0.5, "queue_depth": 0})
    (header,) = lines("run")
    assert header["policy"] == "kv_wall"
    assert header["params"] == {"threshold": 0.9, "max_waiting": 32}


def test_the_samples_outcome_is_recorded_with_its_decision(ran):
    """The first report of an end joins the decision by its number."""
    ran({"kv_pressure": 0.5, "queue_depth": 0})
    (decision,), (outcome,) = lines("decision"), lines("outcome")
    assert outcome["of"] == decision["seq"]
    assert (outcome["ok"], outcome["ttft_ms"], outcome["admitted"]) == (True, 418, True)


def test_a_host_that_serves_a_refused_request_is_on_the_record(ran):
    """The sample reports the end of what it refused: that marks a shadow run."""
    ran({"kv_pressure": 0.99, "queue_depth": 0})
    (decision,), (outcome,) = lines("decision"), lines("outcome")
    assert decision["admitted"] is False
    assert outcome["admitted"] is False


def test_the_sample_without_its_signals_is_blind_and_not_wrong(ran):
    """Comparing a missing signal raises inside `decide`, and never reaches the host."""
    d = ran({"something_else": 1.0})["d"]
    assert (d.admitted, d.reason) == (True, "signal_absent")


def test_read_on_a_plain_mapping_is_a_plain_float_or_none():
    """Outside a policy a signal is just a number, and an absent one is None."""
    value = KV_PRESSURE.read({"kv_cache_usage_perc": 0.25})
    assert (type(value), value) == (float, 0.25)
    assert KV_PRESSURE.read({}) is None
    assert QUEUE_DEPTH.read({"kv_cache_usage_perc": 0.25}) is None
    assert KV_PRESSURE.read(None) is None


def test_the_same_raw_metrics_are_decided_alike_by_any_mapping_type():
    """Any mapping name -> number will do, in any order, with anything beside it."""
    from types import MappingProxyType

    raw = {"other": "text", "kv_pressure": 0.95, "queue_depth": 1, 7: None}
    for given in (raw, MappingProxyType(raw), dict(reversed(raw.items()))):
        assert wall()(given).reason == "kv_pressure"
