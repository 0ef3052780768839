"""What engines say, read in a thread of its own."""

import threading

import pytest
from tests.scrape.server import http, servers

from admitperf.core.signals import QUEUE_DEPTH, RUNNING
from admitperf.gateway import readings as module
from admitperf.gateway.readings import Readings
from admitperf.gateway.setup import Scrape, Upstream
from admitperf.scrape.fault import ScrapeError
from admitperf.scrape.watch import Round


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


@pytest.fixture
def pair():
    """Readings of two replicas, a and b, of which a's port begins like b's."""
    at = {"a": "http://h:81/metrics", "b": "http://h:8100/metrics"}
    return Readings(
        [Upstream(url="", metrics_url=url, name=name) for name, url in at.items()],
        Scrape(),
    )


def round_of(*failed, pages=()):
    """A round in which these addresses failed, and these were read."""
    faults = tuple(ScrapeError("x", f"http://{one}", "refused") for one in failed)
    return Round(0, dict.fromkeys(pages), 0, faults, (), 0)


def test_a_fault_is_that_of_the_replica_it_names(pair):
    """Also where the address of another one is the beginning of its own."""
    pair._note(round_of("h:8100/metrics"))
    assert list(pair.failed) == ["b"]


def test_a_fault_after_a_redirect_is_that_of_its_host(pair):
    """The page it led to is nobody else's."""
    pair._note(round_of("h:8100/elsewhere"))
    assert list(pair.failed) == ["b"]


def test_one_that_is_still_busy_stays_what_it_was(pair):
    """A round without its answer says nothing about it."""
    pair._note(round_of("h:81/metrics"))
    pair._note(round_of(pages=["h:8100"]))
    assert list(pair.failed) == ["a"]


def test_each_change_of_a_replica_is_said_once(pair, monkeypatch):
    """With the name of its pool, and when there is none left."""
    lines = []
    monkeypatch.setattr(module, "tell", lambda what, _clock: lines.append(what))
    pair.speak_for("small")
    for one in (
        round_of("h:81/metrics", pages=["h:8100"]),
        round_of("h:81/metrics", pages=["h:8100"]),
        round_of("h:81/metrics", "h:8100/metrics"),
        round_of(pages=["h:81", "h:8100"]),
    ):
        pair._note(one)
    assert lines == [
        "pool small: replica a cannot be read: refused",
        "pool small: replica b cannot be read: refused; none of the pool's can be",
        "pool small: replica a is read again",
        "pool small: replica b is read again",
    ]


def test_nothing_is_said_before_somebody_wants_it(pair, monkeypatch):
    """The first round has a page of its own."""
    monkeypatch.setattr(module, "tell", None)
    pair._note(round_of("h:81/metrics"))
    assert list(pair.failed) == ["a"]


def test_a_fault_of_whoever_is_told_does_not_end_the_readings(serve, monkeypatch):
    """It is said once, and reading goes on."""
    lines, often = [], threading.Event()

    def fail():
        if seen.rounds > 2:
            often.set()
        raise KeyError("x")

    monkeypatch.setattr(module, "say", lines.append)
    seen = readings(serve(page(3)))
    seen.start(fail)
    assert often.wait(10)
    seen.stop()
    assert lines == ["a round of readings failed: KeyError: 'x'"]


def test_rounds_that_cannot_begin_are_tried_again(serve, monkeypatch):
    """A thread that is not to be had today may be to be had a moment later."""
    seen, told = readings(serve(page(3))), threading.Event()
    rounds, tries = seen._watcher.rounds, []

    def begin(count):
        tries.append(count)
        if len(tries) == 1:
            raise RuntimeError("can't start new thread")
        return rounds(count)

    monkeypatch.setattr(module, "say", lambda _: None)
    monkeypatch.setattr(seen._watcher, "rounds", begin)
    seen.start(told.set)
    assert told.wait(10)
    seen.stop()
