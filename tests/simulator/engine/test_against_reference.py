"""The engine does what the plain one does: the same events, memory and cache.

The plain one goes step by step over blocks (`reference.py`); the engine leaps and keeps
the cache as lengths. Both were written from one contract.
"""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.simulator.engine.cases import case, played
from tests.simulator.engine.reference import Reference

from admitperf.simulator import Arrival, Engine, EngineModel, stream

BOTH = pytest.mark.parametrize("make", [Reference, Engine])


def difference(one):
    """The first thing in which the two differ, as both tell it; None = nothing."""
    plain = played(one, Reference(one.model, one.seed))
    real = played(one, Engine(one.model, one.seed))
    for mine, its in zip(plain, real, strict=False):
        if not alike(mine, its):
            return mine, its
    return None if len(plain) == len(real) else (len(plain), len(real))


def alike(one, other):
    """Whether all of it is equal, and times within 1e-9 s."""
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return one == other or abs(one - other) <= 1e-9
    return one == other


@pytest.mark.parametrize("block", range(8))
def test_engine_and_plain_one_tell_the_same(block):
    """60 cases a block: events, memory, what is given and what the cache still has."""
    for number in range(block * 60, block * 60 + 60):
        found = difference(case(stream(number, "case")))
        assert found is None, (number, found)


@settings(deadline=None, max_examples=150, derandomize=True)
@given(chance=st.randoms(use_true_random=False))
def test_no_small_case_tells_them_apart(chance):
    """Eight requests, drawn by a searcher that makes what it finds smaller."""
    assert difference(case(chance, requests=8)) is None


def test_long_runs_stay_together():
    """400 requests each: what differs in the last bit does not add up to 1e-9 s."""
    for number in (1000, 1001, 1002):
        found = difference(case(stream(number, "case"), requests=400))
        assert found is None, (number, found)


def test_the_cases_reach_what_they_are_for():
    """Enough of them preempt, refuse, cancel, find, forget and chunk: none is idle."""
    seen = Counter()
    for number in range(120):
        one = case(stream(number, "case"))
        engine = Reference(one.model, one.seed)
        seen += _reached(one, engine, played(one, engine))
    assert len(seen) == 8, seen
    assert min(seen.values()) >= 5, seen


def _reached(one, engine, happened):
    ends = [told for told in happened if told[0] == "End"]
    starts = [told for told in ends if not told[1].startswith("probe")]
    probes = [told for told in ends if told[1].startswith("probe")]
    chunked = one.model.max_num_batched_tokens < 2048
    return Counter(
        preempted=engine.preemptions > 0,
        preempted_by_priority=engine.preemptions > 0
        and one.model.scheduling == "priority",
        refused=any(told[0] == "submit" and not told[-1] for told in happened),
        refused_late=any(told[0] == "Refused" for told in happened),
        cancelled=any(what == "cancel" for _, what, _ in one.acts),
        found=any(told[-1] for told in starts),
        forgotten=engine.pool.forgotten > 0 and any(told[-1] for told in probes),
        chunked_and_found=chunked and any(told[-1] for told in starts),
    )


# ------------------------------------------------------- worked out by hand, for both

STEP = EngineModel(max_num_seqs=4, kv_blocks=8, block_size=4, step_ms=125)
"""Steps of 1/8 s, which add up without rounding; room for 32 tokens."""


def made(**changes):
    """The engine above, but for what is said."""
    fields = {name: getattr(STEP, name) for name in STEP.__dataclass_fields__}
    return EngineModel(**{**fields, **changes})


def request(name, asked, answer, *prefix, at_s=0.0, priority=0):
    """A prompt of so many tokens and an answer of so many."""
    return Arrival(
        id=name, at_s=at_s, input_tokens=asked, max_output_tokens=answer,
        output_tokens=answer, prefix=prefix, priority=priority,
    )  # fmt: skip


def told(engine, *requests):
    """Per request: its first token and its end in steps of 1/8 s, and the End."""
    first, last, ends = {}, {}, {}
    for event in _events(engine, requests):
        kind, name = type(event).__name__, event.arrival.id
        {"FirstToken": first, "End": last}[kind][name] = event.at_s * 8
        if kind == "End":
            ends[name] = event
    return {name: (first[name], last[name], ends[name]) for name in last}


def _events(engine, requests):
    for one in requests:
        if one.at_s > engine.now_s:
            yield from engine.run_to(one.at_s)
        engine.submit(one)
    yield from engine.run_to(float("inf"))


@BOTH
def test_one_alone_takes_a_step_a_token(make):
    """3 tokens end with the third step; 10 + 2 computed tokens held three blocks."""
    engine = make(STEP)
    engine.submit(request("a", 10, 3))
    list(engine.run_to(0.3))
    assert engine.kv_fraction == pytest.approx(3 / 8)
    (end,) = engine.run_to(float("inf"))
    assert (end.at_s, end.ttft_ms, end.max_gap_ms) == (0.375, 125.0, 125.0)


@BOTH
def test_a_step_costs_what_is_in_it(make):
    """Two steps by hand, with all four parts of the cost in them."""
    engine = make(
        made(step_ms=100, ms_per_resident_token=1, ms_per_prefill_token=10,
             ms_per_sequence=1000)
    )  # fmt: skip
    ends = told(engine, request("a", 6, 2), request("b", 4, 1))
    one = 0.1 + 10 * 0.01 + 2 * 1.0  # nothing resident, 10 prompt tokens, 2 requests
    two = 0.1 + 6 * 0.001 + 1.0  # a's 6 are resident, and a is alone
    assert ends["b"][1] / 8 == pytest.approx(one)
    assert ends["a"][1] / 8 == pytest.approx(one + two)


@BOTH
def test_what_was_found_is_resident(make):
    """8 of b's 9 prompt tokens are found: its step holds them before it begins."""
    engine = make(made(ms_per_resident_token=125))
    ends = told(
        engine,
        request("a", 9, 1, ("s", 9)),
        request("b", 9, 1, ("s", 9), at_s=1.0),
    )
    assert ends["b"][0] == 8 + 1 + 8
    assert ends["b"][2].cached_tokens == 8


@BOTH
def test_a_long_prompt_is_computed_in_pieces_beside_an_answer(make):
    """Budget 8: beside a's prompt of 4 and its answer b's 20 are 4 + 7 + 7 + 2.

    c's 2 share the last of these steps.
    """
    engine = make(made(max_num_batched_tokens=8, kv_blocks=20))
    ends = told(engine, request("a", 4, 9), request("b", 20, 1), request("c", 2, 1))
    assert [ends[name][0] for name in "abc"] == [1, 4, 4]


@BOTH
def test_whole_prompts_wait_for_a_step_with_room(make):
    """Without pieces b's 6 do not fit beside a's 4 into a step of 8, and c waits."""
    engine = make(made(max_num_batched_tokens=8, chunked_prefill=False))
    ends = told(engine, request("a", 4, 1), request("b", 6, 1), request("c", 2, 1))
    assert [ends[name][0] for name in "abc"] == [1, 2, 2]


@BOTH
def test_the_head_of_the_queue_keeps_those_behind_it_waiting(make):
    """b needs 5 blocks and 4 are free: c, which would fit, starts when b does."""
    engine = make(STEP)
    ends = told(engine, request("a", 14, 3), request("b", 20, 1), request("c", 2, 1))
    assert [ends[name][0] for name in "abc"] == [1, 4, 4]


@BOTH
def test_who_came_last_is_thrown_out_and_computes_again(make):
    """8 blocks, a and b with 15 tokens each: at 17 tokens a takes b's.

    b has given 2, waits until a's end at step 5, computes 17 tokens anew and goes on.
    """
    engine = make(made(prefix_caching=False))
    ends = told(engine, request("a", 15, 5), request("b", 15, 5))
    assert ends["a"][:2] == (1, 5)
    assert ends["b"][:2] == (1, 8)
    assert [ends[name][2].preempted for name in "ab"] == [0, 1]
    assert ends["b"][2].max_gap_ms == pytest.approx(4 * 125)


@BOTH
def test_priority_throws_out_who_matters_least(make):
    """The same, but a may wait and b may not."""
    engine = make(made(prefix_caching=False, scheduling="priority"))
    ends = told(
        engine, request("a", 15, 5, priority=1), request("b", 15, 5, priority=0)
    )
    assert (ends["b"][:2], ends["a"][:2]) == ((1, 5), (1, 8))


@BOTH
def test_two_equal_prompts_of_one_step_share_all_but_the_end(make):
    """b finds the two blocks that a is about to fill: 4 blocks are held, not 6."""
    engine = make(STEP)
    for name in "ab":
        engine.submit(request(name, 11, 2, ("s", 11)))
    list(engine.run_to(0.1))
    assert engine.kv_fraction == pytest.approx(4 / 8)
    assert sorted(end.cached_tokens for end in _ended(engine)) == [0, 8]


@BOTH
def test_the_last_token_of_a_prompt_is_never_found(make):
    """All 8 tokens are in the cache, and 4 are found: the last has to be computed."""
    engine = make(STEP)
    engine.remember("s", 8)
    assert told(engine, request("a", 8, 1, ("s", 8)))["a"][2].cached_tokens == 4


@BOTH
def test_an_answer_is_found_by_the_next_prompt(make):
    """8 asked, 6 answered, 13 of them computed: three blocks of the talk are there."""
    engine = make(STEP)
    ends = told(
        engine,
        request("a", 8, 6, ("talk", 8)),
        request("b", 16, 1, ("talk", 16), at_s=2.0),
    )
    assert ends["b"][2].cached_tokens == 12


@BOTH
def test_a_fork_shares_what_comes_before_it(make):
    """The system prompt's 6 tokens and two own ends: one whole block is common."""
    engine = make(STEP)
    ends = told(
        engine,
        request("a", 12, 1, ("s", 6), ("a", 6)),
        request("b", 12, 1, ("s", 6), ("b", 6), at_s=1.0),
        request("c", 12, 1, ("s", 6), ("a", 6), at_s=2.0),
    )
    assert [ends[name][2].cached_tokens for name in "abc"] == [0, 4, 8]


@BOTH
def test_the_end_of_what_was_used_longest_ago_goes_first(make):
    """x and y hold 3 blocks each; 4 are needed, 2 free: x loses its last two."""
    engine = make(STEP)
    ends = told(
        engine,
        request("x", 12, 1, ("x", 12)),
        request("y", 12, 1, ("y", 12), at_s=1.0),
        request("z", 16, 1, at_s=2.0),
        request("x2", 13, 1, ("x", 13), at_s=3.0),
    )
    assert ends["x2"][2].cached_tokens == 4


@BOTH
def test_what_was_found_again_lives_longest(make):
    """The same, but x was asked again after y: now it is y that loses its last two."""
    engine = make(STEP)
    ends = told(
        engine,
        request("x", 12, 1, ("x", 12)),
        request("y", 12, 1, ("y", 12), at_s=1.0),
        request("x2", 13, 1, ("x", 13), at_s=2.0),
        request("z", 16, 1, at_s=3.0),
        request("y2", 13, 1, ("y", 13), at_s=4.0),
    )
    assert [ends[name][2].cached_tokens for name in ("x2", "y2")] == [12, 4]


@BOTH
def test_an_incomplete_block_is_taken_before_all_others(make):
    """x leaves 2 blocks and a half; 6 more fit without losing either whole one."""
    engine = make(STEP)
    ends = told(
        engine,
        request("x", 10, 1, ("x", 10)),
        request("z", 24, 1, at_s=1.0),
        request("x2", 10, 1, ("x", 10), at_s=2.0),
    )
    assert ends["x2"][2].cached_tokens == 8


@BOTH
def test_who_was_thrown_out_finds_what_it_had_computed(make):
    """b is thrown out with 16 tokens computed and starts again when a has ended.

    a took one of its four blocks: 12 are found. 5 prompt tokens are computed again, and
    a step costs as much as a prompt token more: (1 + 5) steps of time.
    """
    engine = make(made(ms_per_prefill_token=125))
    ends = told(engine, request("a", 15, 5), request("b", 15, 5))
    assert ends["a"][:2] == (31, 35)
    assert ends["b"][:2] == (31, 35 + 6 + 2)
    assert (ends["b"][2].preempted, ends["b"][2].cached_tokens) == (1, 0)


@BOTH
def test_the_head_starts_when_another_has_stored_what_it_needs(make):
    """r6 needs 5 blocks; with 3 of them found and 2 free it starts in r2's step 7."""
    engine = make(EngineModel(max_num_seqs=3, kv_blocks=5, step_ms=10.0))
    ends = told(
        engine,
        request("r2", 42, 34, ("system", 35)),
        request("r6", 74, 1, ("system", 56), at_s=0.0452),
    )
    assert ends["r6"][0] / 8 == pytest.approx(0.07)
    assert ends["r6"][2].cached_tokens == 48


@BOTH
def test_a_piece_of_a_prompt_is_measured_before_room_is_made_for_it(make):
    """Blocks of one token, budget 5: beside v and w, h computes 3 a step from step 2.

    In step 5 two blocks are free for its 3, w is thrown out, and its place in the
    budget stays empty: 12 of 17 are computed, then 4, and the last in step 7.
    """
    sizes = {"block_size": 1, "kv_blocks": 23, "max_num_batched_tokens": 5}
    engine = make(made(prefix_caching=False, scheduling="priority", **sizes))
    ends = told(
        engine,
        request("v", 2, 10, priority=1),
        request("w", 2, 10, priority=2),
        request("h", 17, 1, at_s=0.1),
    )
    assert ends["w"][2].preempted == 1
    assert ends["h"][0] == 7


@BOTH
def test_a_cancelled_one_is_gone_at_the_end_of_its_step(make):
    """Until then it holds slot and memory; after that neither, and there is no end."""
    engine = make(STEP)
    engine.submit(request("a", 10, 20))
    list(engine.run_to(0.3))
    engine.cancel("a")
    list(engine.run_to(0.37))
    assert (engine.running, engine.kv_fraction) == (1, pytest.approx(3 / 8))
    assert list(engine.run_to(9.0)) == []
    assert (engine.running, engine.kv_fraction) == (0, 0.0)


@BOTH
def test_a_request_is_seen_by_the_step_after_it_reached_the_queue(make):
    """250 ms on the way: a's steps begin at 2/8 s; b comes at 3.5/8, starts at 4/8."""
    engine = make(made(front_ms=250))
    ends = told(engine, request("a", 4, 9), request("b", 4, 1, at_s=1.5 / 8))
    assert (ends["a"][0], ends["b"][0]) == (3, 5)


@BOTH
def test_limits_hold_at_the_door_and_again_at_the_queue(make):
    """One inside at most: b passes the door with a on its way, and is refused late."""
    engine = make(made(front_ms=100, max_num_queued_reqs=1))
    assert engine.submit(request("a", 4, 2))
    assert engine.submit(request("b", 4, 2))
    kinds = [type(event).__name__ for event in engine.run_to(0.1)]
    assert kinds == ["Refused"]
    assert not engine.submit(request("c", 4, 2))


def _ended(engine):
    return [e for e in engine.run_to(float("inf")) if type(e).__name__ == "End"]
