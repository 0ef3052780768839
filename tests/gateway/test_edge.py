"""Which pool a request belongs to, and a front door made from its description."""

import asyncio
import threading

import pytest

from admitperf.core.errors import ConfigError
from admitperf.core.policy import Policy
from admitperf.core.reading import Reading
from admitperf.gateway.edge import Edge, Fixed
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


LONG_S = 20.0
"""After so long a test is let go that would hang."""


class Slow(Policy):
    """Has work that lasts until it is let go."""

    name = "slow"

    def __init__(self, **given):
        super().__init__(**given)
        self.begun, self.go, self.readings = threading.Event(), threading.Event(), 0

    def decide(self, metrics):
        """Admit."""
        return self.admit()

    def observe(self, metrics, outcome):
        """Count readings."""
        self.readings += outcome is None

    def task(self, metrics):
        """Last."""
        self.begun.set()
        return lambda: self.go.wait(LONG_S)


class Read(Fixed):
    """Readings that a test makes."""

    def start(self, on_new):
        """Keeps whom to tell."""
        self.tell = on_new


def test_readings_go_on_while_a_policy_works():
    """What takes long has a thread of its own: neither the loop's nor the reader's."""
    policy, seen = Slow(), Read()
    setup = EdgeSetup(pools=(pool(),))
    made = Edge(setup, {"default": policy}, {"default": seen})

    async def run():
        made.start()
        for n in range(20):
            seen.pool = Reading({"queue_depth": float(n)})
            seen.tell()
        assert policy.begun.wait(LONG_S)
        assert policy._at_work.locked()
        assert policy.readings == 20

    asyncio.run(run())
    policy.go.set()
