"""Which pool a request belongs to, and a front door made from its description."""

import pytest

from admitperf.core.errors import ConfigError
from admitperf.gateway.edge import Edge
from admitperf.gateway.setup import EdgeSetup, PoolSetup, Upstream


def upstream(port=1):
    """A replica nobody asks."""
    url = f"http://127.0.0.1:{port}"
    return Upstream(url=url, metrics_url=f"{url}/metrics", name=f"127.0.0.1:{port}")


def pool(name="default", models=(), policy="queue_depth", **told):
    """A pool of one replica."""
    return PoolSetup(
        name=name, models=models, upstreams=(upstream(),), policy=policy, **told
    )


def edge(*pools):
    """A front door of these pools."""
    return Edge.of(EdgeSetup(pools=pools))


def test_a_model_goes_to_the_pool_that_names_it():
    """Others, and requests without a model, to the pool that names none."""
    made = edge(pool("small", ("s", "tiny")), pool("rest"))
    assert made.pool_of("tiny").name == "small"
    assert made.pool_of("unknown").name == made.pool_of(None).name == "rest"


def test_a_model_nobody_serves_has_no_pool():
    """When every pool names its models."""
    made = edge(pool("a", ("m",)), pool("b", ("n",)))
    assert made.pool_of("x") is None


def test_the_first_pool_takes_requests_that_name_no_model():
    """Its engine knows what they lack."""
    assert edge(pool("a", ("m",)), pool("b", ("n",))).pool_of(None).name == "a"


def test_every_fault_of_every_pool_is_said_at_once():
    """An operator fixes them in one go."""
    with pytest.raises(ConfigError) as caught:
        edge(
            pool("a", parameters={"max_waiting": -1, "action": "wait"}),
            pool("b", policy="no_such_policy"),
        )
    faults = caught.value.faults
    assert len(faults) == 3
    assert sum(fault.startswith("pools[0]: ") for fault in faults) == 2
    assert any("no_such_policy" in fault for fault in faults)


def test_the_policy_counts_what_is_open_from_the_start():
    """This host reports every end."""
    made = edge(pool(policy="in_flight_cap"))
    assert made.pools["default"].policy.ledger.live
