"""Raw metrics and sources on each decision line."""

import json

import pytest
from tests.reports.byhand import RUN, decision, header, lost, outcome, reading

from admitperf.reports.files import expand as module
from admitperf.reports.files.expand import Expander, expand
from admitperf.reports.files.lines import LogFile

KV = {"kv_pressure": {"value": 0.5, "source": "vllm_kv_cache_usage_perc max"}}


@pytest.fixture
def expanded(write):
    """Expand lines and get the output as it was written."""

    def _expanded(*lines):
        return list(expand(LogFile(write(*lines))))

    return _expanded


def raws(lines):
    """The raw metrics of each decision line; None where there are none."""
    fields = [json.loads(line) for line in lines]
    return [line.get("raw") for line in fields if line["k"] == "decision"]


def test_a_reading_is_put_onto_the_decisions_that_refer_to_it(expanded):
    """Raw and sources stand on the line, and the reference is gone."""
    out = expanded(
        header(), reading(1, {"a": 1, "b": 2}, signals=KV), decision(1, reading=1)
    )
    line = json.loads(out[-1])
    assert line["raw"] == {"a": 1, "b": 2}
    assert line["sources"] == {"kv_pressure": "vllm_kv_cache_usage_perc max"}
    assert "reading" not in line


def test_an_expanded_line_keeps_to_the_schema(expanded, schemas):
    """The output is a log in the same format."""
    out = expanded(header(), reading(1, {"a": 1}, signals=KV), decision(1, reading=1))
    for line in map(json.loads, out):
        schemas[line["k"]].validate(line)


def test_changes_build_on_the_reading_before(expanded):
    """Changed values replace, gone ones go, the rest stays."""
    out = expanded(
        header(),
        reading(1, {"a": 1, "b": 2, "c": 3}),
        decision(1, reading=1),
        reading(2, {"a": 10}, whole=False, gone=["b"]),
        decision(2, reading=2),
        reading(3, {"b": 20}, whole=False),
        decision(3, reading=3),
    )
    assert raws(out) == [
        {"a": 1, "b": 2, "c": 3},
        {"a": 10, "c": 3},
        {"a": 10, "b": 20, "c": 3},
    ]


def test_a_decision_may_refer_to_an_earlier_reading(expanded):
    """Threads decide side by side, so the newest reading is not always the one."""
    out = expanded(
        header(),
        reading(1, {"a": 1}),
        reading(2, {"a": 2}, whole=False),
        decision(1, reading=1),
    )
    assert raws(out) == [{"a": 1}]


def test_two_processes_in_one_file_do_not_mix(expanded):
    """Changes are against the reading of the same run."""
    out = expanded(
        header(),
        reading(1, {"a": 1, "b": 1}),
        header(run="other"),
        reading(1, {"a": 5, "b": 5}, run="other"),
        reading(2, {"a": 2}, whole=False),
        decision(1, reading=2),
        decision(1, reading=1, run="other"),
    )
    assert raws(out) == [{"a": 2, "b": 1}, {"a": 5, "b": 5}]


def test_replicas_change_against_themselves(expanded):
    """A pool's readings alternate; each is a change against its own replica's last."""
    out = expanded(
        header(),
        reading(1, {"a": 1, "b": 1}, replica="r1"),
        reading(2, {"a": 5, "b": 5}, replica="r2"),
        reading(3, {"a": 2}, whole=False, replica="r1"),
        reading(4, {"b": 6}, whole=False, replica="r2"),
        decision(1, reading=3, replica="r1"),
        decision(2, reading=4, replica="r2"),
        decision(3, reading=1, replica="r1"),
    )
    assert raws(out) == [{"a": 2, "b": 1}, {"a": 5, "b": 6}, {"a": 1, "b": 1}]


def test_a_run_line_begins_anew(write):
    """What follows it is whole, so nothing is built on what stood before."""
    expander = Expander()
    lines = (
        header(),
        reading(1, {"a": 1}),
        header(),
        reading(2, {"b": 1}, whole=False),
        decision(1, reading=2),
        decision(2, reading=1),
    )
    assert raws(expander.expand(LogFile(write(*lines)))) == [None, None]
    assert expander.dangling == 2


def test_every_other_line_is_left_as_it_stands(expanded):
    """Not a byte of it changes, and none is dropped."""
    odd = json.dumps(lost(decision=3), indent=None, separators=(", ", " : "))
    inline = json.dumps(decision(2, raw={"a": 1}, sources={}))
    plain = json.dumps(decision(3))
    torn = '{"k":"decision","seq":4'
    lines = (json.dumps(header()), json.dumps(outcome(2)), odd, inline, plain, torn)
    assert expanded(*lines) == list(lines)


def test_behind_a_line_that_cannot_be_used_changes_are_not_trusted(write):
    """The lost line may have been a reading: wait for the next whole one."""
    path = write(
        header(),
        reading(1, {"a": 1}),
        '{"k":"reading","id":2,"whole":fal',
        reading(3, {"b": 3}, whole=False),
        decision(1, reading=3),
        reading(4, {"a": 4}),
        decision(2, reading=4),
    )
    expander = Expander()
    out = [line for line in expander.expand(LogFile(path)) if '"fal' not in line[-5:]]
    assert raws(out[:2] + out[3:]) == [None, {"a": 4}]
    assert expander.dangling == 1


def test_a_reading_that_is_not_there_leaves_the_line_alone(write):
    """The reference stays, and is counted."""
    expander = Expander()
    (_, line) = expander.expand(LogFile(write(header(), decision(1, reading=9))))
    assert json.loads(line)["reading"] == 9
    assert expander.dangling == 1


def test_expanding_twice_changes_nothing(expanded):
    """An expanded log is its own expansion."""
    once = expanded(header(), reading(1, {"a": 1}, signals=KV), decision(1, reading=1))
    assert expanded(*once) == once


def test_memory_is_bounded_in_readings(monkeypatch, write):
    """Only the last readings of a run are kept."""
    monkeypatch.setattr(module, "KEPT_READINGS", 2)
    lines = [header(), *(reading(n, {"a": n}) for n in range(1, 5))]
    expander = Expander()
    out = list(expander.expand(LogFile(write(*lines, decision(1, reading=1)))))
    assert expander.dangling == 1
    assert raws(out) == [None]


def test_what_is_no_strict_json_is_left_alone(write):
    """A number too large for a float is not written as Infinity."""
    line = json.dumps(reading(1, {"a": 7})).replace("7}", "1e999}")
    (_, _, out) = expand(LogFile(write(header(run=RUN), line, decision(1, reading=1))))
    assert "Infinity" not in out
    assert json.loads(out)["reading"] == 1
