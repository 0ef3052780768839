"""Result files of other tools."""

from pathlib import Path

import pytest

from admitperf.bench.interchange.judged import judge
from admitperf.bench.interchange.read import read

HERE = Path(__file__).parent / "data"


@pytest.fixture
def made():
    """Where a file lies that a tool's own code wrote."""
    return lambda name: HERE / name


@pytest.fixture
def judged():
    """Read a file and hold its runs to bounds."""

    def _judged(path, **bounds):
        return [judge(run, bounds) for run in read(path)]

    return _judged
