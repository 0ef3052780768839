"""Callers in front of the simulated engine, with policies as they are installed."""

import logging
from collections import Counter

import pytest
from tests.bench.callers.scenes import alone, call, line_of, made
from tests.simulator.small import model

from admitperf.bench.callers.callers import Callers
from admitperf.bench.callers.client import client
from admitperf.bench.callers.score import score
from admitperf.bench.callers.slo import Slo
from admitperf.policies import load
from admitperf.simulator import Phase, Setting, VirtualClock, poisson, run
from admitperf.simulator.traffic.sessions import Session
from admitperf.testing import MemoryLog

ENGINE = model(max_num_seqs=2)
IMPATIENT = client("impatient")
SLO = Slo(classes={"": {"ttft_ms": 1000, "stall_ms": 500}})


@pytest.fixture(autouse=True)
def _quiet():
    """A policy is blind until the first look has come, and says so."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def ran(plan, policy, of, *, seed=1, until_s=float("inf"), engine=ENGINE, **given):
    """The callers of a plan after a policy has met them, its log, and the run."""
    clock, log = VirtualClock(), MemoryLog()
    callers = Callers(plan, of, seed)
    made_of = load(policy)(clock=clock, log=log, reports_outcomes=True, **given)
    told = run(made_of, clock, callers, Setting(model=engine), until_s)
    return callers, log, told


def crowd(of, rate_per_s=8.0, lasts_s=60.0, calls=1):
    """More than the engine carries: it answers about five a second."""
    times_s = poisson([Phase(lasts_s=lasts_s, rate_per_s=rate_per_s)], 1, "crowd")
    sessions = (
        alone(f"s{n}", output_tokens=20) if calls == 1 else line_of(f"s{n}", calls)
        for n in range(10**6)
    )
    begun = list(zip(times_s, sessions, strict=False))
    return made(*begun, lasts_s=lasts_s, of=of)


def test_every_call_has_one_record_and_every_attempt_one_decision():
    """What the log of the policy says and what the callers say agree."""
    callers, log, told = ran(crowd(IMPATIENT), "queue_depth", IMPATIENT, max_waiting=1)
    records = callers.records()
    attempts = Counter(line["facts"]["logical_id"] for line in log.decisions)
    refusals = Counter(
        line["facts"]["logical_id"]
        for line in log.decisions
        if line["verdict"] != "admit"
    )
    assert {one.id: one.attempts for one in records} == attempts
    assert {one.id: one.refusals for one in records if one.refusals} == refusals
    assert max(attempts.values()) == 4
    assert len(told.decide_ns) == len(log.decisions)
    outcomes = {line["id"]: line for line in log.outcomes}
    for one in records:
        if one.ended == "answered":
            last = one.id if one.attempts == 1 else f"{one.id}~{one.attempts - 1}"
            assert outcomes[last]["ttft_ms"] == one.last_ttft_ms
            assert one.ttft_ms >= one.last_ttft_ms


def test_the_users_clock_shows_what_the_others_hide():
    """Past capacity, with retries: per attempt, last attempt and served-only flatter.

    The order is that of the research: served only, last attempt's clock, the user's.
    """
    callers, log, _ = ran(crowd(IMPATIENT), "queue_depth", IMPATIENT, max_waiting=1)
    records = callers.records()
    found = score(records, SLO, unloaded_s=None)
    in_time = sum(one.served and one.last_ttft_ms <= 1000 for one in records)
    served_only = in_time / sum(one.served for one in records)
    last_clock = in_time / len(records)
    per_attempt = in_time / len(log.decisions)
    assert served_only > last_clock > found.goodput > 0
    assert last_clock > per_attempt
    assert found.attempts_per_call > 1.2


def test_nobody_being_refused_the_client_model_makes_no_difference():
    """The baseline's arms ask at equal instants whatever the client would have done."""
    runs = [
        ran(crowd(client("none")), "no_admission", client(name))[0].records()
        for name in ("none", "patient", "deaf")
    ]
    assert runs[0] == runs[1] == runs[2]


def test_the_same_arm_twice_is_the_same_to_the_last_call():
    """All chance has a seed."""
    runs = [
        ran(crowd(IMPATIENT), "in_flight_cap", IMPATIENT, max_in_flight=2)[0].records()
        for _ in range(2)
    ]
    assert runs[0] == runs[1]
    other, _, _ = ran(
        crowd(IMPATIENT), "in_flight_cap", IMPATIENT, max_in_flight=2, seed=2
    )
    assert other.records() != runs[0]


def test_a_session_refused_on_the_way_leaves_calls_that_were_never_sent():
    """And what it had computed is wasted."""
    of = client("none")
    callers, _, _ = ran(
        crowd(of, rate_per_s=2.0, calls=5), "in_flight_cap", of, max_in_flight=2
    )
    found = score(callers.records(), SLO, unloaded_s=None)
    assert found.offered == 5 * found.sessions["offered"]
    assert found.ended["never_sent"] > 0
    assert found.sent + found.ended["never_sent"] == found.offered
    assert found.sessions["killed"] > 0
    assert found.wasted_tokens > 0
    assert found.ended["unfinished"] == 0


def test_who_is_out_of_patience_leaves_the_engine():
    """A call of 400 tokens holds the only slot for 4.4 s; who waits 1 s is gone."""
    of = client("undo", patience_s=1.0)
    engine = model(max_num_seqs=1)
    long = Session("long", (call(output_tokens=400),), 500)
    plan = made((0.0, long), (0.5, line_of("s", 2)), of=of)
    callers, log, _ = ran(plan, "no_admission", of, engine=engine)
    first, gone, never = callers.records()
    assert first.ended == "answered"
    assert (gone.ended, gone.ttft_ms, gone.computed_tokens) == ("cancelled", None, 0)
    assert never.ended == "never_sent"
    assert {line["id"]: line.get("error") for line in log.outcomes}["s/0"] == (
        "client_closed"
    )


def test_a_planned_hang_up_frees_the_engine_and_is_good_when_it_was_in_time():
    """Of 400 tokens 5 are taken: 110 ms to the first, then four of 10 ms."""
    of = client("none")
    plan = made((0.0, alone("r", output_tokens=400, hangs_up_after=5)))
    callers, _, _ = ran(plan, "no_admission", of)
    (one,) = callers.records()
    assert (one.ended, one.got_tokens, one.e2e_ms) == ("cancelled", 5, 150.0)
    assert (one.ttft_ms, one.computed_tokens) == (110.0, 105)
    assert SLO.good(one)


def test_what_the_end_of_the_run_cuts_off_is_a_miss():
    """A call under way at 1 s, and the one that would have followed it."""
    of = client("none")
    first = call(output_tokens=400)
    plan = made((0.0, Session("s", (first, call(0, 1.0)), 500)), of=of)
    callers, _, told = ran(plan, "no_admission", of, until_s=1.0)
    one, never = callers.records()
    assert (one.ended, never.ended, told.seconds) == ("unfinished", "never_sent", 1.0)
    assert one.got_tokens > 0
    assert score(callers.records(), SLO, unloaded_s=None).goodput == 0.0


def test_an_engine_full_by_its_own_limit_has_failed_the_call_not_refused_it():
    """Tried again all the same, as the SDKs do."""
    engine = model(max_num_seqs=1, max_num_queued_reqs=2)
    of = client("impatient", tries=2)
    plan = made(*((0.0, alone(f"s{n}")) for n in range(9)), of=of)
    callers, _, _ = ran(plan, "no_admission", of, engine=engine)
    ends = Counter(one.ended for one in callers.records())
    assert ends["failed"] > 0
    assert sum(one.refusals for one in callers.records()) == 0
    assert {one.attempts for one in callers.records() if one.ended == "failed"} == {2}
