"""The experiment with an arm of each kind, compared."""

import pytest
from tests.bench.design import experiments

from admitperf.bench.design.comparison import compare


@pytest.fixture(scope="session")
def verdicts(tmp_path_factory):
    """Of all arms."""
    return compare(experiments.every(tmp_path_factory.getbasetemp() / "every"))


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    """What those were made of."""
    return experiments.every(tmp_path_factory.getbasetemp() / "every").runs
