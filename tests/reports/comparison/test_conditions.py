"""What else can void a comparison, of what logs can be asked."""

import re

import pytest
from tests.reports.byhand import call, decision, kv
from tests.reports.comparison.test_guards import asked, compared, void_by
from tests.reports.repeats_byhand import BASELINE, BETTER, arm, baseline, better, repeat

__all__ = ["compared"]


def test_a_repeat_without_partner_voids(compared):
    """It is repeated in every arm, or left out of every arm."""
    made = compared(better(5), baseline(6))
    check, said = asked(made, "partner")
    assert (check.answer, void_by(made)) == ("no", [6])
    assert said.startswith("r6 is missing in queue_bound.")
    assert "Repeat it in every arm, or leave it out" in said


def test_a_copy_is_no_repeat(compared):
    """Six runs with the same numbers have no spread."""
    lines = better(5)
    copied = [
        {**line, "run": "copy", **({"name": "r6"} if line["k"] == "run" else {})}
        for line in lines
        if line["run"] == "queue_bound-r5"
    ]
    made = compared([*lines, *copied], baseline())
    check, said = asked(made, "copies")
    assert (check.answer, void_by(made)) == ("no", [7])
    assert re.search(r"queue_bound: r[56] has the numbers of r[56]\.", said)


def test_a_run_in_both_arms_is_no_comparison(compared):
    """The same log, given twice."""
    made = compared(better(), better())
    assert "r1 of queue_bound stands in both arms." in asked(made, "copies")[1]
    assert 7 in void_by(made)


def test_arms_are_judged_by_one_slo(compared):
    """Goodput under 1500 ms is not goodput under 3000 ms."""
    made = compared(better(slo={"ttft_ms": 3000}), baseline())
    assert void_by(made) == [8]
    said = asked(made, "slo")[1]
    assert "ttft_ms 3000 in queue_bound r1 and 5 more; ttft_ms 1500 in" in said


def test_arms_count_the_same_thing(compared):
    """Calls in one and attempts in the other."""
    calls = [
        {**line, "facts": {"logical_id": f"c{line['seq']}"}}
        if line["k"] == "decision"
        else line
        for line in better()
    ]
    made = compared(calls, baseline())
    assert 8 in void_by(made)
    said = asked(made, "slo")[1]
    assert "calls in queue_bound r1 and 5 more; attempts in no_admission r1" in said


def test_without_an_slo_ok_alone_counts(compared):
    """It is said."""
    made = compared(better(slo=None), baseline(slo=None))
    assert asked(made, "slo")[1].startswith("No SLO is declared: ok alone counts")


@pytest.mark.parametrize(
    ("ours", "theirs", "said"),
    [
        ({"model": "a"}, {"model": "b"}, "model differs: a in queue_bound r1"),
        ({"simulated": True}, {"simulated": False}, "simulated differs: True in"),
        ({"client": "polite"}, {"client": "greedy"}, "client differs: polite in"),
    ],
)
def test_noted_conditions_must_be_equal(compared, ours, theirs, said):
    """The deployment is the constant, the policy the variable."""
    made = compared(better(notes=ours), baseline(notes=theirs))
    assert void_by(made) == [10]
    assert said in asked(made, "cluster")[1]


def test_what_only_one_run_notes_is_no_difference(compared):
    """None means not known."""
    made = compared(better(notes={"model": "a"}), baseline(notes={"engine": "b"}))
    check, said = asked(made, "cluster")
    assert check.answer == "ok"
    assert said == "Noted and the same: model, engine."


def test_a_load_that_is_not_the_stated_multiple_voids(compared):
    """10 a second at a capacity of 10 is no 1.5x."""
    notes = {"load": 1.5, "capacity_per_s": 10}
    made = compared(better(notes=notes), baseline(notes=notes))
    said = asked(made, "stated")[1]
    assert void_by(made) == [12]
    assert "queue_bound r1: 1.00x of capacity, stated 1.5x." in said
    right = {"load": 1.5, "capacity_per_s": 6.6}
    made = compared(better(notes=right), baseline(notes=right))
    assert asked(made, "stated")[0].answer == "ok"


def test_requests_sent_late_void(compared):
    """Half a second late is another load than planned."""
    late = [
        {**line, "facts": {"late_ms": 500.0 if line["seq"] > 90 else 1.0}}
        if line["k"] == "decision"
        else line
        for line in baseline()
    ]
    made = compared(better(), late)
    check, said = asked(made, "on time")
    assert (check.answer, void_by(made)) == ("no", [11])
    assert "no_admission r1: the latest hundredth was sent 500 ms late or more" in said


def test_signals_a_policy_compares_must_be_known(compared):
    """Five of a hundred decisions could not evaluate the gate."""
    lines = better(5)
    run = "queue_bound-r6"
    last = repeat("queue_bound", "r6", BETTER[5] - 5, refused=20, offered=95)
    blank = [
        decision(
            n,
            run=run,
            gates=[["kv_pressure", None, ">=", 0.9, None]],
            t_us=last[1]["t_us"] + n * 100_000,
        )
        for n in range(96, 101)
    ]
    made = compared([*lines, *last, *blank], baseline())
    check, said = asked(made, "known")
    assert check.answer == "no"
    assert (
        "queue_bound r6: kv_pressure >= 0.9 could not be evaluated on 5 of 100" in said
    )


def test_a_policy_without_gates_cannot_be_asked(compared):
    """It compares nothing that was recorded."""
    bare = [
        {**line, "gates": []} if line["k"] == "decision" else line for line in better()
    ]
    made = compared(bare, baseline())
    assert asked(made, "known")[0].answer == "cannot be asked"
    assert made.verdict == "better"


def test_the_samples_of_the_byhand_arms_are_what_they_say():
    """The builder keeps its word: so many refused, so many good."""
    run = repeat("queue_bound", "r1", BETTER[0], refused=20)
    assert sum(line.get("verdict") == "defer" for line in run) == 20
    assert sum(line["k"] == "outcome" and line["ttft_ms"] < 1500 for line in run) == 70
    assert len(arm("no_admission", BASELINE)) == 6 * (1 + 100 + 100)
    assert kv(1, 0.95)["verdict"] == "defer"


# ------------------------------------------------------------------------- plans


def planned_arm(policy, load, *, asked=100, name="r", **changes):
    """Six repeats whose plan offers 100 calls, of which so many were asked."""
    lines = []
    for n in range(1, 7):
        notes = {"plan": f"p{n}", "load": load, **changes}
        run = f"{policy}-{name}{n}-{load}"
        facts = {"notes": notes, "run": run}
        lines += repeat(policy, f"{name}{n}", 50 + n, offered=asked, **facts)
        for place in range(100):
            ended = "answered" if place < asked else "never_sent"
            ttft_ms = 400 + n if place < 40 + n else 9000
            said = {"ttft_ms": ttft_ms} if ended == "answered" else {}
            lines.append(call(place, ended, run=run, slo_class="", **said))
    return lines


def test_one_plan_is_one_load_however_much_of_it_was_asked(compared):
    """A refusal ends a session: fewer are asked, and as many are offered."""
    made = compared(
        planned_arm("queue_bound", 1.2, asked=60), planned_arm("no_admission", 1.2)
    )
    assert asked(made, "load")[0].answer == "ok"
    assert made.arm.repeats[0].unit == "planned calls"
    assert {one.goodput.of for one in made.arm.repeats} == {100}
    assert asked(made, "one load")[0].answer == "ok"


def test_several_loads_are_no_comparison(compared):
    """What helps at one can harm at another; the benchmark's own compare asks apart."""
    both = [
        planned_arm(policy, 0.8, name="x0.8-b")
        + planned_arm(policy, 1.2, name="x1.2-b")
        for policy in ("queue_bound", "no_admission")
    ]
    made = compared(*both)
    check, said = asked(made, "one load")
    assert (made.verdict, check.answer) == ("void", "no")
    assert said == (
        "The runs are at several loads (0.8, 1.2): `admitperf bench compare pilot` asks"
        " them apart."
    )
