"""The proxy as the gateway makes it, around a front door."""

import pytest
from tests.gateway.proxy.rig import pool

from admitperf.gateway.edge import Edge, Fixed
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
    first, _ = edge.pools["default"].order("s")
    assert app.pools["default"].pick("s").name == first


def test_not_ready_before_the_first_look_and_while_draining(edge):
    """Both are reasons, each with the pool it is about."""
    app = proxy_of(edge)
    assert app._own.unready() == ["default: no reading of its engines yet"]
    edge.pools["default"].seen.rounds = 1
    assert app._own.unready() == []
    edge.drain()
    assert app._own.unready() == ["default: draining"]


@pytest.mark.parametrize(
    ("policy", "parameters", "ready"),
    [
        ("no_admission", {}, True),
        ("in_flight_cap", {"max_in_flight": 5, "max_per_tenant": 2}, True),
        ("rate_limit", {"rate_per_s": 1.0}, True),
        ("queue_depth", {"max_waiting": 5}, False),
    ],
)
def test_only_a_policy_that_needs_an_engines_word_waits_for_one(
    policy, parameters, ready
):
    """Facts of requests and our own counts are there without a page."""
    one = PoolSetup(
        upstreams=pool("http://127.0.0.1:1").upstreams,
        policy=policy,
        parameters=parameters,
    )
    made = Edge.of(EdgeSetup(pools=(one,)))
    made.pools["default"].seen.rounds = 1  # and the engine's page was not there
    reasons = proxy_of(made)._own.unready()
    made.close()
    assert reasons == ([] if ready else ["default: no reading of its engines yet"])


def test_a_signal_that_no_page_has_is_a_reason(edge):
    """What would have stopped the start is said once it is known."""
    app = proxy_of(edge)
    edge.pools["default"].seen.rounds = 1
    edge.pools["default"].missing = "queue_depth is not there"
    assert app._own.unready() == ["default: queue_depth is not there"]


def test_a_host_that_hands_readings_in_is_ready(edge):
    """There is no round to wait for."""
    app = proxy_of(edge)
    edge.pools["default"].seen = Fixed()
    assert app._own.unready() == []


def test_state_says_what_each_replica_has(edge):
    """Open requests by pool and replica, beside what the front door knows."""
    app = proxy_of(edge)
    app.pools["default"].pick(named="r1").__enter__()
    told = app._own.state()
    assert told["in_flight_by_replica"] == {"default": {"r0": 0, "r1": 1}}
    assert "default" in told["pools"]


def test_the_metrics_page_is_the_front_doors(edge):
    """Prometheus text, with what each replica has."""
    app = proxy_of(edge)
    app.pools["default"].pick(named="r1").__enter__()
    page = app._own.metrics()
    for name, count in (("r0", b"0.0"), ("r1", b"1.0")):
        labels = b'{pool="default",replica="%b"} ' % name.encode()
        assert b"admitperf_replica_in_flight" + labels + count in page
