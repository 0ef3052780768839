"""A run's numbers, each of which can be counted by hand."""

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.bench.callers.scenes import (
    alone,
    by_attempt,
    call,
    driven,
    line_of,
    made,
    no,
    told,
    yes,
)
from tests.bench.callers.test_records import ONE, RECORDS

from admitperf.bench.callers.client import client
from admitperf.bench.callers.score import score
from admitperf.bench.callers.slo import Slo
from admitperf.simulator import Answer
from admitperf.simulator.traffic.sessions import Session

SLO = Slo(classes={"": {"ttft_ms": 500, "stall_ms": 500}})
IMPATIENT = client("impatient", jitter=0.0)


def scored(callers_or_records, slo=SLO, unloaded_s=None, **more):
    """The summary of a scene."""
    records = getattr(callers_or_records, "records", lambda: callers_or_records)()
    return score(records, slo, unloaded_s=unloaded_s, **more)


def answered(number, ttft_ms=100.0, **more):
    """A session of one call that was answered, or refused where it has no TTFT."""
    told_ = {"ended": "answered", "ttft_ms": ttft_ms, "e2e_ms": ttft_ms, "attempts": 1}
    changed = {"due_s": 0.0, **told_, **more}
    return replace(ONE, id=f"s{number}/0", session=f"s{number}", **changed)


def refused(number, **more):
    """A session of one call that was refused at once."""
    told_ = {"ended": "refused", "ttft_ms": None, "e2e_ms": None, "refused_ms": 0.0}
    return answered(number, **{**told_, "refusals": 1, **more})


# ------------------------------------------------------------------- shared numbers


def test_s_bm_01_goodput_divides_by_what_was_offered(shared):
    """1,000 offered, 950 refused, 50 served in time: 0.05, whatever is served."""
    path = shared / "cases" / "s-bm-01" / "requests.jsonl"
    rows = [json.loads(text) for text in path.read_text("utf-8").splitlines()]
    records = [
        answered(n, ttft_ms=row["ttft_ms"], max_gap_ms=row["max_gap_ms"])
        if row["decision"] == "admit"
        else refused(n)
        for n, row in enumerate(rows)
    ]
    found = scored(records, Slo(classes={"": {"ttft_ms": 500}}))
    assert (found.offered, found.good, found.goodput) == (1000, 50, 0.05)
    assert (found.answered, found.refused_share) == (50, 0.95)
    assert found.ttft_served_ms["p50"] == 120
    assert found.ttft_offered_ms == {
        "n": 1000,
        "p50": None,
        "p95": None,
        "infinite": True,
    }


def test_a_policy_that_refuses_95_of_100_sessions_is_worth_5_in_100():
    """Of 44 calls each: 5 x 44 of 100 x 44, not 5 x 44 of 5 x 44 + 95 = 0.70."""
    plan = made(*((float(n), line_of(f"s{n}", 44)) for n in range(100)))
    kept = {f"s{n}" for n in range(5)}
    callers, asked = driven(plan, lambda a: yes() if a.session in kept else no())
    unloaded_s = {f"s{n}": 44 * 0.2 + 43 for n in range(100)}
    found = scored(callers, unloaded_s=unloaded_s)
    assert (found.offered, found.sent, found.good) == (4400, 5 * 44 + 95, 220)
    assert found.goodput == 0.05
    assert found.good / len(asked) == pytest.approx(0.70, abs=0.005)
    assert found.sessions == {
        "offered": 100,
        "good": 5,
        "completed": 5,
        "refused_at_start": 95,
        "killed": 0,
        "undone": 0,
        "unfinished": 0,
    }
    assert found.session_goodput == found.session_completed == 0.05
    assert found.session_work_goodput == found.work_goodput == 0.05
    assert found.ended["never_sent"] == 95 * 43


def test_s_bm_07_a_stall_counts_from_when_calls_were_due(shared):
    """p50 50 ms, p95 1,500 ms, p99 1,900 ms; 38 of 200 sent over 10 ms late."""
    path = shared / "cases" / "s-bm-07" / "closed_loop.jsonl"
    rows = [json.loads(text) for text in path.read_text("utf-8").splitlines()]
    records = [
        answered(
            n,
            due_s=row["due_s"],
            ttft_ms=round((row["first_token_s"] - row["due_s"]) * 1000, 3),
            late_ms=round((row["sent_s"] - row["due_s"]) * 1000, 3),
        )
        for n, row in enumerate(rows)
    ]
    found = scored(records)
    served = found.ttft_served_ms
    assert (served["p50"], served["p95"], served["p99"]) == (50, 1500, 1900)
    assert found.late_ms["max"] == max(one.late_ms for one in records)
    assert sum(one.late_ms > 10 for one in records) == 38


def test_one_run_has_four_clocks_and_the_users_is_the_lowest():
    """Ten callers of up to three attempts at 2 s each; 500 ms are in time.

    Two are served at once and in time, one at once and late; two after one refusal and
    one after two, in time for the attempt and late for the user; four never are.
    """
    at_once, late = by_attempt(yes()), by_attempt(yes(ttft_ms=900.0, e2e_ms=999.0))
    second, third = by_attempt(no(), yes()), by_attempt(no(), no(), yes())
    fates = [at_once, at_once, late, second, second, third, *[by_attempt(no())] * 4]
    of = client("impatient", tries=3, jitter=0.0)
    plan = made(*((0.0, alone(str(n))) for n in range(10)), of=of)
    callers, asked = driven(plan, lambda a: fates[int(a.session)](a), of)
    records, found = callers.records(), scored(callers)
    attempts = 3 * 1 + 2 * 2 + 1 * 3 + 4 * 3
    in_time = [one for one in records if one.served and one.last_ttft_ms <= 500]
    assert len(asked) == found.attempts == attempts == 22
    per_attempt = len(in_time) / attempts
    served_only = len(in_time) / sum(one.served for one in records)
    last_clock = len(in_time) / found.offered
    assert (per_attempt, served_only, last_clock) == (5 / 22, 5 / 6, 0.5)
    assert found.goodput == 0.2
    assert found.attempts_per_call == 2.2
    assert found.refused_share == 16 / 22
    assert found.refusals_per_session == 1.6


# ------------------------------------------------------------------------ sessions


def test_how_a_session_went_is_told_apart():
    """One of each fate."""
    of = client("undo")
    names = ["whole", "late", "start", "mid", "failed", "undone", "cut"]
    plan = made(*((0.0, line_of(name, 2)) for name in names), of=of)
    hung = Answer(ok=False, hung_up=True, status=0, e2e_ms=30_000.0)
    died = Answer(ok=False, ttft_ms=9.0, output_tokens=3, error="died")
    cut = Answer(ok=False, error="unfinished")
    answers = {
        "whole": [yes(), yes()],
        "late": [yes(), yes(e2e_ms=9_000.0)],
        "start": [no()],
        "mid": [yes(), no()],
        "failed": [died],
        "undone": [yes(), hung],
        "cut": [yes(), cut],
    }
    callers, _ = driven(plan, lambda a: answers[a.session][int(a.logical_id[-1])], of)
    found = scored(callers, unloaded_s=dict.fromkeys(names, 1.4))
    assert found.sessions == {
        "offered": 7,
        "good": 1,
        "completed": 2,
        "refused_at_start": 1,
        "killed": 2,
        "undone": 1,
        "unfinished": 1,
    }
    assert (found.session_goodput, found.session_completed) == (1 / 7, 2 / 7)


def test_a_session_may_take_three_times_its_unloaded_duration():
    """200 ms, a second, 200 ms: 1.4 s, which is three times 0.467 s."""
    callers, _ = driven(made((5.0, line_of("s", 2))), told(yes()))
    assert scored(callers, unloaded_s={"s": 0.467}).sessions["good"] == 1
    assert scored(callers, unloaded_s={"s": 0.466}).sessions["good"] == 0
    with pytest.raises(ValueError, match="unloaded duration of session 's'"):
        scored(callers, unloaded_s={})


def test_what_was_spent_on_a_killed_session_was_wasted():
    """Three calls of 110 tokens each; the third is refused, and the other is whole."""
    plan = made((0.0, line_of("killed", 3)), (0.0, line_of("whole", 3)))
    fate = lambda a: no() if a.id == "killed/2" else yes()  # noqa: E731
    found = scored(driven(plan, fate)[0])
    assert (found.good, found.goodput) == (5, 5 / 6)
    assert (found.computed_tokens, found.wasted_tokens) == (550, 220)
    assert found.wasted_share == 0.4
    assert found.work == {"offered": 660, "good": 550, "good_sessions": None}
    assert found.work_goodput == 5 / 6


def test_late_answers_and_streams_that_died_were_wasted_too():
    """A request is no session to be completed: each stands for itself."""
    late = yes(ttft_ms=501.0, e2e_ms=999.0)
    died = Answer(ok=False, ttft_ms=9.0, cached_tokens=40, output_tokens=3, error="x")
    full = Answer(ok=False, status=503, error="503")
    plan = made(*((0.0, alone(name)) for name in "abcd"), noun="request")
    answers = {"a/0": yes(), "b/0": late, "c/0": died, "d/0": full}
    callers, _ = driven(plan, lambda a: answers[a.id])
    found = scored(callers)
    assert [one.computed_tokens for one in callers.records()] == [110, 110, 63, 0]
    assert (found.computed_tokens, found.wasted_tokens) == (283, 173)


def test_where_the_engine_does_not_say_what_was_cached_the_plan_does():
    """The second prompt of 100 begins with all of the first and its answer."""
    own = ((0, 100),)
    session = Session(
        "s", (call(prefix=own), call(0, 1.0, 150, prefix=((0, 150),))), 50
    )
    callers, _ = driven(made((0.0, session)), told(yes(cached_tokens=None)))
    first, second = callers.records()
    assert (first.new_tokens, first.computed_tokens) == (100, 110)
    assert (second.new_tokens, second.computed_tokens) == (40, 50)


def test_work_weighs_a_call_by_what_it_makes_an_engine_do():
    """A good call of 110 tokens, a refused one of 1,100."""
    plan = made((0.0, alone("a")), (0.0, alone("b", input_tokens=1090)))
    found = scored(driven(plan, lambda a: yes() if a.id == "a/0" else no())[0])
    assert (found.goodput, found.work_goodput) == (0.5, 110 / 1210)


# ---------------------------------------------------------------------- the others


def test_what_is_not_scored_stands_in_no_share():
    """A warm-up that was all refused."""
    warm = [refused(f"w{n}", scored=False, tenant="t") for n in range(9)]
    found = scored([*warm, answered(1), refused(2)])
    assert (found.offered, found.goodput, found.attempts) == (2, 0.5, 2)
    assert found.refusal_ms["n"] == 1


def test_refusals_are_timed_to_the_last_no():
    """Twenty callers who gave up after 6 s, 100 of them for a p99."""
    plan = made(*((0.0, alone(str(n))) for n in range(20)), of=IMPATIENT)
    found = scored(driven(plan, told(no()), IMPATIENT)[0])
    spread = {"n": 20, "p50": 6000.0, "p95": 6000.0, "p99": None}
    assert found.refusal_ms == spread
    assert found.ttft_served_ms == {"n": 0, "p50": None, "p95": None, "p99": None}


def test_a_percentile_over_offered_is_infinite_where_nobody_was_served():
    """Of 20, one refused: p95 is the 19th, the slowest served; two, and it is none."""
    served = [answered(n, ttft_ms=float(n)) for n in range(1, 20)]
    one = scored([*served, refused(20)]).ttft_offered_ms
    two = scored([*served[:-1], refused(20), refused(21)]).ttft_offered_ms
    assert one == {"n": 20, "p50": 10.0, "p95": 19.0, "infinite": False}
    assert two == {"n": 20, "p50": 10.0, "p95": None, "infinite": True}


def test_a_hang_up_as_planned_has_a_first_token_and_one_out_of_patience_none():
    """Both are cancelled."""
    early = answered(1, ended="cancelled", ttft_ms=100.0)
    never = answered(2, ended="cancelled", ttft_ms=None, e2e_ms=None)
    found = scored([early, never])
    assert (found.good, found.ended["cancelled"]) == (1, 2)
    assert found.ttft_served_ms["n"] == 1
    assert found.ttft_offered_ms["p50"] == 100.0


def test_classes_are_scored_by_their_own_limits():
    """Half of the short ones, all of the long ones."""
    slo = Slo(classes={"short": {"ttft_ms": 100}, "long": {"ttft_ms": 900}})
    times = [("short", 50.0), ("short", 150.0), ("long", 800.0)]
    records = [
        answered(n, ttft_ms=ttft_ms, slo_class=name)
        for n, (name, ttft_ms) in enumerate(times)
    ]
    found = scored(records, slo)
    assert found.by_class == {
        "long": {
            "offered": 1,
            "good": 1,
            "goodput": 1.0,
            "ttft_ms": {"n": 1, "p50": 800.0, "p95": None},
        },
        "short": {
            "offered": 2,
            "good": 1,
            "goodput": 0.5,
            "ttft_ms": {"n": 2, "p50": 50.0, "p95": None},
        },
    }


def test_jain_compares_tenants_by_what_each_offered():
    """Goodputs 1 and 0.5: 1.5 squared by 2 x 1.25; all alike 1; one has all 1/2."""

    def of(good, bad, tenant):
        yes_ = [answered(f"{tenant}{n}", tenant=tenant) for n in range(good)]
        return yes_ + [refused(f"{tenant}-{n}", tenant=tenant) for n in range(bad)]

    assert scored([*of(4, 0, "a"), *of(1, 1, "b")]).jain == pytest.approx(0.9)
    assert scored([*of(1, 1, "a"), *of(3, 3, "b")]).jain == pytest.approx(1.0)
    assert scored([*of(2, 0, "a"), *of(0, 9, "b")]).jain == pytest.approx(0.5)
    alone_ = scored(of(2, 0, "a"))
    assert (alone_.jain, alone_.withheld["jain"]) == (
        None,
        "fewer than two tenants: nobody to compare with",
    )
    nobody = scored([*of(0, 1, "a"), *of(0, 1, "b")])
    assert nobody.withheld["jain"] == "nothing was good"


def test_a_good_answer_costs_what_the_engines_did_for_all_of_them():
    """Two engines at 3 an hour for 30 minutes, 6 good answers, also in the warm-up."""
    records = [
        *(answered(n) for n in range(4)),
        *(answered(f"w{n}", scored=False) for n in range(2)),
        refused(9),
    ]
    paid = scored(records, gpu_cost_per_hour=3.0, replicas=2, seconds=1800.0)
    assert paid.cost_per_good == 0.5
    assert scored(records).withheld["cost_per_good"] == "no price is given"
    nothing = scored([refused(1)], gpu_cost_per_hour=3.0, seconds=9.0)
    assert nothing.withheld["cost_per_good"] == "nothing was good"


def test_decisions_and_the_harness_are_timed():
    """In microseconds and milliseconds."""
    records = [answered(n, late_ms=float(n)) for n in range(100)]
    found = scored(records, decide_ns=[1000 * n for n in range(1, 101)])
    assert found.decide_us == {"n": 100, "p50": 50.0, "p99": 99.0}
    assert found.late_ms == {"n": 100, "p50": 49.0, "p99": 98.0, "max": 99.0}
    assert scored(records).withheld["decide_us"] == "no decision was timed"


def test_the_first_half_of_the_window_stands_beside_the_whole():
    """Served at first, refused in the end: goodput hangs on how long the run is."""
    records = [answered(1, begun_s=10.0), refused(2, begun_s=49.9), *[
        refused(n, begun_s=47.0 + n) for n in range(3, 5)]]  # fmt: skip
    found = scored(records, scored_s=(0.0, 100.0))
    assert found.half == {"offered": 2, "good": 1, "goodput": 0.5}
    assert found.goodput == 0.25
    assert scored(records).withheld["half"] == "the window is not known"


class Longest:
    """A metric of somebody's own."""

    name, better = "longest_ms", "lower"

    def __call__(self, records, slo):
        """The longest time to a good call's first token."""
        return max((one.ttft_ms for one in records if slo.good(one)), default=None)


def test_somebodys_own_numbers_stand_beside_ours():
    """One that cannot be told, or is not finite, is none, and why."""
    found = scored([answered(1), answered(2, ttft_ms=200.0)], metrics=[Longest()])
    assert found.extra == {"longest_ms": 200.0}
    none = scored([refused(1)], metrics=[Longest()])
    assert none.extra == {"longest_ms": None}
    assert none.withheld["extra.longest_ms"] == "it cannot be told"
    odd = Longest()
    odd.__class__ = type("Odd", (Longest,), {"__call__": lambda *_: float("inf")})
    assert (
        scored([], metrics=[odd]).withheld["extra.longest_ms"] == "it came out as inf"
    )


def test_sessions_of_one_call_are_no_sessions_to_ask_for():
    """Their goodput is that of calls."""
    found = scored([answered(1)], unloaded_s={"s1": 1.0})
    assert found.session_goodput is None
    assert found.withheld["session_goodput"] == "no session has more than one call"


def test_of_nothing_nothing_is_known():
    """No share is invented, and each one missing says why."""
    found = scored([])
    shares = ["goodput", "session_goodput", "work_goodput", "wasted_share", "jain"]
    assert [getattr(found, name) for name in shares] == [None] * 5
    assert set(shares) <= set(found.withheld)


@settings(deadline=None, max_examples=60)
@given(st.lists(RECORDS, max_size=9, unique_by=lambda one: one.id))
def test_a_summary_is_strict_json_and_its_shares_are_shares(records):
    """Whatever the records say."""
    due = [
        replace(one, due_s=one.due_s or 0.0, e2e_ms=one.e2e_ms or 0.0)
        for one in records
    ]
    unloaded_s = {one.session: 1.0 for one in due}
    found = scored(due, unloaded_s=unloaded_s, scored_s=(0.0, 9.0), decide_ns=[1])
    assert json.loads(json.dumps(found.document(), allow_nan=False))
    for name in ("goodput", "work_goodput", "session_goodput", "wasted_share"):
        share = getattr(found, name)
        assert (share is None) == (name in found.withheld)
        assert share is None or 0 <= share <= 1
    fates = {name: n for name, n in found.sessions.items() if name != "good"}
    assert fates.pop("offered") == sum(fates.values())


def test_a_metric_that_raises_ends_no_run():
    """Its number is none, and the summary says what happened."""
    odd = Longest()
    odd.__class__ = type("Odd", (Longest,), {"__call__": lambda *_: 1 / 0})
    found = scored([answered(1)], metrics=[odd])
    assert found.extra == {"longest_ms": None}
    assert found.withheld["extra.longest_ms"] == "ZeroDivisionError: division by zero"


def test_what_is_refused_outside_the_window_is_counted_apart():
    """A policy could clear its own way there: see the check of `bench compare`."""
    found = scored([answered(1), refused(2, scored=False), answered(3, scored=False)])
    assert found.outside == {"attempts": 2, "refusals": 1}
    assert (found.offered, found.refusals) == (1, 0)
