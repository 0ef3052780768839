"""Sessions keep their pauses, whatever is made of them."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.simulator.small import model

from admitperf.bench.workloads.agents import Agents
from admitperf.simulator.capacity import answered, of_requests, of_sessions
from admitperf.simulator.traffic.sessions import (
    Call,
    Session,
    Standing,
    UnderWay,
    beginnings,
    capped,
    drawn,
    fitting,
    sessions_hash,
    under_way,
)
from admitperf.simulator.traffic.traffic import OpenLoop
from admitperf.simulator.traffic.workload import Kind

FREE = model(max_num_seqs=64, kv_blocks=10_000, ms_per_prefill_token=0.0)
AGENTS = Agents(calls=(2, 6), first_tokens=(50, 90), new_tokens=(5, 20),
                output_tokens=(2, 9), gap_s=1.0, shared_tokens=20)  # fmt: skip


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
    assert all(one.begun_before is (at_s == 0.0) for at_s, one in begun)


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
    asked = [
        UnderWay(one).arrival(place, 500.0 * nth + place)
        for nth, one in enumerate(sessions)
        for place in range(len(one.calls))
    ]
    found = ends(OpenLoop(asked))
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


def test_a_bound_does_not_tell_an_answer_that_is_beyond_it():
    """Many answers have one bound, in what a policy is asked as well."""
    one = session(*[0.0] * 900)
    calls = [replace(c, output_tokens=n) for n, c in enumerate(one.calls, 1)]
    one = UnderWay(replace(one, calls=tuple(calls)))
    asked = [one.arrival(place, 0.0) for place in range(900)]
    assert {arrival.max_output_tokens for arrival in asked} == {
        100,
        128,
        256,
        512,
        1024,
    }
    assert all(one.output_tokens <= one.max_output_tokens for one in asked)
