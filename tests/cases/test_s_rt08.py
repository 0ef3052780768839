"""Field case s-rt-08: three attempts of one call are not three requests."""

import json

import pytest
from tests.cases.mapping import EPOCH_S

from admitperf.policies import load
from admitperf.testing import FakeClock

WAITING = (20, 20, 3)
RETRY_AFTER_S = 1.0
TTFT_MS = 400


@pytest.fixture
def log(tmp_path):
    """One call: refused twice, each time back after a second, then served."""
    path, clock = tmp_path / "call.jsonl", FakeClock(wall_s=EPOCH_S)
    bound = load("queue_depth")(
        max_waiting=8, log=path, clock=clock, slo={"ttft_ms": 1500}
    )
    with bound as policy:
        for attempt, waiting in enumerate(WAITING):
            d = policy(
                {"vllm:num_requests_waiting": waiting},
                logical_id="call-1",
                attempt=attempt,
            )
            clock.advance(RETRY_AFTER_S)
        policy.outcome(d.request_id, ttft_ms=TTFT_MS, e2e_ms=900)
    return path


def test_s_rt_08_the_log_marks_the_attempts(log):
    """0, 1 and 2, all of one call."""
    lines = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    facts = [line["facts"] for line in lines if line["k"] == "decision"]
    assert [one.get("attempt", 0) for one in facts] == [0, 1, 2]
    assert {one["logical_id"] for one in facts} == {"call-1"}


def test_s_rt_08_one_request_three_attempts(log, run_of):
    """Offered is 1, attempts are 3, refusals 2 of 3 attempts; the call got in."""
    run = run_of(log)
    calls = run["cost"]["requests"]
    assert (calls["offered"], calls["attempts"], calls["without_id"]) == (1, 3, 0)
    refused = calls["refused_attempts"]
    assert (refused["n"], refused["of"]) == (2, 3)
    assert (calls["let_in"]["n"], calls["let_in"]["of"]) == (1, 1)
    assert (run["load"]["calls"], run["load"]["attempts"]) == (1, 3)


def test_s_rt_08_both_clocks_are_told(log, run_of):
    """The user waited 2.4 s, the last attempt 0.4 s: late by one, good by the other."""
    calls = run_of(log)["cost"]["requests"]
    assert (calls["ttft_user_ms"]["n"], calls["ttft_last_ms"]["n"]) == (1, 1)
    waited_ms = 1000 * RETRY_AFTER_S * (len(WAITING) - 1)
    assert calls["ttft_user_ms"]["high"] == waited_ms + TTFT_MS
    assert calls["ttft_last_ms"]["high"] == TTFT_MS
    assert (calls["goodput"]["n"], calls["goodput"]["of"]) == (0, 1)
    assert (calls["goodput_last"]["n"], calls["goodput_last"]["of"]) == (1, 1)


def test_s_rt_08_the_text_says_it_all(log, admitperf):
    """A person reads the same."""
    shown = admitperf("report", log)
    text = " ".join(shown.output.split())
    assert shown.exit_code == 0
    assert "3 attempts of 1 call" in text
    assert "2 of 3" in text
    assert "2400" in text
    assert "400" in text.replace("2400", "")
