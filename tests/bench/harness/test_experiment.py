"""A whole experiment: what it leaves, and how it goes on."""

import json
import shutil

import pytest
from tests.bench.harness.small import Heard, small

from admitperf.bench.callers.records import record
from admitperf.bench.design.comparison import compare
from admitperf.bench.design.results import read_experiment
from admitperf.bench.harness.calibrate import check_signals
from admitperf.bench.harness.config import parsed, preset
from admitperf.bench.harness.experiment import Experiment, ExperimentError
from admitperf.core.errors import ConfigError
from admitperf.policies import load
from admitperf.reports.pages.items import items
from admitperf.reports.report import report

FILES = {"manifest.json", "decisions.jsonl", "outcomes.jsonl", "summary.json"}


def run(config, heard=None):
    """Runs one to its end, or as far as it comes."""
    heard = heard or Heard()
    with Experiment(config, heard) as experiment:
        planned = experiment.planned()
        return planned, experiment.run(planned), heard


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """One that was run to its end."""
    config = small(tmp_path_factory.mktemp("whole"))
    planned, ended, heard = run(config)
    assert ended
    return config, planned, heard


def summaries(folder):
    """What came of each run, but for how long decisions took."""
    found = {}
    for path in sorted(folder.glob("*/x*/summary.json")):
        told = json.loads(path.read_text())
        told.pop("decide_us")
        found[str(path.parent.relative_to(folder))] = told
    return found


def logs(folder):
    """Every log, by its path below the folder."""
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in sorted(folder.rglob("*.jsonl"))
    }


def test_every_run_is_a_folder_of_four_files(whole):
    """Nothing unfinished is left beside them."""
    config, planned, _ = whole
    folders = list(config.folder.glob("*/*"))
    assert len(folders) == planned.design.runs == 24
    for folder in folders:
        assert {path.name for path in folder.iterdir()} == FILES


def test_outcomes_are_moved_and_every_planned_call_has_a_line(whole):
    """The outcomes stand behind the header of the run."""
    config, _, _ = whole
    folder = config.folder / "queue_depth" / "x1.5-b1"
    decisions = (folder / "decisions.jsonl").read_text().splitlines()
    outcomes = [
        json.loads(line)
        for line in (folder / "outcomes.jsonl").read_text().splitlines()
    ]
    manifest = json.loads((folder / "manifest.json").read_text())
    assert not any(line.startswith('{"k":"outcome"') for line in decisions)
    assert [one["k"] for one in outcomes[:2]] == ["run", "outcome"]
    calls = [record(one) for one in outcomes if one["k"] == "call"]
    assert len(calls) == manifest["calls_planned"]
    assert sum(one.scored for one in calls) == manifest["calls_offered"]


def test_all_arms_of_a_block_meet_the_same_plan(whole):
    """And no two blocks do."""
    config, _, _ = whole
    plans = {}
    for path in config.folder.glob("*/x*/manifest.json"):
        told = json.loads(path.read_text())
        plans.setdefault(told["plan"], set()).add((told["load"], told["block"]))
    assert len(plans) == 12
    assert all(len(cells) == 1 for cells in plans.values())


def test_the_experiment_can_be_compared(whole):
    """No check but those that cannot be asked is in the way."""
    config, _, _ = whole
    found = read_experiment(config.folder)
    assert found.problems == ()
    assert len(found.runs) == 24
    made = compare(found, None)
    assert [one.name for one in made.checks if one.answer == "no"] == []


def test_every_run_answers_the_seven_items_of_a_report(whole):
    """Each but whether a policy fired below capacity, which is the policy's."""
    config, _, _ = whole
    made = report([str(config.folder)])
    assert len(made.runs) == 24
    for one in made.runs:
        failed = [i for i in items(one, made.runs) if i.answer != "pass"]
        assert [i.name for i in failed if i.name != "signal liveness"] == [], failed


def test_what_is_there_is_not_run_again(whole, tmp_path):
    """Until a folder is gone, or holds something else."""
    config, _, _ = whole
    copy = small(tmp_path)
    shutil.copytree(config.folder, copy.folder)
    before = summaries(copy.folder)
    shutil.rmtree(copy.folder / "queue_depth" / "x1.5-b2")
    (copy.folder / "no_admission" / "x0.8-b3" / "summary.json").unlink()
    _, ended, heard = run(copy)
    assert ended
    assert "measuring capacity" not in heard.stages
    again = {
        (done.job.arm.name, done.job.place) for done, *_ in heard.runs if not done.again
    }
    assert again == {("queue_depth", "x1.5-b2"), ("no_admission", "x0.8-b3")}
    assert summaries(copy.folder) == before


def test_ctrl_c_leaves_what_can_be_read_and_goes_on_later(whole, tmp_path):
    """Marked as partial until it is whole."""
    config, _, _ = whole
    copy = small(tmp_path)
    copy.folder.mkdir(parents=True)
    stated = json.loads((config.folder / "experiment.json").read_text())
    (copy.folder / "experiment.json").write_text(json.dumps(stated))
    _, ended, _ = run(copy, Heard(interrupt_at=9))
    told = json.loads((copy.folder / "experiment.json").read_text())
    assert (ended, told["partial"]) == (False, True)
    assert len(read_experiment(copy.folder).runs) == 9
    assert not list(copy.folder.glob("*/.*"))
    _, ended, heard = run(copy)
    told = json.loads((copy.folder / "experiment.json").read_text())
    assert (ended, told["partial"]) == (True, False)
    assert sum(done.again for done, *_ in heard.runs) == 9
    assert logs(copy.folder) == logs(config.folder)


def test_other_processes_come_to_the_same(whole, tmp_path):
    """To the byte, whoever ran what."""
    config, _, _ = whole
    other = small(tmp_path, jobs=2)
    run(other)
    assert logs(other.folder) == logs(config.folder)
    assert summaries(other.folder) == summaries(config.folder)


@pytest.mark.ray
def test_ray_comes_to_the_same(whole, tmp_path):
    """As other processes do."""
    pytest.importorskip("ray")
    config, _, _ = whole
    other = small(tmp_path, jobs=2, executor="ray")
    run(other)
    assert logs(other.folder) == logs(config.folder)
    assert summaries(other.folder) == summaries(config.folder)


def test_what_was_measured_is_kept_before_anything_is_run(tmp_path):
    """A plan that was only looked at, or a start that was ended, measures once."""

    class Impatient(Heard):
        """Ends it at the stage after the measurements."""

        def stage(self, what):
            super().stage(what)
            if what == "looking for the warm-up":
                raise KeyboardInterrupt

    config = small(tmp_path)
    with pytest.raises(KeyboardInterrupt), Experiment(config, Impatient()) as one:
        one.planned()
    kept = json.loads((config.folder / "experiment.json").read_text())
    assert kept["partial"] is True
    assert "planned_first" not in kept
    second, third = Heard(), Heard()
    for heard in (second, third):
        with Experiment(config, heard) as one:
            planned = one.planned()
    assert second.stages == ["checking signals", "looking for the warm-up"]
    assert third.stages == ["checking signals"]
    told = planned.setup.calibration.document()
    assert told["capacity"] == kept["calibration"]["capacity"]
    assert told["warmup_s"] > 0
    more = small(tmp_path / "more")
    with Experiment(more, Heard()) as one:
        assert one.planned().setup.calibration.document() == told


def test_a_block_can_be_run_again_for_every_arm(whole, tmp_path):
    """It is removed first, and how often that was done is said."""
    config, _, _ = whole
    copy = small(tmp_path)
    shutil.copytree(config.folder, copy.folder)
    before = summaries(copy.folder)
    for times in (1, 2):
        heard = Heard()
        with Experiment(copy, heard) as experiment:
            assert experiment.run(experiment.planned(), ["x1.5-b3", "x0.8-b1"])
        again = sorted(
            (done.job.place, done.job.arm.name)
            for done, *_ in heard.runs
            if not done.again
        )
        assert again == [
            (place, arm)
            for place in ("x0.8-b1", "x1.5-b3")
            for arm in ("no_admission", "queue_depth")
        ]
        told = json.loads((copy.folder / "experiment.json").read_text())
        assert told["redone"] == {"x1.5-b3": times, "x0.8-b1": times}
    assert told["notices"][0] == "x1.5-b3 was run again for every arm, 2 times."
    assert summaries(copy.folder) == before
    with Experiment(copy, Heard()) as experiment:
        planned = experiment.planned()
        with pytest.raises(ExperimentError, match=r"--redo x9-b1: is none of the"):
            experiment.run(planned, ["x9-b1"])
    assert len(summaries(copy.folder)) == 24


def test_how_long_the_rest_takes_is_worked_out_from_what_was_run(whole, tmp_path):
    """Of what was there already it says nothing; it falls to nothing at the end."""
    config, _, heard = whole
    left = [left_s for *_, left_s in heard.runs]
    assert all(left_s > 0 for left_s in left[:-1])
    assert left[-1] == 0
    copy = small(tmp_path)
    shutil.copytree(config.folder, copy.folder)
    _, _, again = run(copy)
    assert {left_s for *_, left_s in again.runs} == {0.0}


def test_the_published_example_shows_a_threshold_that_cannot_fire(tmp_path):
    """KV pressure stays under 1 % while the queue passes 20, and the page says it."""
    told = preset("a10-4seq") | {"root": str(tmp_path), "blocks": 6, "jobs": 1}
    config = parsed(told, "a10-4seq")
    with Experiment(config, Heard()) as experiment:
        assert experiment.run(experiment.planned())
        found = experiment.found
    findings = json.loads((config.folder / "experiment.json").read_text())["findings"]
    assert len(found.runs) == 18
    for one in found.of("kv_threshold"):
        moved = {signal.name: signal for signal in one.log.signals}
        assert moved["kv_pressure"].spread.high < 0.01
        assert moved["queue_depth"].spread.high > 20
        said = findings[f"kv_threshold/{one.folder.name}"]
        assert (said["word"], said["refused"]) == ("INERT", 0)
        assert any("queue_depth went from 0 to" in line for line in said["says"])
        assert findings[f"queue_depth/{one.folder.name}"]["word"] == "LIVE"


def test_another_experiment_is_not_written_over(whole, tmp_path):
    """Nor is a file that is none."""
    config, _, _ = whole
    with pytest.raises(ExperimentError, match="name another with --experiment"):
        run(small(config.root, seed=2))
    other = small(tmp_path)
    other.folder.mkdir(parents=True)
    (other.folder / "experiment.json").write_text("[]")
    with pytest.raises(ExperimentError, match="is no experiment's"):
        run(other)


def test_a_design_that_cannot_win_is_refused_before_anything_is_measured(tmp_path):
    """With the reason."""
    heard = Heard()
    for changed, why in (
        ({"blocks": 5}, "5 blocks cannot win"),
        ({"loads": [0.8]}, "no load is 1.2x"),
    ):
        with pytest.raises(ConfigError, match=why):
            run(small(tmp_path, **changed), heard)
    assert heard.stages == []
    assert not list(tmp_path.iterdir())


def test_a_parameter_that_follows_from_nothing_is_refused(tmp_path):
    """It names what does."""
    arms = [{"policy": "kv_threshold", "parameters": {"threshold": "fitted"}}]
    with pytest.raises(ConfigError, match="threshold cannot be fitted; max_waiting"):
        run(small(tmp_path, arms=arms))


@pytest.mark.parametrize(
    "parts",
    [
        "queue_depth:max_waiting=fitted; kv_threshold:threshold=0.8",
        [
            {"name": "queue_depth", "params": {"max_waiting": "fitted"}},
            {"kv_threshold": {"threshold": 0.8}},
        ],
    ],
)
def test_parameters_of_parts_are_fitted_too(tmp_path, parts):
    """Of a nested composition as well; what was given there stays as it was."""
    whole = [{"first_of": {"policies": parts}}, "rate_limit:rate_per_s=fitted"]
    arms = [
        {"policy": "any_of", "parameters": {"policies": whole}},
        {"policy": "queue_depth", "parameters": {"max_waiting": "fitted"}},
        {"policy": "all_of", "parameters": {"policies": ["kv_threshold"]}},
    ]
    with Experiment(small(tmp_path, arms=arms), Heard()) as experiment:
        found = experiment.planned().arms
    fits = found["queue_depth"].parameters["max_waiting"]
    one, other = load("any_of")(**found["any_of"].parameters).parts
    assert [part.parameters for part in one.parts] == [
        {"max_waiting": fits, "action": "defer"},
        {"threshold": 0.8, "action": "defer"},
    ]
    assert other.rate_per_s != load("rate_limit").declared()["rate_per_s"].default
    assert found["any_of"].provenance == {"policies": "fitted"}
    assert found["all_of"].provenance == {"policies": "given"}
    assert found["all_of"].parameters == {"policies": ["kv_threshold"]}


def test_a_part_that_follows_from_nothing_is_refused(tmp_path):
    """As by itself."""
    parts = {"policies": "queue_depth; kv_threshold:threshold=fitted"}
    arms = [{"policy": "first_of", "parameters": parts}]
    with pytest.raises(ConfigError, match="threshold cannot be fitted; max_waiting"):
        run(small(tmp_path, arms=arms))


def test_parameters_say_where_they_come_from(whole):
    """Fitted ones that, and given ones that unless a word was given."""
    _, planned, _ = whole
    arm = planned.arms["queue_depth"]
    assert arm.provenance == {"max_waiting": "fitted"}
    assert isinstance(arm.parameters["max_waiting"], int)


def test_a_budget_leaves_out_and_says_what(whole, tmp_path):
    """What no claim needs goes first."""
    config, _, _ = whole
    copy = small(tmp_path, loads=[0.5, 0.8, 1.2, 1.5])
    copy.folder.mkdir(parents=True)
    shutil.copy(config.folder / "experiment.json", copy.folder)
    with Experiment(copy, Heard()) as experiment:
        each_s = (
            experiment.planned().setup
            and json.loads((config.folder / "experiment.json").read_text())[
                "seconds_per_run"
            ]
        )
        enough = experiment.planned(budget_s=each_s * 1.3 * 24 * 1.1)
    assert enough.design.loads != (0.5, 0.8, 1.2, 1.5)
    assert enough.left_out[0] == "For the budget, load 0.5x is left out."


def test_rates_may_be_given_in_place_of_loads(whole, tmp_path):
    """They become multiples of the capacity."""
    config, planned, _ = whole
    per_s = planned.setup.calibration.capacity.per_s
    copy = small(tmp_path, loads=None, rates_per_s=[2 * per_s])
    copy.folder.mkdir(parents=True)
    shutil.copy(config.folder / "experiment.json", copy.folder)
    with Experiment(copy, Heard()) as experiment:
        found = experiment.planned()
    assert found.rates == {2.0: 2 * per_s}


def test_the_baseline_against_itself_is_two_arms(tmp_path):
    """Whose runs a report does not take for one."""
    config = small(tmp_path, arms=[], aa=True, loads=[1.2], calls=20)
    planned, ended, _ = run(config)
    assert ended
    assert planned.design.arms == ("no_admission", "no_admission_again")
    names = {job.name for job in planned.jobs()}
    assert len(names) == planned.design.runs == 12
    assert len(read_experiment(config.folder).runs) == 12


def test_a_workload_that_cannot_be_sent_says_what_to_do(tmp_path, monkeypatch):
    """A plug-in may hold what only this process can."""
    from admitperf.bench.harness import experiment
    from admitperf.bench.workloads import workload

    class Own:
        """Stands in a function, where no other process finds it."""

        def __init__(self, made):
            self.made = made

        def __getattr__(self, name):
            return getattr(self.made, name)

        def fitting(self, longest_tokens):
            return Own(self.made.fitting(longest_tokens))

    monkeypatch.setattr(experiment, "workload", lambda name, **_: Own(workload(name)))
    with pytest.raises(ExperimentError, match=r"chat: cannot be sent .* use --jobs 1"):
        run(small(tmp_path, jobs=2))


def test_a_simulated_engine_may_be_driven_over_http(tmp_path):
    """One of four places, in wall time: the plan is made as for any server."""
    pytest.importorskip("aiohttp")
    from admitperf.bench.harness.targets import opened

    target = {**small(tmp_path).document()["target"], "over": "http"}
    config = small(tmp_path, target=target)
    with opened(config.target) as engine:
        assert engine.simulated
        assert engine.notes()["replicas"] == 1
        check_signals(engine, config.arms[:1])
