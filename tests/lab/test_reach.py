"""How high KV pressure can get."""

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from admitperf.lab.fault import LabError
from admitperf.lab.reach import Shape, large_slots, reach

SURVEY = Shape(384_000, 64, 2168, 0.9)
"""One A100-40GB with Qwen2.5-7B, as in the brief."""

SHAPES = st.builds(
    Shape,
    kv_tokens=st.integers(1, 10**6),
    max_num_seqs=st.integers(1, 1000),
    tokens_per_request=st.integers(1, 10**5),
    threshold=st.integers(1, 100).map(lambda n: n / 100),
    block_tokens=st.sampled_from((1, 16, 32, 128)),
)


def test_the_survey_threshold_cannot_be_reached():
    """64 requests of 2,168 tokens hold 138,752 of 384,000: 0.361, never 0.90."""
    found = reach(SURVEY)
    assert found.reachable_fraction == pytest.approx(0.361, abs=0.0005)
    assert found.held_tokens == 138_752
    assert found.smallest_tokens == 5400
    assert (found.binds, found.fits, found.reaches) == ("slots", 177, False)


@pytest.mark.parametrize(
    ("large_tokens", "slots"), [(9000, 31), (5400, 64), (5399, None), (2168, None)]
)
def test_how_many_slots_must_be_large(large_tokens, slots):
    """31 x 9,000 and 33 x 2,168 tokens hold 0.9 of the memory; one less do not."""
    assert large_slots(SURVEY, large_tokens) == slots
    assert large_slots(replace(SURVEY, threshold=0.3), large_tokens) == 0


@given(SHAPES, st.integers(1, 10**5))
def test_so_many_large_ones_reach_it_and_one_less_does_not(shape, large_tokens):
    """Held against adding up."""
    assume(max(shape.tokens_per_request, large_tokens) + 128 <= shape.kv_tokens)
    slots = large_slots(shape, large_tokens)

    def enough(large):
        usual, more = (
            -(-one // shape.block_tokens) * shape.block_tokens
            for one in (shape.tokens_per_request, large_tokens)
        )
        held = large * more + (shape.max_num_seqs - large) * usual
        return held >= Fraction(str(shape.threshold)) * shape.kv_tokens

    if slots is None:
        assert not enough(shape.max_num_seqs)
    else:
        assert enough(slots)
        assert slots == 0 or not enough(slots - 1)


def test_memory_binds_first_when_requests_are_long():
    """Then every threshold is reached."""
    found = reach(replace(SURVEY, tokens_per_request=8000))
    assert (found.binds, found.fits) == ("kv", 48)
    assert (found.reachable_fraction, found.reaches) == (1.0, True)


def test_both_bind_at_the_same_request():
    """64 x 6,000 tokens fill 384,000 exactly."""
    found = reach(replace(SURVEY, tokens_per_request=6000))
    assert (found.binds, found.reachable_fraction) == ("both", 1.0)


def test_blocks_are_given_out_whole():
    """1 token takes a block of 16; 5,393 tokens take the 338 blocks that 5,400 do."""
    assert reach(Shape(1600, 10, 1, 0.1, 16)).reachable_fraction == 0.1
    assert reach(replace(SURVEY, block_tokens=16)).smallest_tokens == 5393


def test_a_threshold_that_is_exactly_filled_is_reached():
    """0.1 x 3 is not 0.30000000000000004 here."""
    assert reach(Shape(1000, 3, 100, 0.3)).reaches
    assert reach(Shape(1000, 3, 100, 0.3)).smallest_tokens == 100


def test_one_request_that_does_not_fit_is_a_fault():
    """The engine refuses it or preempts it for ever: there is no ceiling to tell."""
    with pytest.raises(LabError, match="does not fit into 100 tokens"):
        reach(Shape(100, 4, 101, 0.9))


@pytest.mark.parametrize(
    "wrong",
    [
        {"kv_tokens": 0}, {"max_num_seqs": -1}, {"tokens_per_request": float("nan")},
        {"tokens_per_request": float("inf")}, {"threshold": 0.0}, {"threshold": 1.1},
        {"threshold": float("nan")}, {"block_tokens": 0}, {"kv_tokens": 10**400},
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_named(wrong):
    """By the name it was given under."""
    (name,) = wrong
    with pytest.raises(LabError, match=name):
        reach(replace(SURVEY, **wrong))


@given(SHAPES)
def test_the_smallest_request_reaches_and_one_token_less_does_not(shape):
    """Both sides of the bound, by the same arithmetic and by hand."""
    assume(shape.block_tokens <= shape.kv_tokens)
    assume(-(-shape.tokens_per_request // shape.block_tokens) * shape.block_tokens
           <= shape.kv_tokens)  # fmt: skip
    smallest = reach(shape).smallest_tokens
    if smallest is None:
        most = shape.kv_tokens // shape.block_tokens * shape.block_tokens
        least = Fraction(str(shape.threshold)) * shape.kv_tokens
        assert most * shape.max_num_seqs < least or most < shape.kv_tokens
        return
    assert reach(replace(shape, tokens_per_request=smallest)).reaches
    if smallest > 1:
        assert not reach(replace(shape, tokens_per_request=smallest - 1)).reaches


@given(SHAPES)
def test_a_fraction_is_a_fraction_and_binds_agrees(shape):
    """Never above 1, and 1 exactly when the slots hold as much as there is."""
    try:
        found = reach(shape)
    except LabError:
        return
    assert 0 < found.reachable_fraction <= 1
    assert (found.binds == "slots") == (found.fits > shape.max_num_seqs)
    assert found.reaches == (
        Fraction(found.held_tokens, shape.kv_tokens) >= Fraction(str(shape.threshold))
    )
