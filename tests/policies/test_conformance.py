"""Every installed policy passes the kit that plug-ins pass."""

import pytest

from admitperf.policies import available
from admitperf.testing import check_policy

OTHERWISE = [
    ("kv_threshold", {"threshold": 0.0, "action": "reject"}),
    ("queue_depth", {"max_waiting": 0, "action": "reject"}),
    ("dual_gate", {"match": "any"}),
    ("in_flight_cap", {"max_in_flight": None, "max_per_tenant": 1}),
    ("in_flight_cap", {"max_in_flight": None, "max_per_session": 1}),
    ("in_flight_cap", {"max_in_flight": 3, "max_per_tenant": 2, "max_per_session": 1}),
    ("rate_limit", {"rate_per_s": 0.001, "burst": 1}),
    ("rate_limit", {"per": "pool", "burst": 3}),
]


@pytest.mark.parametrize("name", sorted(available()))
def test_an_installed_policy_conforms_by_name(name):
    """With nothing but its defaults it keeps to every rule of the kit."""
    check_policy(name)


@pytest.mark.parametrize(("name", "parameters"), OTHERWISE)
def test_ours_conform_away_from_their_defaults(name, parameters):
    """No parameter opens a way around the rules."""
    check_policy(name, **parameters)
