"""A front door around a test's app."""

import pytest

from admitperf.gateway.edge import Fixed, one_pool
from admitperf.gateway.middleware import AdmissionMiddleware
from admitperf.gateway.setup import EdgeSetup, Holding, Limits, PoolSetup
from admitperf.policies import load
from admitperf.testing import MemoryLog


class Door:
    """A middleware, its pool, and the lines it logged."""

    def __init__(self, app, name="in_flight_cap", *, setup=None, reading=None, **given):
        self.log = MemoryLog()
        given = {"reports_outcomes": True, "log": self.log, **given}
        self.policy = load(name)(**given) if isinstance(name, str) else name(**given)
        setup = setup or EdgeSetup()
        edge = one_pool(self.policy, Fixed(reading), setup)
        self.app = AdmissionMiddleware(app, edge=edge)
        (self.pool,) = edge.pools.values()
        self.edge = edge

    @property
    def open(self):
        """Leases that are held."""
        return self.policy.ledger.in_flight

    def lines(self, kind):
        """What was logged of a kind."""
        return [line for line in self.log.lines if line["k"] == kind]


def holding(defer="hold", limits=None, **told):
    """A setup whose pool holds."""
    pool = PoolSetup(holding=Holding(defer=defer, **told))
    return EdgeSetup(pools=(pool,), limits=limits or Limits())


@pytest.fixture
def door():
    """Makes doors."""
    return Door


@pytest.fixture(name="holding")
def holding_setup():
    """Makes setups that hold."""
    return holding
