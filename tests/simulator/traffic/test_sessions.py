"""Sessions are closed within, open without, and keep their pauses."""

import gzip
import json
import logging
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.simulator.small import model

from admitperf.core.policy import Policy
from admitperf.policies import load
from admitperf.simulator import Setting, VirtualClock, run
from admitperf.simulator.capacity import answered, of_requests, of_sessions
from admitperf.simulator.traffic.agents import Agents
from admitperf.simulator.traffic.sessions import (
    Call,
    Session,
    Sessions,
    Standing,
    beginnings,
    capped,
    drawn,
    fitting,
    sessions_hash,
    under_way,
)
from admitperf.simulator.traffic.weka import TraceError, weka
from admitperf.simulator.traffic.workload import Kind
from admitperf.testing import MemoryLog

FREE = model(max_num_seqs=64, kv_blocks=10_000, ms_per_prefill_token=0.0)
AGENTS = Agents(calls=(2, 6), first_tokens=(50, 90), new_tokens=(5, 20),
                output_tokens=(2, 9), gap_s=1.0, shared_tokens=20)  # fmt: skip


@pytest.fixture(autouse=True)
def _quiet():
    """A policy is blind until the first look has come, and says so."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def session(*gaps_s, name="s", tokens=50, after=None):
    """Calls one after the other, or after those that are named, with these gaps."""
    after = after or [None, *range(len(gaps_s) - 1)]
    calls = [
        Call(after=before, gap_s=gap_s, input_tokens=tokens, output_tokens=5,
             prefix=((0, tokens),))
        for before, gap_s in zip(after, gaps_s, strict=True)
    ]  # fmt: skip
    return Session(name, tuple(calls), 100)


def ends(traffic, engine=FREE, until_s=float("inf")):
    """What ended, by id."""
    return {end.arrival.id: end for end in answered(traffic, engine, until_s)}


def test_each_call_comes_its_gap_after_the_answer_before_it():
    """And none before: the engine's slowness stretches the session."""
    slow = replace(FREE, step_ms=500.0)
    for engine in (FREE, slow):
        found = ends(Sessions([(3.0, session(0.0, 4.0, 1.0))]), engine)
        assert found["s/0"].arrival.at_s == 3.0
        assert found["s/1"].arrival.at_s == found["s/0"].at_s + 4.0
        assert found["s/2"].arrival.at_s == found["s/1"].at_s + 1.0
        assert {end.arrival.session for end in found.values()} == {"s"}


def test_calls_after_one_answer_run_side_by_side():
    """A session is over when the last of them is."""
    traffic = Sessions([(0.0, session(0.0, 1.0, 1.0, after=[None, 0, 0]))])
    found = ends(traffic)
    assert found["s/1"].arrival.at_s == found["s/2"].arrival.at_s
    assert (traffic.finished, traffic.refused, traffic.cut) == (1, 0, 0)


class Third(Policy):
    """Refuses every third request."""

    name = "third"
    count = 0

    def decide(self, metrics):
        """By number."""
        self.count += 1
        return self.reject("policy_error") if self.count % 3 == 0 else self.admit()


def test_a_refusal_ends_its_session_and_no_other():
    """What is in flight of it goes on; nothing more is asked."""
    clock, log = VirtualClock(), MemoryLog()
    policy = Third(clock=clock, log=log, reports_outcomes=True)
    begun = [(n * 100.0, session(0.0, 1.0, 1.0, 1.0, name=f"s{n}")) for n in range(4)]
    traffic = Sessions(begun)
    run(policy, clock, traffic, Setting(model=FREE))
    asked = Counter(line["id"].partition("/")[0] for line in log.decisions)
    refused = [line["id"] for line in log.decisions if not line["admitted"]]
    assert asked == {"s0": 3, "s1": 3, "s2": 3, "s3": 3}
    assert refused == ["s0/2", "s1/2", "s2/2", "s3/2"]
    assert (traffic.finished, traffic.refused, traffic.cut) == (0, 4, 0)


def test_nothing_is_asked_after_the_end_of_the_run():
    """The session is counted as cut."""
    traffic = Sessions(
        [(0.0, session(0.0, 4.0, 9.0)), (1.0, session(0.0, name="t"))], 10.0
    )
    assert set(ends(traffic)) == {"s/0", "s/1", "t/0"}
    assert (traffic.finished, traffic.refused, traffic.cut) == (1, 0, 1)


def test_load_is_made_by_more_sessions_and_never_by_shorter_pauses():
    """Each session comes once before any comes twice, and copies are their own."""
    sessions = list(AGENTS.sessions(20, 1))
    few, many = (beginnings(sessions, rate, 100.0, 1) for rate in (0.1, 1.0))
    assert len(many) > 5 * len(few)
    pauses = {one.name: [call.gap_s for call in one.calls] for one in sessions}
    for at_s, one in (*few, *many):
        if at_s:
            name = one.name.partition("~")[0]
            assert [call.gap_s for call in one.calls] == pauses[name]
    names = [one.name for _, one in many]
    assert len(set(names)) == len(names)
    first = [one.name for _, one in zip(range(20), drawn(sessions, 1), strict=False)]
    assert sorted(first) == sorted(pauses)
    assert [at_s for at_s, _ in many] == sorted(at_s for at_s, _ in many)


def test_at_the_start_sessions_are_under_way():
    """As many as begin in the time they last, or a little fewer."""
    sessions = [session(0.0, *[10.0] * 9)]
    begun = beginnings(sessions, 1.0, 50.0, 1)
    at_once = [one for at_s, one in begun if at_s == 0.0]
    assert len(at_once) == pytest.approx(90, abs=3)
    assert len(begun) == 90 + 50
    assert Counter(len(one.calls) for one in at_once).keys() == set(range(1, 10))


def test_what_is_left_of_a_session_is_what_would_be_due_later():
    """With the pause that is left of the one it is in."""
    left = under_way(session(0.0, 10.0, 5.0, 11.0, after=[None, 0, 1, 0]), 10.5)
    assert [(call.after, call.gap_s) for call in left.calls] == [
        (None, 4.5), (None, 0.5),
    ]  # fmt: skip
    assert under_way(session(0.0, 1.0), 2.0) is None


def test_the_same_seed_draws_the_same_and_another_one_does_not():
    """And the hash of a plan tells them apart."""
    plans = [
        sessions_hash(beginnings(list(AGENTS.sessions(9, 1)), 1.0, 60.0, seed))
        for seed in (1, 1, 2)
    ]
    assert plans[0] == plans[1] != plans[2]


def test_calls_that_no_engine_takes_are_left_out_and_counted():
    """The next one follows the answer before, after both pauses."""
    whole = session(0.0, 2.0, 3.0, 4.0)
    long = replace(whole.calls[1], input_tokens=999)
    one = replace(whole, calls=(whole.calls[0], long, *whole.calls[2:]))
    kept, dropped = fitting([one, session(0.0, name="t", tokens=999)], 100)
    assert dropped == 2
    assert [(call.after, call.gap_s) for call in kept[0].calls] == [
        (None, 0.0), (0, 5.0), (1, 4.0),
    ]  # fmt: skip
    assert len(kept) == 1


@given(
    st.lists(st.booleans(), min_size=1, max_size=9),
    st.data(),
)
def test_whatever_is_left_out_the_rest_is_due_when_it_was(fits, data):
    """Were answers to take no time."""
    after = [
        None if not n else data.draw(st.sampled_from([None, *range(n)]))
        for n in range(len(fits))
    ]
    whole = session(*range(1, len(fits) + 1), after=after)
    calls = [
        replace(call, input_tokens=10 if fit else 999)
        for call, fit in zip(whole.calls, fits, strict=True)
    ]
    kept, dropped = fitting([replace(whole, calls=tuple(calls))], 100)
    assert dropped == fits.count(False)
    was = [due for due, fit in zip(_due(calls), fits, strict=True) if fit]
    assert was == (_due(kept[0].calls) if kept else [])


def _due(calls):
    due = []
    for call in calls:
        due.append(call.gap_s + (0 if call.after is None else due[call.after]))
    return due


def test_only_pauses_that_are_too_long_are_cut():
    """The others stay as they are."""
    (one,) = capped([session(0.0, 5.0, 100.0)], 60.0)
    assert [call.gap_s for call in one.calls] == [0.0, 5.0, 60.0]


def test_a_prompt_is_found_in_the_cache_as_far_as_its_session_has_said_it():
    """And what all share by others too; nothing else of another session is."""
    sessions = list(AGENTS.sessions(2, 1))
    found = ends(Sessions([(0.0, sessions[0]), (500.0, sessions[1])]))
    for one in sessions:
        before = 20 if one is sessions[1] else 0
        for place, call in enumerate(one.calls):
            whole = min(before, call.input_tokens - 1) // 10 * 10
            assert found[f"{one.name}/{place}"].cached_tokens == whole
            before = call.input_tokens + call.output_tokens - 1


def test_agents_who_stand_are_as_many_as_asked_for_throughout():
    """Each begins anew when its session is over."""
    sessions = list(AGENTS.sessions(5, 1))
    traffic = Standing(sessions, 7, 200.0, 1)
    opened = ends(traffic, until_s=200.0).values()
    starts = sorted(end.arrival.at_s for end in opened)
    assert len({end.arrival.session for end in opened}) > 20
    assert starts[-1] <= 200.0
    mean_s = 200.0 * 7 / len(starts)  # of a gap and an answer
    assert 0.5 < mean_s < 1.5


def test_capacity_for_requests_is_what_can_be_worked_out_by_hand():
    """One slot, 110 ms and ten steps of 10 ms: a request in 210 ms."""
    kind = Kind(name="k", input_tokens=(100, 100), output_tokens=(11, 11),
                max_output_tokens=11)  # fmt: skip
    found = of_requests(model(max_num_seqs=1), kind.at(iter(lambda: 0.0, 1), 1))
    assert found.requests_per_s == pytest.approx(1 / 0.21, rel=1e-3)
    limited = model(max_num_seqs=1, max_num_queued_reqs=1)
    again = of_requests(limited, kind.at(iter(lambda: 0.0, 1), 1))
    assert again == found


def test_capacity_for_agents_is_that_of_their_calls():
    """One slot, no pauses, nothing to compute but tokens: by hand as well."""
    one = session(0.0, 0.0, 0.0, 0.0, tokens=10)
    slow = model(max_num_seqs=1, ms_per_prefill_token=0.0, step_ms=200.0)
    found = of_sessions(slow, [one], 1)
    assert found.requests_per_s == pytest.approx(1.0, rel=0.01)
    assert found.sessions_per_s == pytest.approx(0.25, rel=0.01)


# --------------------------------------------------------------------- the trace


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

    def read(*lines, divisor=1):
        path = tmp_path / "trace.jsonl"
        path.write_text("\n".join(lines), encoding="utf-8")
        return weka([path], divisor)

    return read


def test_a_trace_says_gaps_sizes_and_what_prompts_share(trace):
    """In tokens, divided; an answer without a token counts as one."""
    found = trace(
        line(
            told(0.0, [[1, 4]], think=9.0, api=2.0),
            told(10.0, [[1, 8]], think=8.0, api=1.0, out=0),
            told(20.0, [[1, 6], [50, 4]], api=3.0),
        ),
        divisor=4,
    )
    first, second, third = found.sessions[0].calls
    assert [call.gap_s for call in (first, second, third)] == [0.0, 8.0, 9.0]
    assert [call.after for call in (first, second, third)] == [None, 0, 1]
    assert [call.input_tokens for call in (first, second, third)] == [66, 130, 162]
    assert [call.output_tokens for call in (first, second, third)] == [8, 1, 8]
    assert first.prefix == ((0, 64),)
    assert second.prefix == ((0, 96), (1, 32))
    assert third.prefix == ((0, 160),)
    assert (found.unknown_gaps, found.empty, found.beside) == (1, 1, 0)
    assert found.sessions[0].max_output_tokens == 8_000


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
    calls = found.sessions[0].calls
    assert [call.after for call in calls] == [None, 0, 1, 0]
    assert [call.gap_s for call in calls] == [0.0, 2.0, 4.0, 30.0]
    assert calls[1].prefix[0][0] == calls[2].prefix[0][0] != calls[3].prefix[0][0]
    assert found.beside == 2


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "line 1: is no JSON"),
        ('{"session": "s"}', "line 1: is no session: the field 'events' is missing"),
        ("[1]", "line 1: is no session: a line is an object with session and events"),
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
    assert weka([path]) == weka([plain])
    for broken in (text, gzip.compress(text)[:-12]):
        path.write_bytes(broken)
        with pytest.raises(TraceError, match=r"trace\.jsonl\.gz: "):
            weka([path])


def test_a_file_that_is_not_there_is_an_error_of_ours(tmp_path):
    """With the system's words."""
    with pytest.raises(TraceError, match="no such file"):
        weka([tmp_path / "none.jsonl"])


def test_the_real_trace_is_read_whole(shared):
    """Its sessions, its reuse and what fits at a sixteenth, as was counted before."""
    part = shared / "traces" / "weka_cc_sessions.part1.jsonl"
    found = weka([part], 16)
    lines = [json.loads(text) for text in part.read_text("utf-8").splitlines()]
    calls = [
        call
        for one in lines
        for event in one["events"]
        for call in event.get("calls", [event])
    ]
    assert (len(found.sessions), found.calls) == (len(lines), len(calls))
    assert max(len(c.prefix) for one in found.sessions for c in one.calls) < 10
    _, left_out = fitting(found.sessions, 16_384)
    assert 0.05 < left_out / found.calls < 0.12
    shared_tokens = whole = 0
    for one in found.sessions:
        for call in one.calls:
            if call.after is not None:
                before = one.calls[call.after]
                whole += call.input_tokens
                shared_tokens += _shared(before.prefix, call.prefix)
    assert 0.96 < shared_tokens / whole < 0.985


def _shared(one, other):
    found = 0
    for (chain, tokens), (its, other_tokens) in zip(one, other, strict=False):
        if chain != its:
            break
        found += min(tokens, other_tokens)
        if tokens != other_tokens:
            break
    return found


def test_agents_before_a_policy_repeat_to_the_byte():
    """Sessions, policy and engine with the same seed."""
    logs = []
    for _ in range(2):
        clock, log = VirtualClock(), MemoryLog()
        policy = load("queue_depth")(
            clock=clock, log=log, reports_outcomes=True, max_waiting=0
        )
        begun = beginnings(list(AGENTS.sessions(9, 1)), 2.0, 60.0, 1)
        run(policy, clock, Sessions(begun, 60.0), Setting(model=model(noise=0.1)))
        logs.append((log.decisions, log.outcomes))
    told = [[{**one, "run": None} for part in log for one in part] for log in logs]
    assert told[0] == told[1]
    assert any(not one["admitted"] for one in logs[0][0])
