"""Field cases about signals, and two long waits, through a real gateway process."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count

import pytest
from tests.gateway.conformance.door import (
    before,
    configured,
    gateway,
    pause,
    pool,
    stub_engine,
)
from tests.gateway.conformance.wire import CHAT, Caller, post, wish
from tests.real.process import until

IDLE_S = 30


@pytest.fixture(scope="module", autouse=True)
def long_wait(data, tmp_path_factory):
    """Half a minute beside the other tests here, used twice.

    Gives, once it is over, the statuses that one request a second got before a frozen
    gauge, the decisions about them, and whether a connection that lay idle was still
    there, with the status of the request that it then carried.
    """
    folder = tmp_path_factory.mktemp("long")
    stuck = data / "cases" / "s-met-07" / "stuck.txt"
    with ThreadPoolExecutor(1) as beside:
        yield beside.submit(_long_wait, folder, stuck)


def _long_wait(folder, stuck):
    frozen_engine = stub_engine(folder, metrics=stuck, ttft=0, tokens=1, itl=0)
    with frozen_engine as frozen, stub_engine(folder) as idle:
        kv = before(frozen.url, "kv_threshold", threshold=0.9)
        plain = before(idle.url, "no_admission")
        with (
            gateway(folder / "frozen", *kv) as shut,
            gateway(folder / "idle", *plain) as quiet,
            Caller(quiet.url, timeout_s=60) as caller,
        ):
            assert caller.ask(CHAT, wish(CHAT)).rest()
            statuses = []
            for second in range(IDLE_S):
                reply, _ = post(shut.url, CHAT, wish(CHAT, text=f"second {second}"))
                statuses.append(reply.status)
                pause(1)
            kept = caller._connection.sock is not None
            after = caller.ask(CHAT, wish(CHAT)).status
            return statuses, shut.waits_for("decision", IDLE_S), (kept, after)


def test_s_met_08_a_slow_metrics_page_is_nobodys_wait(engine, door):
    """With a page that takes 8 s, fifty decisions are quick and say what they knew."""
    stub = engine(metrics_delay=8, ttft=0, tokens=1, itl=0, slots=50)
    door = door(*before(stub.url, "queue_depth", max_waiting=8), ready=False)
    with ThreadPoolExecutor(4) as callers:
        ends = callers.map(
            lambda n: post(door.url, CHAT, wish(CHAT, text=f"{n}"), timeout_s=5),
            range(50),
        )
        assert {reply.status for reply, _ in ends} <= {200, 503}
    lines = door.waits_for("decision", 50)
    decide_us = sorted(line["decide_us"] for line in lines)
    assert decide_us[48] < 5000
    assert all(line.get("blind") for line in lines)
    assert {line["reason"] for line in lines} <= {"signal_absent", "signal_stale"}


def test_s_met_08_each_record_has_the_age_of_what_it_used(engine, door, tmp_path):
    """A page that stops answering goes stale within seconds."""
    page = tmp_path / "page.txt"
    page.write_text(GOOD)
    stub = engine(metrics=page, ttft=0, tokens=1, itl=0)
    door = door(*before(stub.url, "queue_depth", max_waiting=8))
    assert post(door.url, CHAT, wish(CHAT, text="fresh"))[0].status == 200
    page.unlink()  # the engine answers no more looks
    pause(2.5)
    post(door.url, CHAT, wish(CHAT, text="stale"))
    fresh, stale = door.waits_for("decision", 2)
    assert fresh["age_ms"] < 1500
    assert not fresh.get("blind")
    assert stale["blind"]
    assert stale["reason"] == "signal_stale"


GOOD = "vllm:num_requests_running 1\nvllm:num_requests_waiting 0\n"
BOTH = GOOD + "vllm:{} {}\n"
WORKER = BOTH.format("kv_cache_usage_perc", 161_000 / 162_938)
LEGACY = "vllm_gpu_cache_usage_perc"
FRONTEND = BOTH.format("gpu_cache_usage_perc", 2_100 / 162_938)


@contextmanager
def alternating(path, pages, every_s):
    """Replace a file by the next page, again and again."""
    over, turn = threading.Event(), 0
    _replace(path, pages[0])

    def write():
        nonlocal turn
        while not over.wait(every_s):
            turn += 1
            _replace(path, pages[turn % len(pages)])

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield
    finally:
        over.set()
        writer.join()


def _replace(path, text):
    new = path.with_suffix(".new")
    new.write_text(text)
    new.replace(path)


def test_s_met_15_of_two_publishers_the_preferred_one_stands(engine, door, tmp_path):
    """Two names for one thing, in turn each 100 ms: the current name decides."""
    page = tmp_path / "page.txt"
    with alternating(page, [WORKER, FRONTEND], 0.1):
        stub = engine(metrics=page, ttft=0, tokens=1, itl=0)
        limit = pool(
            stub.url, "kv_threshold", {"threshold": 0.9}, scrape={"interval_s": 0.1}
        )
        door = door(*configured(tmp_path, pools=[limit]))
        # At first only the other one may have been there.
        turns = count()

        def refused():
            body = wish(CHAT, text=f"turn {next(turns)}")  # nobody is back too early
            return post(door.url, CHAT, body)[0].status == 503

        assert until(refused, 3)
        for number in range(30):
            reply, _ = post(door.url, CHAT, wish(CHAT, text=f"{number}"))
            assert reply.status == 503
            pause(0.05)
    with alternating(page, [FRONTEND], 0.1):
        assert until(lambda: not refused() and source(door) == LEGACY, 5)
    lines = door.waits_for("decision", 31)
    values = {
        round(line["signals"]["kv_pressure"], 3)
        for line in lines
        if not line["admitted"] and line.get("by") != "host"
    }
    assert values == {0.988}


def source(door):
    """Where a signal comes from by the last change that the log tells of."""
    told = [c["to"] for c in door.lines("control") if c["event"] == "source_changed"]
    return told[-1] if told else None


def test_s_met_07_a_gauge_frozen_high_locks_nobody_out(long_wait):
    """Of one request a second one is let in within ten seconds, and the log says why.

    Scaled down: half of the minute.
    """
    statuses, lines, _ = long_wait.result()
    assert statuses[0] == 503
    assert 200 in statuses[:11]
    probe = lines[statuses.index(200)]
    assert probe["admitted"] is True
    assert probe["reason"] == "signal_stale"
    assert "contradicts running 0 and queue_depth 0" in probe["why"]
    refused = {line["reason"] for line in lines if not line["admitted"]}
    assert refused == {"kv_pressure"}


def test_s_gw_08_a_connection_may_lie_idle_for_half_a_minute(long_wait):
    """Load balancers keep connections for a minute; the gateway keeps them longer."""
    assert long_wait.result()[2] == (True, 200)
