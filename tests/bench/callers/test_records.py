"""A call's line says all that its record does."""

import json
from dataclasses import fields, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from admitperf.bench.callers.records import CallRecord, line, record
from admitperf.core.errors import LogError

MS = st.none() | st.floats(0, 1e9)
COUNT = st.integers(0, 10**9)
TEXT = st.text(min_size=1, max_size=9)

RECORDS = st.builds(
    CallRecord,
    id=TEXT,
    session=TEXT,
    tenant=st.none() | TEXT,
    slo_class=st.text(max_size=9),
    kind=st.text(max_size=9),
    place=COUNT,
    due_s=MS,
    input_tokens=COUNT,
    output_tokens=COUNT,
    new_tokens=COUNT,
    begun_s=st.floats(0, 1e9),
    attempts=COUNT,
    refusals=COUNT,
    ended=st.sampled_from(
        ["answered", "cancelled", "refused", "failed", "never_sent", "unfinished"]
    ),
    status=st.integers(0, 599),
    reason=st.none() | TEXT,
    error=st.none() | TEXT,
    ttft_ms=MS,
    last_ttft_ms=MS,
    max_gap_ms=MS,
    e2e_ms=MS,
    refused_ms=MS,
    got_tokens=COUNT,
    computed_tokens=COUNT,
    late_ms=st.floats(0, 1e9),
    scored=st.booleans(),
)

ONE = CallRecord(
    id="s/0",
    session="s",
    tenant=None,
    slo_class="",
    kind="",
    place=0,
    due_s=None,
    input_tokens=100,
    output_tokens=10,
    new_tokens=100,
)


@settings(deadline=None, max_examples=60)
@given(RECORDS)
def test_a_call_comes_back_from_its_line_as_it_was(one):
    """By strict JSON."""
    assert record(json.loads(json.dumps(line(one), allow_nan=False))) == one


@settings(deadline=None, max_examples=60)
@given(RECORDS)
def test_a_line_keeps_to_the_published_schema(root, one):
    """Whatever became of the call."""
    schema = root / "docs" / "reference" / "log" / "call.schema.json"
    Draft202012Validator(json.loads(schema.read_text("utf-8"))).validate(line(one))


def test_the_published_schema_knows_each_field(root):
    """And no other, but for those that any line of a log has."""
    schema = root / "docs" / "reference" / "log" / "call.schema.json"
    known = set(json.loads(schema.read_text("utf-8"))["properties"])
    assert known - {"k", "run", "t_us"} == {field.name for field in fields(CallRecord)}


def test_what_is_not_known_is_left_out():
    """No null stands in a line."""
    told = line(ONE)
    assert None not in told.values()
    assert told["k"] == "call"
    assert "due_s" not in told
    assert "ttft_ms" not in told


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"k": "outcome"}, "a line of kind 'outcome' is no call line"),
        ({"id": 7}, "call line 7: id = 7 is no str"),
        ({"place": True}, "place = True is no int"),
        ({"place": 0.5}, "place = 0.5 is no int"),
        ({"scored": 1}, "scored = 1 is no bool"),
        ({"ttft_ms": "fast"}, "ttft_ms = 'fast' is no float"),
        ({"ended": "lost"}, "ended = 'lost' is none of answered, cancelled, "),
    ],
)
def test_a_line_that_is_no_call_is_refused_in_one_line(changed, said):
    """It names the call, the field and what stands there."""
    with pytest.raises(LogError, match=said):
        record({**line(ONE), **changed})


def test_what_a_line_needs_is_named_when_it_is_missing():
    """All of it at once."""
    bare = {"k": "call", "id": "s/0", "session": "s"}
    with pytest.raises(
        LogError, match=r"slo_class is missing; .*new_tokens is missing"
    ):
        record(bare)


def test_who_has_a_first_token_of_a_planned_hang_up_was_served():
    """And who closed without one was not."""
    assert replace(ONE, ended="cancelled", ttft_ms=5.0).served
    assert not replace(ONE, ended="cancelled").served
    assert not replace(ONE, ended="unfinished", ttft_ms=5.0).served


def test_a_call_ends_after_its_instant_and_not_before_it_has_an_answer():
    """From the start of the run."""
    assert replace(ONE, due_s=2.0, e2e_ms=500.0).ended_s == 2.5
    assert replace(ONE, due_s=2.0).ended_s is None
    assert ONE.ended_s is None
