"""A metric in somebody else's package stands in every summary."""

import subprocess
import sys

import pytest
from tests.bench.callers.test_score import answered, refused, scored

USE = """
from admitperf.bench.callers.metrics import installed

print(*installed())
"""


@pytest.fixture
def metric(root, monkeypatch):
    """The metric of the example, from its source."""
    monkeypatch.syspath_prepend(root / "examples" / "acme_bench")
    from acme_bench import first_answer_s

    yield first_answer_s
    sys.modules.pop("acme_bench", None)


def test_installing_the_package_is_enough(root, tmp_path):
    """No change here, no registration."""
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
    assert "acme_first_answer_s" in ran.stdout.split(), ran.stderr


def test_it_counts_who_was_never_answered(metric):
    """Of three sessions one was refused: the middle one waited 2 s, 1.5 s at first."""
    records = [
        answered(1, due_s=5.0, begun_s=5.0, ttft_ms=100.0),
        answered(2, due_s=8.5, begun_s=7.0, ttft_ms=500.0),
        refused(3),
    ]
    assert scored(records, metrics=[metric]).extra == {metric.name: 2.0}


def test_refusing_most_of_them_is_no_way_to_a_short_wait(metric):
    """The median session was never answered, and no number is made up."""
    found = scored([answered(1), refused(2), refused(3)], metrics=[metric])
    assert found.extra == {metric.name: None}
    assert found.withheld[f"extra.{metric.name}"] == "it cannot be told"
    assert metric([], None) is None
