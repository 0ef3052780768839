"""The engine: steps worked out by hand, and what must hold in every case."""

import math
from itertools import pairwise

import pytest
from hypothesis import given, settings
from tests.simulator.small import MODELS, arrival, ends, events, model, plans

from admitperf.simulator import End, Engine, FirstToken, Refused
from admitperf.simulator.engine.events import Gone

EXACT = pytest.approx


def test_a_request_alone_takes_its_prefill_and_a_step_for_each_further_token():
    """10 + 100 ms to the first token, then ten steps of 10 ms."""
    end = ends(model(), [arrival(1, at_s=3.0)])["r1"]
    assert end.ttft_ms == EXACT(110)
    assert end.max_gap_ms == EXACT(10)
    assert end.e2e_ms == EXACT(210)
    assert end.at_s == EXACT(3.21)
    assert (end.preempted, end.cached_tokens) == (0, 0)


def test_a_step_costs_what_it_holds():
    """10 ms, 1 a sequence, 0.01 a token that is in the cache when it begins.

    The first computes 100 tokens over an empty cache: 111 ms. The ten after it find
    100 to 109 tokens: 11 ms each and 0.01 x 1,045 together, the last 12.09 ms.
    """
    made = model(ms_per_resident_token=0.01, ms_per_sequence=1.0)
    end = ends(made, [arrival(1)])["r1"]
    assert (end.ttft_ms, end.max_gap_ms, end.e2e_ms) == EXACT((111, 12.09, 231.45))


def test_what_a_step_finds_in_the_cache_costs_as_well():
    """0.1 ms a token: of a half-computed prompt, and of one found when it begins.

    450 tokens at 200 a step find 0, 200 and 400: 210, 230 and 100 ms. Of 100 tokens 60
    are known, and 40 are computed: 10 + 40 + 6 ms.
    """
    engine = Engine(model(ms_per_resident_token=0.1))
    engine.submit(arrival(1, input_tokens=450, output_tokens=1))
    (_, end) = engine.run_to(math.inf)
    assert end.ttft_ms == EXACT(540)
    engine.remember("known", 60)
    engine.submit(arrival(2, output_tokens=1, prefix=(("known", 60), ("r2", 0))))
    (_, end) = engine.run_to(math.inf)
    assert end.ttft_ms == EXACT(56)


def test_an_answer_of_one_token_has_no_gap():
    """It ends with its first token."""
    end = ends(model(), [arrival(1, output_tokens=1)])["r1"]
    assert (end.ttft_ms, end.e2e_ms, end.max_gap_ms) == (EXACT(110), EXACT(110), None)


def test_a_long_prompt_is_computed_over_several_steps():
    """450 tokens at 200 a step: 210, 210 and 60 ms."""
    end = ends(model(), [arrival(1, input_tokens=450)])["r1"]
    assert (end.ttft_ms, end.e2e_ms) == EXACT((480, 580))


THREE = (
    arrival(1, output_tokens=5),
    arrival(2, input_tokens=150, output_tokens=3),
    arrival(3, at_s=0.1, input_tokens=250, output_tokens=2),
)
"""Five steps:

    ends at   r1           r2           r3             took
    0.210     prompt 100   100 of 150   not there      10 + 200
    0.419     2nd token    50, first    149 of 250     10 + 199
    0.530     3rd          2nd          101, first     10 + 101
    0.540     4th          3rd, last    2nd, last      10
    0.550     5th, last                                10
"""


def test_three_requests_share_steps_as_worked_out_by_hand():
    """Decoding ones first, then the half-computed prompt, then who waits."""
    happened = events(Engine(model()), THREE)
    assert [(type(e), e.arrival.id, round(e.at_s, 9)) for e in happened] == [
        (FirstToken, "r1", 0.210),
        (FirstToken, "r2", 0.419),
        (FirstToken, "r3", 0.530),
        (End, "r2", 0.540),
        (End, "r3", 0.540),
        (End, "r1", 0.550),
    ]
    made = {e.arrival.id: e for e in happened if isinstance(e, End)}
    assert made["r1"].max_gap_ms == EXACT(209)
    assert made["r2"].max_gap_ms == EXACT(111)
    assert (made["r3"].ttft_ms, made["r3"].max_gap_ms) == EXACT((430, 10))


@pytest.mark.parametrize(
    ("at_s", "running", "waiting", "blocks", "given"),
    [
        (0.150, 2, 1, 20, (0, 0, 0)),
        (0.300, 3, 0, 11 + 15 + 15, (1, 0, 0)),
        (0.500, 3, 0, 11 + 15 + 1 + 25, (2, 1, 0)),
        (0.535, 3, 0, 11 + 16 + 26, (3, 2, 1)),
    ],
)
def test_the_engine_can_be_looked_at_within_a_step(
    at_s, running, waiting, blocks, given
):
    """Blocks are those of the step under way, tokens those of the steps before it."""
    engine = Engine(model())
    engine.submit(THREE[0])
    engine.submit(THREE[1])
    list(engine.run_to(THREE[2].at_s))
    engine.submit(THREE[2])
    list(engine.run_to(at_s))
    assert (engine.running, engine.waiting) == (running, waiting)
    assert engine.kv_fraction == EXACT(blocks / 100)
    assert tuple(engine.given(f"r{n}") for n in (1, 2, 3)) == given
    assert engine.given_tokens == sum(given)


def test_who_comes_during_a_step_is_seen_when_it_is_over():
    """r2 comes 5 ms into a step of 10 and waits for its end; r1 has a gap of 110."""
    made = ends(model(), [arrival(1), arrival(2, at_s=0.115)])
    assert made["r2"].ttft_ms == EXACT(5 + 110)
    assert made["r1"].max_gap_ms == EXACT(110)


def test_the_way_to_the_queue_is_part_of_the_time_to_the_first_token():
    """20 ms in the front end; nothing is in the queue meanwhile."""
    engine = Engine(model(front_ms=20.0))
    engine.submit(arrival(1))
    list(engine.run_to(0.019))
    assert (engine.inside, engine.waiting, engine.running) == (1, 0, 0)
    assert engine.next_s == EXACT(0.02)
    (_, end) = engine.run_to(math.inf)
    assert (end.ttft_ms, end.e2e_ms) == EXACT((130, 230))


def test_no_more_run_than_there_are_slots():
    """Two slots; the third starts when the first two end, at 310 ms."""
    engine = Engine(model(max_num_seqs=2))
    for n in (1, 2, 3):
        engine.submit(arrival(n))
    list(engine.run_to(0.25))
    assert (engine.running, engine.waiting) == (2, 1)
    made = [e for e in engine.run_to(math.inf) if isinstance(e, End)]
    assert [e.at_s for e in made] == EXACT([0.31, 0.31, 0.52])


def test_d_d_1_waits_grow_by_what_service_is_longer_than_the_gap():
    """One slot, 210 ms of service, a request every 200 ms: 0, 10, 20, ... ms."""
    plan = [arrival(n, at_s=0.2 * n) for n in range(20)]
    made = ends(model(max_num_seqs=1), plan).values()
    assert [end.ttft_ms - 110 for end in made] == EXACT([10 * n for n in range(20)])


def test_who_waits_longest_starts_first_even_when_a_smaller_one_would_fit():
    """The head of the queue blocks: 60 blocks are not free, so 5 wait behind them.

    r1 ends at 630 + 299 x 10 ms. r2 fills three steps, and r3 shares the next with it.
    """
    plan = [
        arrival(1, input_tokens=600, output_tokens=300),
        arrival(2, at_s=0.1, input_tokens=600),
        arrival(3, at_s=0.2, input_tokens=50),
    ]
    made = ends(model(), plan)
    assert made["r1"].at_s == EXACT(3.62)
    assert made["r2"].ttft_ms == EXACT(3_620 - 100 + 630)
    assert made["r3"].ttft_ms == EXACT(3_620 - 200 + 630 + 60)


def crowd(**changes):
    """Two prompts of 480 tokens and answers of 100, which do not fit side by side.

    r1 has its first token at 630 ms, r2 at 1,010 ms, after five steps. They hold 97
    blocks then, and every ten steps each needs one more: r1 in step 14, r2 in 16, and
    r1 in 24, at 1,190 ms, when all 100 are held. r1 has given 21 by then and r2 19.
    """
    second = arrival(2, **{"input_tokens": 480, "output_tokens": 100, **changes})
    return [arrival(1, input_tokens=480, output_tokens=100, priority=1), second]


@pytest.mark.parametrize(("caching", "again_ms"), [(True, 89), (False, 529)])
def test_a_full_cache_throws_out_the_last_which_goes_on_where_it_was(caching, again_ms):
    """It waits until r1 ends, at 1,980 ms, and has 499 tokens to compute again.

    With prefix caching its 49 full blocks can be found, but for the 7 of them that r1
    has taken since, beside the broken one, from their end: 79 tokens are left.
    """
    engine = Engine(model(prefix_caching=caching))
    happened = events(engine, crowd())
    made = {e.arrival.id: e for e in happened if isinstance(e, End)}
    assert [e.preempted for e in made.values()] == [0, 1]
    assert made["r1"].e2e_ms == EXACT(1_980)
    assert made["r2"].ttft_ms == EXACT(1_010)
    assert made["r2"].max_gap_ms == EXACT(1_980 - 1_190 + again_ms)
    assert made["r2"].e2e_ms == EXACT(1_980 + again_ms + 80 * 10)
    assert engine.tally.preempted == 1
    assert engine.given_tokens == 200
    assert made["r2"].cached_tokens == 0  # that of the first start


def test_who_was_thrown_out_waits_before_those_who_are_waiting():
    """r3 waits for one of two slots since 1.0 s, and still does when r2 is thrown out.

    It would fit at once, but r2 has its turn first. From 1.98 s r2 fills two steps, and
    r3 shares its third: 10 + 99 + 20 ms.
    """
    plan = [*crowd(), arrival(3, at_s=1.0, input_tokens=20)]
    made = ends(model(prefix_caching=False, max_num_seqs=2), plan)
    assert made["r3"].ttft_ms == EXACT(1_980 + 420 + 129 - 1_000)


def test_nobody_starts_in_the_step_for_which_somebody_was_thrown_out():
    """r1 loses slot and blocks at 1,190 ms, and r3 matters more: it starts at 1,200."""
    plan = [*crowd(at_s=0.05), arrival(3, at_s=1.0, input_tokens=20)]
    made = ends(model(scheduling="priority", max_num_seqs=2), plan)
    assert made["r3"].ttft_ms == EXACT(200 + 30)


def test_where_priority_counts_who_matters_least_is_thrown_out():
    """r1 does, though it came first: r2 ends at 1,190 + 81 x 10 ms.

    r1 had 50 full blocks, r2 has taken 8 of them, and 81 of 501 tokens are left.
    """
    made = ends(model(scheduling="priority"), crowd(at_s=0.05))
    assert (made["r1"].preempted, made["r2"].preempted) == (1, 0)
    assert made["r2"].at_s == EXACT(2.0)
    assert made["r1"].max_gap_ms == EXACT(2_000 - 1_190 + 91)
    assert made["r1"].e2e_ms == EXACT(2_000 + 91 + 78 * 10)


@pytest.mark.parametrize(
    ("scheduling", "order"),
    [("fcfs", ["r1", "r2", "r3", "r4"]), ("priority", ["r1", "r3", "r4", "r2"])],
)
def test_the_queue_is_in_order_of_arrival_or_of_priority(scheduling, order):
    """One slot; the lowest number first, and among equals who came first."""
    plan = [
        arrival(n, at_s=0.01 * n, priority=priority)
        for n, priority in ((1, 9), (2, 5), (3, 0), (4, 0))
    ]
    made = ends(model(max_num_seqs=1, scheduling=scheduling), plan)
    assert list(made) == order


def test_without_chunks_a_prompt_waits_for_a_step_it_fits_into():
    """150 and 100 tokens, 200 a step: the second has a step of its own."""
    plan = [arrival(1, input_tokens=150, output_tokens=30), arrival(2)]
    made = ends(model(chunked_prefill=False), plan)
    assert (made["r1"].ttft_ms, made["r1"].max_gap_ms) == EXACT((160, 110))
    assert made["r2"].ttft_ms == EXACT(160 + 110)


def test_a_request_that_can_never_fit_is_no_request():
    """It would wait for ever, and everyone behind it; the last token is not stored."""
    engine = Engine(model())
    assert engine.submit(arrival(1, input_tokens=990, output_tokens=11))
    with pytest.raises(ValueError, match=r"r2 needs 991 \+ 11 tokens .* takes 1001"):
        engine.submit(arrival(2, input_tokens=991, output_tokens=11))


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"input_tokens": 0}, "r1 has no prompt or asks for nothing"),
        ({"output_tokens": 0}, "r1 has no prompt or asks for nothing"),
        ({"prefix": (("a", 60), ("b", 41))}, "r1 names more prefix than prompt"),
    ],
)
def test_what_makes_no_sense_is_refused_with_the_reason(changes, why):
    """Before it is inside."""
    engine = Engine(model())
    with pytest.raises(ValueError, match=why):
        engine.submit(arrival(1, **changes))
    assert engine.inside == 0


def test_an_id_is_inside_once():
    """And free again when its request has ended."""
    engine = Engine(model())
    engine.submit(arrival(1))
    with pytest.raises(ValueError, match="r1 is inside already"):
        engine.submit(arrival(1))
    list(engine.run_to(math.inf))
    assert engine.submit(arrival(1))


# ---------------------------------------------------------------- the engine's limits


def test_a_full_engine_refuses_at_its_door_or_when_the_request_has_come_to_its_queue():
    """Two inside at most. Those on their way are not counted, so the third gets in.

    It is refused in the queue, at 20 ms; the fourth, at 30 ms, at the door. r1 and r2
    end at 20 + 210 + 100 ms, and then there is room.
    """
    engine = Engine(model(max_num_queued_reqs=2, front_ms=20.0))
    assert all(engine.submit(arrival(n)) for n in (1, 2, 3))
    (refused,) = engine.run_to(0.03)
    assert isinstance(refused, Refused)
    assert (refused.arrival.id, refused.at_s) == ("r3", EXACT(0.02))
    assert not engine.submit(arrival(4, at_s=0.03))
    assert engine.tally.refused == {
        "max_num_queued_reqs": 2,
        "max_num_queued_tokens": 0,
    }
    assert engine.inside == 2
    list(engine.run_to(0.335))
    assert engine.submit(arrival(5, at_s=0.335))


def test_a_bound_on_tokens_counts_prompts_without_a_first_token():
    """150: 100 are fewer, so r2 comes in, and 200 are not, until both have begun."""
    engine, taken = Engine(model(max_num_queued_tokens=150)), []
    for n, at_s in ((1, 0.0), (2, 0.01), (3, 0.02), (4, 0.23)):
        list(engine.run_to(at_s))
        taken.append(engine.submit(arrival(n, at_s=at_s)))
    assert taken == [True, True, False, True]
    assert engine.tally.refused == {
        "max_num_queued_reqs": 0,
        "max_num_queued_tokens": 1,
    }


# ------------------------------------------------------------------ callers that leave


def test_who_leaves_while_decoding_is_gone_when_the_step_is_over():
    """r1 leaves at 125 ms; the slot is r2's at 130 ms, and the blocks are free."""
    engine = Engine(model(max_num_seqs=1))
    engine.submit(arrival(1))
    engine.submit(arrival(2))
    list(engine.run_to(0.125))
    assert engine.cancel("r1") == Gone(2, EXACT(110), 0)
    assert engine.cancel("r1") is None
    list(engine.run_to(0.129))
    assert (engine.inside, engine.running, engine.waiting) == (2, 1, 1)
    happened = list(engine.run_to(math.inf))
    assert [(type(e), e.arrival.id) for e in happened] == [
        (FirstToken, "r2"),
        (End, "r2"),
    ]
    assert happened[0].at_s == EXACT(0.13 + 0.11)
    assert engine.kv_fraction == 0
    assert (engine.tally.started, engine.tally.ended) == (2, 1)


def test_who_leaves_from_the_queue_or_in_the_middle_of_a_prompt_has_no_token():
    """r1 in its second of three chunks, r2 while it waits; r3 begins at 420 ms."""
    engine = Engine(model(max_num_seqs=1, max_num_queued_tokens=551))
    for one in (arrival(1, input_tokens=450), arrival(2), arrival(3)):
        engine.submit(one)
        list(engine.run_to(0.0))
    list(engine.run_to(0.3))
    found = [engine.cancel(one) for one in ("r1", "r2", "unknown")]
    assert found == [Gone(0, None, 0), Gone(0, None, None), None]
    assert not engine.submit(arrival(4))  # their prompts count until they are gone
    (first, end) = engine.run_to(math.inf)
    assert (first.arrival.id, first.at_s) == ("r3", EXACT(0.42 + 0.11))
    assert end.arrival.id == "r3"
    for n in (4, 5):  # nothing is left of them in the bound
        assert engine.submit(arrival(n))
        list(engine.run_to(engine.now_s))


def test_who_leaves_on_the_way_to_the_queue_is_gone_at_once():
    """It was nowhere yet."""
    engine = Engine(model(front_ms=20.0))
    engine.submit(arrival(1))
    assert engine.cancel("r1") == Gone(0, None, None)
    assert (engine.inside, engine.next_s) == (0, math.inf)
    assert list(engine.run_to(math.inf)) == []


# -------------------------------------------------------------------- the prefix cache


def cached(engine, *arrivals):
    """What each of them found, one after the other."""
    found = []
    for one in arrivals:
        engine.submit(one)
        (_, end) = engine.run_to(math.inf)
        found.append(end.cached_tokens)
    return found


def test_a_shared_beginning_is_computed_once():
    """60 tokens are 6 blocks; r2 computes 40 of its 100: 50 ms."""
    engine = Engine(model())
    engine.submit(arrival(1, prefix=(("system", 60), ("r1", 0))))
    list(engine.run_to(1.0))
    engine.submit(arrival(2, prefix=(("system", 60), ("r2", 0))))
    list(engine.run_to(1.06))
    assert engine.cached("r2") == 60
    (end,) = engine.run_to(math.inf)
    assert (end.ttft_ms, end.cached_tokens) == (EXACT(50), 60)
    assert (engine.tally.queried_tokens, engine.tally.cached_tokens) == (200, 60)


def test_only_whole_blocks_are_found_and_the_last_token_never_is():
    """65 of 100 tokens are 6 blocks; the same 100 again are 9, not 10."""
    parts = [arrival(n, prefix=(("a", 65), (f"r{n}", 0))) for n in (1, 2)]
    assert cached(Engine(model()), *parts) == [0, 60]
    whole = [arrival(n, prefix=(("a", 100),)) for n in (1, 2)]
    assert cached(Engine(model()), *whole) == [0, 90]


def test_a_session_finds_its_last_answer_too():
    """100 + 11 tokens, the last of which is never stored: 11 blocks of the next 130."""
    one = arrival(1, prefix=(("session", 100),))
    two = arrival(2, prefix=(("session", 111),), input_tokens=130)
    assert cached(Engine(model()), one, two) == [0, 110]


@pytest.mark.parametrize(
    ("caching", "tokens", "found"), [(True, 95, 90), (True, 5, 0), (False, 95, 0)]
)
def test_what_it_remembers_is_as_if_it_had_been_asked(caching, tokens, found):
    """In whole blocks, and free until somebody asks."""
    engine = Engine(model(prefix_caching=caching))
    engine.remember("a", tokens)
    assert engine.kv_fraction == 0
    assert cached(engine, arrival(1, prefix=(("a", 100),))) == [found]


def test_what_nobody_holds_is_lost_from_its_end_when_others_need_the_room():
    """50 blocks remembered and 50 free; r1 takes 50 and 20 more, 30 are left."""
    engine = Engine(model())
    engine.remember("a", 500)
    same = arrival(2, input_tokens=600, prefix=(("a", 500),))
    assert cached(engine, arrival(1, input_tokens=691, output_tokens=10), same) == [
        0,
        300,
    ]


def test_what_one_computes_the_next_finds_in_the_same_step():
    """150 tokens each: r2 finds 14 blocks, computes 10 tokens, and both have theirs."""
    made = ends(model(), [arrival(n, input_tokens=150, prefix=(("a", 150),))
                          for n in (1, 2)])  # fmt: skip
    assert [end.cached_tokens for end in made.values()] == [0, 140]
    assert [end.ttft_ms for end in made.values()] == EXACT([170, 170])


# ------------------------------------------------------------------- whatever happens


def test_noise_moves_times_and_belongs_to_the_seed():
    """The same factor for 16 steps, with the mean 1, and none of the counts change."""
    plan = [arrival(n, at_s=0.3 * n, output_tokens=160) for n in range(40)]
    made = [
        [(e.at_s, e.ttft_ms) for e in events(Engine(model(noise=0.2), seed), plan)
         if isinstance(e, End)]
        for seed in (1, 1, 2)
    ]  # fmt: skip
    assert made[0] == made[1]
    assert not {ended for ended, _ in made[0]} & {ended for ended, _ in made[2]}
    assert made[0][-1][0] == pytest.approx(ends(model(), plan)["r39"].at_s, rel=0.1)


@given(made=MODELS, plan=plans())
@settings(deadline=None, max_examples=40)
def test_time_goes_on_and_first_come_are_first_served(made, plan):
    """Events in order; first tokens in the order of arrival unless thrown out."""
    happened = events(Engine(made), plan)
    assert all(a.at_s <= b.at_s for a, b in pairwise(happened))
    thrown = {e.arrival.id for e in happened if isinstance(e, End) and e.preempted}
    firsts = [
        int(e.arrival.id[1:])
        for e in happened
        if isinstance(e, FirstToken) and e.arrival.id not in thrown
    ]
    assert firsts == sorted(firsts)


@given(made=MODELS, plan=plans())
@settings(deadline=None, max_examples=40)
def test_no_request_is_faster_than_alone(made, plan):
    """Company never helps: times are those of the request alone, or longer."""
    together = ends(made, plan)
    assert len(together) == len(plan)
    for one in plan:
        alone, end = ends(made, [one])[one.id], together[one.id]
        assert end.ttft_ms >= alone.ttft_ms - 1e-6
        assert end.e2e_ms >= alone.e2e_ms - 1e-6


@given(made=MODELS, plan=plans())
@settings(deadline=None, max_examples=40)
def test_looking_often_changes_nothing(made, plan):
    """Stopping the engine at every step gives the same ends as leaping."""
    leapt = {name: end.at_s for name, end in ends(made, plan).items()}
    engine, coming, stepped = Engine(made), list(plan), {}
    while coming or engine.inside:
        while coming and coming[0].at_s <= engine.now_s:
            engine.submit(coming.pop(0))
        due_s = coming[0].at_s if coming else math.inf
        for event in engine.run_to(min(engine.next_s, due_s)):
            if isinstance(event, End):
                stepped[event.arrival.id] = event.at_s
    assert stepped == pytest.approx(leapt, abs=1e-9)
