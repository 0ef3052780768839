"""What is built is what was tested."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from tests.real.process import running


@pytest.fixture(scope="module")
def wheel(root, tmp_path_factory) -> Path:
    """The wheel, built from this checkout."""
    out = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation"]
    subprocess.run(
        [*build, "--outdir", out, root], check=True, capture_output=True, text=True
    )
    (built,) = out.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> Path:
    """A clean environment with the wheel and what the wheel itself asks for."""
    return environment(tmp_path_factory.mktemp("clean"), str(wheel))


@pytest.fixture(scope="module")
def complete(wheel, tmp_path_factory) -> Path:
    """A clean environment with the wheel and every extra."""
    return environment(tmp_path_factory.mktemp("complete"), f"{wheel}[all]")


def environment(folder, what) -> Path:
    """The programs of a new virtual environment with one thing installed."""
    programs = folder / "venv" / "bin"
    subprocess.run([sys.executable, "-m", "venv", programs.parent], check=True)
    pip = [programs / "python", "-m", "pip", "install", "--quiet", what]
    subprocess.run(pip, check=True, capture_output=True, text=True)
    return programs


def ran(programs, cwd, *words):
    """One command of the installed tool, when it has ended."""
    return subprocess.run(
        [programs / "admitperf", *words],
        cwd=cwd, check=False, capture_output=True, text=True,
    )  # fmt: skip


def run(programs, cwd, *words):
    """The standard output of one command that does its work."""
    done = ran(programs, cwd, *words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_wheel_carries_the_package_and_its_types_and_nothing_else(wheel):
    """A user's type checker sees our annotations; tests and docs stay at home."""
    names = zipfile.ZipFile(wheel).namelist()
    assert "admitperf/py.typed" in names
    assert {name.split("/")[0].split("-")[0] for name in names} == {"admitperf"}


def test_the_wheel_needs_click_and_nothing_more(installed, tmp_path):
    """The base install is small enough for a gateway's image."""
    ask = "import importlib.metadata as m; print(*(d.name for d in m.distributions()))"
    ran = subprocess.run(
        [installed / "python", "-c", ask],
        cwd=tmp_path, check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert set(ran.stdout.split()) - {"pip", "setuptools"} == {"admitperf", "click"}


def test_the_installed_tool_shows_its_help(installed, tmp_path):
    """`admitperf --help` works without one development package."""
    assert "Usage: admitperf" in run(installed, tmp_path, "--help")


def test_the_installed_tool_finds_its_own_policies(installed, tmp_path):
    """The entry points of the wheel, not of the checkout, are read."""
    listed = run(installed, tmp_path, "policies")
    assert "kv_threshold" in listed
    assert "rate_limit" in listed


def test_the_base_install_says_how_high_kv_pressure_can_get(installed, tmp_path):
    """`reach` needs no extra."""
    words = ("--kv-tokens", "384000", "--max-num-seqs", "64")
    said = run(installed, tmp_path, "reach", *words, "--tokens-per-request", "2168")
    assert "0.361" in said


@pytest.mark.parametrize("words", [("report", "x.jsonl"), ("demo",)])
def test_a_missing_extra_is_one_line_that_names_it(installed, tmp_path, words):
    """What reads logs needs DuckDB, and the base install has none."""
    (tmp_path / "x.jsonl").write_text("{}\n", encoding="utf-8")
    failed = ran(installed, tmp_path, *words)
    assert (failed.returncode, failed.stdout) == (2, "")
    assert failed.stderr.count("\n") == 1
    assert "of the extra admitperf[reports]: pip install duckdb" in failed.stderr


@pytest.mark.parametrize("words", [(), ("--recorded",)])
def test_the_installed_demo_runs_anywhere(complete, tmp_path, words):
    """The recorded run and all that the simulated one needs are inside the wheel."""
    assert "kv_threshold" in run(complete, tmp_path, "demo", *words)


def test_pages_and_dashboard_are_in_the_wheel(wheel, complete, tmp_path):
    """What is no module goes along: the template, the style and Streamlit's script."""
    names = zipfile.ZipFile(wheel).namelist()
    for name in ("page.html.jinja", "page.css"):
        assert f"admitperf/reports/html/{name}" in names
    run(complete, tmp_path, "demo", "--repeats", "1", "-o", "logs")
    log = "logs/demo/queue_depth/r1.jsonl"
    assert run(complete, tmp_path, "report", log, "--html", "x.html").startswith(
        "wrote"
    )
    assert "<svg" in (tmp_path / "x.html").read_text(encoding="utf-8")
    ask = "from admitperf.dashboard.start import _APP; print(_APP.is_file())"
    there = subprocess.run(
        [complete / "python", "-c", ask],
        cwd=tmp_path, check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert there.stdout == "True\n"


def test_the_installed_dashboard_serves(complete, tmp_path):
    """From the wheel alone, in a folder with nothing but an empty one of logs."""
    (tmp_path / "logs").mkdir()
    command = [complete / "admitperf", "dashboard", "logs"]
    with running(
        command, cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout.readline().startswith(b"dashboard at http://127.0.0.1:")
