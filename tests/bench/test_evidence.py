"""Numbers that do not follow from their lines, and refusals where nobody scores."""

import json
import shutil
from contextlib import chdir
from dataclasses import replace
from functools import partial

import pytest
from click.testing import CliRunner

from admitperf.bench.design.evidence import follows, inside
from admitperf.bench.design.results import read_experiment
from admitperf.cli import main

ASKED = (
    "bench", "--profile", "a100-40-qwen2.5-7b", "--engine", "max_num_seqs=8",
    "--workload", "chat", "--policy", "queue_depth:max_waiting=4",
    "--loads", "1.5", "--blocks", "6", "--calls", "60", "--jobs", "1",
    "--experiment", "small",
)  # fmt: skip


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """The folder of a small benchmark."""
    folder = tmp_path_factory.mktemp("bench")
    with chdir(folder):
        made = CliRunner().invoke(main, ASKED)
    assert made.exit_code == 0, made.output
    return folder / "experiments" / "small"


@pytest.fixture
def forged(ran, tmp_path):
    """A copy in which one run may be changed."""
    shutil.copytree(ran, tmp_path / "small")
    return tmp_path / "small"


def _edited(path, **changed):
    told = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(told | changed), encoding="utf-8")


def _halved(path):
    lines = path.read_text(encoding="ascii").splitlines(keepends=True)
    path.write_text("".join(lines[: len(lines) // 2]), encoding="ascii")


def test_what_was_run_follows_from_its_lines(ran):
    """Every summary is counted again from what stands beside it."""
    rows = list(follows(read_experiment(ran)))
    assert {row.answer for row in rows} == {"ok"}
    assert {row.answer for row in inside(read_experiment(ran))} == {"ok"}


@pytest.mark.parametrize(
    ("forge", "said"),
    [
        (lambda run: _edited(run / "summary.json", goodput=0.99), "the goodput of its"),
        (lambda run: _edited(run / "summary.json", good=7, goodput=0.7), "says 7 good"),
        (lambda run: (run / "outcomes.jsonl").unlink(), "are gone"),
        (lambda run: _halved(run / "outcomes.jsonl"), "its lines"),
        (lambda run: _halved(run / "decisions.jsonl"), "decisions on"),
    ],
)
def test_an_edited_run_voids_its_arm(forged, forge, said):
    """Also on the command line, where it ends with 1."""
    forge(forged / "queue_depth" / "x1.5-b2")
    bad = [row for row in follows(read_experiment(forged)) if row.answer == "no"]
    assert {row.arm for row in bad} == {"queue_depth"}
    assert said in bad[0].said
    where = ["bench", "compare", "small", "--root", str(forged.parent), "--check"]
    shown = CliRunner().invoke(main, where)
    assert shown.exit_code == 1
    assert "queue_depth: void" in shown.output


@pytest.mark.parametrize(("attempts", "answer"), [(100, "no"), (1, "ok")])
def test_refusing_where_nobody_scores_is_no_merit(ran, attempts, answer):
    """What was refused outside the window leaves an empty queue inside."""
    made = read_experiment(ran)
    refused = {"attempts": attempts, "refusals": attempts}
    cleared = replace(made, runs=tuple(map(partial(_with, outside=refused), made.runs)))
    (row,) = inside(cleared)
    assert (row.arm, row.answer) == ("queue_depth", answer)
    assert "100.0 % outside" in row.said


def _with(run, **changed):
    return replace(run, summary={**run.summary, **changed})
