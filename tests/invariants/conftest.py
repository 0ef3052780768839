"""Each invariant is held against every policy that is installed."""

import logging

import pytest

from admitperf.policies import available


def pytest_generate_tests(metafunc):
    """Give a test that asks for `policy_class` each installed policy."""
    if "policy_class" in metafunc.fixturenames:
        metafunc.parametrize("policy_class", available().values(), ids=available())


@pytest.fixture(autouse=True)
def _quiet(caplog):
    """Blindness is said loudly, once per change; here it changes all the time."""
    caplog.set_level(logging.CRITICAL)
