"""A policy before an engine sees what a host would see, and no more."""

import json
import logging
import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.simulator.small import arrival, model
from tests.simulator.test_engine import plans

from admitperf import Policy
from admitperf.core.signals import QUEUE_DEPTH
from admitperf.policies import load
from admitperf.simulator import (
    Kind,
    Phase,
    Scraping,
    Setting,
    VirtualClock,
    poisson,
    run,
    serve,
)
from admitperf.testing import MemoryLog

SETTING = Setting(model=model(max_num_seqs=2))
KIND = Kind(
    name="k", input_tokens=(50, 150), output_tokens=(5, 50), max_output_tokens=50
)


@pytest.fixture(autouse=True)
def _quiet():
    """A policy is blind until the first look has come, and says so."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def ran(name, arrivals, setting=SETTING, **given):
    """The log of an installed policy before an engine."""
    clock, log = VirtualClock(), MemoryLog()
    policy = load(name)(clock=clock, log=log, reports_outcomes=True, **given)
    run(policy, clock, arrivals, setting)
    return log


def busy(seconds=60.0, seed=1):
    """More than the small engine carries."""
    times_s = poisson([Phase(lasts_s=seconds, rate_per_s=6)], seed, "k")
    return tuple(KIND.at(times_s, seed))


def test_what_is_admitted_fares_as_without_a_policy():
    """The baseline's outcomes are those of the engine alone."""
    plan = busy()
    told = {line["id"]: line for line in ran("no_admission", plan).outcomes}
    alone = serve(plan, SETTING.model)
    assert len(told) == len(alone) == len(plan) == 360
    for end in alone:
        line = told[end.arrival.id]
        assert line["ttft_ms"] == round(end.ttft_ms, 3)
        assert line["max_gap_ms"] == round(end.max_gap_ms, 3)
        assert line["e2e_ms"] == round(end.e2e_ms, 3)
        assert line["output_tokens"] == end.arrival.output_tokens
        assert line["ok"]
        full = end.arrival.output_tokens == 50
        assert line["finish_reason"] == ("length" if full else "stop")


def test_outcomes_are_told_when_they_happen():
    """The host's own clock agrees with the times it is told."""
    for line in ran("no_admission", busy()).outcomes:
        assert line["open_ms"] == pytest.approx(line["e2e_ms"], abs=1)


def test_who_is_refused_never_reaches_the_engine_and_does_not_come_again():
    """One decision a request; outcomes for the admitted alone; waits are shorter."""
    plan = busy()
    log = ran("queue_depth", plan, max_waiting=2)
    admitted = [line["id"] for line in log.decisions if line["admitted"]]
    assert [line["id"] for line in log.decisions] == [one.id for one in plan]
    assert 0 < len(admitted) < len(plan)
    assert sorted(line["id"] for line in log.outcomes) == sorted(admitted)
    longest = max(end.ttft_ms for end in serve(plan, SETTING.model))
    assert max(line["ttft_ms"] for line in log.outcomes) < longest / 4


class Watcher(Policy):
    """Admits everything, and keeps what it saw and when."""

    name = "watcher"

    def __init__(self, **given):
        super().__init__(**given)
        self.saw = []

    def decide(self, metrics):
        """Keep, then admit."""
        self.saw.append((metrics.now_s, QUEUE_DEPTH.read(metrics)))
        return self.admit()


def test_the_page_changes_only_when_a_look_has_come():
    """Looks every 2 s that take 0.5 s: the queue's depth moves at 0.5, 2.5, 4.5 s."""
    clock = VirtualClock()
    policy = Watcher(clock=clock, reports_outcomes=True)
    how = Scraping(interval_s=2.0, delay_s=0.5, spread_s=0.0, slow_share=0.0)
    run(policy, clock, busy(), replace(SETTING, scraping=how))
    seen = {}
    for now_s, depth in policy.saw:
        seen.setdefault((now_s + 1.5) // 2, set()).add(depth)
    assert len(policy.saw) == 360
    assert all(len(depths) == 1 for depths in seen.values())
    assert len(seen) == 31
    assert seen[0] == {None}
    assert len({depth for depths in seen.values() for depth in depths}) > 15


@given(plan=plans(), lengths=st.lists(st.integers(1, 300), min_size=1, max_size=9))
@settings(deadline=None, max_examples=40)
def test_a_decision_never_rests_on_how_long_an_answer_will_be(plan, lengths):
    """I10: the true lengths of a request and of all after it change no decision on it.

    Lengths of earlier ones may: they are what the engine's page shows.
    """
    at = len(plan) // 2
    other = [
        replace(one, output_tokens=lengths[n % len(lengths)], slowness=3.0)
        if n >= at
        else one
        for n, one in enumerate(plan)
    ]
    for name in ("kv_threshold", "queue_depth", "in_flight_cap"):
        told = [
            [(d["verdict"], d["signals"]) for d in ran(name, made).decisions]
            for made in (plan, other)
        ]
        assert told[0][: at + 1] == told[1][: at + 1]


def test_a_log_is_the_same_to_the_byte_whatever_its_writer_does(tmp_path):
    """I5: two runs of 150 virtual seconds, with headers again every 60 of them."""
    texts = []
    for n in range(2):
        path, clock = tmp_path / f"{n}.jsonl", VirtualClock(wall_s=1.7e9)
        with load("queue_depth")(
            clock=clock, log=path, raw="reference", reports_outcomes=True
        ) as policy:
            run(policy, clock, busy(150.0), SETTING)
        text = path.read_text("ascii")
        (made,) = set(re.findall(r'"run":"(\w+)"', text))
        texts.append(text.replace(made, "RUN"))
    heads = [json.loads(line) for line in texts[0].splitlines() if '"k":"run"' in line]
    assert texts[0] == texts[1]
    assert len(heads) >= 3
    assert all(head["wall_us"] == head["t_us"] for head in heads)


def test_another_seed_of_the_scraper_is_another_run():
    """Delays are chance, and chance is the seed's."""
    ages = [
        [d.get("age_ms") for d in ran("no_admission", busy(), made).decisions]
        for made in (SETTING, replace(SETTING, seed=1), SETTING)
    ]
    assert ages[0] == ages[2] != ages[1]


def test_a_request_that_never_fits_stops_the_run():
    """The plan and the engine do not go together; nothing would show it later."""
    with pytest.raises(ValueError, match="r1 needs"):
        ran("no_admission", [arrival(1, input_tokens=2_000)])
