"""A policy in front of a recording sees what it could have seen, when it could have."""

import pytest

from admitperf import Policy
from admitperf.bench.demo.recording import Call, Recording, Scrape
from admitperf.bench.demo.replay import Replay
from admitperf.core.signals import KV_PRESSURE
from admitperf.testing import FakeClock, MemoryLog


class Watcher(Policy):
    """Refuses everything, and notes what it saw and when."""

    name = "watcher"

    def __init__(self, **given):
        super().__init__(**given)
        self.saw = []

    def decide(self, metrics):
        """Note, then refuse."""
        self.saw.append((metrics.now_s, KV_PRESSURE.read(metrics)))
        return self.reject("kv_pressure")


def call(number, t_s, **changes):
    """A request that has its first token after 100 ms and ends after 300 ms."""
    facts = {
        "id": f"call-{number}", "t_s": t_s, "input_tokens": 8, "max_output_tokens": 4,
        "ok": True, "ttft_ms": 100.0, "max_gap_ms": 50.0, "e2e_ms": 300.0,
        "output_tokens": 4, "finish_reason": "stop",
    }  # fmt: skip
    return Call(**{**facts, **changes})


def scrape(t_s, took_s, pressure):
    """A reading of one gauge."""
    return Scrape(t_s, took_s, {"vllm:kv_cache_usage_perc": pressure})


@pytest.fixture
def replayed():
    """Replay scrapes and calls; the policy and its log."""

    def _replayed(scrapes, calls, start_s=0.0):
        clock, log = FakeClock(start_s=start_s, wall_s=1.7e9), MemoryLog()
        policy = Watcher(clock=clock, log=log, enforce=0.0, reports_outcomes=True)
        made = Recording("e", 1.7e9, 1, 1, 0.2, {}, tuple(scrapes), tuple(calls))
        Replay(policy, clock, made).run()
        return policy, log

    return _replayed


def test_a_reading_is_seen_when_it_has_come_back(replayed):
    """Asked for at 0.2 s, answered at 0.5 s: a request at 0.4 s knows the old one."""
    scrapes = [scrape(0.0, 0.1, 0.25), scrape(0.2, 0.3, 0.75)]
    policy, _ = replayed(scrapes, [call(1, 0.05), call(2, 0.4), call(3, 0.5)])
    assert [seen for _, seen in policy.saw] == [None, 0.25, 0.75]


def test_a_reading_is_as_old_as_when_it_was_asked_for(replayed):
    """The answer of 0.5 s shows the engine as of 0.2 s."""
    _, log = replayed([scrape(0.2, 0.3, 0.75)], [call(1, 0.9)])
    (decision,) = log.decisions
    assert decision["age_ms"] == 700


def test_requests_arrive_in_recorded_time_whatever_the_clock_shows(replayed):
    """The clock's start is the recording's, and steps are the recorded ones."""
    policy, _ = replayed([], [call(2, 0.4), call(1, 0.15)], start_s=100.0)
    assert [round(now, 6) for now, _ in policy.saw] == [100.15, 100.4]


def test_an_end_frees_its_place_before_an_arrival_at_the_same_instant(replayed):
    """Of two things at one time, the engine's comes first."""
    _, log = replayed([scrape(0.0, 0.3, 0.5)], [call(1, 0.0), call(2, 0.3)])
    _, second = log.decisions
    assert second["signals"]["in_flight"] == 0
    assert second["signals"]["kv_pressure"] == 0.5


def test_every_end_is_told_as_recorded(replayed):
    """What a policy said changes nothing about it; an unknown time stays unknown."""
    failed = call(2, 0.1, ok=False, ttft_ms=None, max_gap_ms=None, finish_reason=None)
    _, log = replayed([], [call(1, 0.0), failed])
    first, second = log.outcomes
    assert (first["id"], first["ok"], first["ttft_ms"]) == ("call-1", True, 100)
    assert first["admitted"]
    assert (second["id"], second["ok"], second["open_ms"]) == ("call-2", False, 300)
    assert "ttft_ms" not in second
