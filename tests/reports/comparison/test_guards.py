"""Checks before numbers: each can say no, and says why."""

import pytest
from tests.reports.byhand import decision, kv, lost, outcome
from tests.reports.repeats_byhand import arm, baseline, better, repeat

from admitperf.reports.comparison.comparison import compare
from admitperf.reports.report import report

NUMBERS = {
    "fired": 1, "load": 2, "outcomes": 3, "separate": 4, "instrument": 5,
    "partner": 6, "copies": 7, "slo": 8, "warmup": 9, "cluster": 10, "on time": 11,
    "stated": 12, "known": 13, "one load": 14,
}  # fmt: skip


@pytest.fixture
def compared(write):
    """Compare the lines of an arm with those of a baseline."""

    def _compared(arm_lines, baseline_lines, **limits):
        sides = [
            report([write(*lines, name=f"{name}.jsonl")], **limits).runs
            for name, lines in (("arm", arm_lines), ("base", baseline_lines))
        ]
        return compare(*sides)

    return _compared


def asked(made, name):
    """One check, and its sentences as one text."""
    check = made.checks[NUMBERS[name] - 1]
    assert check.number == NUMBERS[name]
    return check, " ".join(check.says)


def void_by(made):
    """The numbers of the checks that failed, when that made it void."""
    assert (made.verdict == "void") == bool(made.failed)
    return [check.number for check in made.failed]


def test_sound_arms_pass_every_check_that_can_be_asked(compared):
    """Nothing is no; what the logs do not carry cannot be asked."""
    made = compared(better(), baseline())
    assert [check.answer for check in made.checks[:9]] == ["ok"] * 9
    assert {check.answer for check in made.checks[9:]} == {"ok", "cannot be asked"}
    assert made.verdict == "better"
    assert made.against_claim() == ()


# ------------------------------------------------------------------------ fired


def test_a_policy_that_never_fired_makes_no_claim(compared):
    """One INERT repeat is enough; it says which, and how near it came."""
    lines = [*better(5), *repeat("queue_bound", "r6", 90)]
    made = compared(lines, baseline())
    check, said = asked(made, "fired")
    assert (check.answer, void_by(made)) == ("no", [1])
    assert "queue_bound r6 is INERT: It ran and never answered" in said
    assert "kv_pressure >= 0.9 was never true (0.5 to 0.5, n 100)" in said
    assert "r1 LIVE (20 of 100 refused)" in said


def test_a_policy_that_only_made_requests_wait_fired(compared):
    """No repeat has a refusal, and each held 20 of 100."""
    check, said = asked(compared(better(refused=0, held=20), baseline()), "fired")
    assert check.answer == "ok"
    assert "queue_bound: LIVE in 6 repeats, refused 0 of 600, held 120." in said
    lines = [*better(5, refused=0, held=20), *repeat("queue_bound", "r6", 90, held=7)]
    _, said = asked(compared(lines, baseline()), "fired")
    assert "r1 LIVE (0 of 100 refused, 20 held)" in said
    assert "r6 LIVE (0 of 100 refused, 7 held)" in said


def test_a_log_that_cannot_say_is_another_failure(compared):
    """UNKNOWN: cannot be asked, void all the same, with a message of its own."""
    blind = {"reason": "signal_absent", "blind": "signal_absent", "why": "no kv"}
    rest = [decision(n, run="queue_bound-r6", **blind) for n in range(101, 120)]
    made = compared([*better(), *rest], baseline())
    check, said = asked(made, "fired")
    assert (check.answer, check.failed, made.verdict) == (
        "cannot be asked",
        True,
        "void",
    )
    assert "queue_bound r6 is UNKNOWN: It decided blind on 19 of 119" in said
    assert "INERT" not in said
    assert "cannot be asked" in made.against_claim()[0]


def test_a_shadow_governed_nothing(compared):
    """What would have fired did not."""
    lines = repeat("queue_bound", "r1", 50, enforce=0.0)
    free = {"enforced": False, "admitted": True, "status": 200}
    lines += [
        {**kv(n, 0.95, run="queue_bound-r1"), **free, "facts": {}}
        for n in range(101, 120)
    ]
    made = compared(lines, baseline(1))
    check, said = asked(made, "fired")
    assert check.answer == "no"
    assert "is SHADOW: " in said


def test_a_baseline_that_refused_is_none(compared):
    """It calls itself one, and the runs say otherwise."""
    made = compared(
        better(), [*baseline(5), *repeat("no_admission", "r6", 30, refused=9)]
    )
    check, said = asked(made, "fired")
    assert check.answer == "no"
    assert "no_admission r6 is LIVE" in said


def test_refusals_that_were_not_enforced_do_not_count(compared):
    """A split that happened to govern none of them."""
    lines = repeat("queue_bound", "r1", 80, refused=20)
    free = {"enforced": False, "admitted": True, "status": 200}
    lines = [
        {**line, **free} if line.get("verdict") == "defer" else line for line in lines
    ]
    made = compared(lines, baseline(1))
    assert "None of its refusals was enforced." in asked(made, "fired")[1]


def test_below_capacity_nothing_need_fire(compared):
    """The runs state their load: an arm that never fired can be equivalent."""
    notes = {"load": 0.8}
    goods = (95, 96, 94, 95, 97, 96)
    made = compared(
        arm("kv_wall", goods, notes=notes), arm("no_admission", goods, notes=notes)
    )
    assert asked(made, "fired")[0].answer == "ok"
    assert made.verdict == "equivalent"
    for over in ({"load": 1.2}, {"load": 0.8, "peak_load": 2.0}, None):
        made = compared(
            arm("kv_wall", goods, notes=over), arm("no_admission", goods, notes=over)
        )
        assert void_by(made) == [1]


def test_two_baselines_show_the_noise(compared):
    """A against A is a fair question, and nothing can fire."""
    other = arm("no_admission", (51, 50, 49, 52, 50, 52))
    made = compared(_renamed(other), baseline())
    assert asked(made, "fired")[0].answer == "ok"
    assert "the noise alone" in asked(made, "fired")[1]


def _renamed(lines):
    """The same lines under run ids of their own."""
    names = {}
    for line in lines:
        if line["k"] == "run":
            names["now"] = f"again-{line['name']}"
        yield {**line, "run": names["now"]}


# ------------------------------------------------------------------------- load


def test_unequal_load_makes_no_claim(compared):
    """The generator fell behind in one arm: 14.0 and 9.1 requests a second."""
    slow = arm("no_admission", (50, 52, 49), every_us=109_890)
    made = compared(better(3, every_us=71_429), slow)
    check, said = asked(made, "load")
    assert (check.answer, void_by(made)) == ("no", [2])
    assert "r1: the load differs by 35 %: 14.0 and 9.1 requests/s" in said
    assert all("tail" not in one and "oodput" not in one for one in made.says)


@pytest.mark.parametrize(("offered", "answer"), [(95, "ok"), (94, "no")])
def test_five_percent_is_the_tolerance(compared, offered, answer):
    """Over the larger of the two; at the bound it passes."""
    goods = (50, 52, 49)
    made = compared(
        better(3), arm("no_admission", goods, offered=offered, every_us=100_000)
    )
    assert asked(made, "load")[0].answer == answer


def test_sizes_are_load_too(compared):
    """The same requests a second, twice as long."""
    short, long = {"input_tokens": 500}, {"input_tokens": 1000}
    made = compared(_signalled(better(3), short), _signalled(baseline(3), long))
    said = asked(made, "load")[1]
    assert "by 50 %: 500 and 1000 input_tokens p50" in said


def _signalled(lines, signals):
    """The same lines, with more signals on each decision."""
    for line in lines:
        decided = line["k"] == "decision"
        yield {**line, "signals": line["signals"] | signals} if decided else line


def test_one_plan_is_one_load(compared):
    """The hash decides where both have it: a closed loop may run faster."""
    plan = {"plan": "0f3c"}
    made = compared(
        better(3, notes=plan),
        arm("no_admission", (50, 52, 49), every_us=90_000, notes=plan),
    )
    check, said = asked(made, "load")
    assert (check.answer, said) == ("ok", "3 pairs with one plan each; r1: 0f3c.")
    assert (
        "r1: one plan, and yet the load differs by 10 %: 10.0 and 11.1 requests/s: a"
        " closed loop, or a generator that fell behind."
    ) in made.notices
    made = compared(better(3, notes=plan), baseline(3, notes={"plan": "beef"}))
    assert "the plans differ: 0f3c and beef" in asked(made, "load")[1]


def test_retries_without_ids_are_named_as_load(compared):
    """Attempts differ because refused clients came back."""
    made = compared(better(3, offered=130), baseline(3))
    assert "pass logical_id" in asked(made, "load")[1]


# ---------------------------------------------------------------- the other three


def test_missing_outcomes_make_no_claim(compared):
    """Two of eighty are missing: 97.5 %."""
    lines = better()
    dropped = [n for n, line in enumerate(lines) if line["k"] == "outcome"][:2]
    lines = [line for n, line in enumerate(lines) if n not in dropped]
    made = compared(lines, baseline())
    assert void_by(made) == [3]
    assert "queue_bound r1: 78 of 80 (97.5 %)" in asked(made, "outcomes")[1]


def test_a_policy_that_lets_nobody_in_has_goodput_0(compared):
    """It has no outcomes to miss, and everyone it refused counts."""
    made = compared(arm("wall", (0,) * 6, refused=100), baseline())
    assert asked(made, "outcomes")[0].answer == "ok"
    assert [one.goodput.n for one in made.arm.repeats] == [0] * 6
    assert made.verdict in ("worse", "void")


def test_arms_that_do_not_separate_are_not_void(compared):
    """The fourth check is what the verdict is about."""
    made = compared(arm("kv_wall", (51, 53, 48, 52, 50, 52), refused=10), baseline())
    check, said = asked(made, "separate")
    assert (check.answer, check.voids) == ("no", False)
    assert "holds 0" in said
    assert made.verdict != "void"


@pytest.mark.parametrize(("pairs", "said"), [(1, "1 pair:"), (2, "2 pairs:")])
def test_with_one_or_two_pairs_separation_is_not_asked(compared, pairs, said):
    """Whatever the difference."""
    made = compared(better(pairs), baseline(pairs))
    check, told = asked(made, "separate")
    assert check.answer == "cannot be asked"
    assert told.startswith(said)
    assert made.verdict == "inconclusive"


def test_lost_records_make_no_claim(compared):
    """One in two hundred is over one in a thousand."""
    gone = {**lost(decision=1), "run": "queue_bound-r2"}
    made = compared([*better(), gone], baseline())
    assert void_by(made) == [5]
    assert (
        "queue_bound r2: 1 of 181 (0.6 %) records lost" in asked(made, "instrument")[1]
    )


def test_blind_decisions_make_no_claim(compared):
    """Two of a hundred and two."""
    blind = {"reason": "signal_stale", "blind": "signal_stale", "why": "old"}
    more = []
    for n in (101, 102):
        more.append(decision(n, run="no_admission-r1", **blind))
        more.append(outcome(n, run="no_admission-r1"))
    made = compared(better(), [*baseline(), *more])
    assert 5 in void_by(made)
    assert "2 of 102 (2.0 %) decisions made blind" in asked(made, "instrument")[1]


def test_one_plan_and_unequal_counts_is_unequal_load(compared):
    """A log that lacks its second half faced the same plan and not the same load."""
    plan = {"plan": "0f3c"}
    short = repeat("kv_wall", "r1", 40, refused=10, offered=60, notes=plan)
    check, said = asked(compared(short, baseline(1, notes=plan)), "load")
    assert check.answer == "no"
    assert "one plan, and the load differs by 40 %" in said
