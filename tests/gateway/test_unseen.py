"""A replica nobody sees is neither idle nor full: it is left alone, and tried."""

import pytest
from tests.scrape.server import http, servers

from admitperf.core.signals import QUEUE_DEPTH
from admitperf.gateway.proxy.balance import PROBED_S, Balancer
from admitperf.gateway.readings import STUCK_S, Readings
from admitperf.gateway.setup import PoolSetup, Scrape, Upstream
from admitperf.testing import FakeClock


@pytest.fixture
def serve():
    """Starts metrics pages."""
    with servers() as start:
        yield start


def page(waiting, running=1, cpu=1):
    """A metrics page of vLLM's."""
    return http(
        b"vllm:num_requests_waiting %d\nvllm:num_requests_running %d\n"
        b"process_cpu_seconds_total %d\n" % (waiting, running, cpu)
    )


def readings(*made, clock):
    """Readings of these servers, as r0, r1 ..."""
    replicas = [
        Upstream(url="", metrics_url=one.url, name=f"r{place}")
        for place, one in enumerate(made)
    ]
    return Readings(replicas, Scrape(), clock)


def balancer(unseen, clock):
    """Two replicas, some of them unseen."""
    upstreams = tuple(
        Upstream(url=f"http://h:{port}", metrics_url="", name=f"r{port}")
        for port in (0, 1)
    )
    made = Balancer(PoolSetup(upstreams=upstreams), clock=clock)
    made.unseen = lambda: unseen
    return made


def test_a_replica_whose_page_cannot_be_read_is_unseen(serve):
    """It adds nothing to the pool, and is named."""
    clock = FakeClock(start_s=100.0)
    seen = readings(serve(page(20)), serve(http(status="401 No")), clock=clock)
    seen.first()
    assert seen.unseen == {"r1"}


def test_a_page_that_stands_still_while_its_engine_works_is_unseen(serve):
    """Its queue of twenty would refuse everybody for ever."""
    clock, told = FakeClock(start_s=100.0), iter(range(1000))
    frozen = serve(lambda _: page(20, 8, next(told)))
    moving = serve(lambda _: page(0, next(told)))
    seen = readings(frozen, moving, clock=clock)
    seen.first()
    assert (seen.unseen, QUEUE_DEPTH.read(seen.pool)) == (frozenset(), 20)
    clock.advance(STUCK_S)
    seen.first()
    assert seen.unseen == {"r0"}
    assert QUEUE_DEPTH.read(seen.pool) == 0


def test_an_idle_page_may_stand_still(serve):
    """Nothing moves where nothing is done."""
    clock = FakeClock(start_s=100.0)
    seen = readings(serve(page(0, 0)), serve(page(0, 0)), clock=clock)
    for _ in range(3):
        seen.first()
        clock.advance(STUCK_S)
    assert seen.unseen == frozenset()


def test_when_all_stand_still_what_they_say_is_all_there_is(serve):
    """The policy's own probe finds out then."""
    clock = FakeClock(start_s=100.0)
    seen = readings(serve(page(20, 8)), clock=clock)
    for _ in range(3):
        seen.first()
        clock.advance(STUCK_S)
    assert seen.unseen == frozenset()
    assert QUEUE_DEPTH.read(seen.pool) == 20


def test_requests_go_where_something_is_seen():
    """But for one in ten seconds, which finds out."""
    clock = FakeClock(start_s=100.0)
    pool = balancer({"r1"}, clock)
    picked = []
    for _ in range(300):
        with pool.pick() as replica:
            picked.append(replica.name)
        clock.advance(0.1)
    assert 2 <= picked.count("r1") <= 1 + 30 / PROBED_S


def test_when_nothing_is_seen_all_are_used():
    """Blindness is for the policy's posture to answer."""
    pool = balancer({"r0", "r1"}, FakeClock(start_s=100.0))
    assert {pool.pick().name for _ in range(10)} == {"r0", "r1"}


def test_the_order_begins_with_the_least_busy():
    """And names every replica that may be asked."""
    pool = balancer(set(), FakeClock(start_s=100.0))
    with pool.replicas[0]:
        assert pool.order(None) == ["r1", "r0"]
