"""Runs by hand, as the questions see them."""

import pytest

from admitperf.reports.questions.seen import looked


@pytest.fixture
def see(write):
    """What the questions see of lines, as the log of one run."""

    def _see(*lines, slo=None):
        with looked([write(*lines)], slo) as found:
            (seen,) = found.seen
        return seen

    return _see
