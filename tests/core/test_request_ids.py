"""Every decision carries the id to report its end under."""

import logging
import math

import pytest
from tests.core.rules import admits, defers, rule


def open_ids(policy):
    """The ids in flight."""
    return set(policy.ledger.opened)


def test_the_callers_id_is_the_decisions_id(log):
    """A host that names a request finds it under that name."""
    d = rule(admits, log=log)({}, request_id="r-1")
    assert d.request_id == "r-1"
    assert log.decisions[0]["id"] == "r-1"


def test_without_an_id_a_new_one_is_made(log):
    """Every decision has one, and no two have the same."""
    policy = rule(admits, log=log)
    made = [policy({}).request_id for _ in range(200)]
    assert all(made)
    assert len(set(made)) == 200
    assert [line["id"] for line in log.decisions] == made


def test_ids_of_two_policies_do_not_meet():
    """Made ids differ between policies, so that logs can be put together."""
    one, other = rule(admits), rule(admits)
    assert one({}).request_id != other({}).request_id


def test_an_id_that_is_still_open_gets_a_new_one_and_one_warning(caplog):
    """Two requests under one name stay two, and the host hears of it once."""
    policy = rule(admits)
    first = policy({}, request_id="twice")
    others = [policy({}, request_id="twice") for _ in range(3)]
    ids = {first.request_id, *(d.request_id for d in others)}
    assert len(ids) == 4
    assert open_ids(policy) == ids
    said = [r for r in caplog.records if "twice" in r.getMessage()]
    assert len(said) == 1
    assert said[0].levelno == logging.WARNING


def test_two_requests_under_one_name_end_separately(log):
    """Each end frees its own request."""
    policy = rule(admits, log=log, reports_outcomes=True)
    first = policy({}, request_id="twice", tenant="a")
    second = policy({}, request_id="twice", tenant="b")
    policy.outcome(second.request_id)
    assert policy.ledger.tenant_in_flight("a") == 1
    assert policy.ledger.tenant_in_flight("b") == 0
    policy.outcome(first.request_id)
    assert policy.ledger.in_flight == 0
    assert [line["of"] for line in log.outcomes] == [second.seq, first.seq]


def test_an_id_may_be_used_again_after_its_end(caplog):
    """A closed name is free, without a warning."""
    policy = rule(admits)
    for _ in range(3):
        d = policy({}, request_id="again")
        assert d.request_id == "again"
        policy.outcome("again")
    assert caplog.records == []


def test_a_refused_id_may_be_tried_again(log):
    """A retry under the same name is no reuse: nothing is open under it."""
    answers = iter([False, False, True])
    policy = rule(
        lambda p, m: p.admit() if next(answers) else p.defer("slots"), log=log
    )
    decisions = [policy({}, request_id="retry") for _ in range(3)]
    assert [d.request_id for d in decisions] == ["retry"] * 3
    policy.outcome("retry")
    (outcome,) = log.outcomes
    assert (outcome["of"], outcome["admitted"]) == (decisions[2].seq, True)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (17, "17"),
        (b"bytes", "bytes"),
        (b"\xff\xfe", "\\xff\\xfe"),
        ("ünï", "ünï"),
        ('quote"back\\slash\n\0', 'quote"back\\slash\n\0'),
    ],
)  # fmt: skip
def test_an_id_of_another_type_is_taken_as_text(given, expected, log):
    """Numbers and bytes are names; the end may be told under either spelling."""
    policy = rule(admits, log=log)
    d = policy({}, request_id=given)
    assert d.request_id == expected
    policy.outcome(given)
    assert policy.ledger.in_flight == 0
    assert [line["id"] for line in log.lines] == [expected] * 2


def test_an_id_with_a_lone_surrogate_can_be_ended(log):
    """The host's own text is handed back, and the line is text any reader takes."""
    policy = rule(admits, log=log)
    d = policy({}, request_id="a\udc80b")
    assert d.request_id == "a\udc80b"
    assert log.decisions[0]["id"] == "a\\udc80b"
    policy.outcome(d.request_id)
    assert policy.ledger.in_flight == 0


def test_a_huge_id_is_bounded_in_the_log_and_still_ends(log):
    """A megabyte of id neither fills the log nor loses its request."""
    policy = rule(admits, log=log)
    one, other = ("i" * 1_000_000 + end for end in "ab")
    assert policy({}, request_id=one).request_id == one
    assert policy({}, request_id=other).request_id == other
    assert max(len(line["id"]) for line in log.decisions) <= 256
    policy.outcome(one)
    policy.outcome(other)
    assert policy.ledger.in_flight == 0
    assert len(log.outcomes) == 2


@pytest.mark.parametrize("given", [object(), [], {}, True, math.nan, 1 << 70, 2j])
def test_an_id_that_is_no_name_gets_a_new_one(given, caplog):
    """The host hears of it once, and the request is decided all the same."""
    policy = rule(admits)
    d = policy({}, request_id=given)
    assert isinstance(d.request_id, str)
    assert d.request_id
    assert open_ids(policy) == {d.request_id}
    policy.outcome(given)
    assert open_ids(policy) == {d.request_id}
    policy.outcome(d.request_id)
    assert open_ids(policy) == set()
    assert len(caplog.records) == 1


def test_an_end_without_a_usable_id_frees_nobody(log):
    """`outcome(None)` is an unknown id, whatever empty names are open."""
    policy = rule(admits, log=log, reports_outcomes=True)
    policy({}, request_id="")
    for nobody in (None, object(), [], math.nan):
        policy.outcome(nobody)
        policy.first_token(nobody)
    assert policy.ledger.in_flight == 1
    assert [line["event"] for line in log.controls] == ["outcome_unknown"] * 4


def test_a_made_id_that_a_caller_guessed_is_not_taken_twice():
    """Callers' ids are never keys of ours: no slot is lost to a clever name."""
    policy = rule(admits, reports_outcomes=True)
    run, _, number = policy({}).request_id.rpartition("-")
    guessed = f"{run}-{int(number) + 2}"
    policy({}, request_id=guessed, tenant="a")
    made = policy({}, tenant="b")
    assert made.request_id != guessed
    assert policy.ledger.in_flight == 3
    for request_id in list(policy.ledger.opened):
        policy.outcome(request_id)
    assert policy.ledger.in_flight == 0
    assert policy.ledger.tenant_in_flight("a") == 0


def test_a_refusal_carries_an_id_too():
    """Refused requests are told apart as well."""
    policy = rule(defers("slots"))
    assert policy({}, request_id="r").request_id == "r"
    assert policy({}).request_id != policy({}).request_id
