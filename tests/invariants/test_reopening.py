"""I13: whatever happened, an engine with nothing to do is used again."""

from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.invariants.histories import RAW, play, watched
from tests.policies.verdicts import needed

from admitperf import ConfigError
from admitperf.core.reading import Reading
from admitperf.policies import available

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


STUCK = {**CALLER, "session": "gone", "deadline_s": None, "input_tokens": 20_000}
"""A prompt that a burst of callers could wait behind, and whose answer never begins."""

OTHER = [
    ("priority_shed", {"max_kv": None, "max_waiting": None, "max_wait_s": 1.0}),
    ("prefill_backlog", {"target_s": None, "max_tokens": 1000}),
]
"""Rules that are off as their policies come, and rest on who waits."""

KINDS = {
    "all known": {},
    "nothing known": dict.fromkeys(("input_tokens", "max_output_tokens", "deadline_s")),
}


def served_of(policy, clock, raw, facts):
    """Which of sixty callers are let in, two seconds apart, and each served at once."""
    let = []
    for at in range(60):
        d = policy(raw, stream=True, **{**facts, "session": f"s{at}"})
        let.append(d.admitted)
        clock.advance(0.2)
        if d.admitted:
            policy.first_token(d.request_id)
            policy.outcome(d.request_id, ttft_ms=200.0, e2e_ms=200.0, output_tokens=10)
        pause(policy, clock, raw, 1.8)
    return let


def pause(policy, clock, raw, seconds):
    """Time passes, with a look at the engine about each second."""
    for _ in range(round(seconds / 0.9)):
        clock.advance(0.9)
        policy.look(Reading(raw, taken_ns=clock.monotonic_ns()))


def made_in_every_way():
    """Each installed policy: as it comes, and with what it needs."""
    ways = [(name, {}) for name in available()]
    ways += [(name, needed(name)) for name in available() if needed(name)]
    for name, bounds in [*ways, *OTHER]:
        told = ",".join(f"{key}={value}" for key, value in bounds.items())
        yield pytest.param(name, bounds, id=f"{name}({told})"[:60])


def made(name, bounds):
    """A policy with a clock and a log; skipped where it cannot be made so."""
    try:
        return watched(partial(available()[name], **bounds))
    except ConfigError:
        pytest.skip("it cannot be made without its parameters")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stuck", [1, 2])
@pytest.mark.parametrize(("name", "bounds"), list(made_in_every_way()))
def test_i13_a_stuck_request_shuts_no_door(name, bounds, stuck, kind):
    """I13: an answer that never begins keeps nobody from an engine that is idle."""
    policy, clock, log = made(name, bounds)
    for _ in range(stuck):
        policy(IDLE, stream=True, **STUCK)
    pause(policy, clock, IDLE, 30.0)
    let = served_of(policy, clock, IDLE, {**CALLER, **KINDS[kind]})
    assert not any(line.get("blind") for line in log.decisions)
    assert sum(let) >= len(let) / 2, let
