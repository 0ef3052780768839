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
    order = ["deadline_slack", "qlm_inspired", "front_door", "chronos_inspired"]
    assert listed(run) == order
    assert "under one half" in run.shapes[0].candidates[-1].why
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


def listed(run, shape=0):
    """The policies of one shape, in order."""
    return [one.name for one in run.shapes[shape].candidates]


def test_a_cache_that_fills_while_requests_wait_asks_for_a_bound_on_it(advised):
    """Memory is what they wait for; both gates only where full alone is healthy."""
    run = advised(logs.memory())
    assert names(run) == ["bound on memory"]
    assert listed(run)[:3] == ["kv_threshold", "kv_headroom", "front_door"]
    assert listed(run)[-1] == "dual_gate"


def test_a_cache_full_of_what_is_used_again_asks_for_a_dual_gate(advised):
    """It would have fired on just those that waited."""
    run = advised(logs.memory(hits=0.8))
    assert names(run) == ["dual gate"]
    assert listed(run)[0] == "dual_gate"
    assert listed(run)[-1] == "kv_threshold"
    assert names(advised(logs.memory(hits=0.1))) == ["bound on memory"]
    trial = run.policy("dual_gate").trial
    assert (trial.word, trial.fired.n, trial.fired.of) == ("could have fired", 50, 100)


def full_on(n):
    """Slots that are taken, and of 100 decisions the last n with a full cache."""
    lines = list(logs.slots())
    for line in lines[len(lines) - 2 * n :: 2]:
        line["signals"]["kv_pressure"] = 0.95
    return lines


def test_a_queue_that_memory_does_not_explain_is_asked_about_too(advised):
    """Full on few of many with a queue: a bound on memory alone would not do."""
    run = advised(full_on(5))
    assert names(run) == ["bound on memory", "bound on the queue", "several in one"]


def test_a_cache_that_was_full_for_a_moment_asks_for_nothing(advised):
    """Under one in twenty is chance."""
    run = advised(full_on(4))
    assert names(run) == ["bound on the queue"]
    assert run.questions[2].answer == "seldom"


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
        "whole sessions",
        "bound on the queue",
        "share of a tenant",
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
    assert told["policies"][0]["policy"] == "session_ledger"
    assert "policies" not in run.policy("first_of").defaults


def test_full_is_what_the_policies_call_full():
    """The question asks at the threshold that the policies have."""
    for name in ("kv_threshold", "dual_gate"):
        assert load(name).declared()["threshold"].default == FULL


def test_one_request_that_met_a_queue_asks_for_nothing(advised):
    """All was good: whatever waited for a moment is no overload."""
    run = advised(logs.calm())
    assert run.questions[0].answer == "no"
    assert run.questions[3].answer == "seldom"
    assert names(run) == []


def test_nothing_follows_from_fewer_than_twenty(advised):
    """However much waited on them."""
    for n, follows in ((19, []), (20, ["bound on the queue"])):
        run = advised(logs.slots(n))
        assert names(run) == follows
    assert advised(logs.slots(19)).why_none.startswith("Too few to say: n 19.")


@pytest.mark.parametrize("name", ["first_of", "front_door", "aimd"])
def test_a_policy_that_refuses_before_an_idle_engine_is_to_be_loosened(advised, name):
    """That is the finding, and no other policy is put in its place."""
    run = advised(logs.tight(policy=name))
    assert names(run) == []
    assert run.questions[0].answer == "this log cannot say"
    assert run.why_none.startswith(f"{name} is too tight: 90 of 100 (90.0 %) were")
    assert "Loosen it" in run.why_none
    said = "kv_pressure at most 0.01, running at most 4"
    assert said in run.why_none
    assert said in run.questions[0].says[0]


@pytest.mark.parametrize(
    "changes", [{"kv_pressure": 0.6}, {"ttft_ms": 9000}, {"n": 19}]
)
def test_it_is_not_too_tight_where_the_engine_was_not_idle(advised, changes):
    """Memory half full, answers too late, or too few to say."""
    why = advised(logs.tight(**changes)).why_none
    assert why is None or "too tight" not in why


def test_what_the_log_s_own_policy_kept_low_is_not_inert(advised):
    """What rests on a fact that no request carried is, all the same."""
    run = advised(logs.tight())
    kept = {one.policy for one in run.kept_low}
    assert kept == {"kv_threshold", "queue_depth", "front_door", "dual_gate"}
    assert {one.policy for one in run.inert} == {"deadline_slack", "tenant_share"}


def test_sessions_come_before_requests(advised):
    """And what bounds requests must not refuse within one: no contradiction."""
    run = advised(logs.agents())
    assert names(run) == ["whole sessions", "bound on the queue", "several in one"]
    assert listed(run) == [
        "session_ledger",
        "thunder_inspired",
        "concur_inspired",
        "front_door",
    ]
    units = [shape.unit for shape in run.shapes]
    assert units[:2] == ["agent-session", "request that is in no session, or opens one"]


def test_the_documented_starting_point_is_in_every_shape():
    """front_door, whatever follows; and it is tried when nothing does."""
    kinds = [one for one in vars(candidates).values() if isinstance(one, tuple) and one]
    assert len(kinds) > 8
    for kind in kinds:
        assert "front_door" in {one.name for one in kind}


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
