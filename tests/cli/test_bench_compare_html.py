"""`admitperf bench compare FOLDER --html FILE`, as a person or a script meets it."""

import json

import pytest
from tests.bench.design import experiments


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A finished benchmark with an arm that gains and one that never fired."""
    return experiments.made(tmp_path_factory.mktemp("b"), ("bounded", "inert"))


def test_it_writes_a_page_and_says_so(run, folder, tmp_path):
    """One line; verdicts, the claims, the design and the command are on the page."""
    told = run("bench", "compare", str(folder), "--html", "a.html")
    assert (told.exit_code, told.stderr) == (0, "")
    assert told.stdout.startswith("wrote a.html (")
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    for said in ("BETTER", "VOID", "SIMULATED", "Holm p", "MDE", "Goodput by load"):
        assert said in page
    assert f"admitperf bench compare {folder} --html a.html" in page
    assert run("bench", "compare", str(folder), "--html", "a.html").exit_code == 0
    assert (tmp_path / "a.html").read_text(encoding="utf-8") == page


def test_a_dash_is_standard_output(run, folder):
    """Nothing but the page."""
    told = run("bench", "compare", str(folder), "--html", "-")
    assert told.stdout.startswith("<!DOCTYPE html>")
    assert told.stdout.rstrip().endswith("</html>")


def test_a_claim_that_fails_stands_on_the_page_and_ends_with_1(run, folder, tmp_path):
    """Why is on the page and on standard error."""
    line = ("bench", "compare", str(folder), "--check", "--arm", "inert")
    told = run(*line, "--html", "a.html")
    assert told.exit_code == 1
    assert "check failed: inert: void" in told.stderr
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert "is not supported." in page
    assert "--arm inert --check --claim better --html a.html" in page


def test_another_metric_is_exploratory_on_the_page_too(run, folder, tmp_path):
    """And the command names it."""
    line = ("bench", "compare", str(folder), "--metric", "wasted_share")
    assert run(*line, "--html", "a.html").exit_code == 0
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert "EXPLORATORY" in page
    assert "--metric wasted_share --html a.html" in page


def test_what_stands_beside_the_metric_is_in_the_json(run, folder):
    """The page computes nothing."""
    told = json.loads(run("bench", "compare", str(folder), "--json").stdout)
    arms = [one["arm"] for one in told["beside"]]
    assert arms == ["bounded", "inert", "no_admission"]
    assert told["beside"][0]["values"]["TTFT p95 served ms"] > 0


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (("--html", "."), "it is a folder"),
        (("--html", "no/such/a.html"), "its folder does not exist"),
        (("--html", "a.html", "--json"), "two forms"),
        (("--html", "a.html", "--metric", "nonsense"), "no metric is called nonsense"),
        (("--html", "a.html", "--arm", "nobody"), "no arm is called nobody"),
    ],
)
def test_wrong_use_is_told_and_leaves_no_page(run, folder, tmp_path, more, why):
    """Exit code 2, and no traceback."""
    told = run("bench", "compare", str(folder), *more)
    assert told.exit_code == 2
    assert why in told.stderr
    assert "Traceback" not in told.stderr
    assert not (tmp_path / "a.html").exists()


def test_a_folder_without_a_benchmark_leaves_no_page(run, tmp_path):
    """One line."""
    told = run("bench", "compare", str(tmp_path), "--html", "a.html")
    assert told.exit_code == 2
    assert len(told.stderr.splitlines()) == 1
    assert not (tmp_path / "a.html").exists()
