"""A whole benchmark compared."""

import json
from dataclasses import replace

import pytest
from tests.bench.design.experiments import message

from admitperf.bench.design.comparison import NO_NOISE, NOISE_FLOOR, compare
from admitperf.bench.design.measures import METRICS
from admitperf.bench.design.results import ResultsError


@pytest.fixture(scope="module")
def verdicts(every):
    """All arms, compared once."""
    return compare(every)


def named(verdicts, arm):
    """What was found of one arm."""
    return next(one for one in verdicts.arms if one.arm == arm)


def test_each_arm_gets_its_verdict(verdicts):
    """One of each kind."""
    assert {one.arm: one.verdict for one in verdicts.arms} == {
        "bounded": "better",
        "inert": "void",
        "refuses_all": "worse",
        "harms_below": "inconclusive",
        "no_admission_again": "equivalent",
    }
    harm = named(verdicts, "harms_below")
    assert harm.headline == "better above capacity, harm below it"


def test_an_aa_arm_is_the_noise_floor_and_claims_nothing(verdicts):
    """It stands in no family of gains."""
    again = named(verdicts, "no_admission_again")
    assert again.twin
    assert again.headline.startswith(NOISE_FLOOR)
    assert again.gain.statistics.family_p is None
    assert named(verdicts, "bounded").gain.statistics.family == 4


def test_an_arm_of_the_baselines_policy_is_an_aa_arm_by_any_name(every, only):
    """What its manifest says counts."""
    made = only("no_admission_again")
    runs = tuple(
        replace(run, arm="other") if run.arm != "no_admission" else run
        for run in made.runs
    )
    design = replace(made.design, arms=("no_admission", "other"))
    (found,) = compare(replace(made, design=design, runs=runs)).arms
    assert found.twin


def test_always_inert_and_aa_each_fail_for_their_own_reason(only):
    """None of the three can pass as a win."""
    said = {
        arm: list(compare(only(arm)).against("better"))
        for arm in ("refuses_all", "inert", "no_admission_again")
    }
    worse, harm, everything = said["refuses_all"]
    assert worse == "refuses_all: goodput is worse above capacity: -0.400"
    assert "harm is shown below capacity" in harm
    assert everything == "refuses_all: it refused everything"
    assert said["inert"][0].startswith("inert: void: check 3, the policy fired above")
    assert "could not have fired" in said["inert"][0]
    assert said["no_admission_again"] == [f"no_admission_again: {NOISE_FLOOR}"]
    assert list(compare(only("bounded")).against("better")) == []


def test_beside_other_arms_an_aa_arm_is_not_asked(only):
    """A sound policy passes with its noise floor beside it."""
    made = compare(only("bounded", "no_admission_again"))
    assert list(made.against("better")) == []
    assert list(made.against("better", ["no_admission_again"])) != []


def test_the_check_can_be_asked_of_some_arms(verdicts):
    """Others may lose."""
    assert list(verdicts.against("better", ["bounded"])) == []
    assert list(verdicts.against("gain", ["bounded", "harms_below"])) == []
    assert list(verdicts.against("no-harm", ["harms_below"])) != []


def test_what_it_refused_is_said_of_what_was_offered(verdicts):
    """Never as a merit."""
    above, below = named(verdicts, "bounded").says
    share = "(16.7 %) attempts, and in the end"
    assert above == (
        f"Above capacity it refused 120 of 720 {share} 120 of 720 (16.7 %) calls"
        " offered."
    )
    assert below.startswith(f"Below capacity it refused 60 of 360 {share} 60 of 360")
    assert "serves nobody" in named(verdicts, "refuses_all").says[0]


def test_a_loss_with_a_shorter_tail_is_no_win(only, changed):
    """Those served were served fast; most were not."""
    fast = {"ttft_served_ms": {"p95": 40}}
    made = changed(
        only("refuses_all"), lambda run: run.arm == "refuses_all", None, fast
    )
    said = " ".join(compare(made).arms[0].says)
    assert "It lost although the p95" in said
    assert "That is no win." in said


def test_the_first_half_shows_how_goodput_hangs_on_the_horizon(only, changed):
    """Mean over the loads above capacity."""
    halves = {"no_admission": 0.8, "bounded": 0.9}
    made = only("bounded")
    for arm, good in halves.items():
        half = {"half": {"goodput": good}}
        made = changed(made, lambda run, arm=arm: run.arm == arm, None, half)
    assert "is +0.100" in compare(made).arms[0].says[-1]


def test_a_partial_experiment_shows_numbers_and_claims_nothing(only):
    """Ended early: the cells are there, the verdict is void."""
    made = only("bounded")
    runs = tuple(run for run in made.runs if run.block <= 3)
    found = compare(replace(made, runs=runs))
    assert found.partial
    assert found.arms[0].verdict == "void"
    assert found.arms[0].gain.statistics.n == 3
    assert "void: check 1" in next(found.against("better"))


def test_another_metric_is_compared_by_its_own_direction(only):
    """Lower waste is a gain."""
    found = compare(only("bounded"), "wasted_share")
    assert found.better == METRICS["wasted_share"].better == "lower"
    assert found.arms[0].gain.statistics.mean == pytest.approx(0.35, abs=0.001)
    assert found.arms[0].verdict == "better"


def test_another_metric_than_the_declared_one_is_exploratory(only):
    """It was chosen with the numbers on the table: no check passes on it."""
    assert list(compare(only("bounded")).against("gain")) == []
    made = compare(only("bounded"), "wasted_share")
    assert (made.exploratory, made.declared) == (True, "goodput")
    assert made.arms[0].headline.startswith("exploratory: better above")
    (said,) = made.against("gain")
    assert said == (
        "bounded: exploratory: the claims were set on goodput, and wasted_share was"
        " chosen afterwards"
    )
    assert not compare(only("bounded"), "goodput").exploratory


def test_a_metric_that_a_later_start_declared_is_exploratory(only):
    """What was planned first counts, and the design was changed."""
    made = only("bounded")
    made = replace(made, stated={**made.stated, "metric": "wasted_share"})
    found = compare(made)
    assert (found.metric, found.exploratory) == ("wasted_share", True)
    assert found.arms[0].verdict == "void"


def test_sentences_name_the_metric(only):
    """Not goodput, when something else was compared."""
    made = compare(only("refuses_all"), "wasted_share")
    said = [*made.against("gain"), *made.plan, *made.arms[0].says]
    assert "refuses_all: wasted share is worse above capacity: -0.400" in said
    assert "wasted share falls against no_admission" in made.plan[0]
    assert not [one for one in said if "goodput" in one and "set on" not in one]


def test_a_cost_that_halved_is_better_in_any_currency(only, changed):
    """The margin is a part of the baseline's mean."""
    made = only("bounded")
    first = {**made.stated["planned_first"], "metric": "cost_per_good"}
    stated = {**made.stated, "metric": "cost_per_good", "planned_first": first}
    made = replace(made, stated=stated)
    for name, cost in (("bounded", 0.0005), ("no_admission", 0.001)):
        for block in range(1, 7):
            own = {"cost_per_good": cost * (1 + 0.01 * block)}
            made = changed(
                made,
                lambda r, name=name, block=block: (r.arm, r.block) == (name, block),
                summary=own,
            )
    found = compare(made)
    assert (found.share, found.exploratory) == (False, False)
    assert found.arms[0].verdict == "better"
    assert found.arms[0].gain.statistics.margin == pytest.approx(1.035e-5)
    assert "no loss of 1 % of the baseline's mean or more" in " ".join(found.plan)


def test_an_aa_pair_of_a_cost_is_held_to_a_part_of_it(only, changed):
    """A tenth dearer is no noise, though it is far below 0.01."""
    made = only("bounded", "no_admission_again")
    for run in made.runs:
        dearer = 1.1 if run.arm == "no_admission_again" else 1.0
        cost = 0.001 * (dearer + 0.001 * run.block * dearer)
        made = changed(
            made, lambda r, name=run.name: r.name == name, None, {"cost_per_good": cost}
        )
    check = compare(made, "cost_per_good").checks[14]
    assert check.answer == "no"
    assert "no_admission_again" in check.voids


def test_arms_that_were_planned_and_dropped_stay_in_the_family(only):
    """And the design is no longer the one that was planned: void."""
    made = only("bounded")
    arms = [*made.stated["planned_first"]["arms"], "b", "c"]
    first = {**made.stated["planned_first"], "arms": arms}
    (found,) = compare(
        replace(made, stated={**made.stated, "planned_first": first})
    ).arms
    assert found.gain.statistics.family == 3
    assert found.verdict == "void"


def test_a_simulated_aa_arm_without_any_difference_shows_no_noise(only, changed):
    """It is no floor, and no equivalence was shown."""
    made = changed(only("no_admission_again"), lambda _: True, None, {"goodput": 0.5})
    found = compare(made)
    (arm,) = found.arms
    assert (arm.identical, arm.verdict, arm.headline) == (
        True,
        "inconclusive",
        NO_NOISE,
    )
    assert list(found.against("better")) == [f"no_admission_again: {NO_NOISE}"]


def test_refusing_is_no_metric():
    """Nothing that grows by refusing may be claimed."""
    assert not [name for name in METRICS if "refus" in name]


@pytest.mark.parametrize(
    ("metric", "said"),
    [
        ("refused_share", "no metric is called refused_share: there are goodput"),
        ("session_goodput", "no block has session_goodput in two arms"),
    ],
)
def test_a_metric_that_is_not_there_is_one_line(only, metric, said):
    """Not known, or without a number in any run."""
    with pytest.raises(ResultsError) as raised:
        compare(only("bounded"), metric)
    assert said in message(raised)


@pytest.mark.parametrize(
    ("kept", "said"),
    [
        (("no_admission",), "runs of the baseline only"),
        (("bounded",), "no run of the baseline no_admission"),
    ],
)
def test_one_arm_alone_is_one_line(only, kept, said):
    """There is nothing to compare."""
    made = only("bounded")
    runs = tuple(run for run in made.runs if run.arm in kept)
    with pytest.raises(ResultsError) as raised:
        compare(replace(made, runs=runs))
    assert said in message(raised)


def test_runs_without_the_metric_are_a_notice(only, changed):
    """And their blocks enter no claim."""
    made = changed(
        only("bounded"),
        lambda run: (run.arm, run.load, run.block) == ("bounded", 1.2, 2),
        summary={"goodput": None},
    )
    found = compare(made)
    assert found.notices == ("1 run without goodput, such as bounded x1.2-b2.",)
    assert found.arms[0].gain.lacking == (2,)


def test_an_unsettled_start_is_a_notice(only, changed):
    """More runs below capacity with a trend than chance gives."""
    made = only("bounded")
    assert compare(made).notices == ()
    trend = {"trend": {"p": 0.001}}
    made = changed(made, lambda run: run.load < 1 and run.block <= 3, trend)
    assert "a trend in 6 of 12 runs at 0.8x or less" in compare(made).notices[0]


def test_curves_are_means_over_blocks_with_the_baseline_last(verdicts, every):
    """As the summaries have them."""
    assert [one.arm for one in verdicts.curves][-1] == "no_admission"
    curve = verdicts.curves[0]
    assert [point.load for point in curve.points] == [0.8, 1.2, 1.5]
    values = [r.summary["goodput"] for r in every.of("bounded") if r.load == 1.2]
    assert curve.points[1].mean == pytest.approx(sum(values) / len(values))
    assert curve.points[1].n == 6
    assert curve.points[1].interval.low < curve.points[1].mean


def test_it_is_plain_json(verdicts):
    """Strictly, and with the answers of each claim."""
    plain = json.loads(json.dumps(verdicts.to_dict(), allow_nan=False))
    bounded = plain["arms"][0]
    assert bounded["gain"]["rises"] is True
    assert bounded["no_harm"]["not_worse"] is True
