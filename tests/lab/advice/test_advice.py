"""From the answers to a shape, and from a shape to policies."""

import json

import pytest
from tests.lab.advice import logs
from tests.reports.byhand import decision, header, lost

from admitperf.lab.advice import candidates
from admitperf.lab.advice.advice import advise
from admitperf.policies import load
from admitperf.reports.runs.crowd import FULL
from admitperf.reports.runs.slo import Slo


def names(run):
    """The shapes that follow, by name."""
    return [shape.name for shape in run.shapes]


def tried(run, name):
    """The word for one policy, and why."""
    trial = run.policy(name).trial
    return trial.word, trial.why


def test_a_queue_over_an_empty_cache_asks_for_a_bound_on_the_queue(advised):
    """Memory at half a percent: a threshold on it is INERT, with its distance."""
    run = advised(logs.slots())
    assert names(run) == ["bound on the queue"]
    assert run.shapes[0].candidates[0].name == "queue_depth"
    assert {one.policy for one in run.inert} >= {"kv_threshold", "dual_gate"}
    (reach,) = run.policy("kv_threshold").trial.reaches
    assert (reach.nearest, reach.bound) == (0.005, 0.9)
    assert reach.distance == pytest.approx(0.895)


def test_a_default_out_of_reach_is_inert_although_its_shape_follows(advised):
    """A queue of 24 never passes the default of 32; that is said, not fitted."""
    run = advised(logs.slots())
    assert tried(run, "queue_depth")[0] == "could not have fired"
    (reach,) = run.policy("queue_depth").trial.reaches
    assert (reach.nearest, reach.bound, reach.distance) == (24.0, 32.0, 8.0)
    assert run.to_dict()["fitted"] is False


def test_deadlines_ask_for_a_formal_bound(advised):
    """Before anything else, and alone when every request has one."""
    run = advised(logs.slots(facts=lambda _: {"deadline_s": 5.0}))
    assert names(run) == ["formal bound"]
    assert run.shapes[0].candidates[0].name == "deadline_slack"
    assert "100 of 100" in run.shapes[0].why


def test_deadlines_on_some_leave_the_rest_to_the_next_question(advised):
    """And then two shapes want a policy that has both."""
    some = advised(
        logs.slots(facts=lambda seq: {"deadline_s": 5.0} if seq % 4 == 0 else {})
    )
    assert names(some) == ["formal bound", "bound on the queue", "several in one"]


def test_without_deadlines_a_policy_that_rests_on_them_is_inert(advised):
    """No request can be refused for what it does not carry."""
    run = advised(logs.slots())
    word, why = tried(run, "deadline_slack")
    assert (word, why) == ("could not have fired", "no request carried deadline_s")


def test_a_cache_that_fills_while_requests_wait_asks_for_a_dual_gate(advised):
    """Memory is what they wait for; the gate would have fired on just those."""
    run = advised(logs.memory())
    assert names(run) == ["dual gate"]
    listed = [one.name for one in run.shapes[0].candidates]
    assert listed[0] == "dual_gate"
    assert {"kv_threshold", "kv_headroom"} <= set(listed)
    trial = run.policy("dual_gate").trial
    assert (trial.word, trial.fired.n, trial.fired.of) == ("could have fired", 50, 100)


def test_a_queue_that_memory_does_not_explain_is_asked_about_too(advised):
    """Full on one decision of many with a queue: a dual gate alone would not do."""
    lines = list(logs.slots())
    lines[-2]["signals"]["kv_pressure"] = 0.95
    run = advised(lines)
    assert names(run) == ["dual gate", "bound on the queue", "several in one"]


def test_a_full_cache_without_a_known_queue_asks_for_a_threshold(advised):
    """What a dual gate needs was not supplied."""
    lines = [logs.head()]
    lines += logs.rows(40, lambda seq: logs.row(seq, 3000, kv_pressure=0.95))
    run = advised(lines)
    assert names(run) == ["KV threshold"]
    assert tried(run, "dual_gate") == (
        "not tried",
        "this log does not carry queue_depth",
    )


def test_a_well_used_cache_needs_no_policy(advised):
    """Full and nobody waits; a threshold would refuse what was served."""
    run = advised(logs.reuse())
    assert names(run) == []
    assert "No policy is needed" in run.why_none
    assert run.policy("kv_threshold").trial.fired.n == 100
    assert tried(run, "dual_gate")[0] == "could not have fired"


def test_a_log_without_overload_says_so(advised):
    """Nothing follows, and the usual ones are INERT on it."""
    run = advised(logs.idle())
    assert names(run) == []
    assert "No policy is needed" in run.why_none
    inert = {one.policy for one in run.inert}
    assert inert >= {"kv_threshold", "queue_depth", "dual_gate"}


def test_without_overload_deadlines_ask_for_nothing(advised):
    """A formal bound on requests that are all in time would be INERT."""
    lines = [logs.head()]
    facts = {"deadline_s": 5.0}
    lines += logs.rows(40, lambda seq: logs.row(seq, 200, facts, queue_depth=0))
    assert names(advised(lines)) == []


def test_a_log_that_carries_nothing_says_what_it_lacks(advised):
    """Neither a signal nor an outcome: what to supply is named."""
    run = advised([logs.head(), *(decision(seq) for seq in range(1, 41))])
    assert names(run) == []
    assert run.why_none.startswith("This log cannot say: queue_depth and kv_pressure")


def test_a_policy_that_refused_hides_what_would_have_been(advised):
    """Nothing waits behind it: that is no proof that nothing would."""
    run = advised(logs.refusing())
    assert names(run) == []
    assert "50 were turned away" in run.why_none
    assert "shadow" in run.why_none


def test_without_outcomes_a_queue_is_enough(advised):
    """The shape follows from signals; what cannot be said is said."""
    run = advised(logs.slots(outcomes=False))
    assert names(run) == ["bound on the queue"]
    (overload, *_) = run.questions
    assert any("No outcome is in the log" in one for one in overload.says)


def test_prompts_that_hold_up_the_rest_put_the_backlog_first(advised):
    """TTFT grows with the prompt, and slots are free."""
    run = advised(logs.prefill())
    assert names(run) == ["bound on the queue"]
    assert run.shapes[0].candidates[0].name == "prefill_backlog"


def test_a_queue_before_the_engine_is_bounded_by_its_age(advised):
    """Where queue_depth shows nothing, it is not what to bound."""
    lines = [logs.head(slo=None)]
    signals = {"queue_depth": 0, "oldest_wait_s": 9.0}
    lines += logs.rows(40, lambda seq: logs.row(seq, 300, **signals))
    run = advised(lines)
    assert names(run) == ["bound on the queue"]
    assert run.shapes[0].candidates[0].name == "queue_age"


def test_one_tenant_sessions_and_priorities_each_add_a_shape(advised):
    """Beside the main one, and then one that joins them."""

    def facts(seq):
        session = {"session": f"s{seq // 10}", "priority": seq % 3}
        return {"tenant": "a" if seq % 5 else "b", **session}

    run = advised(logs.slots(facts=facts))
    assert names(run) == [
        "bound on the queue",
        "share of a tenant",
        "whole sessions",
        "shedding by priority",
        "several in one",
    ]


def test_a_watch_is_one_advice_over_all_its_policies(advised):
    """The same samples are not told again for each policy that judged them."""
    run = advised(logs.watched())
    assert names(run) == ["bound on the queue"]
    assert {one.policy for one in run.also} == {"kv_threshold", "queue_depth"}
    assert run.policy("queue_depth").trial.fired.n == 28
    assert tried(run, "deadline_slack")[0] == "not tried"


def test_too_few_decisions_are_no_proof(advised):
    """On five of them it did not fire; that it could not is not claimed."""
    run = advised(logs.slots(5))
    assert tried(run, "kv_threshold")[0] == "did not fire"
    assert run.inert == ()


def test_lost_decisions_are_no_proof(advised):
    """What is not in the log may have been where it would have fired."""
    lines = [*logs.slots(), lost(decision=2)]
    assert tried(advised(lines), "kv_threshold")[0] == "did not fire"
    assert tried(advised(lines), "deadline_slack")[0] == "did not fire"


def test_the_slo_of_the_caller_takes_the_place_of_the_logs(advised):
    """One bound that nobody misses, and one that all do."""
    strict = advised(logs.idle(), Slo.parsed("ttft_ms=1"))
    assert strict.questions[0].answer == "yes"
    assert advised(logs.idle()).questions[0].answer == "no"


def test_each_run_of_several_files_has_its_advice(write):
    """In the order of a report."""
    first = write(logs.slots(), "a.jsonl")
    idle = [{**line, "run": "other"} for line in logs.idle()]
    second = write([{**idle[0], "experiment": "idle"}, *idle[1:]], "b.jsonl")
    named = [names(run) for run in advise([first, second]).runs]
    assert sorted(named) == [[], ["bound on the queue"]]


def test_needs_say_what_the_log_carried(advised):
    """Each signal and fact with its count and denominator."""
    (need,) = advised(logs.slots()).policy("queue_depth").needs
    assert (need.name, need.carried.n, need.carried.of) == ("queue_depth", 100, 100)


def test_a_policy_that_is_not_there_is_named_all_the_same(advised, few_installed):
    """It is tried nowhere and breaks nothing."""
    run = advised(logs.slots())
    assert tried(run, "queue_age") == ("not tried", "it is not installed here")
    assert run.policy("queue_age").missing is not None


def test_it_is_json_whatever_is_installed(advised):
    """Strict, also where a parameter has no default."""
    run = advised(logs.slots(facts=lambda seq: {"session": f"s{seq // 9}"}))
    told = json.loads(json.dumps(run.to_dict(), allow_nan=False))
    assert told["policies"][0]["policy"] == "queue_depth"
    assert "policies" not in run.policy("first_of").defaults


def test_full_is_what_the_policies_call_full():
    """The question asks at the threshold that the policies have."""
    for name in ("kv_threshold", "dual_gate"):
        assert load(name).declared()["threshold"].default == FULL


def test_every_candidate_is_one_of_ours(root):
    """A name that is misspelt would be 'not installed' for ever."""
    ours = (root / "pyproject.toml").read_text(encoding="utf-8")
    kinds = [one for one in vars(candidates).values() if isinstance(one, tuple) and one]
    listed = {one.name for kind in kinds for one in kind}
    assert listed
    assert [name for name in listed if f"\n{name} = " not in ours] == []


def test_notes_stamp_what_was_simulated_or_told(advised):
    """Wherever numbers of such a run are shown."""
    lines = [logs.head(notes={"simulated": True, "oracle": True}), *logs.idle()]
    del lines[1]
    told = advised(lines).to_dict()
    assert (told["simulated"], told["oracle"]) == (True, True)
    plain = advised([header(), decision(1)]).to_dict()
    assert (plain["simulated"], plain["oracle"]) == (False, False)
