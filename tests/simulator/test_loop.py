"""A policy before an engine sees what a host would see, and no more."""

import json
import logging
import math
import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.simulator.small import arrival, events, model, plans

from admitperf import Policy
from admitperf.core.signals import QUEUE_DEPTH
from admitperf.policies import load
from admitperf.simulator import (
    Answer,
    Engine,
    Kind,
    Phase,
    Scraping,
    Setting,
    VirtualClock,
    poisson,
    run,
    serve,
)
from admitperf.simulator.traffic.traffic import BUSY
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


def ran(name, asked, setting=SETTING, **given):
    """The log of an installed policy before an engine."""
    clock, log = VirtualClock(), MemoryLog()
    policy = load(name)(clock=clock, log=log, reports_outcomes=True, **given)
    run(policy, clock, asked, setting)
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
        assert line["cached_tokens"] == 0
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


class Worker(Watcher):
    """Has work after each reading."""

    name = "worker"

    def task(self, metrics):
        """Keep when, and how old the reading is."""
        self.saw.append(("task", metrics.now_s))
        return lambda: "done"

    def task_done(self, metrics, result):
        """Keep when."""
        self.saw.append((result, metrics.now_s))


def test_a_policy_works_on_each_reading_before_it_is_decided_on():
    """In virtual time it takes none, and so every run is the same."""
    clock = VirtualClock()
    policy = Worker(clock=clock, reports_outcomes=True)
    run(policy, clock, busy(), SETTING)
    worked = [n for n, (what, _) in enumerate(policy.saw) if what == "task"]
    assert 55 <= len(worked) <= 61
    for n in worked:
        _, at_s = policy.saw[n]
        assert policy.saw[n + 1] == ("done", at_s)
        assert policy.saw[n + 2][0] == at_s
    assert len(policy.saw) == 360 + 2 * len(worked)


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
        replace(one, output_tokens=lengths[n % len(lengths)]) if n >= at else one
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


def test_what_comes_in_one_instant_is_in_one_step():
    """Before a policy as behind none: both prompts in the first, 10 + 200 ms."""
    plan = [arrival(n) for n in range(2)]
    assert [line["ttft_ms"] for line in ran("no_admission", plan).outcomes] == [210] * 2
    assert [end.ttft_ms for end in serve(plan, SETTING.model)] == pytest.approx(
        [210] * 2
    )


def test_the_engines_caches_are_as_the_setting_says():
    """90 of 100 tokens are known; the host is told so at the end."""
    plan = [arrival(1, prefix=(("known", 95), ("r1", 0)))]
    log = ran("no_admission", plan, replace(SETTING, cached={"known": 95}))
    (line,) = log.outcomes
    assert (line["cached_tokens"], line["ttft_ms"]) == (90, pytest.approx(20))
    assert "cached_tokens" not in log.decisions[0]


@pytest.mark.parametrize("front_ms", [0.0, 40.0])
def test_a_refusal_of_the_engines_own_is_an_outcome_that_is_not_ok(front_ms):
    """At its door, or in its queue 40 ms later; the policy had let it in."""
    limited = model(max_num_seqs=1, max_num_queued_reqs=2, front_ms=front_ms)
    plan = [arrival(n, at_s=0.01 * n) for n in range(6)]
    log = ran("no_admission", plan, Setting(model=limited))
    assert all(line["admitted"] for line in log.decisions)
    told = {line["id"]: line for line in log.outcomes}
    assert len(told) == 6
    assert [told[f"r{n}"]["ok"] for n in range(6)] == [True, True, *[False] * 4]
    for n in range(2, 6):
        assert told[f"r{n}"]["error"] == "503, the engine's own limit"
        assert "ttft_ms" not in told[f"r{n}"]
        late = front_ms if n < 5 else 0.0  # r0 reaches the queue at 40 ms, r5 is at 50
        assert told[f"r{n}"]["open_ms"] == pytest.approx(late)


@pytest.mark.parametrize("oracle", [False, True])
def test_only_an_oracle_is_told_how_long_answers_will_be(oracle):
    """In place of the bound their callers set; by default no policy knows."""
    notes = {"oracle": True} if oracle else None
    setting = replace(SETTING, oracle=oracle)
    log = ran("no_admission", busy(5.0), setting, notes=notes)
    told = {line["id"]: line["facts"]["max_output_tokens"] for line in log.decisions}
    true = {one.id: one.output_tokens for one in busy(5.0)}
    assert (told == true) is oracle
    assert oracle or set(told.values()) == {50}


@pytest.mark.parametrize("notes", [None, "oracle", {"oracle": False}])
def test_an_oracle_whose_log_does_not_say_so_is_refused(notes):
    """No report could stamp it."""
    with pytest.raises(ValueError, match="has to say so"):
        ran("no_admission", busy(1.0), replace(SETTING, oracle=True), notes=notes)


class Talk:
    """One caller: asks, asks on after an answer, and comes again after a refusal."""

    def __init__(self):
        self.told = []

    def first(self):
        """The first turn, and someone who is there before."""
        return [arrival("x", output_tokens=100), arrival(1, at_s=0.2)]

    def after(self, arrival_, at_s, answer):
        """Up to the fourth, a second later."""
        self.told.append((arrival_.id, round(at_s, 3), answer.ok))
        number = len(self.told) + 1
        return [arrival(number, at_s=at_s + 1)] if number <= 4 else []


def test_what_follows_an_answer_or_a_refusal_comes_when_the_traffic_says():
    """Nothing else runs at once: r1 is refused at 0.2 s, and comes again as r2.

    x ends at 110 + 990 ms, r2 begins at 1.2 s and takes 210 ms.
    """
    talk = Talk()
    log = ran("in_flight_cap", talk, max_in_flight=1)
    assert talk.told == [
        ("r1", 0.2, False), ("rx", 1.1, True), ("r2", 1.41, True), ("r3", 2.31, True),
        ("r4", 2.62, True),
    ]  # fmt: skip
    assert [line["id"] for line in log.decisions] == ["rx", "r1", "r2", "r3", "r4"]


def test_two_engines_serve_what_one_could_not():
    """The wait is gone; and what is seen is both engines."""
    plan = busy()
    slowest = [
        max(line["ttft_ms"] for line in log.outcomes)
        for log in (
            ran("no_admission", plan, replace(SETTING, replicas=n)) for n in (1, 2)
        )
    ]
    assert slowest[1] < slowest[0] / 4


class Told:
    """Traffic that keeps what it is told, and may come again after it."""

    def __init__(self, *plan, again=()):
        self.plan = plan
        self.again = dict(again)
        self.got = {}

    def first(self):
        """As given."""
        return self.plan

    def after(self, arrival_, at_s, answer):
        """Another attempt where one was given, once."""
        self.got[arrival_.id] = (round(at_s, 3), answer)
        later = self.again.pop(arrival_.id, None)
        return [] if later is None else [replace(later, at_s=at_s)]


def driven(traffic, setting=SETTING, name="no_admission", until_s=math.inf, **given):
    """The log and what the run says of itself."""
    clock, log = VirtualClock(), MemoryLog()
    policy = load(name)(clock=clock, log=log, reports_outcomes=True, **given)
    return log, run(policy, clock, traffic, setting, until_s)


def test_a_refusal_says_what_the_caller_reads_from_it():
    """Status, reason and wait are those of the decision."""
    told = Told(arrival(1), arrival(2, at_s=0.1))
    log, _ = driven(told, name="in_flight_cap", max_in_flight=1)
    at_s, answer = told.got["r2"]
    _, refused = log.decisions
    assert (at_s, answer.ok, answer.refused) == (0.1, False, True)
    assert (answer.status, answer.reason) == (503, "in_flight_cap")
    assert answer.retry_after_ms == refused["retry_after_ms"]
    assert answer.should_retry
    assert answer.error is None


def test_an_answer_is_told_as_the_log_has_it():
    """To the host and to the caller alike."""
    told = Told(arrival(1, prefix=(("known", 95), ("r1", 0))))
    log, _ = driven(told, replace(SETTING, cached={"known": 95}))
    ((_, answer),) = told.got.values()
    (line,) = log.outcomes
    assert answer == Answer(
        ok=True, ttft_ms=20.0, max_gap_ms=10.0, e2e_ms=120.0, output_tokens=11,
        cached_tokens=90,
    )  # fmt: skip
    assert {name: line[name] for name in ("ttft_ms", "max_gap_ms", "e2e_ms")} == {
        "ttft_ms": 20.0, "max_gap_ms": 10.0, "e2e_ms": 120.0,
    }  # fmt: skip


def test_who_hangs_up_in_the_middle_has_what_it_wanted_and_its_host_no_end():
    """After five tokens: 110 ms and four of 10."""
    told = Told(arrival(1, output_tokens=5, hangs_up=True))
    log, _ = driven(told)
    ((at_s, answer),) = told.got.values()
    assert (at_s, answer.ok, answer.hung_up) == (0.15, True, True)
    (line,) = log.outcomes
    assert (line["ok"], line["error"]) == (False, "client_closed")
    assert (line["ttft_ms"], line["max_gap_ms"], line["output_tokens"]) == (110, 10, 5)
    assert not {"e2e_ms", "finish_reason"} & {*line}


@pytest.mark.parametrize("replicas", [1, 2])
def test_who_has_no_token_in_time_goes_away(replicas):
    """r2 after half a second, and r3 has its place; r1 has its token and stays.

    Each engine has one slot; r1 and its like end at 110 + 990 ms.
    """
    one = Setting(model=model(max_num_seqs=1), replicas=replicas)
    first = [arrival(n, output_tokens=100, patience_s=0.2) for n in range(replicas)]
    told = Told(*first, arrival(2, at_s=0.1, patience_s=0.5),
                arrival(3, at_s=0.2, patience_s=60.0))  # fmt: skip
    log, been = driven(told, one)
    at_s, answer = told.got["r2"]
    assert at_s == 0.6
    assert answer == Answer(ok=False, status=0, error="client_closed", hung_up=True)
    assert [told.got[f"r{n}"][1].ok for n in (0, 3)] == [True, True]
    assert been.seconds == pytest.approx(1.31)  # r3's patience ends later
    line = next(line for line in log.outcomes if line["id"] == "r2")
    assert (line["ok"], line["error"]) == (False, "client_closed")
    assert line["open_ms"] == pytest.approx(500, abs=1)
    assert not {"ttft_ms", "output_tokens", "cached_tokens"} & {*line}


@pytest.mark.parametrize(("more_s", "stays"), [(0.0, True), (-1e-6, False)])
def test_a_token_that_comes_as_patience_ends_is_in_time(more_s, stays):
    """Just before, it is too late; what the engine had begun is told."""
    (first, _) = events(Engine(SETTING.model), [arrival(1)])
    told = Told(arrival(1, patience_s=first.at_s + more_s))
    driven(told)
    ((_, answer),) = told.got.values()
    assert (answer.ok, answer.hung_up) == (stays, not stays)
    assert answer.cached_tokens == 0


def test_who_went_away_may_come_again_at_once():
    """As another attempt at the same call, while the first still leaves its step."""
    again = arrival("2~1", logical_id="r2", attempt=1)
    told = Told(arrival(1, output_tokens=100), arrival(2, patience_s=0.05),
                again={"r2": again})  # fmt: skip
    log, _ = driven(told)
    assert told.got["r2"][0] == 0.05
    assert told.got["r2~1"][1].ok
    facts = {line["id"]: line["facts"] for line in log.decisions}
    assert (facts["r2~1"]["logical_id"], facts["r2~1"]["attempt"]) == ("r2", 1)
    assert "attempt" not in facts["r2"]


def test_whom_the_engine_refused_loses_no_patience_later():
    """Its answer was the refusal, at its door or in its queue."""
    for front_ms in (0.0, 40.0):
        limited = model(max_num_seqs=1, max_num_queued_reqs=1, front_ms=front_ms)
        plan = [arrival(1), *(arrival(n, at_s=0.01, patience_s=0.1) for n in (2, 3))]
        told = Told(*plan)
        log, _ = driven(told, Setting(model=limited))
        assert told.got["r2"][1] == BUSY
        assert [line["error"] for line in log.outcomes if not line["ok"]] == [
            "503, the engine's own limit"
        ] * 2


def test_what_is_inside_at_the_end_is_unfinished_and_nothing_more_is_asked():
    """At 500 ms: r1 has ended, r2 streams, r3 is being read, r4 comes, r5 does later.

    The first step is 210 ms; r3 begins when the step under way is over, at 460 ms, and
    by then r2 has had 26 tokens.
    """
    told = Told(
        arrival(1), arrival(2, output_tokens=100), arrival(3, at_s=0.455),
        arrival(4, at_s=0.5), arrival(5, at_s=0.6), again={"r2": arrival(6)},
    )  # fmt: skip
    log, been = driven(told, until_s=0.5)
    assert been.seconds == 0.5
    assert [line["id"] for line in log.decisions] == ["r1", "r2", "r3", "r4"]
    assert told.got["r1"][1].ok
    cut = Answer(ok=False, error="unfinished", status=0)
    begun = replace(cut, cached_tokens=0)
    assert [told.got[f"r{n}"] for n in (2, 3, 4)] == [
        (0.5, replace(begun, status=200, ttft_ms=210.0, output_tokens=26)),
        (0.5, begun),
        (0.5, cut),
    ]  # fmt: skip
    told_of = {line["id"]: line for line in log.outcomes}
    assert {told_of[f"r{n}"]["error"] for n in (2, 3, 4)} == {"unfinished"}
    assert (told_of["r2"]["ttft_ms"], told_of["r2"]["output_tokens"]) == (210, 26)


def test_an_end_that_is_far_away_changes_nothing():
    """The log is the same, and the run is over when its last request is."""
    logs = []
    for until_s in (math.inf, 1e6):
        log, been = driven(busy(10.0), until_s=until_s)
        logs.append([line["t_us"] for line in (*log.decisions, *log.outcomes)])
        assert been.seconds < 60
    assert logs[0] == logs[1]


def test_each_call_of_the_policy_is_timed():
    """On the system's clock; virtual time stands still meanwhile."""
    log, been = driven(busy(10.0), name="queue_depth", max_waiting=1)
    assert len(been.decide_ns) == len(log.decisions) == 60
    assert all(0 < took_ns < 1e9 for took_ns in been.decide_ns)
    assert len({*been.decide_ns}) > 1
