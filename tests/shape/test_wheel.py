"""What is built is what was tested."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest


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
    folder = tmp_path_factory.mktemp("clean") / "venv"
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    pip = [folder / "bin" / "python", "-m", "pip", "install", "--quiet", wheel]
    subprocess.run(pip, check=True, capture_output=True, text=True)
    return folder / "bin"


def run(installed, cwd, *words):
    """The standard output of one command of the installed tool."""
    ran = subprocess.run(
        [installed / "admitperf", *words],
        cwd=cwd, check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


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


def test_the_installed_demo_runs_anywhere(installed, tmp_path):
    """The recorded run is inside the wheel."""
    assert "SHADOW" in run(installed, tmp_path, "demo")
