"""`admitperf compare --html FILE`, as a person or a script meets it."""

import os
import sys

import pytest
from tests.reports.byhand import jsonl
from tests.reports.repeats_byhand import arm, baseline, better, worse


@pytest.fixture(autouse=True)
def logs(tmp_path):
    """A log for each arm, and one that holds them all."""
    sides = {
        "bound": better(),
        "wall": worse(),
        "base": baseline(),
        "inert": arm("queue_bound", (90, 91, 92, 90, 91, 93)),
        "named": arm("门控", (70, 73, 68), refused=20),
    }
    for name, lines in sides.items():
        (tmp_path / f"{name}.jsonl").write_text(jsonl(*lines), encoding="utf-8")
    every = [line for name in ("bound", "wall", "base") for line in sides[name]]
    (tmp_path / "all.jsonl").write_text(jsonl(*every), encoding="utf-8")


def read(path):
    """A page that was written."""
    return path.read_text(encoding="utf-8")


def test_it_writes_a_page_and_says_so(run, tmp_path):
    """One line with the size; the page has the verdict and the command."""
    told = run("compare", "bound.jsonl", "base.jsonl", "--html", "a.html")
    assert (told.exit_code, told.stderr) == (0, "")
    assert told.stdout.startswith("wrote a.html (")
    assert len(told.stdout.splitlines()) == 1
    page = read(tmp_path / "a.html")
    assert "queue_bound against no_admission" in page
    assert ">better<" in page
    again = "admitperf compare bound.jsonl base.jsonl --html a.html --margin 0.01"
    assert again in page


def test_a_whole_experiment_is_one_page(run, tmp_path):
    """And the command that is told makes the same page."""
    line = ("compare", "--experiment", "pilot", "--root", "all.jsonl")
    told = run(*line, "--margin=0.02", "--slo=ttft_ms=1500", "--html", "a.html")
    assert told.exit_code == 0, told.stderr
    page = read(tmp_path / "a.html")
    assert "Experiment pilot: every arm against no_admission" in page
    command = (
        "admitperf compare --experiment pilot --root all.jsonl --html a.html"
        " --slo ttft_ms=1500 --margin 0.02"
    )
    assert command in page
    assert run(*command.split()[1:]).exit_code == 0
    assert read(tmp_path / "a.html") == page


def test_a_dash_is_standard_output(run, tmp_path):
    """Nothing but the page."""
    told = run("compare", "bound.jsonl", "base.jsonl", "--html", "-")
    assert told.stdout.startswith("<!DOCTYPE html>")
    assert told.stdout.rstrip().endswith("</html>")
    assert not (tmp_path / "-").exists()


def test_a_claim_that_fails_stands_on_the_page_and_ends_with_1(run, tmp_path):
    """The page is written all the same, and says why."""
    told = run("compare", "wall.jsonl", "base.jsonl", "--check", "--html", "a.html")
    assert told.exit_code == 1
    assert "kv_wall: worse, not better" in told.stderr
    page = read(tmp_path / "a.html")
    assert "is not supported." in page
    assert "kv_wall: worse, not better" in page
    assert "--check --claim better" in page


def test_a_void_comparison_is_a_page(run, tmp_path):
    """With the word and the failed check; without --check it is no fault."""
    told = run("compare", "inert.jsonl", "base.jsonl", "--html", "a.html")
    assert told.exit_code == 0
    page = read(tmp_path / "a.html")
    assert ">void<" in page
    assert "Check 1" in page


def test_names_are_shown_as_they_are(run, tmp_path):
    """A terminal gets ASCII, a page the name itself."""
    line = ("compare", "named.jsonl", "base.jsonl")
    assert run(*line, "--html", "a.html").exit_code == 0
    assert "门控 against no_admission" in read(tmp_path / "a.html")
    assert run(*line).stdout.isascii()


def test_a_log_that_cannot_be_read_leaves_no_page(run, tmp_path):
    """One line, exit code 2."""
    told = run("compare", "gone.jsonl", "base.jsonl", "--html", "a.html")
    assert told.exit_code == 2
    assert "gone.jsonl" in told.stderr
    assert not (tmp_path / "a.html").exists()


@pytest.mark.parametrize(
    ("output", "why"),
    [(".", "it is a folder"), ("no/such/a.html", "its folder does not exist")],
)
def test_a_place_where_nothing_can_be_written_is_named(run, output, why):
    """One line, before any log is read."""
    told = run("compare", "gone.jsonl", "base.jsonl", "--html", output)
    assert told.exit_code == 2
    (line,) = told.stderr.splitlines()
    assert why in line


def test_two_forms_are_wrong_use(run):
    """A page and JSON at once would leave one of them unsaid."""
    told = run("compare", "bound.jsonl", "base.jsonl", "--json", "--html", "a.html")
    assert told.exit_code == 2
    assert "two forms" in told.stderr


def test_what_was_there_stays_when_writing_fails(run, tmp_path, monkeypatch):
    """An old page is better than half a new one."""
    (tmp_path / "a.html").write_text("old", encoding="utf-8")
    before = {one.name for one in tmp_path.iterdir()}

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    told = run("compare", "bound.jsonl", "base.jsonl", "--html", "a.html")
    assert told.exit_code == 2
    assert read(tmp_path / "a.html") == "old"
    assert {one.name for one in tmp_path.iterdir()} == before


def test_a_missing_extra_is_one_line(run, monkeypatch):
    """It names what to install, before any log is read."""
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    told = run("compare", "gone.jsonl", "base.jsonl", "--html", "a.html")
    assert told.exit_code == 2
    assert "of the extra admitperf[html]" in told.stderr
    assert len(told.stderr.splitlines()) == 1
