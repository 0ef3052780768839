"""Field cases about metrics whose answer is a decision, not a reading."""

import logging

import pytest

from admitperf import Reading
from admitperf.core.signals import KV_PRESSURE
from admitperf.engines.catalogue import install
from admitperf.engines.exposition import parse
from admitperf.policies.kv_threshold import KvThreshold
from admitperf.testing import FakeClock, MemoryLog


@pytest.fixture(autouse=True)
def catalogue(caplog):
    """The signals know their engines, and blindness is expected."""
    install()
    caplog.set_level(logging.ERROR, logger="admitperf")


@pytest.fixture
def clock():
    """Time, in the test's hands."""
    return FakeClock(start_s=100.0, wall_s=1.7e9)


@pytest.fixture
def log():
    """A log to look into."""
    return MemoryLog()


@pytest.mark.parametrize("scraped", [True, False])
def test_s_met_07_a_gauge_frozen_high_does_not_lock_the_engine_out(
    data, clock, log, scraped
):
    """Within 10 s a request is let through as a probe, and the log says why."""
    body = (data / "cases/s-met-07/stuck.txt").read_text("utf-8")
    policy = KvThreshold(threshold=0.90, clock=clock, log=log)
    admitted = []
    for second in range(60):
        page = parse(body)
        raw = Reading(page, taken_ns=clock.monotonic_ns()) if scraped else page
        admitted.append(policy(raw, request_id=f"r{second}").admitted)
        clock.advance(1.0)
    assert True in admitted[:10]
    assert admitted[0] is False
    probe = log.decisions[admitted.index(True)]
    assert (probe["reason"], probe["verdict"]) == ("signal_stale", "admit")
    assert "contradicts running 0 and queue_depth 0" in probe["why"]
    refused = [line for line in log.decisions if not line["admitted"]]
    assert {line["reason"] for line in refused} == {"kv_pressure"}


def test_s_met_07_one_running_request_makes_the_gauge_believable_again(
    data, clock, log
):
    """A full engine that works is full: only the contradiction is doubted."""
    body = (data / "cases/s-met-07/stuck.txt").read_text("utf-8")
    busy = body.replace(
        'running{engine="0",model_name="m"} 0.0',
        'running{engine="0",model_name="m"} 3.0',
    )
    assert busy != body
    policy = KvThreshold(threshold=0.90, clock=clock, log=log)
    for _ in range(60):
        d = policy(Reading(parse(busy), taken_ns=clock.monotonic_ns()))
        assert (d.admitted, d.reason) == (False, "kv_pressure")
        clock.advance(1.0)


def test_s_met_08_a_reading_is_not_used_for_ever(clock, log):
    """Each record tells the age of its reading, and past 1.5 s it is stale."""
    policy = KvThreshold(threshold=0.90, clock=clock, log=log, on_blind="reject")

    def reading():
        raw = {"vllm:kv_cache_usage_perc": 0.2, "vllm:num_requests_running": 1.0}
        return Reading(raw, taken_ns=clock.monotonic_ns(), interval_s=0.25)

    last = reading()
    for _ in range(50):
        policy(last)
        clock.advance(0.16)
    lines = log.decisions
    assert [line["age_ms"] for line in lines] == [160 * n for n in range(50)]
    for line in lines:
        stale = line["age_ms"] > 1500
        assert line["admitted"] is not stale
        assert line.get("reason") == ("signal_stale" if stale else None)
    assert "older than 1.5 s" in lines[10]["why"]
    reasons = [policy(reading()).reason for _ in range(4)]
    assert reasons == ["signal_stale", "signal_stale", None, None]
    events = [line["event"] for line in log.controls]
    assert events == ["blind", "sighted"]


def test_s_met_08_a_slow_scraper_is_given_its_own_pace(clock, log):
    """The limit follows the scrape interval: three of them, at least 1.5 s."""
    policy = KvThreshold(threshold=0.90, clock=clock, log=log)
    raw = {"vllm:kv_cache_usage_perc": 0.2, "vllm:num_requests_running": 1.0}
    last = Reading(raw, taken_ns=clock.monotonic_ns(), interval_s=5.0)
    clock.advance(14.0)
    assert policy(last).reason is None
    clock.advance(1.5)
    assert policy(last).reason == "signal_stale"


WORKER = {"worker_used_blocks": 161_000.0, "worker_total_blocks": 162_938.0}
FRONTEND = {"frontend0_used_blocks": 2_100.0, "frontend0_total_blocks": 162_938.0}


def worker(m):
    """What the worker says of itself."""
    return m["worker_used_blocks"] / m["worker_total_blocks"]


def frontend0(m):
    """What one frontend thinks it knows."""
    return m["frontend0_used_blocks"] / m["frontend0_total_blocks"]


def sources_of(line):
    """Where the KV pressure of a decision line came from."""
    return line["sources"]["kv_pressure"]


def test_s_met_15_source_order_decides_and_not_arrival_order(clock, log):
    """Of two publishers in turn the preferred one stands while fresh, and is named."""
    policy = KvThreshold(
        threshold=0.90, sources={KV_PRESSURE: [worker, frontend0]}, clock=clock, log=log
    )
    for n in range(40):
        raw = (WORKER, FRONTEND)[n % 2]
        d = policy(Reading(raw, taken_ns=clock.monotonic_ns(), interval_s=0.1))
        assert (d.admitted, d.reason) == (False, "kv_pressure")
        clock.advance(0.1)
    values = {round(line["signals"]["kv_pressure"], 3) for line in log.decisions}
    assert values == {0.988}
    assert {sources_of(line) for line in log.decisions} == {"worker"}
    assert log.controls == []


def test_s_met_15_a_switch_of_source_is_visible(clock, log):
    """The log says when the frontend takes over, and when the worker is back."""
    policy = KvThreshold(
        threshold=0.90, sources={KV_PRESSURE: [worker, frontend0]}, clock=clock, log=log
    )

    def ask(raw):
        clock.advance(0.1)
        return policy(Reading(raw, taken_ns=clock.monotonic_ns(), interval_s=0.1))

    ask(WORKER)
    answers = [ask(FRONTEND).reason for _ in range(20)]
    assert answers == ["kv_pressure"] * 15 + [None] * 5
    assert ask(WORKER).reason == "kv_pressure"
    switches = [
        (line["event"], line["signal"], line["from"], line["to"])
        for line in log.controls
    ]
    assert switches == [
        ("source_changed", "kv_pressure", "worker", "frontend0"),
        ("source_changed", "kv_pressure", "frontend0", "worker"),
    ]
