"""An experiment read back: whole, ended early, damaged."""

import json
import shutil

import pytest
from tests.bench.design import experiments
from tests.bench.design.experiments import message

from admitperf.bench.design.guards import guards
from admitperf.bench.design.results import ResultsError, read_experiment, value


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A small experiment; copied before it is damaged."""
    root = tmp_path_factory.mktemp("small")
    return experiments.made(root, ("bounded",), loads=(0.8, 1.2), blocks=2)


@pytest.fixture
def folder(whole, tmp_path):
    """A copy of it."""
    return shutil.copytree(whole, tmp_path / "made")


def test_every_run_is_read_with_its_log(folder):
    """Cell, place, numbers, finding."""
    found = read_experiment(folder)
    assert found.problems == ()
    assert not found.partial
    assert len(found.runs) == found.design.runs == 8
    run = found.at(1.2, 2)[0]
    assert (run.arm, run.position, run.finding) == ("bounded", 1, "LIVE")
    assert run.log.answers.offered == experiments.OFFERED
    assert value(run) == run.summary["goodput"]
    assert value(run, "acme") == 0.5
    assert value(run, "session_goodput") is None
    assert {one.finding for one in found.of("no_admission")} == {"BASELINE"}


def test_logs_are_left_alone_when_they_are_not_asked_for(folder):
    """Then there is no finding."""
    found = read_experiment(folder, logs=False)
    assert {run.finding for run in found.runs} == {None}


def test_a_moved_experiment_is_the_same(folder, tmp_path):
    """Logs are joined by folder, wherever it lies."""
    before = read_experiment(folder)
    after = read_experiment(folder.rename(tmp_path / "elsewhere"))
    assert [run.finding for run in after.runs] == [run.finding for run in before.runs]


def test_what_is_unfinished_is_left_out(folder):
    """A folder with a dot, one whose manifest says it, one without a summary."""
    runs = folder / "bounded"
    (runs / "x0.8-b1").rename(runs / ".x0.8-b1.part")
    edited(runs / "x0.8-b2" / "manifest.json", complete=False)
    (runs / "x1.2-b1" / "summary.json").unlink()
    found = read_experiment(folder)
    assert found.partial
    assert [run.name for run in found.of("bounded")] == ["bounded x1.2-b2"]
    assert len(found.problems) == 2
    assert "ended early" in " ".join(found.problems)
    assert "no such file" in " ".join(found.problems)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"load": 1}', "\udcff"])
def test_a_damaged_manifest_is_one_problem(folder, text):
    """The other runs are read all the same."""
    path = folder / "bounded" / "x1.2-b1" / "manifest.json"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    found = read_experiment(folder)
    assert len(found.runs) == 7
    assert len([one for one in found.problems if "x1.2-b1" in one]) >= 1


@pytest.mark.parametrize("text", [None, "{", '{"design": {"blocks": "many"}}'])
def test_without_a_stated_design_the_runs_show_it(folder, text):
    """And a problem says so."""
    path = folder / "experiment.json"
    path.unlink() if text is None else path.write_text(text)
    found = read_experiment(folder)
    assert found.problems
    assert (found.design.loads, found.design.blocks) == ((0.8, 1.2), 2)
    assert set(found.design.arms) == {"no_admission", "bounded"}


def test_runs_of_an_earlier_design_are_left_out(folder):
    """A load that is no longer planned."""
    stated = json.loads((folder / "experiment.json").read_text())
    edited(folder / "experiment.json", design=stated["design"] | {"loads": [1.2]})
    found = read_experiment(folder)
    assert {run.load for run in found.runs} == {1.2}
    assert found.problems == ("4 runs of no planned cell: left out.",)
    assert ("bounded", 0.8, 2) in found.beside
    assert len(found.beside) == 4


def test_two_runs_of_one_cell_are_a_problem(folder):
    """A copied folder shows no spread."""
    runs = folder / "bounded"
    shutil.copytree(runs / "x1.2-b1", runs / "x1.2-b9")
    found = read_experiment(folder)
    assert len(found.of("bounded")) == 4
    assert "is there twice" in found.problems[0]


def test_arms_that_no_log_tells_apart_are_a_problem(folder):
    """Same policy, parameters and run name: a report takes them for one run."""
    shutil.copytree(folder / "bounded", folder / "copied")
    for path in (folder / "copied").glob("*/manifest.json"):
        edited(path, arm="copied")
        log = path.parent / "decisions.jsonl"
        log.write_text(log.read_text().replace('"run":"', '"run":"f'))
    (folder / "experiment.json").unlink()
    found = read_experiment(folder)
    assert {run.finding for run in found.of("copied")} == {None}
    assert "cannot be told apart by their logs" in " ".join(found.problems)


def test_without_logs_the_numbers_are_still_there(folder):
    """As in results that are kept without them: whether it fired is not known."""
    for path in folder.glob("*/*/*.jsonl"):
        path.unlink()
    found = read_experiment(folder)
    assert len(found.runs) == 8
    assert {run.log for run in found.runs} == {None}
    assert len(found.problems) == 1
    assert "\n" not in found.problems[0]


def test_without_logs_the_experiment_can_say_what_they_showed(folder):
    """The check of whether it fired goes by that, and a problem says so."""
    logs = read_experiment(folder)
    kept = {
        run.folder.relative_to(folder).as_posix(): {
            "word": run.finding, "refused": run.refused, "says": list(run.says),
        }
        for run in logs.runs
    }  # fmt: skip
    edited(folder / "experiment.json", findings=kept)
    assert read_experiment(folder).problems == ()
    for path in folder.glob("*/*/*.jsonl"):
        path.unlink()
    found = read_experiment(folder)
    assert [(r.finding, r.refused, r.says) for r in found.runs] == [
        (r.finding, r.refused, r.says) for r in logs.runs
    ]
    assert guards(found, ())[2].answer == "ok"
    assert "8 runs without a log" in found.problems[-1]


@pytest.mark.parametrize(
    ("told", "answer"),
    [
        ({"word": "LIVE", "refused": 0, "says": []}, "no"),
        ({"word": "INERT", "refused": 9, "says": ["It slept."]}, "no"),
        ({"word": "LIVE", "says": []}, "cannot be asked"),
        ({"word": "WON", "refused": 9, "says": []}, "cannot be asked"),
        ("LIVE", "cannot be asked"),
        (None, "cannot be asked"),
    ],
)
def test_what_an_experiment_says_of_its_logs_is_judged_as_they_are(
    folder, told, answer
):
    """A word and a count; nothing else makes an arm fire."""
    logs = read_experiment(folder).runs
    base = {"word": "BASELINE", "refused": 0, "says": []}
    kept = {
        run.folder.relative_to(folder).as_posix(): told
        if run.arm == "bounded"
        else base
        for run in logs
    }
    edited(folder / "experiment.json", findings=kept)
    for path in folder.glob("*/*/*.jsonl"):
        path.unlink()
    assert guards(read_experiment(folder), ())[2].answer == answer


def test_a_folder_without_runs_is_one_line(tmp_path):
    """Absent, empty, or of something else."""
    for folder, said in (
        (tmp_path / "absent", "no such folder"),
        (tmp_path, "no whole run"),
    ):
        with pytest.raises(ResultsError) as raised:
            read_experiment(folder)
        assert said in message(raised)


def edited(path, **changes):
    """Change a JSON file."""
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
