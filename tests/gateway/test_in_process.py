"""An engine's metrics, read in the engine's own process."""

import os
import subprocess
import sys
import threading

import pytest
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from admitperf.core.signals import KV_CAPACITY_TOKENS, QUEUE_DEPTH, RUNNING
from admitperf.gateway.in_process import InProcess, RegistryPage
from admitperf.gateway.setup import Scrape
from admitperf.testing import FakeClock

EACH = "vllm:num_requests_{}"
FILES = """
from prometheus_client import Counter, Gauge, Histogram
running = Gauge("vllm:num_requests_running", "", ["engine"],
                multiprocess_mode="mostrecent").labels("0")
waiting = Gauge("vllm:num_requests_waiting", "", ["engine"],
                multiprocess_mode="mostrecent").labels("0")
Counter("vllm:num_preemptions", "", ["engine"]).labels("0").inc(2)
Histogram("vllm:e2e_request_latency_seconds", "", ["engine"]).labels("0").observe(1)
running.set({})
"""


class Engine:
    """The metrics of an engine, in a registry of its own."""

    def __init__(self):
        self.registry = CollectorRegistry()
        self.waiting = self.gauge(EACH.format("waiting")).labels("0")
        self.running = self.gauge(EACH.format("running")).labels("0")

    def gauge(self, name, labels=("engine",)):
        """One more gauge."""
        return Gauge(name, "", labels, registry=self.registry)

    def page(self, folder=None):
        """Reads it."""
        return RegistryPage(self.registry, "vllm:", folder)


@pytest.fixture
def engine():
    """An engine with nothing to do."""
    return Engine()


def test_gauges_and_counters_are_read_and_histograms_are_not(engine):
    """Under the keys a page has, and nothing of anybody else's."""
    engine.waiting.set(3)
    counted = Counter("vllm:num_preemptions", "", ["engine"], registry=engine.registry)
    counted.labels("0").inc(7)
    Histogram("vllm:e2e_seconds", "", registry=engine.registry).observe(1)
    Gauge("process_open_fds", "", registry=engine.registry).set(9)
    assert engine.page()() == {
        'vllm:num_preemptions_total{engine="0"}': 7,
        'vllm:num_requests_running{engine="0"}': 0,
        'vllm:num_requests_waiting{engine="0"}': 3,
    }


def test_a_policy_reads_its_signals_from_it(engine):
    """Of every rank, and what stands in labels."""
    config = engine.gauge("vllm:cache_config_info", ["kv_cache_size_tokens", "engine"])
    config.labels("1536", "0").set(1)
    engine.gauge("vllm:num_requests_swapped", []).set(1)
    engine.waiting.set(3)
    seen = InProcess(engine.page(), Scrape())
    assert seen.first() == {}
    assert QUEUE_DEPTH.read(seen.pool) == 3
    assert RUNNING.read(seen.pool) == 0
    assert KV_CAPACITY_TOKENS.read(seen.pool) == 1536
    assert seen.replica("any") is seen.pool
    assert seen.pool.own_since


def test_labels_are_written_as_a_page_writes_them(engine):
    """Quotes, backslashes and line ends in a value break no key."""
    engine.gauge("vllm:odd", ["name"]).labels('a"b\\c\nd').set(1)
    (key,) = [one for one in engine.page()() if "odd" in one]
    assert key == 'vllm:odd{name="a\\"b\\\\c\\nd"}'


def test_of_several_processes_the_newest_word_counts(engine, tmp_path):
    """And what none of them has said yet comes from this one, so that it is known."""
    for value in (4, 6):
        ran = subprocess.run(
            [sys.executable, "-c", FILES.format(value)],
            env=os.environ | {"PROMETHEUS_MULTIPROC_DIR": str(tmp_path)},
            capture_output=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr.decode()
    engine.running.set(1)
    page = engine.page(tmp_path)()
    assert page['vllm:num_requests_running{engine="0"}'] == 6
    assert page['vllm:num_requests_waiting{engine="0"}'] == 0
    assert page['vllm:num_preemptions_total{engine="0"}'] == 4
    assert not [key for key in page if "latency" in key]


def test_a_reading_that_fails_leaves_the_last_one_to_age(engine):
    """It is counted, and why is known until one succeeds again."""
    clock = FakeClock()
    pages = [engine.page()(), OSError("no such file"), engine.page()()]

    def page():
        one = pages.pop(0)
        if isinstance(one, OSError):
            raise one
        return one

    seen = InProcess(page, Scrape(), clock=clock)
    assert seen.first() == {}
    last = seen.pool
    clock.advance(1.0)
    assert seen.first() == {"engine": "OSError: no such file"}
    assert seen.pool is last
    assert (seen.rounds, seen.failures) == (2, 1)
    assert seen.first() == {}
    assert seen.pool.taken_ns == clock.monotonic_ns()


def test_it_keeps_reading_until_it_is_stopped(engine):
    """In a thread of its own, which tells about each reading."""
    told = threading.Semaphore(0)
    seen = InProcess(engine.page(), Scrape(interval_s=0.01))
    seen.start(told.release)
    seen.start(told.release)
    engine.waiting.set(8)
    for _ in range(3):
        assert told.acquire(timeout=5)
    assert QUEUE_DEPTH.read(seen.pool) == 8
    seen.stop()
    rounds = seen.rounds
    assert not [
        one for one in threading.enumerate() if one.name == "admitperf-readings"
    ]
    assert seen.rounds == rounds


def test_nothing_ends_the_thread_that_reads(engine, caplog):
    """What is done after a reading may fail each time; it is said once."""
    seen = InProcess(engine.page(), Scrape(interval_s=0.01))
    tried = threading.Semaphore(0)

    def fails():
        tried.release()
        raise OSError("disk full")

    seen.start(fails)
    for _ in range(3):
        assert tried.acquire(timeout=5)
    seen.stop()
    assert caplog.messages == ["after a reading: OSError: disk full"]
