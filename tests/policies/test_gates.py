"""The two thresholds and the dual gate, as whole calls."""

import pytest

from admitperf import ConfigError
from admitperf.policies.dual_gate import DualGate
from admitperf.policies.kv_threshold import KvThreshold
from admitperf.policies.no_admission import NoAdmission
from admitperf.policies.queue_depth import QueueDepth
from admitperf.testing import FakeClock, MemoryLog


def engine(kv=0.5, queue=0.0, running=4.0):
    """Raw metrics under the signals' own names."""
    return {"kv_pressure": kv, "queue_depth": queue, "running": running}


def gates_of(line):
    """The gates of a decision line, without the bounds."""
    return [(name, value, held) for name, value, _, _, held in line["gates"]]


@pytest.fixture
def log():
    """A log to look into."""
    return MemoryLog()


def test_a_full_cache_is_refused_with_503_and_recorded(log):
    """The caller gets a code and a wait, the log the gate with its value and bound."""
    policy = KvThreshold(threshold=0.9, log=log, clock=FakeClock())
    d = policy(engine(kv=0.95))
    assert (d.admitted, d.status, d.reason) == (False, 503, "kv_pressure")
    assert int(d.headers()["Retry-After"]) >= 1
    [line] = log.decisions
    assert line["gates"] == [["kv_pressure", 0.95, ">=", 0.9, True]]
    assert line["signals"]["queue_depth"] == 0.0


def test_the_gate_is_recorded_when_it_does_not_hold_too(log):
    """An INERT run can be told how far away it stayed."""
    KvThreshold(log=log, clock=FakeClock())(engine(kv=0.44))
    QueueDepth(log=log, clock=FakeClock())(engine(queue=3))
    assert [line["gates"] for line in log.decisions] == [
        [["kv_pressure", 0.44, ">=", 0.9, False]],
        [["queue_depth", 3.0, ">", 32.0, False]],
    ]


@pytest.mark.parametrize("match", ["all", "any"])
@pytest.mark.parametrize("kv", [0.1, 0.95])
@pytest.mark.parametrize("queue", [0.0, 9.0])
def test_both_gates_are_asked_every_time(log, match, kv, queue):
    """No short cut hides how often the other gate held."""
    DualGate(match=match, log=log, clock=FakeClock())(engine(kv=kv, queue=queue))
    assert gates_of(log.decisions[0]) == [
        ("kv_pressure", kv, kv >= 0.9),
        ("queue_depth", queue, queue > 0),
    ]


@pytest.mark.parametrize("cls", [KvThreshold, QueueDepth])
@pytest.mark.parametrize("action", ["defer", "reject"])
def test_the_action_changes_the_verdict_and_not_the_code(cls, action):
    """The status follows from the reason alone."""
    d = cls(action=action, clock=FakeClock())(engine(kv=1.0, queue=100))
    assert (str(d.verdict), d.status) == (action, 503)
    assert "Retry-After" in d.headers()


def test_a_signal_that_is_missing_makes_it_blind_not_full(log):
    """Absence is neither headroom nor a full engine: it has a reason of its own."""
    for cls in (KvThreshold, QueueDepth, DualGate):
        d = cls(on_blind="reject", log=log, clock=FakeClock())({"running": 4.0})
        assert (d.reason, d.status) == ("signal_absent", 503)
        assert cls(on_blind="admit", clock=FakeClock())({}).admitted
    assert all(line["blind"] == "signal_absent" for line in log.decisions)
    assert all(line["gates"] == [] for line in log.decisions)


def test_the_dual_gate_needs_both_signals():
    """Half a conjunction is no answer, whatever the other half says."""
    policy = DualGate(clock=FakeClock())
    for raw in ({"kv_pressure": 0.1}, {"queue_depth": 0.0}):
        assert policy(raw).reason == "signal_absent"


def test_the_baseline_admits_whatever_happens(log):
    """It reads nothing, is never blind, and still records every signal."""
    policy = NoAdmission(log=log, clock=FakeClock(), on_blind="reject")
    for raw in ({}, engine(kv=1.0, queue=1e6), {"kv_pressure": float("nan")}, None):
        d = policy(raw)
        assert (d.admitted, d.reason, d.blind) == (True, None, None)
    assert log.decisions[1]["signals"]["queue_depth"] == 1e6


@pytest.mark.parametrize(
    ("cls", "wrong", "fault"),
    [
        (KvThreshold, {"threshold": 1.5}, "threshold = 1.5 is not from 0 to 1"),
        (KvThreshold, {"threshold": "0.9"}, "threshold = '0.9' is not float"),
        (
            KvThreshold,
            {"action": "drop"},
            "action = 'drop' is not one of defer, reject",
        ),
        (KvThreshold, {"limit": 0.5}, "limit is no parameter"),
        (QueueDepth, {"max_waiting": -1}, "max_waiting = -1 is not at least 0"),
        (QueueDepth, {"max_waiting": 1.5}, "max_waiting = 1.5 is not int"),
        (DualGate, {"match": "both"}, "match = 'both' is not one of all, any"),
        (NoAdmission, {"threshold": 0.5}, "threshold is no parameter (it has none)"),
    ],
)
def test_a_wrong_parameter_stops_at_construction(cls, wrong, fault):
    """No policy starts with a number that was not meant."""
    with pytest.raises(ConfigError) as caught:
        cls(**wrong)
    assert any(fault in told for told in caught.value.faults)


def test_in_shadow_everything_is_served_and_the_verdict_stands(log):
    """`enforce=0.0` records what would have been refused and refuses nothing."""
    d = KvThreshold(enforce=0.0, log=log, clock=FakeClock())(engine(kv=1.0))
    assert (d.admitted, d.status, d.retry_after_ms) == (True, 200, None)
    assert (str(d.verdict), d.reason) == ("defer", "kv_pressure")
    assert log.decisions[0]["enforced"] is False
