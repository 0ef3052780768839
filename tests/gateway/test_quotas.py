"""What a tenant may have at most."""

from admitperf.gateway.quotas import Quotas
from admitperf.gateway.setup import Tenant

SECOND_NS = 1_000_000_000


def admitted(quotas, tenant, at_s, count):
    """How many of so many requests at one time have room; those are charged."""
    let_in = 0
    for _ in range(count):
        if quotas.over(tenant, 0, at_s * SECOND_NS) is None:
            quotas.charge(tenant, at_s * SECOND_NS)
            let_in += 1
    return let_in


def test_a_minutes_requests_may_come_at_once_and_no_more():
    """Ten a minute: ten now, one six seconds later."""
    quotas, tenant = Quotas(), Tenant(name="acme", per_minute=10)
    assert admitted(quotas, tenant, 100, 15) == 10
    assert admitted(quotas, tenant, 105, 5) == 0
    assert admitted(quotas, tenant, 106, 5) == 1


def test_the_wait_is_when_the_next_one_has_room():
    """Six seconds after ten at once."""
    quotas, tenant = Quotas(), Tenant(name="acme", per_minute=10)
    admitted(quotas, tenant, 100, 10)
    assert quotas.over(tenant, 0, 100 * SECOND_NS) == ("rate_limit", 10, 10, 6000.0)
    assert quotas.over(tenant, 0, 103 * SECOND_NS) == ("rate_limit", 10, 10, 3000.0)


def test_less_than_one_a_minute_still_lets_one_in():
    """Half a request a minute is one each two minutes."""
    quotas, tenant = Quotas(), Tenant(name="acme", per_minute=0.5)
    assert admitted(quotas, tenant, 1000, 3) == 1
    assert admitted(quotas, tenant, 1100, 3) == 0
    assert admitted(quotas, tenant, 1120, 3) == 1


def test_open_requests_are_bounded_first():
    """A tenant with two of two open is told so."""
    tenant = Tenant(name="acme", in_flight=2, per_minute=100)
    assert Quotas().over(tenant, 2, 0) == ("caller_in_flight", 2, 2, None)
    assert Quotas().over(tenant, 1, 0) is None
