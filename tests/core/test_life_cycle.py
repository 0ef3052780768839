"""From the decision to the first token to the end."""

import pytest
from tests.core.rules import admits, defers, rejects, rule, sees

from admitperf.core.signals import IN_FLIGHT, OLDEST_WAIT_S


@pytest.fixture
def policy(clock, log):
    """Starts everything; its host reports outcomes."""
    return rule(admits, clock=clock, log=log, reports_outcomes=True)


def test_a_request_ends_with_everything_the_host_knows(policy, clock, log):
    """The outcome line holds what was reported, and how long the request was open."""
    d = policy({}, request_id="r", tenant="acme")
    clock.advance(5.25)
    policy.outcome(
        "r", ok=True, ttft_ms=418, max_gap_ms=35, e2e_ms=5200, output_tokens=212,
        cached_tokens=9100, input_tokens=9400, first_text_ms=980, finish_reason="stop",
        error=None,
    )  # fmt: skip
    (line,) = log.outcomes
    told = {
        "ok": True, "ttft_ms": 418, "max_gap_ms": 35, "e2e_ms": 5200,
        "output_tokens": 212, "cached_tokens": 9100, "input_tokens": 9400,
        "first_text_ms": 980, "finish_reason": "stop",
    }  # fmt: skip
    assert {name: line[name] for name in told} == told
    assert "error" not in line
    assert (line["of"], line["id"], line["admitted"]) == (d.seq, "r", True)
    assert line["open_ms"] == 5250
    assert line["seq"] > line["of"]


def test_what_the_host_does_not_know_is_not_on_the_line(policy, log):
    """Absent is not zero: a failed request has no time to first token."""
    policy({}, request_id="r")
    policy.outcome("r", ok=False, error="CUDA out of memory")
    (line,) = log.outcomes
    assert line["ok"] is False
    assert line["error"] == "CUDA out of memory"
    for name in ("ttft_ms", "max_gap_ms", "e2e_ms", "output_tokens", "finish_reason"):
        assert name not in line


def test_ok_is_assumed_when_nothing_is_said(policy, log):
    """`policy.outcome(rid)` is the short form of a good end."""
    policy({}, request_id="r")
    policy.outcome("r")
    assert log.outcomes[0]["ok"] is True


def test_a_second_outcome_is_counted_and_not_raised(policy, log):
    """Once per id: the second changes no outcome and frees no second slot."""
    policy({}, request_id="r")
    policy({}, request_id="other")
    policy.outcome("r", ttft_ms=1)
    policy.outcome("r", ttft_ms=2)
    policy.outcome("r", ok=False)
    assert [line["ttft_ms"] for line in log.outcomes] == [1]
    repeated = [line for line in log.controls if line["event"] == "outcome_repeated"]
    assert [line["id"] for line in repeated] == ["r", "r"]
    assert policy.ledger.in_flight == 1


def test_an_outcome_for_an_unknown_id_is_counted_and_not_raised(policy, log):
    """A host that mixes up its ids is told in the log and frees nobody."""
    policy({}, request_id="r")
    policy.outcome("nobody")
    assert log.outcomes == []
    assert [line["event"] for line in log.controls] == ["outcome_unknown"]
    assert policy.ledger.in_flight == 1


def test_a_first_token_for_an_unknown_or_ended_id_does_nothing(policy):
    """It neither raises nor brings a request back."""
    policy.first_token("nobody")
    policy({}, request_id="r")
    policy.outcome("r")
    policy.first_token("r")
    assert policy.ledger.in_flight == 0


def test_the_first_token_ends_the_wait(clock):
    """A request waits until its first token, not until its end."""
    seen = []
    policy = rule(sees(seen, OLDEST_WAIT_S), clock=clock, reports_outcomes=True)
    policy({}, request_id="a")
    clock.advance(2.0)
    policy({}, request_id="b")
    policy.first_token("a")
    clock.advance(1.0)
    policy({})
    assert [s["oldest_wait_s"] for s in seen] == [0.0, 2.0, 1.0]


@pytest.mark.parametrize("decide", [defers("slots"), rejects("kv_pressure")])
def test_an_outcome_for_a_refused_id_marks_it_as_served(decide, clock, log):
    """Ignoring the verdict is shadow, and the log carries it."""
    policy = rule(decide, clock=clock, log=log, reports_outcomes=True)
    d = policy({}, request_id="r")
    policy.outcome("r", ttft_ms=5)
    (line,) = log.outcomes
    assert (line["of"], line["admitted"]) == (d.seq, False)
    policy.outcome("r")
    assert len(log.outcomes) == 1


def test_a_refused_request_holds_nothing(clock):
    """It never was in flight, so it cannot fill a pool."""
    seen = []
    watch = sees(seen, IN_FLIGHT)

    def decide(policy, metrics):
        watch(policy, metrics)
        return policy.reject("kv_pressure")

    policy = rule(decide, clock=clock, reports_outcomes=True)
    for _ in range(5):
        policy({})
    assert [s["in_flight"] for s in seen] == [0.0] * 5


def test_what_was_let_in_outside_the_governed_share_holds_its_place(clock, log):
    """A shadow refusal is started, so it is in flight, and its end says admitted."""
    policy = rule(
        defers("slots"), clock=clock, log=log, enforce=0.0, reports_outcomes=True
    )
    policy({}, request_id="r")
    assert policy.ledger.in_flight == 1
    policy.outcome("r")
    assert policy.ledger.in_flight == 0
    assert log.outcomes[0]["admitted"] is True


def test_the_policy_can_be_used_after_it_was_closed(policy):
    """Closing writes the log out; it does not end the policy."""
    policy.close()
    assert policy({}).admitted
    with policy as same:
        assert same is policy
    assert policy({}).admitted
    assert policy.flush()
