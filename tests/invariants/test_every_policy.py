"""I14 to I16: determinism, clock steps, postures and forks, for every policy."""

import os
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.invariants.histories import histories, play, watched
from tests.policies.verdicts import installed

from admitperf.core.settings import POSTURES
from admitperf.core.signal import Signal


def answers(played):
    """What a history's decisions said, whatever they are called."""
    return [
        (d.verdict, d.reason, d.admitted, d.status, d.estimate_ms, d.wait, d.rank)
        for d, _ in played.asked
    ]


@given(history=histories())
@settings(deadline=None, max_examples=15)
def test_i14_the_same_history_gets_the_same_answers(policy_class, history):
    """I14: nothing but what is known decides, also about waits and ranks."""
    one, other = (play(*watched(policy_class)[:2], history) for _ in range(2))
    assert answers(one) == answers(other)


@given(history=histories(), steps=st.lists(st.floats(0.0, 4e9), min_size=1))
@settings(deadline=None, max_examples=15)
def test_i15_a_wall_clock_that_steps_changes_nothing(policy_class, history, steps):
    """I15: no rule looks at the time of day, and no account is made by it."""
    policy, clock, _ = watched(policy_class)
    plain = play(policy, clock, history)
    policy, clock, _ = watched(policy_class)
    walls = iter(steps * (len(history) + 1))
    stepped = play(policy, clock, history, lambda _: clock.set_wall(next(walls)))
    assert answers(plain) == answers(stepped)


@pytest.mark.parametrize("posture", POSTURES)
@given(history=histories())
@settings(deadline=None, max_examples=6)
def test_i16_blind_a_policy_answers_by_its_posture(policy_class, posture, history):
    """I16: without its signals the reason says so, whatever it learnt before."""
    policy, clock, log = watched(policy_class, on_blind=posture, hold_last_s=1.0)
    play(policy, clock, history)
    clock.advance(2.0)  # past what `hold_last` holds
    required = [thing for thing in policy.requires if isinstance(thing, Signal)]
    if not any(signal.origin == "engine" for signal in required):
        return  # it needs nothing of the engine: it is not blind
    d = policy({})
    assert d.reason in ("signal_absent", "signal_stale")
    assert d.blind
    if posture in ("admit", "defer", "reject"):
        assert d.verdict == posture
    assert "policy_error" not in {line.get("reason") for line in log.decisions}


PROGRAM = """
import logging, os, random, sys
logging.disable(logging.CRITICAL)
from tests.invariants.test_bytes import step
from tests.policies.verdicts import installed
from admitperf.testing import FakeClock

clock = FakeClock(wall_s=1.7e9)
policies = {
    name: cls(clock=clock, reports_outcomes=True) for name, cls in installed().items()
}
chance = random.Random(5)
for n in range(60):
    for policy in policies.values():
        step(policy, clock, chance, n)
held = {name: policy.ledger.in_flight for name, policy in policies.items()}
accounts = {name: dict(p.ledger._accounts) for name, p in policies.items()}
pid = os.fork()
if pid == 0:
    code = 0
    try:
        for name, policy in policies.items():
            assert policy.ledger.in_flight == 0, name
            assert policy.ledger._accounts == {}, name
            for n in range(60):
                step(policy, clock, chance, n)
    except BaseException as error:
        print("child:", name, repr(error), flush=True)
        code = 1
    os._exit(code)
assert os.waitpid(pid, 0)[1] == 0
for name, policy in policies.items():
    assert policy.ledger.in_flight == held[name], name
    assert dict(policy.ledger._accounts) == accounts[name], name
    step(policy, clock, chance, 99)
print(len(policies))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_of_every_policy_decides_and_holds_nothing_of_its_parent(root):
    """What the parent has open stays the parent's, in the ledger and in accounts."""
    ran = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", PROGRAM],
        cwd=root, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert int(ran.stdout) == len(installed())
