"""Report and compare on the folders of a benchmark: one truth, two ways to it."""

import json
from contextlib import chdir
from pathlib import Path

import pytest
from click.testing import CliRunner

from admitperf.cli import main
from admitperf.reports.pages.items import items
from admitperf.reports.report import report

ASKED = (
    "bench", "--profile", "a100-40-qwen2.5-7b", "--engine", "max_num_seqs=8",
    "--workload", "tool-tight", "--policy", "queue_depth:max_waiting=0",
    "--loads", "0.5,2", "--blocks", "6", "--calls", "150", "--jobs", "1",
    "--experiment", "small",
)  # fmt: skip


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """The folder of a small benchmark of agents whom a refusal ends."""
    folder = tmp_path_factory.mktemp("bench")
    with chdir(folder):
        ran = CliRunner().invoke(main, ASKED)
    assert ran.exit_code == 0, ran.output
    return folder / "experiments"


@pytest.fixture(scope="module")
def made(root):
    """The report on all of its runs."""
    return report([str(root / "small")]).runs


def summary(run):
    """What the benchmark itself says of a run."""
    folder = Path(run.paths[0]).parent
    return json.loads((folder / "summary.json").read_text(encoding="utf-8"))


def test_a_report_counts_what_the_benchmark_counts(made):
    """Offered, good, how calls ended and completed sessions, in every run."""
    assert len(made) == 24
    for run in made:
        told, plan = summary(run), run.planned
        assert (plan.offered, plan.goodput.n) == (told["offered"], told["good"])
        assert plan.ended == {name: n for name, n in told["ended"].items() if n}
        assert plan.sessions.n == told["sessions"]["completed"]
        assert plan.sessions.of == told["sessions"]["offered"]


def test_what_a_refusal_kept_from_being_asked_is_offered(made):
    """A notice says how much, and goodput divides by it."""
    cut = [run for run in made if run.planned.never_asked.n]
    for run in cut:
        assert run.goodput.of == run.planned.offered
        assert any("never asked" in said for said in run.notices)
    assert any(run.planned.refused.n for run in cut)


def test_every_item_is_answered(made):
    """An experiment as a whole carries all seven."""
    for run in made:
        failed = [one for one in items(run, made) if one.answer != "pass"]
        assert failed == [], run.header["name"]


def test_compare_sends_several_loads_elsewhere(root):
    """A mean over loads answers no question."""
    shown = CliRunner().invoke(
        main, ["compare", "--experiment", "small", "--root", str(root)]
    )
    text = " ".join(shown.output.split())
    assert "VOID" in text
    assert "`admitperf bench compare small` asks them apart" in text


def test_a_list_says_that_repeats_are_of_several_loads(root):
    """The lowest and the highest goodput of an arm are then of other loads."""
    told = json.loads(
        CliRunner().invoke(main, ["experiments", str(root), "--json"]).output
    )
    (one,) = told["experiments"]
    assert one["loads"] == [0.5, 2]
    page = CliRunner().invoke(main, ["experiments", str(root)]).output
    assert "0.5x, 2x of capacity in every arm" in " ".join(page.split())
