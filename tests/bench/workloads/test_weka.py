"""Sessions of coding agents are read whole, and what their prompts share exactly."""

import gzip
import json

import pytest

from admitperf.bench.workloads import TraceError
from admitperf.bench.workloads.divisor import divided, fitted
from admitperf.bench.workloads.grown import common_tokens
from admitperf.bench.workloads.measuring import following
from admitperf.bench.workloads.weka import read


def line(*events, name="t1"):
    """A session of the trace."""
    return json.dumps({"session": name, "block_size": 64, "events": list(events)})


def told(at_s, blocks, *, out=32, **more):
    """A call of the trace."""
    tokens = sum(count for _, count in blocks) * 64 + 7
    return {"t": at_s, "in": tokens, "out": out, "stream": 1, "blocks": blocks, **more}


@pytest.fixture
def trace(tmp_path):
    """Write lines and read them."""

    def written(*lines):
        path = tmp_path / "trace.jsonl"
        path.write_text("\n".join(lines), encoding="utf-8")
        return read(path)

    return written


def test_a_trace_says_gaps_sizes_and_what_prompts_share(trace):
    """In tokens, divided; an answer without a token counts as one."""
    found = trace(
        line(
            told(0.0, [[1, 4]], think=9.0, api=2.0),
            told(10.0, [[1, 8]], think=8.0, api=1.0, out=0),
            told(20.0, [[1, 6], [50, 4]], api=3.0),
        ),
    )
    session = divided(found.pool[0], 4)
    first, second, third = session.calls
    assert [call.gap_s for call in (first, second, third)] == [0.0, 8.0, 9.0]
    assert [call.after for call in (first, second, third)] == [None, 0, 1]
    assert [call.input_tokens for call in (first, second, third)] == [66, 130, 162]
    assert [call.output_tokens for call in (first, second, third)] == [8, 1, 8]
    assert first.prefix == ((0, 64),)
    assert second.prefix == ((0, 96), (1, 32))
    assert third.prefix == ((0, 160),)
    assert _counted(found) == (1, 1, 0)
    assert session.max_output_tokens == 8_000


def test_a_sub_agent_runs_beside_its_session(trace):
    """From the answer it was started after; the session goes on when it did."""
    beside = {"t": 12.0, "subagent": "a", "calls": [
        told(0.0, [[900, 2]], think=0.0, api=1.0), told(5.0, [[900, 3]], think=4.0),
    ]}  # fmt: skip
    found = trace(
        line(
            told(0.0, [[1, 4]], think=0.0, api=10.0), beside,
            told(40.0, [[1, 5]], think=30.0),
        )
    )  # fmt: skip
    calls = found.pool[0].calls
    assert [call.after for call in calls] == [None, 0, 1, 0]
    assert [call.gap_s for call in calls] == [0.0, 2.0, 4.0, 30.0]
    assert calls[1].prefix[0][0] == calls[2].prefix[0][0] != calls[3].prefix[0][0]
    assert _counted(found) == (0, 0, 2)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{x", "line 1: is no JSON"),
        ("{\n\n", "is no JSON"),
        ('{"session": "s"}', "line 1: is no session: the field 'events' is missing"),
        ("[1]", "line 1: is no JSON object"),
        (line({"t": 0, "in": 5, "out": 5, "blocks": [[1, 0]]}), "a run without blocks"),
        ("", "holds no session"),
        (line(), "holds no session"),
    ],
)
def test_a_file_that_is_no_trace_is_named_with_the_line(trace, text, words):
    """One error of ours, whatever is in it."""
    with pytest.raises(TraceError, match=r"trace\.jsonl") as caught:
        trace(text)
    assert words in str(caught.value)


def test_a_packed_trace_is_read_like_a_plain_one(tmp_path):
    """And one that is cut or damaged is an error of ours."""
    text = line(told(0.0, [[1, 4]])).encode()
    path, plain = tmp_path / "trace.jsonl.gz", tmp_path / "trace.jsonl"
    plain.write_bytes(text)
    path.write_bytes(gzip.compress(text))
    assert read(path) == read(plain)
    for broken in (text, gzip.compress(text)[:-12]):
        path.write_bytes(broken)
        with pytest.raises(TraceError, match=r"trace\.jsonl\.gz: "):
            read(path)


def test_a_file_that_is_not_there_is_an_error_of_ours(tmp_path):
    """With the system's words."""
    with pytest.raises(TraceError, match="no such file"):
        read(tmp_path / "none.jsonl")


def _counted(found):
    names = ("gaps_unknown", "answers_empty", "calls_beside")
    return tuple(found.notes[name] for name in names)


def test_the_form_that_was_published_says_the_same(tmp_path, trace):
    """A session a file, whose blocks are counted one by one; laid out or not."""
    short = trace(
        line(
            told(0.0, [[1, 4]], think=0.0, api=1.0),
            {"t": 2.0, "subagent": "a", "calls": [told(0.0, [[900, 2]], think=0.0)]},
            told(9.0, [[1, 5], [70, 1]], think=7.0),
            name="x",
        )
    )
    whole = {"id": "x", "requests": [
        {"t": 0.0, "type": "n", "in": 263, "out": 32, "hash_ids": [1, 2, 3, 4],
         "think_time": 0.0, "api_time": 1.0},
        {"t": 2.0, "type": "subagent", "agent_id": "a", "requests": [
            {"t": 0.0, "in": 135, "out": 32, "hash_ids": [900, 901], "think_time": 0}]},
        {"t": 9.0, "type": "n", "in": 391, "out": 32, "hash_ids": [1, 2, 3, 4, 5, 70],
         "think_time": 7.0},
    ]}  # fmt: skip
    path = tmp_path / "trace_0001.json"
    for indent in (None, 2):
        path.write_text(json.dumps(whole, indent=indent), encoding="utf-8")
        assert read(path) == short


def test_both_forms_of_one_real_session_are_read_alike(shared):
    """The one of which both are at hand."""
    traces = shared / "traces"
    (published,) = read(traces / "weka_raw_trace_0101.json").pool
    parts = sorted(traces.glob("weka_cc_sessions.part*.jsonl"))
    found = [one for one in read(*parts).pool if one.name == published.name]
    assert found == [published]


def test_the_real_trace_is_read_whole(shared):
    """Its sessions, its reuse and what fits at a sixteenth, as was counted before."""
    part = shared / "traces" / "weka_cc_sessions.part1.jsonl"
    found = read(part)
    lines = [json.loads(text) for text in part.read_text("utf-8").splitlines()]
    calls = [
        call
        for one in lines
        for event in one["events"]
        for call in event.get("calls", [event])
    ]
    assert len(found.pool) == len(lines)
    assert sum(len(one.calls) for one in found.pool) == len(calls)
    assert max(len(c.prefix) for one in found.pool for c in one.calls) < 10
    _, fit = fitted(found.pool, 16_384, 16)
    assert 0.05 < fit.left_out / fit.calls < 0.12
    steps = [step for one in found.pool for step in following(one)]
    kept = sum(common_tokens(before.prefix, call.prefix) for before, call in steps)
    assert 0.96 < kept / sum(call.input_tokens for _, call in steps) < 0.985
