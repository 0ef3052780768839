"""A log that a test can look into."""

import json

import pytest

from admitperf.core.sink import Sink
from admitperf.policies.kv_threshold import KvThreshold
from admitperf.testing import FakeClock, MemoryLog


def policy_with(log, **given):
    """A policy that writes into `log`."""
    return KvThreshold(log=log, clock=FakeClock(), **given)


def test_it_takes_the_place_of_a_path():
    """What a policy accepts as `log=` it is."""
    assert isinstance(MemoryLog(), Sink)


def test_lines_come_in_order_and_by_kind():
    """Decisions, outcomes and controls can be asked for apart or together."""
    log = MemoryLog()
    policy = policy_with(log)
    policy({"kv_pressure": 0.5}, request_id="a")
    policy({"kv_pressure": 0.99}, request_id="b")
    policy.outcome("a", ttft_ms=12)
    policy.outcome("a")
    assert [line["k"] for line in log.lines] == [
        "decision",
        "decision",
        "outcome",
        "control",
    ]
    assert [line["id"] for line in log.decisions] == ["a", "b"]
    assert [line["ttft_ms"] for line in log.outcomes] == [12.0]
    assert [line["event"] for line in log.controls] == ["outcome_repeated"]


def test_a_reading_that_a_line_refers_to_can_be_looked_up():
    """With many raw metrics a line carries an id; the metrics are kept once."""
    log = MemoryLog()
    policy = policy_with(log, raw="reference")
    first, second = {"kv_pressure": 0.5}, {"kv_pressure": 0.6}
    for raw in (first, first, second):
        policy(raw)
    used = [line["reading"] for line in log.decisions]
    assert used[0] == used[1] != used[2]
    assert [log.readings[number] for number in used] == [first, first, second]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('{"k":"decision","v":NaN}', "NaN is no JSON"),
        ('{"k":"decision","v":-Infinity}', "-Infinity is no JSON"),
        ('{"k":"décision"}', "ASCII"),
        ('["decision"]', "an object"),
        ("{", "Expecting"),
    ],
)
def test_a_line_that_a_strict_reader_would_refuse_is_refused(text, fault):
    """A test that only looks at values still notices a broken line."""
    log = MemoryLog()
    log.event("control", text)
    with pytest.raises(ValueError, match=fault):
        _ = log.lines


def test_the_text_is_kept_as_written():
    """Bytes can be compared as well as values."""
    log = MemoryLog()
    policy_with(log)({"kv_pressure": 0.5})
    assert [json.loads(text) for text in log.texts] == log.lines


def test_flush_and_close_keep_the_lines():
    """A policy that is closed can still be asked what it wrote."""
    log = MemoryLog()
    with policy_with(log) as policy:
        policy({"kv_pressure": 0.5})
        assert policy.flush() is True
    assert len(log.decisions) == 1


def test_a_forked_child_starts_with_an_empty_log():
    """The parent's lines are the parent's."""
    log = MemoryLog()
    policy_with(log, raw="reference")({"kv_pressure": 0.5})
    log.after_fork("newrun")
    assert (log.texts, log.readings, log.runs) == ([], {}, ["newrun"])
