"""What writing the built-in policies found out about core."""

from typing import ClassVar

import pytest

from admitperf import ConfigError, Policy
from admitperf.policies.in_flight_cap import InFlightCap
from admitperf.testing import FakeClock


def test_a_tenant_with_an_empty_name_keeps_its_place():
    """The end of a request that names no tenant frees nobody's bound."""
    policy = InFlightCap(max_per_tenant=1, reports_outcomes=True, clock=FakeClock())
    assert policy({}, tenant="").admitted
    nameless = policy({}, session="s")
    policy.outcome(nameless.request_id)
    assert policy.ledger.tenant_in_flight("") == 1
    assert policy({}, tenant="").reason == "caller_in_flight"


@pytest.mark.parametrize("name", ["ledger", "settings", "decide", "outcome", "admit"])
def test_a_declared_parameter_cannot_take_an_attributes_place(name):
    """A parameter that would be overwritten, or break a method, is a fault at once."""
    cls = type(
        "Shadowing",
        (Policy,),
        {"name": "shadowing", "__annotations__": {name: int}, name: 3},
    )
    with pytest.raises(ConfigError, match=name):
        cls()


@pytest.mark.parametrize("name", ["ledger", "admit", "decide", "outcome", "name"])
def test_a_free_keyword_cannot_take_an_attributes_place(name):
    """`Policy(admit=0.5)` is told at construction, not by every decision failing."""

    class Free(Policy):
        name = "free"

        def decide(self, metrics):
            return self.admit()

    with pytest.raises(ConfigError, match=name):
        Free(**{name: 0.5})


def test_a_bare_classvar_is_no_parameter():
    """`reasons: ClassVar = {...}` is how type checkers want it written."""

    class Own(Policy):
        name = "own"
        reasons: ClassVar = {}

    assert Own.declared() == {}
