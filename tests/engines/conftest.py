"""Signals know their engines here, whoever imported what before."""

import pytest

from admitperf.engines.catalogue import install


@pytest.fixture(autouse=True, scope="session")
def installed():
    """Every signal has its engines' sources."""
    install()
