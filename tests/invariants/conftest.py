"""Each invariant is held against every policy that is installed."""

import logging

import pytest
from tests.policies.verdicts import installed


def pytest_generate_tests(metafunc):
    """Give a test that asks for `policy_class` each installed policy."""
    if "policy_class" in metafunc.fixturenames:
        found = installed()
        metafunc.parametrize("policy_class", found.values(), ids=found)


@pytest.fixture(autouse=True)
def _quiet(caplog):
    """Blindness is said loudly, once per change; here it changes all the time."""
    caplog.set_level(logging.CRITICAL)
