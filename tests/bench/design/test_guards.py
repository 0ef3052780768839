"""Each check of a benchmark: what makes it no, whom it voids, what it says."""

from dataclasses import replace

import pytest

from admitperf.bench.design.claims import Cell
from admitperf.bench.design.guards import guards
from admitperf.bench.design.results import Experiment

NAMES = (
    "every planned run is there",
    "one plan in each block",
    "the policy fired above capacity",
    "calls were sent when they were due",
    "the load is the stated multiple of capacity",
    "the capacity stayed what it was",
    "the signals it reads moved and were known",
    "the logs are whole",
    "the engine did not restart",
    "the engine did not drift",
    "one warm-up, one window",
    "one client",
    "few errors but refusals",
    "one SLO, from unloaded latency",
    "an A/A pair shows noise alone",
    "the design is the one that was planned first",
    "the numbers follow from the lines",
    "what it refused counts",
)


def asked(experiment, number, cells=()):
    """One check of an experiment."""
    found = guards(experiment, cells)
    assert tuple(one.name for one in found) == NAMES
    assert [one.number for one in found] == list(range(1, len(NAMES) + 1))
    return found[number - 1]


def test_a_sound_experiment_passes(only):
    """Nothing is void; an A/A pair was not run, and no calls were written down."""
    found = guards(only("bounded", "harms_below"), ())
    unasked = {one.number for one in found if one.answer == "cannot be asked"}
    assert unasked == {15, 17, 18}
    assert {one.answer for one in found if one.number not in unasked} == {"ok"}
    assert {one.voids for one in found} == {()}


def arm(name):
    """The runs of an arm."""
    return lambda run: run.arm == name


def block(name, load, number):
    """One run."""
    return lambda run: (run.arm, run.load, run.block) == (name, load, number)


def everywhere(_):
    """Every run."""
    return True


BOTH = ("bounded", "harms_below")
ONE = ("bounded",)


@pytest.mark.parametrize(
    ("number", "where", "change", "expected"),
    [
        (2, block("bounded", 1.2, 3), {"plan": "x"}, (ONE, "the plans differ")),
        (2, arm("no_admission"), {"plan": "x"}, (BOTH, "the plans differ")),
        (2, arm("bounded"), {"plan": None}, (ONE, "no plan hash")),
        (5, arm("bounded"), {"load_reached": 0.7}, (ONE, "0.70x was offered")),
        (5, arm("no_admission"), {"load_reached": 0.7}, (BOTH, "0.70x was offered")),
        (9, block("bounded", 0.8, 1), {"restarts": 2}, (ONE, "2 restarts")),
        (11, block("bounded", 1.2, 1), {"warmup_s": 9}, (BOTH, "warm-ups differ: 5")),
        (11, arm("bounded"), {"scored_s": [5, 50]}, (BOTH, "scored from 5 to 50 and")),
        (12, arm("bounded"), {"client": {"name": "deaf"}}, (BOTH, "name: deaf")),
        (14, arm("bounded"), {"slo": {"from": "given"}}, (BOTH, "The SLOs differ")),
    ],
)
def test_a_manifest_that_differs_voids(only, changed, number, where, change, expected):
    """The arm it is about, or all when it is about the baseline."""
    check = asked(changed(only(*BOTH), where, manifest=change), number)
    assert check.voids == expected[0]
    assert expected[1] in " ".join(check.says)
    assert check.answer == ("cannot be asked" if None in change.values() else "no")


@pytest.mark.parametrize(
    ("number", "where", "change", "expected"),
    [
        (4, block("bounded", 1.2, 2), {"late_ms": {"p99": 51.0}}, (ONE, "51 ms late")),
        (4, arm("no_admission"), {"late_ms": {"max": 99}}, (BOTH, "99 ms late")),
        (13, arm("bounded"), {"errors": {"n": 1, "of": 60}}, (ONE, "18 of 1080")),
    ],
)
def test_a_summary_that_shows_a_fault_voids(
    only, changed, number, where, change, expected
):
    """Late calls, errors."""
    check = asked(changed(only(*BOTH), where, summary=change), number)
    assert (check.answer, check.voids) == ("no", expected[0])
    assert expected[1] in " ".join(check.says)


def test_a_few_errors_are_no_fault(only, changed):
    """Half a percent of an arm's calls, wherever they fell."""
    fault = {"errors": {"n": 5, "of": 60}}
    made = changed(only(*BOTH), block("bounded", 1.2, 1), summary=fault)
    assert asked(made, 13).answer == "ok"


def test_a_missing_run_voids_its_arm(only):
    """The number of blocks was fixed before; a missing baseline voids all."""
    made = only(*BOTH)
    for name, voids in (("bounded", ("bounded",)), ("no_admission", BOTH)):
        gone = block(name, 1.2, 4)
        kept = tuple(run for run in made.runs if not gone(run))
        check = asked(replace(made, runs=kept), 1)
        assert (check.answer, check.voids) == ("no", voids)
        assert f"{name}: 1 of 18 (5.6 %) runs are missing, x1.2-b4" in check.says[0]


# ----------------------------------------------------------------------- fired


def test_an_inert_arm_could_not_have_fired(only):
    """With how far its signal was from the bound, and what moved instead."""
    check = asked(only("bounded", "inert"), 3)
    assert (check.answer, check.voids) == ("no", ("inert",))
    said = " ".join(check.says)
    assert "inert could not have fired: INERT in 12 of 12 runs" in said
    assert "kv_pressure >= 0.9 was never true" in said
    assert "queue_depth went from" in said


def test_below_capacity_nothing_need_fire(only, changed):
    """Runs at 0.8x are not asked."""
    made = only("bounded")
    inert = replace(made, runs=tuple(map(_silent_below, made.runs)))
    assert {r.finding for r in inert.of("bounded")} == {"INERT", "LIVE"}
    assert asked(inert, 3).answer == "ok"


def _silent_below(run):
    return replace(run, finding="INERT") if finding_at(run, below=True) else run


def finding_at(run, *, below):
    """Whether it is a run of the policy on that side of capacity."""
    return run.arm == "bounded" and (run.load < 1) is below


@pytest.mark.parametrize(("loads", "answer"), [({1.2}, "ok"), ({1.2, 1.5, 2.0}, "no")])
def test_in_each_block_it_must_fire_at_some_load(only, loads, answer):
    """A block is a repeat; one that slept through all of one was not tested there."""
    made = only("bounded")
    above = {run.load for run in made.runs if run.load > 1}
    assert 1.2 in above < loads | {1.2, 1.5, 2.0}
    runs = tuple(
        replace(run, finding="INERT")
        if run.arm == "bounded" and run.load in loads and run.block == 2
        else run
        for run in made.runs
    )
    check = asked(replace(made, runs=runs), 3)
    assert check.answer == answer
    if answer == "no":
        assert "bounded did not fire in 1 of 6 blocks, such as b2." in check.says


@pytest.mark.parametrize("word", ["UNKNOWN", None])
@pytest.mark.parametrize(("name", "voids"), [("bounded", 1), ("no_admission", 2)])
def test_a_run_that_cannot_be_judged_voids(only, word, name, voids):
    """What is not known is no win."""
    made = only(*BOTH)
    runs = tuple(
        replace(run, finding=word, log=run.log if word else None)
        if block(name, 1.5, 2)(run)
        else run
        for run in made.runs
    )
    check = asked(replace(made, runs=runs), 3)
    assert (check.answer, check.voids) == ("cannot be asked", BOTH[:voids])


@pytest.mark.parametrize(
    ("failed", "answer", "said"),
    [
        (4, "ok", "fired in 12 of 12"),
        (0, "no", "the limit of its engine refused nothing in 12 runs"),
        (None, "cannot be asked", "what its engine refused is not said"),
    ],
)
def test_an_engine_may_refuse_in_place_of_a_policy(only, changed, failed, answer, said):
    """An arm with an engine of its own: what failed without an error was refused."""
    url = {"url": "http://other", "policy": "no_admission", "parameters": {}}
    ended = {"ended": {} if failed is None else {"failed": failed}}
    made = changed(only("no_admission_again"), arm("no_admission_again"), url, ended)
    made = renamed(made, "no_admission_again", "vllm_limit")
    check = asked(made, 3)
    assert check.answer == answer
    assert said in " ".join(check.says)


def renamed(made, name, other):
    """The experiment with an arm of another name."""
    return replace(
        made,
        design=replace(made.design, arms=("no_admission", other)),
        runs=tuple(
            replace(run, arm=other) if run.arm == name else run for run in made.runs
        ),
    )


# ------------------------------------------------------------------- experiment


@pytest.mark.parametrize(
    ("after", "answer"),
    [
        ({"per_s": 10.3, "low": 10.1, "high": 10.5}, "ok"),
        ({"per_s": 10.5, "low": 10.3, "high": 10.7}, "no"),
        ({"per_s": 9.5, "low": 9.3, "high": 9.7}, "no"),
        ({"per_s": 10.1}, "ok"),
        ({"per_s": 10.3}, "no"),
        (None, "cannot be asked"),
    ],
)
def test_capacity_must_be_what_it_was(only, after, answer):
    """Before 9.8 to 10.2; the intervals must overlap."""
    made = only(*BOTH)
    capacity = {**made.stated["capacity"], "after": after}
    check = asked(replace(made, stated={**made.stated, "capacity": capacity}), 6)
    assert check.answer == answer
    assert check.voids == (BOTH if answer == "no" else ())


@pytest.mark.parametrize(("change", "answer"), [(0.0, "ok"), (0.1, "no")])
def test_probes_that_drift_void_everything(only, change, answer):
    """A tenth slower over the experiment; the scatter alone is no drift."""
    made = only(*BOTH)
    n = len(made.runs)
    runs = tuple(
        replace(run, manifest={**run.manifest, "probe_ms": probe(run, change, n)})
        for run in made.runs
    )
    check = asked(replace(made, runs=runs), 10)
    assert (check.answer, check.voids) == (answer, BOTH if answer == "no" else ())


def probe(run, change, n):
    """What the probe before a run took."""
    order = run.manifest["order"]
    return 100 * (1 + change * order / n + 0.01 * (order * 7 % 5 - 2) / 2)


def test_bursty_blocks_may_miss_the_load_by_chance(only):
    """Their mean is held to two of its standard errors."""
    made = only("bounded")
    scattered = {1: 0.7, 2: 1.9, 3: 0.8, 4: 1.6, 5: 0.9, 6: 1.9}
    runs = tuple(
        replace(run, manifest={**run.manifest, "load_reached": scattered[run.block]})
        if run.load == 1.2
        else run
        for run in made.runs
    )
    assert asked(replace(made, runs=runs), 5).answer == "ok"


def test_a_given_slo_is_said_and_voids_nothing(only, changed):
    """It does not come from this deployment."""
    slo = {"from": "given", "classes": {}}
    made = changed(only(*BOTH), everywhere, manifest={"slo": slo})
    check = asked(replace(made, stated={**made.stated, "slo": slo}), 14)
    assert (check.answer, check.voids) == ("cannot be asked", ())
    assert "given, not calibrated" in check.says[0]


# ------------------------------------------------------------------------- logs


def with_logs(made, change):
    """The experiment with the reports on an arm's logs changed."""
    return replace(
        made,
        runs=tuple(
            replace(run, log=change(run.log)) if run.arm == "bounded" else run
            for run in made.runs
        ),
    )


def test_a_signal_that_was_not_known_voids(only):
    """On more than one decision in a hundred."""

    def unknown(log):
        gates = tuple(replace(gate, unknown=2) for gate in log.gates)
        return replace(log, gates=gates)

    check = asked(with_logs(only(*BOTH), unknown), 7)
    assert (check.answer, check.voids) == ("no", ("bounded",))
    assert "queue_depth > 8 could not be evaluated on 2 of 60" in check.says[0]


def test_a_signal_that_never_moved_voids(only):
    """Above capacity, in every run."""

    def still(log):
        signals = tuple(
            replace(one, spread=replace(one.spread, low=5.0, high=5.0))
            if one.name == "queue_depth"
            else one
            for one in log.signals
        )
        return replace(log, signals=signals)

    check = asked(with_logs(only(*BOTH), still), 7)
    assert (check.answer, check.voids) == ("no", ("bounded",))
    assert "queue_depth never moved in 12 runs above capacity" in check.says[0]


def test_a_log_with_holes_voids(only):
    """Lost decisions."""

    def lossy(log):
        part = replace(log.faults.lost_decisions, n=10)
        lost = {"lost": {"decision": 10}, "lost_decisions": part}
        return replace(log, faults=replace(log.faults, **lost))

    check = asked(with_logs(only(*BOTH), lossy), 8)
    assert (check.answer, check.voids) == ("no", ("bounded",))
    assert "lost; at most 0.1 % may be" in check.says[0]


@pytest.mark.parametrize(("n", "answer"), [(0, "ok"), (30, "no")])
def test_answers_that_end_early_void(only, changed, n, answer):
    """Half of them shorter than planned: the load stayed below what was planned."""
    short = {"short": {"n": n, "of": 60}}
    check = asked(changed(only(*BOTH), arm("bounded"), summary=short), 8)
    assert (check.answer, check.voids) == (answer, ONE if n else ())
    assert ("shorter than planned" in check.says[0]) is bool(n)


# -------------------------------------------------------------------------- A/A


def aa_cells(difference):
    """What an A/A pair came to, eight blocks."""
    return [
        Cell("no_admission_again", 1.5, n, 0.5 + difference + 0.001 * (n % 3), 0.501)
        for n in range(1, 9)
    ]


@pytest.mark.parametrize(("difference", "answer"), [(0.0, "ok"), (0.05, "no")])
def test_an_aa_pair_that_differs_voids_everything(only, difference, answer):
    """The pipeline favours a place in the order, or something else does."""
    made = only("bounded", "no_admission_again")
    check = asked(made, 15, aa_cells(difference))
    assert check.answer == answer
    assert bool(check.voids) is (answer == "no")
    if check.voids:
        assert check.voids == ("bounded", "no_admission_again")


@pytest.mark.parametrize(
    ("simulated", "answer"), [(True, "cannot be asked"), (False, "ok")]
)
def test_a_simulated_aa_pair_without_any_difference_shows_no_noise(
    only, changed, simulated, answer
):
    """Virtual time repeats itself; an engine's runs never do by construction."""
    made = changed(
        only("bounded", "no_admission_again"), everywhere, {"simulated": simulated}
    )
    made = replace(made, stated={**made.stated, "simulated": simulated})
    same = [Cell("no_admission_again", 1.5, n, 0.5, 0.5) for n in range(1, 9)]
    check = asked(made, 15, same)
    assert (check.answer, check.voids) == (answer, ())
    said = "identical by construction: it shows no noise"
    assert (said in check.says[0]) is simulated
    differs = [*same[:-1], replace(same[-1], value=0.501)]
    assert asked(made, 15, differs).answer == "ok"


@pytest.mark.parametrize("mean", [0.02, 2.0])
def test_an_aa_pair_of_what_is_no_share_is_held_to_a_part_of_it(only, mean):
    """One percent of the baseline's mean is no noise, however small the unit."""
    made = only("bounded", "no_admission_again")
    pair = [
        Cell("no_admission_again", 1.5, n, mean * (1.1 + 0.001 * (n % 3)), mean)
        for n in range(1, 9)
    ]
    found = guards(made, pair, is_share=False)[14]
    assert found.answer == "no"


# ---------------------------------------------------------------- planned first


@pytest.mark.parametrize(
    ("first", "said"),
    [
        ({"blocks": 4}, "Blocks changed after the first run: 4 planned first, 6 now."),
        ({"blocks": 8}, "Blocks changed after the first run: 8 planned first, 6 now."),
        ({"loads": [0.8, 1.2]}, "0.8x, 1.2x planned first, 0.8x, 1.2x, 1.5x now."),
        ({"loads": [0.8, 1.2, 1.5, 2]}, "Loads changed after the first run: 0.8x"),
        ({"arms": ["no_admission", "bounded"]}, "bounded, no_admission planned first"),
        (
            {"arms": ["no_admission", *BOTH, "gone"]},
            "Arms changed after the first run: bounded, gone, harms_below,",
        ),
        ({"baseline": "bounded"}, "The baseline changed after the first run: bounded"),
        ({"metric": "wasted_share"}, "wasted_share planned first, goodput now."),
        ({"margin": 0.05}, "The margin changed after the first run: 0.05 planned"),
        ({"blocks": "many"}, "What was planned before the first run makes no sense."),
        ({"loads": None}, "What was planned before the first run makes no sense."),
    ],
)
def test_a_design_that_was_changed_after_the_first_run_voids_all(only, first, said):
    """Each change gives chance another try."""
    check = asked(first_planned(only(*BOTH), **first), 16)
    assert (check.answer, check.voids) == ("no", BOTH)
    assert said in " ".join(check.says)


def first_planned(made, **first):
    """The experiment, with another plan before its first run."""
    told = {**made.stated["planned_first"], **first}
    return replace(made, stated={**made.stated, "planned_first": told})


def test_a_design_that_stayed_is_named_with_its_hash(only):
    """In any order of arms and loads."""
    arms = ["harms_below", "no_admission", "bounded"]
    check = asked(first_planned(only(*BOTH), arms=arms, loads=[1.5, 1.2, 0.8]), 16)
    assert (check.answer, check.voids) == ("ok", ())
    assert check.says == (
        "0.8x, 1.2x, 1.5x; 6 blocks; 3 arms; on goodput; hash 0123456789abcdef.",
    )


def test_runs_beside_the_first_plan_void_all(only):
    """Blocks that were run, looked at and taken back out of the design."""
    beside = (("bounded", 1.2, 7), ("gone", 1.2, 1))
    check = asked(replace(only(*BOTH), beside=beside), 16)
    assert (check.answer, check.voids) == ("no", BOTH)
    assert check.says == ("2 runs not planned first, bounded x1.2-b7 among them.",)


def test_an_older_experiment_is_not_asked_what_was_planned_first(only):
    """It does not say."""
    made = only(*BOTH)
    stated = {k: v for k, v in made.stated.items() if k != "planned_first"}
    check = asked(replace(made, stated=stated), 16)
    assert (check.answer, check.voids) == ("cannot be asked", ())


def test_nothing_is_asked_of_what_no_run_says(only):
    """Manifests with only a cell: most cannot be asked, none is ok by silence."""
    made = only("bounded")
    bare = Experiment(
        folder=made.folder,
        stated={},
        design=made.design,
        runs=tuple(
            replace(run, manifest={}, summary={}, log=None, finding=None)
            for run in made.runs
        ),
        problems=(),
    )
    found = guards(bare, ())
    assert {one.number for one in found if one.answer == "ok"} == {1}


def test_the_fixture_has_gates_to_change(only):
    """Else the tests above show nothing."""
    log = only("bounded").of("bounded")[-1].log
    assert [gate.signal for gate in log.gates] == ["queue_depth"]
