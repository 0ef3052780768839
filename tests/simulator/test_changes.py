"""A run whose engines change at a time."""

import logging

import pytest
from tests.simulator.small import arrival, model

from admitperf.policies import load
from admitperf.simulator import Setting, VirtualClock, run
from admitperf.testing import MemoryLog


@pytest.fixture(autouse=True)
def _quiet():
    """A policy is blind until the first look has come, and says so."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def ran(changes, replicas=1):
    """The log of a run of requests of 1 s each, one each half second."""
    asked = [
        arrival(n, at_s=0.5 * n, input_tokens=1, output_tokens=101) for n in range(40)
    ]
    clock, log = VirtualClock(), MemoryLog()
    policy = load("no_admission")(clock=clock, log=log, reports_outcomes=True)
    setting = Setting(model=model(), replicas=replicas, changes=changes)
    run(policy, clock, asked, setting)
    return log


def longest_ms(log, first, last):
    """The longest call of those that came between two times."""
    began = {line["seq"]: line["t_us"] / 1e6 for line in log.decisions}
    return max(
        line["e2e_ms"] for line in log.outcomes if first <= began[line["of"]] < last
    )


@pytest.mark.parametrize("replicas", [1, 2])
def test_the_capacity_falls_and_comes_back_when_it_is_said(replicas):
    """From 5 s to 10 s steps take eight times as long."""
    slow, fast = model(step_ms=80.0), model()
    log = ran(((5.0, slow), (10.0, fast)), replicas)
    assert longest_ms(log, 0.0, 3.0) == pytest.approx(1011, abs=20)
    assert longest_ms(log, 5.0, 9.0) > 4000
    assert longest_ms(log, 16.0, 20.0) == pytest.approx(1011, abs=20)


def test_a_change_after_the_last_request_is_never_made():
    """The run is over before it."""
    log = ran(((1e6, model(step_ms=80.0)),))
    assert len(log.outcomes) == 40
    assert log.outcomes[-1]["t_us"] / 1e6 == pytest.approx(20.5, abs=0.1)


def test_a_run_without_changes_is_what_it_was():
    """And so is one that changes nothing."""
    plain, same = ran(()), ran(((3.3, model()),))
    times = [
        [(line["id"], line["ttft_ms"], line["e2e_ms"]) for line in log.outcomes]
        for log in (plain, same)
    ]
    assert times[0] == times[1]
