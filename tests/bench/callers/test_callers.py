"""Who asks what when: each planned call has one record, whatever the answers."""

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

from admitperf.bench.callers.callers import Callers, planned
from admitperf.bench.callers.client import CLIENTS, client
from admitperf.bench.callers.score import score
from admitperf.bench.callers.slo import Slo
from admitperf.simulator import Answer
from admitperf.simulator.traffic.sessions import Session

STEADY = {"jitter": 0.0}
IMPATIENT = client("impatient", **STEADY)


def ends(callers):
    """How each call ended, in the plan's order."""
    return [one.ended for one in callers.records()]


def test_a_session_asks_its_next_call_a_gap_after_the_end_of_the_answer():
    """Three calls of 200 ms with a second between: at 5, 6.2 and 7.4 s."""
    callers, asked = driven(made((5.0, line_of("s", 3))), told(yes()))
    assert [one.at_s for one in asked] == pytest.approx([5.0, 6.2, 7.4])
    assert [one.id for one in asked] == ["s/0", "s/1", "s/2"]
    assert [one.due_s for one in callers.records()] == pytest.approx([5.0, 6.2, 7.4])
    assert ends(callers) == ["answered"] * 3
    assert callers.tally() == {"finished": 1}


def test_an_attempt_says_which_call_it_is_and_when_it_is_the_last():
    """A host is told what it could know."""
    _, asked = driven(
        made((0.0, line_of("s", 2, tenant="t")), of=IMPATIENT),
        told(no(), yes(), yes()),
        IMPATIENT,
    )
    facts = [one.facts() for one in asked]
    assert [one.id for one in asked] == ["s/0", "s/0~1", "s/1"]
    assert [one["logical_id"] for one in facts] == ["s/0", "s/0", "s/1"]
    assert [one.get("attempt", 0) for one in facts] == [0, 1, 0]
    assert [one.get("session_final", False) for one in facts] == [False, False, True]
    assert {(one["session"], one["tenant"]) for one in facts} == {("s", "t")}


def test_a_request_of_nobodys_session_names_none():
    """A chat request is a session of one call to us, and to no policy."""
    _, (one,) = driven(made((0.0, alone("r")), noun="request"), told(yes()))
    assert "session" not in one.facts()
    assert "session_final" not in one.facts()
    assert one.logical_id == "r/0"


def test_of_calls_side_by_side_the_last_is_the_one_due_after_all_others():
    """Two calls follow the first; the one due later is the session's last."""
    session = Session("s", (call(), call(0, 3.0), call(0, 1.0)), 50)
    _, asked = driven(made((0.0, session)), told(yes()))
    assert {one.id: one.session_final for one in asked} == {
        "s/0": False,
        "s/1": True,
        "s/2": False,
    }


def test_no_call_is_called_the_last_while_an_earlier_asked_one_is_due_later():
    """A call at 9 s follows the start; the one that is asked last is over before."""
    session = Session("s", (call(), call(None, 9.0), call(0, 1.0)), 50)
    _, asked = driven(made((0.0, session)), told(yes()))
    assert not any(one.session_final for one in asked)


def test_a_refused_caller_comes_again_and_its_clock_does_not_stop():
    """Refused at 0 and 2 s, served at 4 s after 100 ms: 4100 ms for its user."""
    plan = made((0.0, alone("r")), of=IMPATIENT)
    callers, asked = driven(plan, by_attempt(no(), no(), yes()), IMPATIENT)
    (one,) = callers.records()
    assert [a.at_s for a in asked] == pytest.approx([0.0, 2.0, 4.0])
    assert (one.attempts, one.refusals, one.ended) == (3, 2, "answered")
    assert (one.ttft_ms, one.last_ttft_ms) == (4100.0, 100.0)
    assert one.e2e_ms == 4200.0
    assert (one.status, one.reason, one.refused_ms) == (200, None, None)


def test_who_is_refused_in_the_end_waited_for_it():
    """Four tries two seconds apart: no at 6 s."""
    plan = made((1.0, line_of("s", 3)), of=IMPATIENT)
    callers, asked = driven(plan, told(no(status=529)), IMPATIENT)
    first, *rest = callers.records()
    assert len(asked) == 4
    assert (first.ended, first.refused_ms) == ("refused", 6000.0)
    assert (first.attempts, first.refusals) == (4, 4)
    assert (first.status, first.reason) == (529, "busy")
    assert [(one.ended, one.due_s, one.attempts) for one in rest] == [
        ("never_sent", None, 0)
    ] * 2
    assert callers.tally() == {"refused": 1}


def test_retry_after_is_kept_unless_it_is_shorter_than_the_clients_own_wait():
    """Asked to wait 5 s, then 0.5 s: at 0, 5 and 7 s."""
    plan = made((0.0, alone("r")), of=IMPATIENT)
    answers = by_attempt(no(retry_after_ms=5000), no(retry_after_ms=500), yes())
    _, asked = driven(plan, answers, IMPATIENT)
    assert [one.at_s for one in asked] == pytest.approx([0.0, 5.0, 7.0])


def test_the_deaf_come_at_once():
    """Four attempts at one instant, whatever Retry-After says."""
    deaf = client("deaf")
    answer = told(no(retry_after_ms=9000, should_retry=False))
    _, asked = driven(made((3.0, alone("r")), of=deaf), answer, deaf)
    assert [one.at_s for one in asked] == [3.0] * 4


def test_where_a_call_gives_up_alone_its_session_goes_on():
    """The second call is refused; the third comes as if it had been answered."""
    alone_ = client("none", gives_up="call")
    plan = made((0.0, line_of("s", 3)), of=alone_)
    callers, _ = driven(plan, told(yes(), no(), yes()), alone_)
    assert ends(callers) == ["answered", "refused", "answered"]
    assert callers.tally() == {"finished": 1}


def test_what_is_in_flight_beside_a_refusal_goes_on_and_nothing_follows_it():
    """Of two side by side one is refused: the other is answered, nothing follows."""
    session = Session("s", (call(), call(0, 1.0), call(0, 1.0), call(2, 1.0)), 50)
    callers, _ = driven(made((0.0, session)), told(yes(), no(), yes()))
    assert ends(callers) == ["answered", "refused", "answered", "never_sent"]


def test_a_session_that_has_ended_tries_no_other_call_again():
    """One call is out of tries; the refused one beside it does not come again."""
    session = Session("s", (call(), call(None, 7.0)), 50)
    plan = made((0.0, session), of=IMPATIENT)
    callers, asked = driven(plan, told(no()), IMPATIENT)
    assert [one.id for one in asked] == ["s/0", "s/0~1", "s/0~2", "s/0~3", "s/1"]
    assert ends(callers) == ["refused", "refused"]


@pytest.mark.parametrize(
    ("answer", "tries"),
    [
        (Answer(ok=False, status=503, error="full"), 4),
        (Answer(ok=False, status=0, error="no connection"), 4),
        (Answer(ok=False, status=429), 4),
        (Answer(ok=False, status=400, error="bad"), 1),
        (Answer(ok=False, status=200, ttft_ms=5.0, error="died"), 1),
    ],
)
def test_a_failure_is_tried_again_where_the_sdks_do(answer, tries):
    """Server errors and lost connections are, a stream that died is not."""
    plan = made((0.0, alone("r")), of=IMPATIENT)
    callers, asked = driven(plan, told(answer), IMPATIENT)
    (one,) = callers.records()
    assert len(asked) == tries
    assert (one.ended, one.error, one.refusals) == ("failed", answer.error, 0)
    assert one.refused_ms is None


# ------------------------------------------------------------------ hanging up


def hung(**more):
    """A caller has closed."""
    return Answer(ok=False, hung_up=True, status=0, error="client_closed", **more)


def test_a_planned_hang_up_takes_what_it_wanted_and_the_session_goes_on():
    """Four of ten tokens are asked for; the rest is not waited for."""
    session = Session("s", (call(hangs_up_after=4), call(0, 1.0)), 50)
    closed = yes(hung_up=True, output_tokens=4)
    callers, asked = driven(made((0.0, session)), told(closed, yes()))
    first, second = callers.records()
    assert (asked[0].output_tokens, asked[0].hangs_up) == (4, True)
    assert (asked[1].output_tokens, asked[1].hangs_up) == (10, False)
    assert (first.ended, first.served, first.output_tokens) == ("cancelled", True, 4)
    assert second.ended == "answered"
    assert Slo(classes={"": {"ttft_ms": 100}}).good(first)


def test_a_hang_up_after_more_than_there_is_is_none():
    """The answer ends first."""
    session = Session("s", (call(hangs_up_after=10),), 50)
    _, (one,) = driven(made((0.0, session)), told(yes()))
    assert (one.output_tokens, one.hangs_up) == (10, False)


@pytest.mark.parametrize(
    ("name", "last", "fate"),
    [("cancel", "answered", "finished"), ("undo", "never_sent", "undone")],
)
def test_out_of_patience_a_caller_drops_the_call_or_all_of_it(name, last, fate):
    """No token in 30 s: `cancel` asks the next call, `undo` nothing more."""
    of = client(name)
    plan = made((0.0, line_of("s", 2)), of=of)
    callers, asked = driven(plan, told(hung(e2e_ms=30_000.0), yes()), of)
    first, second = callers.records()
    assert asked[0].patience_s == 30.0
    assert (first.ended, first.served, first.ttft_ms) == ("cancelled", False, None)
    assert second.ended == last
    assert callers.tally() == {fate: 1}


def test_patience_counts_from_the_first_attempt_and_ends_retries():
    """Of 5 s of patience 3 are left at the attempt after 2 s, 1 after 4 s."""
    of = client("impatient", patience_s=5.0, **STEADY)
    callers, asked = driven(made((0.0, alone("r")), of=of), told(no()), of)
    assert [one.patience_s for one in asked] == pytest.approx([5.0, 3.0, 1.0])
    assert ends(callers) == ["refused"]


def test_of_a_deadline_is_told_what_is_left_of_it():
    """Ten seconds at first, eight after two, and never less than none."""
    of = client("impatient", first_wait_s=6.0, most_wait_s=6.0, **STEADY)
    plan = made((0.0, alone("r")), of=of)
    _, asked = driven(plan, told(no()), of, deadlines={"": 10.0})
    assert [one.deadline_s for one in asked] == pytest.approx([10.0, 4.0, 0.0, 0.0])


def test_a_class_is_told_and_its_deadline_is_the_one_that_counts():
    """The first prompt of 100 new tokens is long, an answer to what is known short."""
    by_size = lambda tokens: "long" if tokens >= 100 else "short"  # noqa: E731
    own = ((0, 100),)
    session = Session("s", (call(prefix=own), call(0, 1.0, prefix=own)), 50)
    plan = made((0.0, session), classify=by_size)
    callers, asked = driven(
        plan, told(yes()), classify=by_size, deadlines={"long": 9.0}
    )
    assert [(one.slo_class, one.deadline_s) for one in asked] == [
        ("long", 9.0),
        ("short", None),
    ]
    assert [one.new_tokens for one in callers.records()] == [100, 0]


def test_a_policy_and_an_engine_hear_of_a_priority_in_their_own_way():
    """What matters more is higher to a policy, and lower to an engine that sorts."""
    plan = made((0.0, Session("s", (call(),), 50, priority=10)))
    _, (asked,) = driven(plan, told(yes()))
    assert (asked.facts()["priority"], asked.priority) == (10, -10)


# ------------------------------------------------------------------- sent twice


def test_a_call_sent_twice_costs_twice_and_counts_once():
    """The first good answer is the call's; both were computed."""
    session = Session("s", (call(resent_after_s=0.1), call(0, 1.0)), 50)
    callers, asked = driven(made((0.0, session)), told(yes()))
    first, second = callers.records()
    assert [(one.id, one.at_s) for one in asked] == [
        ("s/0", 0.0),
        ("s/0~1", 0.1),
        ("s/1", pytest.approx(1.2)),
    ]
    assert (first.attempts, first.ttft_ms, first.e2e_ms) == (2, 100.0, 200.0)
    assert (first.computed_tokens, first.got_tokens) == (220, 20)
    assert second.ended == "answered"


def test_the_second_sending_may_save_a_refused_call():
    """Refused at 0 s without a retry, answered 300 ms later: 400 ms for its user."""
    session = Session("s", (call(resent_after_s=0.3), call(0, 1.0)), 50)
    callers, _ = driven(made((0.0, session)), by_attempt(no(), yes()))
    first, second = callers.records()
    assert (first.ended, first.refusals, first.attempts) == ("answered", 1, 2)
    assert (first.ttft_ms, first.last_ttft_ms) == (400.0, 100.0)
    assert second.due_s is None or second.due_s > first.ended_s


def test_the_second_sending_is_not_tried_again():
    """Four tries and one more, all refused."""
    session = Session("s", (call(resent_after_s=0.5),), 50)
    plan = made((0.0, session), of=IMPATIENT)
    callers, asked = driven(plan, told(no()), IMPATIENT)
    assert [one.at_s for one in asked] == pytest.approx([0.0, 0.5, 2.0, 4.0, 6.0])
    assert [one.attempt for one in asked] == [0, 1, 2, 3, 4]
    assert callers.records()[0].refused_ms == 6000.0


def test_an_answer_that_comes_after_the_call_is_settled_changes_only_its_cost():
    """The second sending fails after the first was answered."""
    session = Session("s", (call(resent_after_s=0.1),), 50)
    died = Answer(ok=False, ttft_ms=9.0, output_tokens=3, error="died", e2e_ms=900.0)
    callers, _ = driven(made((0.0, session)), by_attempt(yes(), died))
    (one,) = callers.records()
    assert (one.ended, one.error, one.status) == ("answered", None, 200)
    assert one.got_tokens == 13
    assert callers.tally() == {"finished": 1}


# ------------------------------------------------------------- the run's two ends


def test_what_the_run_cuts_off_is_unfinished_or_never_sent():
    """A call under way, a try that did not come, and what was to follow."""
    plan = made((0.0, line_of("s", 2)), (0.0, alone("r")), of=IMPATIENT)
    callers = Callers(plan, IMPATIENT, 1)
    first, other = callers.first()
    assert list(callers.after(other, 0.0, no()))
    cut = Answer(
        ok=False, status=200, ttft_ms=50.0, output_tokens=3, error="unfinished"
    )
    assert list(callers.after(first, 9.0, cut)) == []
    one, following, waiting = callers.records()
    assert (one.ended, one.served, one.got_tokens) == ("unfinished", False, 3)
    assert (following.ended, following.due_s) == ("never_sent", None)
    assert (waiting.ended, waiting.attempts) == ("unfinished", 1)
    assert callers.tally() == {"cut": 2}


def test_who_is_cut_off_before_a_byte_came_does_not_come_again():
    """To its caller that is no lost connection: the run is over."""
    callers = Callers(made((0.0, alone("r")), of=IMPATIENT), IMPATIENT, 1)
    (one,) = callers.first()
    cut = Answer(ok=False, status=0, error="unfinished")
    assert list(callers.after(one, 9.0, cut)) == []
    assert ends(callers) == ["unfinished"]


def test_before_a_target_has_said_so_nothing_was_sent():
    """A run that breaks off knows what it had sent, and how late."""
    callers = Callers(made((0.0, alone("r")), (1.0, alone("q"))), client("none"), 1)
    first, _ = callers.first()
    assert ends(callers) == ["never_sent"] * 2
    callers.sent(first, late_ms=3.0)
    callers.sent(first, late_ms=2.0)
    sent, unsent = callers.records()
    assert (sent.ended, sent.due_s, sent.late_ms) == ("unfinished", 0.0, 3.0)
    assert (unsent.ended, unsent.due_s) == ("never_sent", None)


def test_a_bound_in_time_cuts_sessions_as_they_would_ask():
    """Asked at 0 and 1.2 s; the third call would come at 2.4 s."""
    plan = made((0.0, line_of("s", 3)))
    callers = Callers(plan, client("none"), 1, until_s=2.0)
    asked = list(callers.first())
    asked += callers.after(asked[0], 0.2, yes())
    asked += callers.after(asked[1], 1.4, yes())
    assert [one.id for one in asked] == ["s/0", "s/1"]
    assert callers.tally() == {"cut": 1}


def test_a_call_past_the_bound_takes_none_before_it_along():
    """Two begin with the session, one of them too late; the other's next one comes."""
    session = Session("s", (call(), call(None, 9.0), call(0, 1.0)), 50)
    plan = made((0.0, session))
    callers = Callers(plan, client("none"), 1, until_s=5.0)
    (first,) = callers.first()
    (following,) = callers.after(first, 0.2, yes())
    assert (following.id, following.session_final) == ("s/2", False)
    assert list(callers.after(following, 1.4, yes())) == []
    assert ends(callers) == ["answered", "never_sent", "answered"]
    assert callers.tally() == {"cut": 1}


def test_a_call_that_has_begun_is_tried_on_past_the_bound():
    """Refused at 1 s, where no call begins after 2 s: it comes again at 3 s."""
    plan = made((1.0, alone("r")), of=IMPATIENT)
    callers = Callers(plan, IMPATIENT, 1, until_s=2.0)
    (one,) = callers.first()
    (again,) = callers.after(one, 1.0, no())
    assert again.at_s == 3.0


def test_what_begins_outside_the_window_or_before_the_run_is_not_scored():
    """Of five sessions the window holds two."""
    plan = made(
        (0.0, line_of("under-way", 2, begun_before=True)),
        (10.0, line_of("in", 2)),
        (9.9, line_of("warm-up", 2)),
        (89.9, line_of("in-too", 3)),
        (90.0, line_of("end", 2)),
        scored_s=(10.0, 90.0),
    )
    assert plan.offered == 5
    callers, _ = driven(plan, told(yes()))
    scored = {one.session: one.scored for one in callers.records()}
    assert scored == {
        "under-way": False,
        "warm-up": False,
        "in": True,
        "in-too": True,
        "end": False,
    }


def test_what_was_under_way_at_the_start_is_not_scored_in_a_run_without_warm_up():
    """Its earlier calls were never asked, so that it has no beginning to count from."""
    under_way = line_of("under-way", 2, begun_before=True)
    plan = made((0.0, under_way), (0.0, line_of("new", 3)))
    assert plan.offered == 3
    callers, _ = driven(plan, told(yes()))
    assert {one.session for one in callers.records() if one.scored} == {"new"}


def test_nothing_begins_when_the_run_is_over():
    """A session at the very end is no part of the plan; one that began goes on."""
    plan = made((100.0, alone("late")), (99.0, line_of("s", 2, gap_s=50.0)))
    callers, asked = driven(plan, told(yes()))
    assert [one.at_s for one in asked] == pytest.approx([99.0, 149.2])
    assert [one.session for one in callers.records()] == ["s", "s"]


# ----------------------------------------------------------------------- the plan


def test_plans_that_differ_in_anything_have_other_hashes():
    """Sizes, instants, the client, claims, the window, classes: all are fixed."""
    base = {"begun": [(0.0, line_of("s", 2))], "lasts_s": 60.0, "scored_s": (0.0, 60.0)}
    of = client("patient")
    plans = [
        planned(**base, client=of),
        planned(**{**base, "begun": [(0.5, line_of("s", 2))]}, client=of),
        planned(**{**base, "begun": [(0.0, line_of("s", 3))]}, client=of),
        planned(**{**base, "lasts_s": 61.0}, client=of),
        planned(**{**base, "scored_s": (1.0, 60.0)}, client=of),
        planned(**base, client=client("patient", tries=9)),
        planned(**base, client=of, claims=("gain",)),
        planned(**base, client=of, classify=str),
    ]
    assert len({one.hash for one in plans}) == len(plans)
    assert planned(**base, client=of).hash == plans[0].hash


def test_a_plan_that_makes_no_sense_is_refused_in_one_line():
    """Names that come twice, a request of two calls, a window outside the run."""
    with pytest.raises(ValueError, match="come twice, as 's'"):
        made((0.0, alone("s")), (1.0, alone("s")))
    with pytest.raises(ValueError, match="a request is a session of one call"):
        made((0.0, line_of("s", 2)), noun="request")
    with pytest.raises(ValueError, match="0 to 101 s is no part of 100 s"):
        made((0.0, alone("s")), scored_s=(0.0, 101.0))


# ---------------------------------------------------------------------- properties


def sessions():
    """Sessions of a few calls, some side by side, closed early or sent twice."""

    def planned_call(place):
        return st.builds(
            call,
            after=st.sampled_from([None, *range(place)]),
            gap_s=st.sampled_from([0.0, 0.5, 3.0]),
            hangs_up_after=st.sampled_from([None, None, 4]),
            resent_after_s=st.sampled_from([None, None, 0.2]),
        )

    calls = st.integers(1, 5).flatmap(
        lambda count: st.tuples(*map(planned_call, range(count)))
    )
    return st.lists(
        st.tuples(st.sampled_from([0.0, 1.0, 7.0]), calls), min_size=1, max_size=5
    ).map(
        lambda all_: [
            (at_s, Session(f"s{number}", made_of, 50))
            for number, (at_s, made_of) in enumerate(all_)
        ]
    )


ANSWERS = st.sampled_from(
    [
        yes(),
        yes(ttft_ms=5000.0, e2e_ms=6000.0),
        no(),
        no(retry_after_ms=4000.0),
        no(should_retry=False),
        Answer(ok=False, status=503, error="full"),
        Answer(ok=False, ttft_ms=3.0, error="died"),
        hung(e2e_ms=1000.0),
    ]
)

CLIENT = st.sampled_from([*CLIENTS.values(), client("impatient", gives_up="call")])


def policy(answers):
    """What an attempt gets, by its id alone: the same for every arm that says so."""
    return lambda arrival: answers[sum(map(ord, arrival.id)) % len(answers)]


@settings(deadline=None, max_examples=60)
@given(sessions(), st.lists(ANSWERS, min_size=1, max_size=7), CLIENT)
def test_each_planned_call_has_exactly_one_record(begun, answers, of):
    """Also one that was never sent, and whatever it was answered."""
    callers, asked = driven(made(*begun, of=of), policy(answers), of)
    records = callers.records()
    offered = [f"{s.name}/{place}" for _, s in sorted(begun, key=lambda b: b[0])
               for place in range(len(s.calls))]  # fmt: skip
    assert [one.id for one in records] == offered
    sent = {one.logical_id for one in asked}
    assert {one.id for one in records if one.due_s is not None} == sent
    assert all((one.ended == "never_sent") == (one.due_s is None) for one in records)
    assert not any(one.ended == "unfinished" for one in records)
    assert sum(callers.tally().values()) == len(begun)


@settings(deadline=None, max_examples=60)
@given(sessions(), st.lists(ANSWERS, min_size=1, max_size=7), CLIENT)
def test_what_is_offered_does_not_hang_on_the_answers(begun, answers, of):
    """The bottom line of every share is the plan's."""
    plan = made(*begun, of=of)
    summaries = [
        score(driven(plan, policy(told_), of)[0].records(), Slo(), unloaded_s=None)
        for told_ in (answers, [no()], [yes()])
    ]
    assert {one.offered for one in summaries} == {plan.offered}
    assert {one.work["offered"] for one in summaries} == {summaries[0].work["offered"]}
    assert {one.sessions["offered"] for one in summaries} == {len(begun)}
    assert all(sum(one.ended.values()) == plan.offered for one in summaries)


@settings(deadline=None, max_examples=60)
@given(sessions(), st.lists(ANSWERS, min_size=1, max_size=7), CLIENT)
def test_nobody_tries_more_often_than_it_is_said(begun, answers, of):
    """So many tries a call, and one more where it is sent twice."""
    plan = made(*begun, of=of)
    callers, asked = driven(plan, policy(answers), of)
    twice = {
        f"{session.name}/{place}"
        for _, session in begun
        for place, one in enumerate(session.calls)
        if one.resent_after_s is not None
    }
    for one in callers.records():
        assert one.attempts <= of.tries + (one.id in twice)
        assert one.refusals <= one.attempts
    assert sum(one.attempts for one in callers.records()) == len(asked)
    assert len({one.id for one in asked}) == len(asked)


@settings(deadline=None, max_examples=60)
@given(sessions(), st.lists(ANSWERS, min_size=1, max_size=7), CLIENT, st.integers(0, 3))
def test_arms_with_equal_answers_ask_at_equal_instants(begun, answers, of, seed):
    """Chance belongs to the seed and the call: nothing else moves an attempt."""
    plan = made(*begun, of=of)
    one, other = (driven(plan, policy(answers), of, seed)[1] for _ in range(2))
    assert one == other


@settings(deadline=None, max_examples=60)
@given(sessions(), st.lists(ANSWERS, min_size=1, max_size=7), CLIENT)
def test_a_call_that_fares_otherwise_moves_no_other_sessions_calls(begun, answers, of):
    """Refusing all of one session leaves the others' attempts where they were."""
    plan = made(*begun, of=of)
    alike, hard = (
        policy(answers),
        lambda one: no() if one.logical_id.startswith("s0/") else policy(answers)(one),
    )
    others = [
        [one for one in driven(plan, how, of)[1] if not one.id.startswith("s0/")]
        for how in (alike, hard)
    ]
    assert sorted(others[0], key=lambda a: a.id) == sorted(
        others[1], key=lambda a: a.id
    )


def test_waits_are_spread_upward_and_the_seed_moves_them():
    """Two seconds, up to a quarter longer, of each call its own."""
    of = client("impatient", tries=2)
    plan = made(*((0.0, alone(f"r{n}")) for n in range(50)), of=of)
    waits = [
        [one.at_s for one in driven(plan, told(no()), of, seed)[1] if one.attempt]
        for seed in (1, 2)
    ]
    assert all(2.0 <= at_s <= 2.5 for at_s in waits[0])
    assert len(set(waits[0])) == 50
    assert max(waits[0]) > 2.4
    assert set(waits[0]).isdisjoint(waits[1])
