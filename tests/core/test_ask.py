"""A host that holds a request asks more than once and answers once."""

import pytest
from tests.core.rules import FULL, QUIET, rule, wall

from admitperf import Reading
from admitperf.core.decision import Decision
from admitperf.core.verdict import Verdict
from admitperf.policies.rate_limit import RateLimit


@pytest.fixture
def policy(clock, log):
    """The sample, with a host that reports outcomes."""
    return wall(clock=clock, log=log, reports_outcomes=True)


def test_an_open_refusal_is_in_no_book(policy, log):
    """It says what a call would say, and nothing was recorded, numbered or counted."""
    d = policy.ask(FULL, tenant="a")
    assert d.open
    assert (d.verdict, d.reason, d.status) == ("reject", "kv_pressure", 503)
    assert d.retry_after_ms >= 1000
    assert d.headers()["Retry-After"]
    assert (d.seq, log.texts, policy.ledger.in_flight) == (-1, [], 0)
    assert policy(QUIET).seq == 1


def test_an_admission_is_recorded_at_once(policy, log):
    """The first yes is the answer: its line says how long it was held."""
    refused = policy.ask(FULL)
    d = policy.ask(QUIET, request_id=refused.request_id, held_ms=12.5, tenant="a")
    assert (d.open, d.admitted, d.request_id) == (False, True, refused.request_id)
    (line,) = log.decisions
    assert (line["id"], line["seq"], line["held_ms"]) == (d.request_id, 1, 12.5)
    assert policy.ledger.tenant_in_flight("a") == 1
    assert policy.answer(d, probe=True) is d
    assert len(log.lines) == 1


def test_the_id_made_at_the_first_ask_stays(policy):
    """The same id gives the same wait, and two requests without one are two."""
    first, other = policy.ask(FULL), policy.ask(FULL)
    again = policy.ask(FULL, request_id=first.request_id)
    assert again.request_id == first.request_id != other.request_id
    assert again.retry_after_ms == first.retry_after_ms


def test_an_answer_is_recorded_once(policy, clock, log):
    """Numbered when it is the answer, with what was seen when it was asked."""
    reading = Reading(FULL, taken_ns=clock.monotonic_ns())
    d = policy.ask(reading, request_id="r", tenant="a")
    let_in = policy(QUIET, tenant="a")
    clock.advance(0.7)
    assert policy.answer(d, held_ms=700) is d
    assert policy.answer(d) is d
    assert (d.open, d.seq) == (False, 2)
    line = log.decisions[1]
    assert (line["id"], line["held_ms"], line["age_ms"]) == ("r", 700, 0)
    assert line["t_us"] - log.decisions[0]["t_us"] == 700_000
    assert (line["signals"]["in_flight"], line["signals"]["kv_pressure"]) == (0, 0.95)
    assert line["gates"] == [["kv_pressure", 0.95, ">=", 0.9, True]]
    assert len(log.decisions) == 2
    policy.outcome(let_in.request_id)
    policy.outcome("r")
    assert log.outcomes[-1]["admitted"] is False


def test_a_probe_is_let_in_against_the_policy(policy, log):
    """Verdict and reason stand, the lease is open, and the line says probe."""
    d = policy.answer(policy.ask(FULL, tenant="a"), probe=True)
    assert (d.admitted, d.status, d.retry_after_ms, d.headers()) == (
        True,
        200,
        None,
        {},
    )
    assert policy.ledger.tenant_in_flight("a") == 1
    (line,) = log.decisions
    assert (line["verdict"], line["reason"]) == ("reject", "kv_pressure")
    assert (line["admitted"], line["status"], line["probe"]) == (True, 200, True)
    policy.outcome(d.request_id)
    assert policy.ledger.in_flight == 0


def test_a_probe_under_an_id_that_was_opened_meanwhile_gets_its_own(policy):
    """Two requests with one id leave nothing open once both have ended."""
    held = policy.ask(FULL, request_id="x")
    policy(QUIET, request_id="x")
    probe = policy.answer(held, probe=True)
    assert probe.request_id != "x"
    for one in ("x", probe.request_id):
        policy.outcome(one)
    assert policy.ledger.in_flight == 0


def test_what_is_not_governed_is_final_at_the_first_ask(clock, log):
    """Outside the split a refusal starts the request, as for a call."""
    policy = wall(clock=clock, log=log, enforce=0.0)
    d = policy.ask(FULL)
    assert (d.open, d.admitted, d.verdict) == (False, True, "reject")
    assert log.decisions[0]["enforced"] is False


def test_asking_often_charges_nobody(clock, log):
    """A bucket gives its token to who is let in, however often it was asked."""
    policy = RateLimit(rate_per_s=1.0, burst=1, clock=clock, log=log)
    assert policy.ask({}, tenant="a").admitted
    for _ in range(50):
        assert policy.ask({}, request_id="r", tenant="a").open
    clock.advance(1.0)
    assert policy.ask({}, request_id="r", tenant="a").admitted
    assert len(log.decisions) == 2


def test_a_rule_that_keeps_its_answer_object_harms_no_open_one(clock, log):
    """Each ask has a decision of its own, also when the rule returns one twice."""
    kept = Decision(Verdict.REJECT, "kv_pressure")
    policy = rule(lambda _, __: kept, clock=clock, log=log)
    first, second = policy.ask({}), policy.ask({})
    assert first is not second
    assert first.request_id != second.request_id
    assert [policy.answer(d).seq for d in (first, second)] == [1, 2]


def test_a_bad_fact_is_written_with_the_answer(policy, log):
    """Asking ten times tells of it once, when there is a line it belongs to."""
    for _ in range(10):
        d = policy.ask(FULL, request_id="r", input_tokens="many")
    assert log.texts == []
    policy.answer(d)
    assert [line.get("event") for line in log.lines] == [None, "bad_fact"]


def test_a_rule_that_fails_is_answered_by_the_posture(clock, log):
    """An open refusal may be blind; it is recorded as such when it is the answer."""

    def broken(_policy, _metrics):
        raise ValueError("no")

    policy = rule(broken, clock=clock, log=log, on_blind="reject")
    d = policy.ask({})
    assert (d.open, d.reason) == (True, "policy_error")
    policy.answer(d)
    assert log.decisions[0]["blind"] == "policy_error"


def test_nothing_raises_into_the_host(policy):
    """Whatever is handed over, there is an answer, and none is given twice."""
    assert policy.ask(object(), request_id=3.5, nonsense=object()).reason
    policy.answer(None)
    d = policy.ask(FULL)
    d.asked = object()
    assert policy.answer(d, held_ms="long") is d
    assert policy.answer(d) is d


def test_a_refusal_of_the_hosts_own_is_recorded_as_such(policy, log):
    """The policy is not asked: no gate, the host's word, and the wait it gave."""
    d = policy.refuse(
        QUIET, "rate_limit", why="early", retry_after_ms=800, tenant="a", attempt=1
    )
    assert (d.admitted, d.open, d.status) == (False, False, 429)
    assert (d.retry_after_ms, d.seq) == (800, 1)
    (line,) = log.decisions
    assert (line["by"], line["why"], line["gates"]) == ("host", "early", [])
    assert (line["verdict"], line["reason"]) == ("reject", "rate_limit")
    assert (line["signals"]["kv_pressure"], line["facts"]["attempt"]) == (0.2, 1)


def test_the_split_applies_to_a_refusal_of_the_hosts_own(clock, log):
    """In shadow nobody is refused, but what can never fit is."""
    policy = wall(clock=clock, log=log, enforce=0.0)
    early = policy.refuse(QUIET, "queue_depth", why="early", verdict="defer")
    large = policy.refuse(QUIET, "too_large", why="body")
    assert (early.admitted, early.status) == (True, 200)
    assert (large.admitted, large.status, large.should_retry) == (False, 413, False)
    assert policy.ledger.opened.keys() == {early.request_id}


def test_a_reason_that_is_in_no_table_is_answered_all_the_same(policy, log):
    """A mistake of the host's is a policy_error on the record, and no exception."""
    d = policy.refuse(QUIET, "no_such_reason", why="x")
    assert d.reason == "policy_error"
    assert log.decisions[0]["blind"] == "policy_error"


def test_a_decision_can_be_named_by_run_and_number(policy, log):
    """`run` is the id that stands on every line."""
    d = policy(QUIET)
    (line,) = log.decisions
    assert f"{policy.run}-{d.seq}" == f"{line['run']}-{line['seq']}"


def test_a_look_ahead_leaves_nothing_for_the_first_decision(policy, clock, log):
    """The thread that read has the signals worked out; nothing is decided."""
    reading = Reading(FULL, taken_ns=clock.monotonic_ns())
    policy.look(reading)
    view = reading.views[policy.number]
    assert log.texts == []
    assert policy(reading).reason == "kv_pressure"
    assert reading.views[policy.number] is view
    policy.look(object())
    assert [line["event"] for line in log.controls] == ["look_failed"]
