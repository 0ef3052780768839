"""The published schemas take what we write and refuse what they say they refuse."""

import json

import pytest
from tests.reports import byhand
from tests.reports.byhand import KINDS

FULL_DECISION = byhand.decision(
    7,
    "defer",
    "queue_depth",
    estimate_ms=1000,
    wait="measured",
    signals={"kv_pressure": 0.91, "queue_depth": 41},
    gates=[
        ["kv_pressure", 0.91, ">=", 0.9, True],
        ["queue_depth", 41, ">", None, False],
    ],
    facts={"logical_id": "c-1", "attempt": 1, "deadline_s": -0.5, "late_ms": 3},
    replica="r1",
    reading=17,
    age_ms=120,
)
INLINE = {"raw": {"vllm:num_requests_waiting": 3, "odd": None}, "sources": {}}

VALID = {
    "run": [
        byhand.header(),
        byhand.header(slo={"ttft_ms": 1500, "stall_ms": 500}, name="r1"),
        byhand.header(slo={"chat": {"ttft_ms": 1500}, "batch": {}}, enforce=0.0),
        byhand.header(notes="seen on a Tuesday"),
        byhand.header(notes={"model": "m", "load": 1.5, "seed": 7, "plan": None}),
        byhand.header(notes={"ignore_eos": True}, basis="samples"),
    ],
    "reading": [
        byhand.reading(1, {"a": 1, "b": None}),
        byhand.reading(2, {"a": 2}, whole=False, gone=["b"], replica="r1", taken_us=5),
        byhand.reading(
            3,
            {},
            signals={
                "kv_pressure": {
                    "value": 0.91,
                    "source": "vllm_kv_cache_usage_perc max",
                    "parts": {"engine=0": 0.91},
                    "age_ms": 0,
                },
                "gpu_util": {"value": None, "absent": "out of range"},
            },
        ),
    ],
    "decision": [
        byhand.decision(1),
        FULL_DECISION,
        byhand.decision(2, **INLINE),
        byhand.decision(3, reading=None),
        byhand.decision(4, reason="signal_stale", blind="signal_stale", why="4 s old"),
        byhand.decision(5, "defer", "queue_depth", by="host", why="early"),
        byhand.decision(6, "defer", "queue_depth", admitted=True, probe=True),
        byhand.decision(7, held_ms=120.5, added={"queue_depth": 2, "kv_pressure": 0.1}),
    ],
    "outcome": [
        byhand.outcome(1),
        byhand.outcome(2, ok=False, error="reset", finish_reason=None, admitted=False),
        byhand.outcome(3, first_text_ms=980.5, input_tokens=9400),
    ],
    "lost": [byhand.lost(decision=120, reading=2)],
    "control": [
        byhand.control("blind", reason="signal_stale", why="4 s old"),
        byhand.control("outcome_repeated", id="r1"),
    ],
    "call": [
        byhand.call(1),
        byhand.call(2, "never_sent", run="a1", t_us=5),
        byhand.call(3, "refused", refused_ms=12.5, reason="queue_depth", status=503),
        byhand.call(4, "cancelled", ttft_ms=300, last_ttft_ms=20, scored=False),
        {"k": "call", "id": "s5/0", "session": "s5", "ended": "unfinished"},
    ],
}

INVALID = {
    "run": [
        byhand.header(schema="1"),
        byhand.header(enforce=1.5),
        byhand.header(on_blind="panic"),
        byhand.header(slo={"ttft_ms": "soon"}),
        byhand.header(color="red"),
        byhand.header(notes=["a", "b"]),
        byhand.header(notes={"engine": {"name": "vllm"}}),
        byhand.header(basis="guesses"),
        byhand.header(taxonomy={"unit": "request"}),
    ],
    "reading": [
        byhand.reading(1, {"a": "1"}),
        byhand.reading(1, {}, gone=["a"]),
        byhand.reading(-1, {}),
        byhand.reading(1, {}, signals={"kv_pressure": 0.9}),
    ],
    "decision": [
        byhand.decision(1, "maybe"),
        byhand.decision(1, signals={"kv_pressure": None}),
        byhand.decision(1, gates=[["kv_pressure", 0.9, "==", 0.9, True]]),
        byhand.decision(1, gates=[["kv_pressure", 0.9, ">=", 0.9]]),
        byhand.decision(1, raw={"a": 1}),
        byhand.decision(1, reading=1, **INLINE),
        byhand.decision(1, facts={"colour": "blue"}),
        byhand.decision(1, blind="tired"),
        byhand.decision(1, admitted="yes"),
        byhand.decision(1, status=7),
        byhand.decision(1, by="host"),
        byhand.decision(1, by="me", why="early"),
        byhand.decision(1, why="early"),
        byhand.decision(1, probe=False),
        byhand.decision(1, held_ms=-1),
        byhand.decision(1, added={}),
    ],
    "outcome": [
        byhand.outcome(1, ttft_ms=-1),
        byhand.outcome(1, ok="yes"),
        byhand.outcome(1, first_text_ms=-1),
        byhand.outcome(1, input_tokens=0.5),
        byhand.outcome(1, tokens=3),
    ],
    "lost": [byhand.lost(decision=-1), byhand.lost(bytes=3)],
    "control": [byhand.control("Not A Word"), byhand.control(7)],
    "call": [
        byhand.call(1, "forgotten"),
        byhand.call(1, ttft_ms=-1),
        byhand.call(1, place=1.5),
        byhand.call(1, scored="yes"),
        byhand.call(1, colour="blue"),
    ],
}


def pairs(examples):
    """Each example with its kind, named for the test report."""
    return [
        pytest.param(kind, line, id=f"{kind}-{index}")
        for kind, lines in examples.items()
        for index, line in enumerate(lines)
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_each_schema_is_sound_and_says_what_each_field_means(schemas, kind):
    """A schema is valid 2020-12, and no field of it goes without a description."""
    schema = schemas[kind].schema
    schemas[kind].check_schema(schema)
    silent = [
        name
        for name, field in schema["properties"].items()
        if not field.get("description")
    ]
    assert silent == []


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_but_control_is_closed(schemas, kind):
    """A field nobody documented is refused, except for the details of an event."""
    assert schemas[kind].schema["additionalProperties"] is (kind == "control")


@pytest.mark.parametrize(("kind", "line"), pairs(VALID))
def test_a_line_of_the_format_is_valid(schemas, kind, line):
    """Each example keeps to its schema."""
    assert [error.message for error in schemas[kind].iter_errors(line)] == []


@pytest.mark.parametrize(("kind", "line"), pairs(INVALID))
def test_a_line_outside_the_format_is_refused(schemas, kind, line):
    """Each example breaks its schema."""
    assert not schemas[kind].is_valid(line)


@pytest.mark.parametrize("kind", KINDS)
def test_no_required_field_can_go_missing(schemas, kind):
    """Taking away any required field makes a line invalid."""
    line = VALID[kind][0]
    for name in schemas[kind].schema["required"]:
        rest = {key: value for key, value in line.items() if key != name}
        assert not schemas[kind].is_valid(rest), name


@pytest.mark.parametrize(("kind", "line"), pairs(VALID))
def test_the_reader_takes_every_valid_line(write, kind, line):
    """What the schema allows, the report can use."""
    from admitperf.reports.files.lines import LogFile

    (read,) = LogFile(write(line))
    assert read.fault is None
    assert read.fields == json.loads(json.dumps(line))
