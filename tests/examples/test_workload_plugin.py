"""A workload in somebody else's package is offered like ours."""

import subprocess
import sys

import pytest

USE = """
from admitperf.bench.workloads import available, workload

print(available()["acme-contracts"])
made = workload("acme-contracts", sessions=7).fitting(2_000)
print(len(made.pool()), len(made.begun(0.5, 100.0, 1)), made.words())
"""


def test_installing_the_package_is_enough(root, tmp_path):
    """No change here, no registration; it fits any engine, and says so."""
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps",
         "--disable-pip-version-check", "--no-build-isolation", "--target", tmp_path,
         root / "examples" / "acme_bench"],
        check=True,
    )  # fmt: skip
    ran = subprocess.run(
        [sys.executable, "-c", USE],
        env={"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert ran.returncode == 0, ran.stderr
    first, second = ran.stdout.splitlines()
    assert first.startswith("Somebody reads a contract")
    count, begun, *words = second.split()
    assert int(count) == 7
    assert int(begun) >= 50  # and those under way
    assert "divided by 4" in " ".join(words)


def test_its_questions_go_on_from_each_other(root, monkeypatch):
    """And from what all contracts begin with."""
    monkeypatch.syspath_prepend(root / "examples" / "acme_bench")
    from acme_bench import contracts

    one, other = contracts(sessions=2).pool()
    sys.modules.pop("acme_bench")
    first, second, _ = one.calls
    assert first.prefix[0] == other.calls[0].prefix[0]
    assert second.prefix[1][1] > first.prefix[1][1]
    assert second.gap_s == pytest.approx(20.0)
    assert contracts(sessions=2).synthetic
