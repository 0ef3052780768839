"""I13: whatever happened, an engine with nothing to do is used again."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.invariants.histories import RAW, play, watched

IDLE = {
    "kv_pressure": 0.0,
    "queue_depth": 0.0,
    "running": 0.0,
    "kv_capacity_tokens": 100_000.0,
    "prefix_hit_rate": 0.5,
    "pool_load": 0.0,
}
CALLER = {
    "tenant": "a",
    "session": "new",
    "model": "m",
    "input_tokens": 200,
    "max_output_tokens": 100,
    "deadline_s": 5.0,
}
PATIENCE_S = 600.0
"""A caller who comes back for ten minutes. Shorter than a lease, so that nothing is
set right by running out."""


def slow(length):
    """Outcomes of an engine that is far too slow for anybody."""
    return st.fixed_dictionaries(
        {
            "ok": st.booleans(),
            "ttft_ms": st.sampled_from([50, 60_000]),
            "e2e_ms": st.sampled_from([60, 600_000]),
            "output_tokens": st.integers(1, length),
        }
    )


def busy():
    """A while of requests, answered slowly or fast, and readings of any kind."""
    step = st.one_of(
        st.tuples(st.just("ask"), RAW, st.just(CALLER)),
        st.tuples(st.just("token"), st.integers(0, 20)),
        st.tuples(st.just("end"), st.integers(0, 20), slow(4_000)),
        st.tuples(st.just("pass"), st.floats(0.0, 60.0)),
    )
    return st.lists(step, max_size=40)


def let_in(policy, clock, facts):
    """Whether a caller who comes back as told, or each 5 s, is let in at last."""
    waited_s = 0.0
    while waited_s < PATIENCE_S:
        d = policy(IDLE, **facts)
        if d.admitted:
            return True
        wait_s = max(1.0, (d.retry_after_ms or 5_000.0) / 1000)
        clock.advance(wait_s)
        waited_s += wait_s
    return False


@pytest.mark.parametrize("left_out", [(), ("deadline_s",), ("session", "tenant")])
@given(history=busy())
@settings(deadline=None, max_examples=25)
def test_i13_an_idle_engine_is_used_again(policy_class, history, left_out):
    """I13: nothing is open, nothing runs: who keeps coming is let in before long."""
    policy, clock, _ = watched(policy_class)
    played = play(policy, clock, history)
    for d, _ in played.open:
        policy.outcome(d.request_id)
    facts = {name: value for name, value in CALLER.items() if name not in left_out}
    assert let_in(policy, clock, facts)
