"""A share of the traffic is governed; all of it is recorded."""

import os
import subprocess
import sys

import pytest
from tests.core.rules import admits, defers, rejects, rule

from admitperf.core.signals import KV_PRESSURE
from admitperf.testing import MemoryLog

# Written down once: they must not change with a host, a restart or a release.
FIRST_TWENTY = "11100001100010000011"

PROGRAM = """

from tests.core.rules import rejects, rule
policy = rule(rejects("kv_pressure"), enforce=0.5)
facts = [
    {"session": f"s{n}", "logical_id": "l", "request_id": "r"} for n in range(20)
] + [{"logical_id": f"s{n}", "request_id": "q"} for n in range(20)]
print("".join(str(int(policy({}, **given).enforced)) for given in facts))
print("".join(
    str(int(policy({}, request_id=f"s{n}").enforced)) for n in range(20)
))
"""


def arms(policy, **names):
    """Which of some requests are governed."""
    many = len(next(iter(names.values())))
    return [
        policy({}, **{fact: values[n] for fact, values in names.items()}).enforced
        for n in range(many)
    ]


@pytest.mark.parametrize("seed", ["0", "1", "12345"])
def test_the_arm_of_a_key_is_the_same_in_every_process(seed, root):
    """Keys are hashed in our own way, never with Python's."""
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=root,
        env={**os.environ, "PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.split() == [FIRST_TWENTY * 2, FIRST_TWENTY]


def test_a_session_decides_before_a_logical_id_and_that_before_a_request_id():
    """All calls of a session are on one side, and all attempts of a call."""
    policy = rule(rejects("kv_pressure"), enforce=0.5)
    keys = [f"k{n}" for n in range(40)]
    fixed = ["x"] * 40
    by_session = arms(policy, session=keys, logical_id=fixed, request_id=fixed)
    by_call = arms(policy, logical_id=keys, request_id=fixed)
    by_request = arms(policy, request_id=keys)
    assert by_session == by_call == by_request
    assert len(set(by_session)) == 2
    one_session = arms(policy, session=fixed, logical_id=keys, request_id=keys)
    assert len(set(one_session)) == 1
    assert len(set(arms(policy, logical_id=fixed, request_id=keys))) == 1


@pytest.mark.parametrize("share", [0.05, 0.25, 0.5, 0.9])
def test_the_governed_share_is_the_one_asked_for(share):
    """Over 4,000 sessions it is met within four standard deviations."""
    policy = rule(rejects("kv_pressure"), enforce=share)
    governed = sum(arms(policy, session=[f"session-{n}" for n in range(4_000)]))
    off = 4 * (4_000 * share * (1 - share)) ** 0.5
    assert abs(governed - 4_000 * share) < off


def ungoverned(policy):
    """A decision outside the governed share, with an id of its own."""
    for n in range(1_000):
        d = policy({}, request_id=f"u{n}")
        if not d.enforced:
            return d
    raise AssertionError("everything is governed")


@pytest.mark.parametrize(
    ("decide", "verdict", "reason"),
    [(defers("queue_depth"), "defer", "queue_depth"),
     (rejects("rate_limit"), "reject", "rate_limit"),
     (defers("queue_depth", retry_after_ms=200), "defer", "queue_depth")],
)  # fmt: skip
def test_outside_the_share_the_verdict_stands_and_the_request_starts(
    decide, verdict, reason, log
):
    """Verdict and reason are what was said; admitted and status are what to do."""
    d = ungoverned(rule(decide, enforce=0.5, log=log))
    assert (d.verdict, d.reason) == (verdict, reason)
    assert (d.admitted, d.status, d.retry_after_ms) == (True, 200, None)
    assert d.headers() == {}
    assert d.body() == {}
    line = log.decisions[-1]
    assert (line["verdict"], line["reason"]) == (verdict, reason)
    assert (line["admitted"], line["enforced"], line["status"]) == (True, False, 200)
    assert "retry_after_ms" not in line


def test_inside_the_share_the_verdict_is_carried_out(log):
    """A governed refusal is a refusal."""
    policy = rule(defers("queue_depth"), enforce=0.5, log=log)
    governed = [d for d in (policy({}) for _ in range(60)) if d.enforced]
    assert governed
    for d in governed:
        assert (d.admitted, d.status) == (False, 503)
        assert d.retry_after_ms >= 1


def test_enforce_zero_is_declared_shadow(log):
    """Nobody is governed, and everything is recorded as it would have been."""
    policy = rule(rejects("kv_pressure"), enforce=0.0, log=log)
    decisions = [policy({}, session=f"s{n}") for n in range(50)]
    assert all(d.admitted and not d.enforced for d in decisions)
    assert {line["reason"] for line in log.decisions} == {"kv_pressure"}


def test_enforce_one_governs_everybody(log):
    """It is the default."""
    for given in ({}, {"enforce": 1.0}, {"enforce": 1}):
        policy = rule(rejects("kv_pressure"), log=log, **given)
        assert not any(policy({}, session=f"s{n}").admitted for n in range(50))
    assert {line["enforced"] for line in log.decisions} == {True}


@pytest.mark.parametrize("posture", ["defer", "reject", "degrade"])
def test_blindness_refuses_nobody_outside_the_share(posture, log):
    """A posture is a verdict like any other: declared shadow stays shadow."""
    policy = rule(
        admits, requires=(KV_PRESSURE,), on_blind=posture, blind_cap=0, enforce=0.0,
        reports_outcomes=True, log=log,
    )  # fmt: skip
    d = policy({})
    assert (d.admitted, d.status, d.reason) == (True, 200, "signal_absent")
    assert d.verdict != "admit"
    assert log.decisions[0]["blind"] == "signal_absent"


def test_an_admitted_request_says_which_side_it_is_on():
    """The split is that of the traffic, not of the refusals."""
    refusing, admitting = (
        arms(rule(decide, enforce=0.5), session=[f"s{n}" for n in range(40)])
        for decide in (rejects("slots"), admits)
    )
    assert refusing == admitting


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_recording_is_unconditional(share):
    """Every request stands in the log, governed or not."""
    log = MemoryLog()
    policy = rule(rejects("kv_pressure"), enforce=share, log=log)
    for n in range(30):
        policy({}, request_id=f"r{n}")
    assert [line["id"] for line in log.decisions] == [f"r{n}" for n in range(30)]
