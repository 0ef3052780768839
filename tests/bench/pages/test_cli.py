"""`admitperf bench compare`: what it prints, writes and exits with."""

import json

import pytest
from click.testing import CliRunner
from tests.bench.design import experiments

from admitperf.cli.bench_compare import command


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """Where two experiments lie."""
    root = tmp_path_factory.mktemp("experiments")
    experiments.made(root, ("bounded",), loads=(0.8, 1.2))
    other = experiments.made(root / "more", ("bounded", "refuses_all"), loads=(1.2,))
    other.rename(root / "lost")
    return root


def run(*args):
    """The command's result."""
    return CliRunner().invoke(command, [*map(str, args)])


def test_a_folder_or_a_name(root):
    """Both print the same page."""
    by_folder, by_name = run(root / "made"), run("made", "--root", root)
    assert by_folder.exit_code == by_name.exit_code == 0
    assert by_folder.output == by_name.output
    assert "BETTER" in by_folder.output
    assert "Beside it: the middle run of 6 blocks at 1.2x" in by_folder.output


def test_a_check_passes_silently_and_fails_with_reasons(root):
    """Exit codes 0 and 1; each reason on a line of its own."""
    passed = run("made", "--root", root, "--check")
    assert (passed.exit_code, passed.stderr) == (0, "")
    failed = run("lost", "--root", root, "--check")
    assert failed.exit_code == 1
    reasons = failed.stderr.splitlines()
    assert all(line.startswith("check failed: refuses_all: ") for line in reasons)
    assert reasons[-1].endswith("it refused everything")


def test_a_check_can_be_asked_of_one_arm_and_one_claim(root):
    """The other arm lost; harm was not asked."""
    asked = ("lost", "--root", root, "--check", "--arm", "bounded")
    assert run(*asked).exit_code == 0
    assert run(*asked, "--claim", "gain").exit_code == 0
    no_harm = run(*asked, "--claim", "no-harm")
    assert no_harm.exit_code == 1
    assert "no harm is not asked: no load is 0.8x or less" in no_harm.stderr


def test_a_check_on_another_metric_fails(root):
    """The claims were set on goodput; the numbers are shown all the same."""
    asked = ("made", "--root", root, "--metric", "wasted_share")
    assert run(*asked).exit_code == 0
    failed = run(*asked, "--check", "--json")
    assert failed.exit_code == 1
    assert "the claims were set on goodput" in failed.stderr
    told = json.loads(failed.stdout)
    assert told["comparison"]["exploratory"] is True
    assert told["check"]["passed"] is False


def test_json_is_one_document(root):
    """With the answer of the check."""
    found = run("made", "--root", root, "--json", "--check")
    assert json.loads(found.stdout)["check"]["passed"] is True
    assert json.loads(run("made", "--root", root, "--json").stdout)["check"] is None


def test_plots_are_written(root, tmp_path):
    """One for each time it is asked."""
    svg, png = tmp_path / "plot.svg", tmp_path / "plot.png"
    assert run("made", "--root", root, "--plot", svg, "--plot", png).exit_code == 0
    assert svg.stat().st_size > 0
    assert png.stat().st_size > 0


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("absent",), "there is no such folder"),
        (("made", "--metric", "refused_share"), "no metric is called refused_share"),
        (("made", "--arm", "other"), "no arm is called other: there are bounded"),
        (("made", "--plot", "plot.pdf"), "a plot ends in .svg or .png"),
    ],
)
def test_what_cannot_be_done_is_one_line(root, args, said):
    """Exit code 2, nothing on standard output."""
    found = run(*args, "--root", root)
    assert (found.exit_code, found.stdout) == (2, "")
    assert said in found.stderr
    assert len(found.stderr.splitlines()) == 1
