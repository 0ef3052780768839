"""The proxy as the gateway makes it, around a front door."""

import pytest
from tests.gateway.proxy.rig import pool

from admitperf.gateway.edge import Edge
from admitperf.gateway.proxy.app import proxy_of
from admitperf.gateway.setup import EdgeSetup, PoolSetup, Scrape


@pytest.fixture
def edge():
    """A front door of one pool with two replicas, each judged by itself."""
    setup = pool("http://127.0.0.1:1", "http://127.0.0.1:2")
    one = PoolSetup(upstreams=setup.upstreams, scrape=Scrape(view="replica"))
    made = Edge.of(EdgeSetup(pools=(one,)))
    yield made
    made.close()


def test_a_pool_judged_by_replica_asks_where_a_session_would_go(edge):
    """What the policy looks at is where the request goes."""
    app = proxy_of(edge)
    name = edge.pools["default"].choose("s")
    assert app.pools["default"].pick("s").name == name


def test_not_ready_before_the_first_look_and_while_draining(edge):
    """Both are reasons, each with the pool it is about."""
    app = proxy_of(edge)
    assert app._own.unready() == ["default: no reading of its engines yet"]
    edge.pools["default"].seen.rounds = 1
    assert app._own.unready() == []
    edge.drain()
    assert app._own.unready() == ["default: draining"]


def test_state_says_what_each_replica_has(edge):
    """Open requests by pool and replica, beside what the front door knows."""
    app = proxy_of(edge)
    app.pools["default"].pick(named="r1").__enter__()
    told = app._own.state()
    assert told["in_flight_by_replica"] == {"default": {"r0": 0, "r1": 1}}
    assert "default" in told["pools"]


def test_the_metrics_page_is_the_front_doors(edge):
    """Prometheus text."""
    assert b"# TYPE admitperf_" in proxy_of(edge)._own.metrics()
