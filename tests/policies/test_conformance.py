"""Every installed policy passes the kit that plug-ins pass."""

import pytest
from tests.policies.verdicts import needed, otherwise

from admitperf.policies import available
from admitperf.testing import check_policy


@pytest.mark.parametrize("name", sorted(available()))
def test_an_installed_policy_conforms_by_name(name):
    """With nothing but its defaults it keeps to every rule of the kit."""
    check_policy(name, **needed(name))


@pytest.mark.parametrize(("name", "parameters"), otherwise())
def test_ours_conform_away_from_their_defaults(name, parameters):
    """No parameter opens a way around the rules."""
    check_policy(name, **{**needed(name), **parameters})
