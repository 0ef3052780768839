"""What engines say, read in a thread of its own."""

import threading

import pytest
from tests.scrape.server import http, servers

from admitperf.core.signals import QUEUE_DEPTH, RUNNING
from admitperf.gateway.readings import Readings
from admitperf.gateway.setup import Scrape, Upstream


@pytest.fixture
def serve():
    """Starts metrics pages."""
    with servers() as start:
        yield start


def page(waiting, running=1):
    """A metrics page of vLLM's."""
    return http(
        b"# TYPE vllm:num_requests_waiting gauge\n"
        b"vllm:num_requests_waiting %d\nvllm:num_requests_running %d\n"
        % (waiting, running)
    )


def readings(*made, **scrape):
    """Readings of these servers, as r0, r1 ..."""
    replicas = [
        Upstream(url="", metrics_url=one.url, name=f"r{place}")
        for place, one in enumerate(made)
    ]
    return Readings(replicas, Scrape(interval_s=0.05, **scrape))


def test_the_pool_is_all_replicas_in_one_reading(serve):
    """Queues add up; every series says whose it is."""
    seen = readings(serve(page(3)), serve(page(4)))
    assert seen.first() == {}
    assert any('replica="r1"' in key for key in seen.pool.raw)
    assert sum(v for k, v in seen.pool.raw.items() if "waiting" in k) == 7


def test_each_replica_has_a_reading_of_its_own_where_policies_judge_by_it(serve):
    """The pool's is used until there is one."""
    seen = readings(serve(page(3)), serve(page(4)), view="replica")
    seen.first()
    assert QUEUE_DEPTH.read(seen.replica("r1")) == 4
    assert seen.replica("r1").replica == "r1"
    assert seen.replica("nobody") is seen.pool


def test_own_requests_since_are_to_be_added(serve):
    """A front door knows what it let in since the page was asked for."""
    seen = readings(serve(page(3)))
    seen.first()
    assert seen.pool.own_since is True


def test_a_replica_that_cannot_be_read_is_named(serve):
    """The others are still seen, and it is neither idle nor full."""
    seen = readings(serve(page(3)), serve(http(status="401 Unauthorized")))
    assert list(seen.first()) == ["r1"]
    assert QUEUE_DEPTH.read(seen.pool) == 3


def test_when_nothing_answers_the_last_reading_ages(serve):
    """It is not replaced by an empty one, nor renewed."""
    server = serve(page(3))
    seen = readings(server)
    seen.first()
    before = seen.pool
    server.close()
    assert list(seen.first()) == ["r0"]
    assert seen.pool is before


def test_new_readings_are_told(serve):
    """Whoever is held is asked about again."""
    told = threading.Event()
    seen = readings(serve(page(3)))
    seen.start(told.set)
    assert told.wait(10)
    seen.stop()
    assert RUNNING.read(seen.pool) == 1
    assert seen.rounds >= 1
