"""What prompts have in common is told exactly by their chains."""

from itertools import permutations, takewhile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from admitperf.bench.workloads.chains import chains


def runs(blocks):
    """Numbers as runs of numbers in a row."""
    found = []
    for block in blocks:
        if found and block == found[-1][0] + found[-1][1]:
            found[-1] = (found[-1][0], found[-1][1] + 1)
        else:
            found.append((block, 1))
    return found


def common(one, other):
    """How many elements two lists begin with alike."""
    return sum(
        1
        for _ in takewhile(lambda two: two[0] == two[1], zip(one, other, strict=False))
    )


def shared(one, other):
    """Blocks that two paths of chains have in common, as an engine finds them."""
    found = 0
    for (chain, tokens), (its, other_tokens) in zip(one, other, strict=False):
        if chain != its:
            break
        found += min(tokens, other_tokens)
        if tokens != other_tokens:
            break
    return found


prompts = st.lists(
    st.lists(st.integers(0, 4), min_size=1, max_size=12), min_size=1, max_size=12
)


@given(prompts)
@settings(max_examples=300)
def test_two_prompts_share_as_many_blocks_by_their_chains_as_they_do(told):
    """However they part, meet no more, and end within each other."""
    paths = chains([runs(one) for one in told])
    assert [sum(count for _, count in path) for path in paths] == [*map(len, told)]
    for one, path in zip(told, paths, strict=True):
        for other, its in zip(told, paths, strict=True):
            assert shared(path, its) == common(one, other)


@given(prompts)
def test_a_chain_is_always_reached_the_same_way(told):
    """Else the engine would take it for two."""
    before = {}
    for path in chains([runs(one) for one in told]):
        for place, (chain, _) in enumerate(path):
            assert before.setdefault(chain, path[:place]) == path[:place]


def test_a_prompt_that_grows_stays_one_chain():
    """Whatever the runs are, and though its last block is replaced each time."""
    assert chains([[(1, 10)], [(1, 12)], [(1, 12), (40, 3)]]) == [
        ((0, 10),), ((0, 12),), ((0, 15),),
    ]  # fmt: skip
    tails = [[(1, size - 1), (100 + size, 1)] for size in (10, 20, 30, 40)]
    *earlier, last = chains(tails)
    assert last == ((0, 40),)
    assert [path[0] for path in earlier] == [(0, 9), (0, 19), (0, 29)]
    assert all(path[1][1] == 1 for path in earlier)


def chain_at(path, block):
    """The chain that holds a block of a prompt."""
    for chain, count in path:
        if block < count:
            return chain
        block -= count
    raise AssertionError(path)


@pytest.mark.parametrize("order", [*permutations(["grown", "same", "parted"])])
def test_an_answer_goes_on_in_the_chain_of_what_came_next(order):
    """And not in that of what had come before, nor of what came later."""
    told = {"grown": [(1, 20)], "same": [(1, 10)], "parted": [(1, 10), (50, 5)]}
    found = dict(zip(order, chains([told[one] for one in order]), strict=True))
    answer = found["same"][-1][0]
    after = order[order.index("same") + 1 :]
    others = [one for one in order if one != "same" and one not in after[:1]]
    assert all(chain_at(found[one], 10) == answer for one in after[:1])
    assert all(chain_at(found[one], 10) != answer for one in others)


def test_an_answer_that_nothing_followed_is_found_by_nobody():
    """It goes on in a chain of its own."""
    ((grown, _),), (shared, own) = chains([[(1, 20)], [(1, 10)]])
    assert shared == (grown, 10)
    assert own == (grown + 2, 0)
