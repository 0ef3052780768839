"""Prompts share what their plan shares, and nothing else."""

import pytest

from admitperf.bench.harness.http_prompts import Prompts
from admitperf.simulator import Arrival

VOCABULARY = (5, 400)


def arrival(name, tokens, prefix=(), **more):
    """A request with a prompt of so many tokens."""
    return Arrival(
        id=name,
        at_s=0.0,
        input_tokens=tokens,
        max_output_tokens=9,
        output_tokens=9,
        prefix=prefix,
        **more,
    )


def ids(prompts, *of):
    """The ids of a prompt."""
    return [int(one) for one in prompts.of(arrival(*of)).split(",")]


@pytest.fixture
def prompts():
    """The text of a run."""
    return Prompts("salt", VOCABULARY)


def in_common(one, other):
    """With how many ids two prompts begin alike."""
    pairs = zip(one, other, strict=False)
    return next(
        (n for n, (a, b) in enumerate(pairs) if a != b), min(map(len, (one, other)))
    )


@pytest.mark.parametrize("tokens", [1, 15, 16, 17, 1000, 70_000])
def test_a_prompt_has_as_many_tokens_as_planned(prompts, tokens):
    """All of them in the vocabulary."""
    made = ids(prompts, "a", tokens)
    assert len(made) == tokens
    assert min(made) >= 5
    assert max(made) < 400


def test_what_is_not_said_to_be_shared_is_not(prompts):
    """Not even the first few ids."""
    made = [ids(prompts, f"a{n}", 500)[:16] for n in range(200)]
    assert len({tuple(one) for one in made}) == 200


def test_another_run_shares_nothing(prompts):
    """Its salt is another."""
    other = Prompts("other", VOCABULARY)
    assert in_common(ids(prompts, "a", 500), ids(other, "a", 500)) < 16
    chain = (("system", 300),)
    made = [ids(one, "a", 500, chain) for one in (prompts, other)]
    assert in_common(*made) < 16


def test_a_run_can_be_had_again(prompts):
    """The same salt is the same text."""
    assert ids(prompts, "a", 500) == ids(Prompts("salt", VOCABULARY), "a", 500)


def test_prompts_begin_alike_as_far_as_they_name_the_same_chains(prompts):
    """And then go their own ways."""
    one = ids(prompts, "a", 500, (("system", 200), ("a", 0)))
    other = ids(prompts, "b", 400, (("system", 200), ("b", 0)))
    assert 200 <= in_common(one, other) < 216


def test_the_last_chain_goes_on_to_the_end(prompts):
    """So a session's prompt begins with the one before it."""
    one = ids(prompts, "s/0", 120, (("s/0", 120),))
    other = ids(prompts, "s/1", 200, (("s/0", 120),))
    assert in_common(one, other) == 120
    assert len(other) == 200


def test_a_call_sent_again_is_the_same_prompt(prompts):
    """By the call it is an attempt at."""
    tries = [
        prompts.of(arrival(name, 90, (), logical_id="call")) for name in ("x", "y")
    ]
    assert tries[0] == tries[1]


def test_an_answer_is_part_of_the_next_prompt(prompts):
    """In the engine's own ids."""
    chain = (("s/0", 100),)
    first = arrival("s/0", 100, chain)
    before = ids(prompts, "s/0", 100, chain)
    prompts.answered(first, [401, 402, 403])
    after = ids(prompts, "s/1", 150, chain)
    assert after[:103] == [*before, 401, 402, 403]


def test_only_one_of_two_answers_goes_on_a_chain(prompts):
    """Two calls side by side cannot both be the history."""
    chain = (("s/0", 100),)
    first = arrival("s/0", 100, chain)
    ids(prompts, "s/0", 100, chain)
    prompts.answered(first, [401])
    prompts.answered(first, [402])
    assert ids(prompts, "s/1", 102, chain)[100:] != [401, 402]
    assert ids(prompts, "s/1", 101, chain)[100] == 401


def test_what_was_already_said_is_not_said_otherwise(prompts):
    """A late answer of a call that a longer prompt went past."""
    chain = (("s/0", 100),)
    longer = ids(prompts, "s/1", 150, chain)
    prompts.answered(arrival("s/0", 100, chain), [401])
    assert ids(prompts, "s/1", 150, chain) == longer
