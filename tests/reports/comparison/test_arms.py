"""Runs become arms and pairs by what their headers declare."""

import pytest
from tests.reports.byhand import kv
from tests.reports.repeats_byhand import arm, repeat

from admitperf.reports.comparison.arms import ArmsError, arms, contest, experiments
from admitperf.reports.comparison.sides import against, of_experiment, two
from admitperf.reports.report import report


@pytest.fixture
def runs(write):
    """Report on lines as one log."""

    def _runs(*lines):
        return report([write(*lines)]).runs

    return _runs


def one_arm(made):
    """The only arm of some runs."""
    (found,) = arms(made)
    return found


def test_grouping_is_declared_and_not_read_from_paths(runs):
    """One file holds two experiments; the headers say which run is whose."""
    made = runs(
        *arm("no_admission", (50, 51), experiment="a"),
        *arm("kv_wall", (60, 61), refused=10, experiment="a"),
        *repeat("kv_wall", "x", 60, refused=10, experiment="b", run="other"),
    )
    found = {
        one.name: {a.label: a.names for a in one.arms} for one in experiments(made)
    }
    assert found["a"] == {"no_admission": ("r1", "r2"), "kv_wall": ("r1", "r2")}
    assert set(found) == {"a", "b"}


def test_runs_of_no_experiment_come_last(runs):
    """Also when they began first."""
    made = runs(
        *repeat("kv_wall", "r1", 60, refused=10, experiment=None),
        *repeat("no_admission", "r2", 60, experiment="late"),
    )
    assert [one.name for one in experiments(made)] == ["late", None]


def test_two_configurations_of_a_policy_are_two_arms(runs):
    """Named by the setting in which they differ."""
    made = runs(
        *repeat("kv_wall", "r1", 60, refused=10, params={"threshold": 0.8, "n": 1}),
        *repeat(
            "kv_wall",
            "r2",
            60,
            refused=10,
            config="k1",
            params={"threshold": 0.9, "n": 1},
        ),
    )
    labels = {one.label for one in arms(made)}
    assert labels == {"kv_wall threshold=0.8", "kv_wall threshold=0.9"}


def test_configurations_that_look_alike_are_told_apart_by_hash(runs):
    """Nothing shown differs, and the hash does."""
    made = runs(
        *repeat("kv_wall", "r1", 60, refused=10, config="aaaabbbbcccc"),
        *repeat("kv_wall", "r2", 60, refused=10, config="ddddeeeeffff"),
    )
    labels = {one.label for one in arms(made)}
    assert labels == {"kv_wall config=aaaabbbb", "kv_wall config=ddddeeee"}


def test_repeats_pair_by_name_whatever_their_order(runs):
    """r2 stands opposite r2."""
    ours = one_arm(runs(*arm("kv_wall", (60, 61), refused=10)))
    theirs = one_arm(
        runs(*repeat("no_admission", "r2", 50), *repeat("no_admission", "r1", 51))
    )
    made = contest(ours, theirs)
    assert made.paired_by == "name"
    assert {(p.arm.header["name"], p.baseline.header["name"]) for p in made.pairs} == {
        ("r1", "r1"),
        ("r2", "r2"),
    }
    assert made.unpaired == ()


def test_without_shared_names_repeats_pair_in_order(runs):
    """And an odd one out is said."""
    ours = one_arm(runs(*repeat("kv_wall", "monday", 60, refused=10)))
    theirs = one_arm(
        runs(*repeat("no_admission", "tuesday", 50), *repeat("no_admission", "wed", 50))
    )
    made = contest(ours, theirs)
    assert (made.paired_by, len(made.pairs)) == ("order", 1)
    assert made.unpaired == (
        "the arms have unequal numbers of repeats: kv_wall 1 and no_admission 2",
    )


def test_missing_and_doubled_repeats_are_named(runs):
    """Each with the arm it is missing in, or stands twice in."""
    ours = one_arm(
        runs(
            *arm("kv_wall", (60, 61), refused=10),
            *repeat("kv_wall", "r2", 62, refused=10, enforce=0.5, run="again"),
        )
    )
    theirs = one_arm(runs(*arm("no_admission", (50, 51, 52))))
    made = contest(ours, theirs)
    assert [pair.name for pair in made.pairs] == ["r1"]
    assert "kv_wall: r2 stands there 2 times" in made.unpaired
    assert "r3 is missing in kv_wall" in made.unpaired


def test_the_baseline_is_the_arm_that_refuses_nothing_by_design(runs):
    """Whichever was named first."""
    found = arms(runs(*arm("no_admission", (50,)), *arm("kv_wall", (60,), refused=9)))
    chosen, others = against(found)
    assert (chosen.label, [one.label for one in others]) == (
        "no_admission",
        ["kv_wall"],
    )
    assert against(found, "kv_wall")[0].label == "kv_wall"


@pytest.mark.parametrize(
    ("policies", "baseline", "why"),
    [
        (("kv_wall", "queue"), None, "no arm refuses nothing by design"),
        (("kv_wall", "no_admission"), "nobody", "no arm is called nobody"),
        (("no_admission",), None, "one arm only"),
    ],
)
def test_without_one_baseline_it_says_which_there_are(runs, policies, baseline, why):
    """And names the arms one could take."""
    lines = [
        line
        for one in policies
        for line in repeat(one, "r1", 50, refused=0 if one == "no_admission" else 9)
    ]
    with pytest.raises(ArmsError, match=why) as caught:
        against(arms(runs(*lines)), baseline)
    assert policies[0] in str(caught.value)


def test_two_paths_are_two_arms(runs):
    """In any order; the baseline stands last."""
    ours = ("a", runs(*arm("kv_wall", (60,), refused=9)))
    theirs = ("b", runs(*arm("no_admission", (50,))))
    for sides in ((ours, theirs), (theirs, ours)):
        assert [one.label for one in two(sides)] == ["kv_wall", "no_admission"]
    assert [one.label for one in two((ours, theirs), "a")] == [
        "no_admission",
        "kv_wall",
    ]


def test_the_same_policy_twice_is_told_apart_by_path(runs):
    """Two baselines: the second is taken."""
    first = ("a", runs(*arm("no_admission", (50,))))
    second = ("b", runs(*arm("no_admission", (51,), run="z")))
    labels = [one.label for one in two((first, second))]
    assert labels == ["no_admission in a", "no_admission in b"]
    assert two((first, second), "a")[1].label == "no_admission in a"


def test_a_path_with_two_arms_is_no_arm(runs):
    """It says which are in there and what to do."""
    both = runs(*arm("no_admission", (50,)), *arm("kv_wall", (60,), refused=9))
    with pytest.raises(ArmsError, match=r"2 arms .*--experiment NAME"):
        two((("a", both), ("b", both)))


def test_an_experiment_is_found_by_name(runs):
    """Its arms, the baseline last, or those that were asked for."""
    made = runs(
        *arm("no_admission", (50,)),
        *arm("kv_wall", (60,), refused=9),
        *arm("queue", (60,), refused=9),
    )
    every = of_experiment(made, "pilot")
    assert [one.label for one in every] == ["kv_wall", "queue", "no_admission"]
    some = of_experiment(made, "pilot", only=["queue"])
    assert [one.label for one in some] == ["queue", "no_admission"]
    with pytest.raises(ArmsError, match=r"names the experiment pilto; found: pilot"):
        of_experiment(made, "pilto")
    with pytest.raises(ArmsError, match="no arm is called quue"):
        of_experiment(made, "pilot", only=["quue"])


def test_a_run_without_a_header_has_a_name_to_go_by(runs):
    """The log says nothing of its policy."""
    assert one_arm(runs(kv(1, 0.95))).label == "unknown policy"
