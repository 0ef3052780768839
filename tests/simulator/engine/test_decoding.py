"""Sums over those that decode are those of each of them, step by step."""

from hypothesis import given
from hypothesis import strategies as st
from tests.simulator.small import arrival

from admitperf.simulator.engine.decoding import Decoding
from admitperf.simulator.engine.job import Job


def job(turn, known, more=9):
    """A request with its first token, after so many tokens of prompt."""
    one = arrival(turn, input_tokens=known, output_tokens=more + 1)
    made = Job(one, 0.0, 0.0)
    made.turn, made.given = turn, 1
    return made


def decoding(*prompts, step=0, size=10):
    """Requests that have had their first tokens after this step."""
    made, jobs = Decoding(size), [job(n, known) for n, known in enumerate(prompts)]
    for one in jobs:
        made.add(one, step)
    return made, jobs


def test_tokens_grow_by_one_each_a_step():
    """13 and 27 tokens, three steps on."""
    made, jobs = decoding(13, 27, step=5)
    assert [made.tokens(step) for step in (5, 8)] == [40, 46]
    made.remove(jobs[0])
    assert (made.count, made.tokens(8)) == (1, 30)


def test_a_block_is_taken_when_the_last_is_full():
    """20 tokens are two full blocks: the next token needs a third; 19 have room."""
    made, (full, _) = decoding(20, 19, step=3)
    assert [made.blocks(step) for step in (3, 4, 5)] == [1, 1, 0]
    made.remove(full)
    assert [made.blocks(step) for step in (3, 4, 5)] == [0, 1, 0]


PROMPTS = st.lists(st.integers(1, 60), min_size=1, max_size=8)


@given(prompts=PROMPTS, begun=st.integers(0, 30), steps=st.integers(0, 50),
       size=st.sampled_from([1, 7, 16]))  # fmt: skip
def test_blocks_of_many_steps_are_the_sum_of_each(prompts, begun, steps, size):
    """As if every request were asked before every step."""
    made, jobs = decoding(*prompts, step=begun, size=size)
    each = [
        sum(one.stored_after(step) % size == 0 for one in jobs)
        for step in range(begun, begun + steps)
    ]
    stored = [sum(-(-(known + n) // size) for known in prompts) for n in (0, steps)]
    assert sum(each) == stored[1] - stored[0]
    assert made.blocks_between(begun, begun + steps) == sum(each)
    assert [made.blocks(step) for step in range(begun, begun + steps)] == each


@given(prompts=PROMPTS, free=st.integers(0, 40), most=st.integers(0, 60),
       size=st.sampled_from([1, 7, 16]))  # fmt: skip
def test_steps_go_on_as_long_as_blocks_do(prompts, free, most, size):
    """One step more would take more than there are, or is more than was asked for."""
    made, _ = decoding(*prompts, step=4, size=size)
    steps = made.steps_with(free, 4, most)
    assert 0 <= steps <= most
    assert made.blocks_between(4, 4 + steps) <= free
    assert steps == most or made.blocks_between(4, 4 + steps + 1) > free


def test_who_ends_first_is_known_and_who_left_does_not_end():
    """Together in the order of their starts."""
    made = Decoding(10)
    jobs = [job(n, 20, more) for n, more in ((1, 5), (2, 3), (3, 5), (4, 2))]
    for one in jobs:
        made.add(one, 7)
    assert made.next_end() == 9
    made.remove(jobs[3])
    assert made.next_end() == 10
    assert made.ended(9) == []
    assert made.ended(10) == [jobs[1]]
    assert made.ended(12) == [jobs[0], jobs[2]]
    assert (made.count, made.next_end(), made.tokens(12)) == (0, -1, 0)
