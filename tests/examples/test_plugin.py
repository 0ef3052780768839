"""A policy in somebody else's package is found, loaded and held to the same rules."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

USE = """
from admitperf.policies import load
from admitperf.testing import FakeClock, check_policy

Policy = load("acme_budget")
check_policy(Policy)
policy = Policy(tokens_per_minute=1000, clock=FakeClock())
wish = {"tenant": "a", "input_tokens": 400, "max_output_tokens": 200}
first, second = policy({}, **wish), policy({}, **wish)
assert first.admitted
assert (second.verdict, second.reason, second.status) == ("reject", "acme_budget", 429)
assert int(second.headers()["Retry-After"]) <= 60
assert policy({}, **{**wish, "tenant": "b"}).admitted
"""
OTHER = """
[admitperf.policies]
acme_budget = somewhere_else:Budget
"""


@pytest.fixture(scope="module")
def installed(root, tmp_path_factory):
    """A folder into which pip has installed the example package, and nothing else."""
    target = tmp_path_factory.mktemp("site")
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps",
         "--disable-pip-version-check", "--no-build-isolation", "--target", target,
         root / "examples" / "acme_policy"],
        check=True,
    )  # fmt: skip
    return target


def run(command, *folders):
    """Run a command that sees these folders besides the environment's packages."""
    path = os.pathsep.join(map(str, folders))
    return subprocess.run(
        [str(part) for part in command],
        env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True,
        check=False, timeout=60,
    )  # fmt: skip


def admitperf(*arguments):
    """The tool's command line."""
    return [Path(sys.executable).with_name("admitperf"), *arguments]


def test_the_tool_lists_it_beside_ours(installed):
    """Installing a package is enough: no change here, no registration."""
    without, present = run(admitperf("policies")), run(admitperf("policies"), installed)
    assert without.returncode == present.returncode == 0, present.stderr
    assert "acme_budget" not in without.stdout
    assert "acme_budget" in present.stdout
    assert "kv_threshold" in present.stdout


def test_it_conforms_and_refuses_for_its_own_reason(installed):
    """The conformance kit holds for it, and its own reason has its own status."""
    ran = run([sys.executable, "-c", USE], installed)
    assert ran.returncode == 0, ran.stderr


def test_two_packages_offering_one_name_are_both_named(installed, tmp_path):
    """Nobody gets one of two policies by chance: the error names both packages."""
    other = tmp_path / "other_budget-2.0.dist-info"
    other.mkdir()
    (other / "METADATA").write_text("Name: other-budget\nVersion: 2.0\n")
    (other / "entry_points.txt").write_text(OTHER)
    load = "from admitperf.policies import load; load('acme_budget')"
    ran = run([sys.executable, "-c", load], installed, tmp_path)
    assert ran.returncode != 0
    last = ran.stderr.splitlines()[-1]
    assert "BadPlugin" in last
    assert "acme-policy" in last
    assert "other-budget" in last


def test_an_import_that_fails_names_the_package(installed, tmp_path):
    """A broken plug-in is a fault of that package, said so, and not of the others."""
    broken = tmp_path / "broken_budget-1.0.dist-info"
    broken.mkdir()
    (broken / "METADATA").write_text("Name: broken-budget\nVersion: 1.0\n")
    (broken / "entry_points.txt").write_text(OTHER.replace("acme", "broken"))
    load = "from admitperf.policies import load; load('{}')"
    failed = run([sys.executable, "-c", load.format("broken_budget")], tmp_path)
    assert "BadPlugin" in failed.stderr.splitlines()[-1]
    assert "broken-budget" in failed.stderr.splitlines()[-1]
    fine = run([sys.executable, "-c", load.format("queue_depth")], tmp_path)
    assert fine.returncode == 0, fine.stderr
