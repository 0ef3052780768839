"""An engine no one could build is refused, with everything that is wrong with it."""

import math

import pytest
from tests.simulator.small import model

from admitperf.simulator import EngineModel


@pytest.mark.parametrize(
    "name",
    ["max_num_seqs", "max_num_batched_tokens", "kv_blocks", "block_size",
     "max_model_len", "max_num_queued_reqs", "max_num_queued_tokens", "noise_steps"],
)  # fmt: skip
@pytest.mark.parametrize("value", [0, 1.5, True])
def test_what_is_counted_is_a_whole_number_from_1(name, value):
    """Zero of any could never serve anyone."""
    with pytest.raises(ValueError, match=f"{name} = {value} is not a whole number"):
        model(**{name: value})


@pytest.mark.parametrize(
    "name",
    ["front_ms", "step_ms", "ms_per_resident_token", "ms_per_prefill_token",
     "ms_per_sequence", "noise"],
)  # fmt: skip
@pytest.mark.parametrize("value", [-1.0, float("nan"), float("inf")])
def test_times_are_numbers_from_0(name, value):
    """No step takes less than no time, or for ever."""
    with pytest.raises(ValueError, match=f"{name} = {value} is not a number from 0"):
        model(**{name: value})


def test_a_step_takes_some_time():
    """Or nothing would ever be between two tokens."""
    with pytest.raises(ValueError, match="step_ms = 0: a step has to take some time"):
        model(step_ms=0)


def test_every_fault_is_told_at_once():
    """Also what does not go together."""
    with pytest.raises(
        ValueError,
        match=r"kv_blocks = 0.*noise = -1.*'lifo' is neither.*below max_num_seqs = 300",
    ):
        model(kv_blocks=0, noise=-1, scheduling="lifo", max_num_seqs=300)


@pytest.mark.parametrize(
    ("changes", "tokens"),
    [
        ({}, 1_001),  # the last token is never stored
        ({"max_model_len": 600}, 600),
        ({"max_model_len": 6_000}, 1_001),
        ({"chunked_prefill": False}, 201),  # computed at once, at its last restart too
    ],
)
def test_the_longest_request_is_what_memory_window_and_step_allow(changes, tokens):
    """Prompt and answer together."""
    assert model(**changes).longest_tokens == tokens
    assert model(**changes).kv_tokens == 1_000


@pytest.mark.parametrize(
    "given",
    [
        {"step_ms": 10**400}, {"step_ms": 1e300}, {"step_ms": math.nan},
        {"scheduling": ["fcfs"]}, {"scheduling": {}}, {"noise": 11},
        {"kv_blocks": 10**5000}, {"block_size": 10**6}, {"front_ms": "1"},
    ],
)  # fmt: skip
def test_what_no_engine_has_is_one_short_line(given):
    """Whatever a file brings: no traceback, and no thousand digits."""
    with pytest.raises(ValueError, match=next(iter(given))) as refused:
        EngineModel(**{"max_num_seqs": 1, "kv_blocks": 4, "step_ms": 1.0, **given})
    assert len(str(refused.value)) < 150
