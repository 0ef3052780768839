"""`admitperf report --html FILE`, as a person or a script meets it."""

import gzip
import json
import os
import subprocess
import sys

import pytest
from click.testing import CliRunner
from tests.reports.byhand import header, jsonl, kv
from tests.reports.examples import ALL

from admitperf.cli import main

PROGRAM = "from admitperf.cli import main; main()"


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run a command line in this process, in a folder with two logs."""
    (tmp_path / "live.jsonl").write_text(jsonl(*ALL["live"]()), encoding="utf-8")
    other = ({**line, "run": "other"} for line in ALL["inert"]())
    (tmp_path / "inert.jsonl").write_text(jsonl(*other), encoding="utf-8")
    monkeypatch.chdir(tmp_path)

    def _run(*args, stdin=None):
        return CliRunner().invoke(main, ["report", *args], input=stdin)

    return _run


def test_it_writes_a_page_and_says_so(run, tmp_path):
    """One line with the size; the page is there, and nothing else."""
    told = run("live.jsonl", "--html", "page.html")
    assert (told.exit_code, told.stderr) == (0, "")
    assert told.stdout.startswith("wrote page.html (")
    assert told.stdout.endswith(" kB)\n")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Run of dual_gate" in page
    assert "admitperf report live.jsonl --html page.html" in page
    names = {one.name for one in tmp_path.iterdir()}
    assert names == {"live.jsonl", "inert.jsonl", "page.html"}


def test_a_dash_is_standard_output(run, tmp_path):
    """Nothing but the page, so that it can be piped."""
    told = run("live.jsonl", "--html", "-")
    assert told.stdout.startswith("<!DOCTYPE html>")
    assert told.stdout.rstrip().endswith("</html>")
    assert not (tmp_path / "-").exists()


def test_standard_input_and_packed_logs_are_read(run, tmp_path):
    """As without the option."""
    text = (tmp_path / "live.jsonl").read_bytes()
    (tmp_path / "packed.jsonl.gz").write_bytes(gzip.compress(text))
    assert run("packed.jsonl.gz", "--html", "a.html").exit_code == 0
    assert run("-", "--html", "b.html", stdin=text).exit_code == 0


def test_two_runs_are_one_page(run, tmp_path):
    """With all runs in front."""
    assert run("live.jsonl", "inert.jsonl", "--html", "a.html").exit_code == 0
    assert "<h1>2 runs</h1>" in (tmp_path / "a.html").read_text(encoding="utf-8")


def test_a_failed_check_stands_on_the_page_and_ends_with_1(run, tmp_path):
    """The page is written all the same."""
    told = run("inert.jsonl", "--check", "--html", "a.html")
    assert told.exit_code == 1
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert "The log does not support a claim: fired, or a baseline." in page
    assert "--html a.html --check" in page


def test_a_log_that_cannot_be_read_ends_with_2(run, tmp_path):
    """The others are on the page; without any there is none."""
    told = run("live.jsonl", "gone.jsonl", "--html", "a.html")
    assert told.exit_code == 2
    assert "gone.jsonl" in told.stderr
    assert (tmp_path / "a.html").exists()
    told = run("gone.jsonl", "--html", "b.html")
    assert told.exit_code == 2
    assert not (tmp_path / "b.html").exists()


@pytest.mark.parametrize("other", [["--json"], ["--card", "md"]])
def test_two_forms_are_wrong_use(run, other):
    """A page and JSON at once would leave one of them unsaid."""
    told = run("live.jsonl", "--html", "a.html", *other)
    assert told.exit_code == 2
    assert "are two forms" in told.stderr


def test_series_are_a_part_of_the_json(run):
    """By itself the option means nothing."""
    told = run("live.jsonl", "--json", "--series")
    (one,) = json.loads(told.stdout)["runs"]
    assert one["series"]["decisions"] == one["answers"]["offered"]
    assert "series" not in json.loads(run("live.jsonl", "--json").stdout)["runs"][0]
    assert run("live.jsonl", "--series").exit_code == 2


@pytest.mark.parametrize(
    ("output", "why"),
    [
        (".", "it is a folder"),
        ("no/such/a.html", "its folder does not exist"),
        ("a\0b", "embedded null byte"),
    ],
)
def test_a_place_where_nothing_can_be_written_is_named(run, output, why):
    """One line, before any log is read."""
    told = run("gone.jsonl", "--html", output)
    assert told.exit_code == 2
    (line,) = told.stderr.splitlines()
    assert line.startswith("Error: ")
    assert why in line


def test_a_full_disk_is_one_line(run):
    """Nothing half written is called written."""
    told = run("live.jsonl", "--html", "/dev/full")
    assert told.exit_code == 2
    assert "No space left" in told.stderr
    assert "wrote" not in told.stdout


def test_what_was_there_stays_when_writing_fails(run, tmp_path, monkeypatch):
    """An old page is better than half a new one."""
    (tmp_path / "a.html").write_text("old", encoding="utf-8")

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    told = run("live.jsonl", "--html", "a.html")
    assert told.exit_code == 2
    assert (tmp_path / "a.html").read_text(encoding="utf-8") == "old"
    assert len(list(tmp_path.iterdir())) == 3


def test_a_missing_extra_is_one_line(run, monkeypatch):
    """It names what to install, before any log is read."""
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    told = run("gone.jsonl", "--html", "a.html")
    assert told.exit_code == 2
    assert "of the extra admitperf[html]" in told.stderr
    assert len(told.stderr.splitlines()) == 1


def test_the_program_itself_ends_cleanly(tmp_path):
    """Also when it ends while the engine that draws is still starting."""
    log = tmp_path / "run.jsonl"
    log.write_text(jsonl(header(), kv(1, 0.5)), encoding="utf-8")
    for given, rc in ((log, 0), (tmp_path / "gone.jsonl", 2)):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, "report", str(given), "--html", "a.html"],
            cwd=tmp_path,
            capture_output=True,
            check=False,
            text=True,
            timeout=60,
        )
        assert done.returncode == rc
        assert len((done.stdout + done.stderr).splitlines()) == 1


def test_a_log_is_never_taken_for_the_page(run, tmp_path):
    """Neither by its name nor by a link to it; a page that is there is replaced."""
    path = tmp_path / "live.jsonl"
    good = path.read_bytes()
    (tmp_path / "link.html").symlink_to(path)
    for target in ("live.jsonl", "link.html", "inert.jsonl"):
        told = run("live.jsonl", "--html", target)
        assert told.exit_code == 2
        assert "is no HTML page" in told.stderr
        assert path.read_bytes() == good
    (tmp_path / "page.html").write_text("")
    for _ in range(2):
        assert run("live.jsonl", "--html", "page.html").exit_code == 0


def test_a_loop_of_links_is_one_line(run, tmp_path):
    """Not a trace, and not the code of a failed check."""
    (tmp_path / "a.html").symlink_to(tmp_path / "b.html")
    (tmp_path / "b.html").symlink_to(tmp_path / "a.html")
    told = run("live.jsonl", "--html", "a.html")
    assert told.exit_code == 2
    assert len(told.stderr.splitlines()) == 1
