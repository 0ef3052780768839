"""Eight rules in one: each by itself, who answers, and what "every replica" means."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.policies.tables.front_door import CACHED, EVERYTHING, FACTS, FULL, OFF, WELL

from admitperf import ConfigError, MissingSignal
from admitperf.core.reading import Reading
from admitperf.core.signals import QUEUE_DEPTH
from admitperf.policies.front_door import EMPTY_KV, FIRST_OUT, FrontDoor
from admitperf.policies.in_flight_cap import InFlightCap
from admitperf.policies.kv_threshold import KvThreshold
from admitperf.policies.parts.replicas import REPLICAS_MOST
from admitperf.scrape.pool import pool_sources
from admitperf.testing import FakeClock, MemoryLog, snapshot

ENGINE = {
    "kv_pressure": 0.5,
    "kv_capacity_tokens": 10_000.0,
    "queue_depth": 0.0,
    "running": 4.0,
    "pool_load": 0.5,
}


def door(**bounds):
    """A policy whose host promises outcomes; only the given bounds are on."""
    given = {"clock": FakeClock(), **OFF, **bounds}
    return FrontDoor(**given, reports_outcomes=True)


def page(**told):
    """Raw metrics of one engine under the signals' own names."""
    return {**ENGINE, **told}


def pages(label="replica", **replicas):
    """One page of several: `pages(a={"queue_depth": 9})`."""
    return {
        f'{name}{{{label}="{replica}"}}': value
        for replica, told in replicas.items()
        for name, value in {**ENGINE, **told}.items()
        if value is not None
    }


def said(d):
    """What a decision says, in short."""
    return str(d.verdict), d.reason, d.status


# Making one.


def test_as_it_comes_it_looks_at_memory_and_at_the_oldest_wait():
    """Nothing has to be given, and no fact is needed; both rules can refuse."""
    policy = FrontDoor()
    assert [one.name for one in policy.requires] == ["kv_pressure", "oldest_wait_s"]
    on = {name for name, bound in policy.parameters.items() if bound is not None}
    assert on == {"high_water", "target_wait_s", "hard_kv"}


@pytest.mark.parametrize(
    ("bounds", "required"),
    [
        ({"max_projected_kv": 0.9},
         "kv_pressure kv_capacity_tokens input_tokens max_output_tokens"),
        ({"max_share": 0.5}, "in_flight tenant"),
        ({"max_per_session": 2}, "in_flight session"),
        ({"min_slack_s": 0.0}, "in_flight deadline_s input_tokens cached_tokens"),
        ({"high_water": 0.9}, "kv_pressure"),
        ({"high_water": 0.9, "cheap_tokens": 9},
         "kv_pressure input_tokens cached_tokens"),
        ({"target_wait_s": 1.0}, "oldest_wait_s"),
        ({"full_queue": 1}, "queue_depth"),
        ({"full_load": 1.0}, "pool_load"),
    ],
)  # fmt: skip
def test_it_requires_what_the_given_bounds_read_and_no_more(bounds, required):
    """So that a start-up check stops for what is used, and for nothing else."""
    named = [getattr(one, "name", one) for one in door(**bounds).requires]
    assert named == required.split()


def test_an_engine_that_cannot_say_it_stops_the_start():
    """Which bound is out of place is told before the first request."""
    engine = {k: v for k, v in ENGINE.items() if k != "pool_load"}
    door(full_queue=8, high_water=0.9).check(engine)
    with pytest.raises(MissingSignal, match="pool_load"):
        door(full_queue=8, full_load=1.0).check(engine)
    with pytest.raises(MissingSignal, match="reports_outcomes=True"):
        FrontDoor().check(engine)


@pytest.mark.parametrize(
    ("bounds", "fault"),
    [
        (OFF, "give at least one of max_projected_kv, high_water, "),
        ({**OFF, "cheap_tokens": 9}, "cheap_tokens says who may pass high_water"),
        ({**OFF, "hard_kv": 0.9}, "give at least one of"),
        ({"cheap_tokens": 9, "hard_kv": 0.8}, "hard_kv is under high_water"),
        ({"max_projected_kv": 0.05}, "max_projected_kv"),
        ({"full_queue": 0}, "full_queue = 0"),
        ({"full_load": 0.0}, "full_load = 0.0"),
        ({"target_wait_s": 0.0}, "target_wait_s = 0.0"),
        ({"high_water": 0.0}, "high_water = 0.0"),
        ({"max_per_session": 0}, "max_per_session = 0"),
        ({"threshold": 0.9}, "threshold is no parameter"),
    ],
)
def test_bounds_that_make_no_rule_are_faults(bounds, fault):
    """A door that can refuse nothing is a mistake, told when it is made."""
    with pytest.raises(ConfigError, match=fault):
        FrontDoor(**bounds)


# What is written down.


def gates_of(line):
    """Name to whether it held, in the order of the asking."""
    return {(name, bound): held for name, _, _, bound, held in line["gates"]}


def test_every_rule_that_is_on_leaves_its_gate_although_none_holds():
    """The log of a quiet day tells how far away each one stayed."""
    log = MemoryLog()
    clock = FakeClock()
    policy = door(**EVERYTHING, high_water=0.9, target_wait_s=5.0, log=log, clock=clock)
    _measure(policy, clock)
    policy(page(), tenant="o", input_tokens=3000)
    assert policy(page(), **FACTS).admitted
    assert gates_of(log.decisions[-1]) == {
        ("uncached_tokens", 200.0): True,  # it is cheap, that refuses nobody
        ("kv_pressure", 0.9): False,
        ("kv_pressure", 0.97): False,
        ("prompt_kv", 1.0): False,
        ("projected_kv", 0.97): False,
        ("tenant_share", 0.5): False,
        ("queue_depth", 0.0): False,
        ("session_in_flight", 2.0): False,
        ("deadline_slack_s", 0.0): False,
        ("forecast_slack_s", 1.0): False,
        ("oldest_wait_s", 5.0): False,
        ("emptiest_replica", 1.0): False,
        ("this_replica", 1.0): False,
    }


@pytest.mark.parametrize(
    ("bounds", "gates"),
    [
        ({"high_water": 0.9}, ["kv_pressure"]),
        ({"target_wait_s": 1.0}, ["queue_depth", "oldest_wait_s"]),
        ({"full_queue": 8}, ["emptiest_replica", "this_replica"]),
        ({"max_per_session": 2}, ["session_in_flight"]),
    ],
)
def test_a_rule_that_is_off_leaves_no_gate(bounds, gates):
    """A log shows what was asked, not what might have been."""
    seen = snapshot(WELL, **FACTS)
    door(**bounds).decide(seen)
    assert [gate.name for gate in seen.gates] == gates


def test_one_that_refuses_hides_no_other():
    """Where everything is past its bound, every gate is there and held."""
    policy = door(**EVERYTHING, high_water=0.9, target_wait_s=5.0)
    seen = snapshot(FULL, **{**FACTS, "cached_tokens": 0, "deadline_s": 0.0})
    assert policy.decide(seen).reason == "tenant_share"
    held = {gate.name for gate in seen.gates if gate.held}
    assert held == {
        "kv_pressure",
        "projected_kv",
        "tenant_share",
        "queue_depth",
        "session_in_flight",
        "deadline_slack_s",
        "oldest_wait_s",
        "last_let_in_s",
        "emptiest_replica",
    }


@pytest.mark.parametrize("lacking", ["tenant", "session", "deadline_s", "input_tokens"])
def test_a_fact_that_is_missing_skips_its_own_rule_and_no_other(lacking):
    """Neither blind nor refused, and the other rules speak as before."""
    facts = {**FACTS, "deadline_s": 0.0}
    del facts[lacking]
    given = {**FULL, "queue_depth": 7, "pool_load": 0.9}
    own = {"tenant": "tenant_share", "session": "session_in_flight"}
    given = {k: v for k, v in given.items() if k != own.get(lacking)}
    seen = snapshot(given, **facts)
    door(**EVERYTHING, high_water=0.9, target_wait_s=5.0).decide(seen)
    names = {gate.name for gate in seen.gates}
    by_fact = {
        "tenant": {"tenant_share"},
        "session": {"session_in_flight"},
        "deadline_s": {"deadline_slack_s"},
        "input_tokens": {"prompt_kv", "projected_kv", "uncached_tokens"},
    }
    assert not names & by_fact[lacking]
    assert names >= set().union(*by_fact.values()) - by_fact[lacking]


def test_asking_often_changes_nothing():
    """A held request is asked about again and again; nobody is charged for it."""
    policy = door(max_per_session=1)
    first = policy(page(), session="s")
    for _ in range(20):
        d = policy.ask(page(), session="s", request_id="held")
        assert said(d) == ("defer", "session_in_flight", 503)
    policy.outcome(first.request_id)
    assert policy.ledger.in_flight == 0
    assert policy.ask(page(), session="s", request_id="held").admitted
    assert policy.ledger.in_flight == 1


# One rule at a time, and the policy that has it alone.


@settings(deadline=None, max_examples=100)
@given(kv=st.floats(0, 1), threshold=st.floats(0, 1, exclude_min=True))
def test_the_mark_alone_is_kv_threshold(kv, threshold):
    """The same verdict and the same reason for every pressure and every bound."""
    seen = snapshot({"kv_pressure": kv})
    ours = door(high_water=threshold).decide(seen)
    theirs = KvThreshold(threshold=threshold).decide(seen)
    assert (ours.verdict, ours.reason) == (theirs.verdict, theirs.reason)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["open", "open", "close", "ask", "token", "wait"]),
        st.integers(0, 30),
        st.sampled_from([None, "s", "u"]),
    ),
    max_size=50,
)


class Twins:
    """The rule alone and the policy that has it alone, in front of one host."""

    def __init__(self, bound):
        self.clock = FakeClock()
        cap = {"max_in_flight": None, "max_per_session": bound}
        told = {"clock": self.clock, "reports_outcomes": True}
        self.ours = door(max_per_session=bound, clock=self.clock)
        self.theirs = InFlightCap(**cap, **told)
        self.open = {}

    def do(self, number, what, at, session):
        """One step."""
        some = sorted(self.open)
        if what == "open":
            self.start(f"r{number}", session)
        elif what == "ask":
            self.ours.ask(page(), request_id=f"a{number}", session=session)
            self.ours.outcome(f"a{number}")
        elif what == "wait":
            self.clock.advance(at)
        elif some:
            name = some[at % len(some)]
            for policy in (self.ours, self.theirs):
                policy.first_token(name) if what == "token" else policy.outcome(name)
            if what == "close":
                del self.open[name]

    def start(self, name, session):
        """Both are asked, and say the same."""
        facts = {"request_id": name, "session": session}
        d, other = self.ours(page(), **facts), self.theirs(page(), **facts)
        assert said(d) == said(other)
        if d.admitted:
            self.open[name] = session


@settings(deadline=None, max_examples=100)
@given(steps=STEPS, bound=st.integers(1, 3))
def test_the_session_rule_alone_is_in_flight_cap_and_nothing_gets_past_it(steps, bound):
    """In any order of events the two agree, no session is over, and nothing leaks."""
    twins = Twins(bound)
    for number, step in enumerate(steps):
        twins.do(number, *step)
        held = list(twins.open.values())
        assert max(held.count("s"), held.count("u")) <= bound
        assert twins.ours.ledger.in_flight == len(held)
    for name in twins.open:
        twins.ours.outcome(name)
    assert twins.ours.ledger.in_flight == 0


# Input over KV headroom.


def test_what_does_not_fit_now_waits_for_what_drains():
    """The wait is what it lacks at the rate at which the cache was given back."""
    clock = FakeClock()
    policy = door(max_projected_kv=0.9, clock=clock)
    for kv in (0.8, 0.7, 0.6, 0.5):
        policy(page(kv_pressure=kv))
        clock.advance(1.0)
    d = policy(page(kv_pressure=0.5), input_tokens=6000)
    assert said(d) == ("defer", "kv_headroom", 503)
    assert d.wait == "measured"
    assert d.estimate_ms == pytest.approx(1000 * 0.2 / (0.3 / 4), rel=0.05)
    assert policy(page(kv_pressure=0.3), input_tokens=5999).admitted


def test_an_answer_is_as_long_as_its_like_were():
    """The growth counted is what was learnt, not what the request allows."""
    policy = door(max_projected_kv=0.9)
    asks = {"input_tokens": 3000, "max_output_tokens": 9000}
    assert policy(page(), **asks).reason == "kv_headroom"
    for _ in range(3):
        d = policy(page(), input_tokens=10)
        policy.outcome(d.request_id, output_tokens=100)
    assert policy(page(), **asks).admitted


def test_what_fits_an_empty_cache_alone_is_let_into_one():
    """A guess that is too long makes nobody wait for ever."""
    policy = door(max_projected_kv=0.5)
    long = {"input_tokens": 9000, "max_output_tokens": 9000}
    assert policy(page(kv_pressure=EMPTY_KV), **long).admitted
    assert policy(page(kv_pressure=EMPTY_KV + 0.01), **long).reason == "kv_headroom"
    d = policy(page(kv_pressure=0.0), input_tokens=10_001)
    assert said(d) == ("reject", "too_large", 413)
    assert "Retry-After" not in d.headers()


def test_a_prompt_has_to_fit_one_engine_not_all_of_them():
    """The room of two is not room for one request."""
    policy = door(max_projected_kv=0.9)
    assert policy(pages(a={}, b={}), input_tokens=10_001).reason == "too_large"
    larger = pages(a={}, b={"kv_capacity_tokens": 40_000.0})
    assert policy(larger, input_tokens=10_001).admitted


# A tenant over its share.


def test_a_share_counts_only_while_others_want_the_pool():
    """Alone, or with room to spare, one tenant may use all there is."""
    policy = door(max_share=0.6, high_water=0.9)
    greedy = [policy(page(queue_depth=3), tenant="a") for _ in range(5)]
    assert all(d.admitted for d in greedy)
    other = policy(page(queue_depth=3), tenant="b")
    assert other.admitted
    over = policy(page(queue_depth=3), tenant="a")
    assert said(over) == ("reject", "tenant_share", 429)
    assert (over.limit, over.used) == (0.6, pytest.approx(6 / 7))
    assert policy(page(queue_depth=0), tenant="a").admitted
    assert policy(page(queue_depth=0, kv_pressure=0.9), tenant="a").reason == (
        "tenant_share"
    )
    policy.outcome(other.request_id)
    assert policy(page(queue_depth=3), tenant="a").admitted


def test_who_cannot_see_room_does_not_assume_it():
    """Without a queue and without a mark every time is one of want."""
    policy = door(max_share=0.5)
    blind = {"running": 1.0}
    assert policy(blind, tenant="a").admitted
    assert policy(blind, tenant="b").admitted
    assert policy(blind, tenant="a").reason == "tenant_share"


# A deadline that would be missed.


def _measure(policy, clock, per_s=1000.0):
    """Has it measure a prefill rate, with answers of 2 s."""
    for _ in range(4):
        d = policy(page(), input_tokens=1000, stream=True)
        clock.advance(1000.0 / per_s)
        policy.first_token(d.request_id)
        policy.outcome(d.request_id, ttft_ms=1000.0, e2e_ms=3000.0, output_tokens=101)


def test_a_deadline_that_the_backlog_eats_up_is_told_at_once():
    """Prompts ahead and its own, at the measured rate, less what must be left."""
    clock = FakeClock()
    policy = door(min_slack_s=1.0, clock=clock)
    _measure(policy, clock)
    policy(page(), input_tokens=3000, stream=True)
    late = policy(page(), input_tokens=2000, deadline_s=5.9, stream=True)
    assert said(late) == ("reject", "deadline_unmeetable", 503)
    assert late.headers()["x-should-retry"] == "false"
    assert late.estimate_ms == pytest.approx(100, abs=1)
    in_time = {"input_tokens": 2000, "deadline_s": 6.1}
    assert policy(page(), **in_time, stream=True).admitted


def test_a_slow_measurement_locks_nobody_out_for_good():
    """With nothing ahead one is let in, so that the rate is measured again."""
    clock = FakeClock()
    policy = door(min_slack_s=0.0, clock=clock)
    _measure(policy, clock, per_s=100.0)
    asks = {"input_tokens": 1000, "deadline_s": 5.0, "stream": True}
    first = policy(page(), **asks)
    assert first.admitted
    assert policy(page(), **asks).reason == "deadline_unmeetable"
    policy.first_token(first.request_id)
    assert policy(page(), **asks).admitted


@pytest.mark.parametrize("stream", [True, False, None])
def test_a_deadline_is_for_the_first_token_streamed_or_not(stream):
    """The 2 s of an answer do not count: it begins after 1 s."""
    clock = FakeClock()
    policy = door(min_slack_s=0.0, clock=clock)
    _measure(policy, clock)
    policy(page(), input_tokens=1, stream=True)
    asks = {"input_tokens": 1000, "stream": stream}
    late = policy.ask(page(), **asks, deadline_s=0.9)
    assert late.reason == "deadline_unmeetable"
    assert policy.ask(page(), **asks, deadline_s=1.1).admitted


def test_without_a_forecast_only_a_deadline_that_has_passed_is_missed():
    """What was not measured refuses nobody."""
    policy = door(min_slack_s=5.0)
    assert policy(page(), deadline_s=0.1, input_tokens=9000).admitted
    assert policy(page(), deadline_s=-1.0).reason == "deadline_unmeetable"


# The oldest wait.

QUEUE = page(queue_depth=1.0)


def test_the_oldest_wait_is_over_when_its_request_has_a_token():
    """What waits longer than the target makes newcomers wait, and nothing else does."""
    clock = FakeClock()
    policy = door(target_wait_s=2.0, clock=clock)
    first = policy(QUEUE, stream=True)
    clock.advance(2.0)
    assert policy(QUEUE, stream=False).admitted
    clock.advance(0.1)
    assert said(policy(QUEUE)) == ("defer", "queue_age", 503)
    policy.first_token(first.request_id)
    assert policy(QUEUE).admitted


def test_with_nothing_queued_a_long_prompt_closes_no_door():
    """It is worked on; only when it takes far longer the engine may be stuck."""
    clock = FakeClock()
    policy = door(target_wait_s=2.0, clock=clock)
    policy(page(), stream=True)
    clock.advance(20.0)
    assert policy(page(), stream=False).admitted
    assert policy(QUEUE).reason == "queue_age"
    unknown = {k: v for k, v in page().items() if k != "queue_depth"}
    assert policy(unknown).reason == "queue_age"
    clock.advance(0.1)
    assert policy(page()).reason == "queue_age"


@pytest.mark.parametrize(
    ("ttft_ms", "e2e_ms", "closed"),
    [
        (500.0, 1000.0, False),  # it came after the oldest and was served in time
        (2000.0, 2400.0, False),
        (2001.0, 2400.0, True),  # served, and late as well
        (500.0, 2500.0, True),  # it came with the oldest or before
        (None, 1000.0, True),
    ],
)
def test_one_that_others_overtake_closes_no_door(ttft_ms, e2e_ms, closed):
    """A long prompt or a lost answer waits for a reason of its own."""
    clock = FakeClock(start_s=1000.0)
    policy = door(target_wait_s=2.0, clock=clock)
    policy(QUEUE, stream=True)
    other = policy(QUEUE, stream=False)
    clock.advance(2.5)
    assert policy(QUEUE).reason == "queue_age"
    policy.outcome(other.request_id, ttft_ms=ttft_ms, e2e_ms=e2e_ms)
    assert (policy(QUEUE).reason == "queue_age") is closed


def test_who_was_served_in_time_stays_so_when_an_earlier_one_ends_later():
    """The newest that was served counts, in whatever order they end."""
    clock = FakeClock(start_s=1000.0)
    policy = door(target_wait_s=2.0, clock=clock)
    early = policy(QUEUE, stream=False)
    policy(QUEUE, stream=True)
    clock.advance(1.0)
    later = policy(QUEUE, stream=False)
    clock.advance(1.5)
    policy.outcome(later.request_id, ttft_ms=500.0, e2e_ms=1500.0)
    policy.outcome(early.request_id, ttft_ms=500.0, e2e_ms=2500.0)
    assert policy(QUEUE).admitted


# The cheap ones.


@pytest.mark.parametrize(
    ("signals", "bounds", "reason"),
    [
        ({"kv_pressure": 0.98}, {}, "kv_pressure"),
        ({"oldest_wait_s": 6.0, "queue_depth": 1}, {}, "queue_age"),
        ({"kv_pressure": 0.966}, {"max_projected_kv": 0.95}, "kv_headroom"),
        ({"session_in_flight": 2}, {"max_per_session": 2}, "session_in_flight"),
    ],
)
def test_a_cheap_request_that_has_to_wait_is_the_first_to_be_let_out(
    signals, bounds, reason
):
    """It passes the mark and no other rule, and goes before the others that wait."""
    policy = door(high_water=0.9, target_wait_s=5.0, cheap_tokens=100, **bounds)
    facts = {"session": "s", "input_tokens": 1000}
    cheap = policy.decide(snapshot({**WELL, **signals}, **facts, cached_tokens=950))
    other = policy.decide(snapshot({**WELL, **signals}, **facts, cached_tokens=100))
    assert (str(cheap.verdict), cheap.reason, cheap.rank) == (
        "defer",
        reason,
        FIRST_OUT,
    )
    assert (str(other.verdict), other.rank) == ("defer", 0.0)


@pytest.mark.parametrize(
    ("kv", "prompt", "cached", "reason"),
    [
        (0.60, 4000, 3950, None),  # a long prefix that is known cached
        (0.96, 4000, 3950, None),
        (0.966, 4000, 3950, "kv_headroom"),
        (0.60, 4000, 3800, "kv_headroom"),  # cached, and not cheap
        (0.60, 4000, 0, "kv_headroom"),
        (0.0, 10_001, 10_000, "too_large"),
    ],
)
def test_a_cheap_one_fits_up_to_the_hard_bound_by_what_is_left_to_compute(
    kv, prompt, cached, reason
):
    """Its cached prefix is no prompt that would not fit; of 10,000 it adds 50."""
    policy = door(high_water=0.95, cheap_tokens=100, max_projected_kv=0.95)
    facts = {"input_tokens": prompt, "cached_tokens": cached}
    d = policy.decide(snapshot({**WELL, "kv_pressure": kv}, **facts))
    assert d.reason == reason


def test_a_cheap_one_is_never_held_to_less_than_the_others():
    """With a projected bound over the hard one it has that."""
    bounds = {"max_projected_kv": 1.0, "cheap_tokens": 100, "hard_kv": 0.92}
    policy = door(high_water=0.9, **bounds)
    facts = {"input_tokens": 1000, "cached_tokens": 950, "max_output_tokens": 900}
    sees = {**WELL, "kv_pressure": 0.89}
    assert policy.decide(snapshot(sees, **facts)).reason is None


@pytest.mark.parametrize(("cached", "bound"), [(950, 0.97), (100, 0.9)])
def test_the_wait_is_for_the_bound_that_counts_for_this_request(cached, bound):
    """A cheap one is not told to wait until the mark is free."""
    clock = FakeClock()
    policy = door(high_water=0.9, cheap_tokens=100, clock=clock)
    for kv in (1.0, 0.99, 0.98, 0.99):
        policy(page(kv_pressure=kv))
        clock.advance(1.0)
    d = policy(page(kv_pressure=0.99), input_tokens=1000, cached_tokens=cached)
    assert d.reason == "kv_pressure"
    assert d.estimate_ms == pytest.approx(1000 * (0.99 - bound) / 0.005, rel=0.3)


# Every replica full.


@pytest.mark.parametrize(
    ("replicas", "full"),
    [
        ({"a": {"queue_depth": 9.0}, "b": {"queue_depth": 0.0}}, False),
        ({"a": {"queue_depth": 900.0}, "b": {"queue_depth": 7.0}}, False),
        ({"a": {"queue_depth": 8.0}, "b": {"queue_depth": 8.0}}, True),
        ({"a": {"queue_depth": 8.0}, "b": {"pool_load": 1.0}}, True),
        ({"a": {"queue_depth": 8.0}, "b": {"queue_depth": None}}, False),
        ({"a": {"queue_depth": 8.0}, "b": {"queue_depth": None, "pool_load": None}},
         False),
        ({"a": {"queue_depth": 8.0}, "b": {"queue_depth": None, "pool_load": 1.0}},
         True),
    ],
)  # fmt: skip
def test_of_a_pool_on_one_page_every_replica_has_to_be_full(replicas, full):
    """Neither the sum nor the largest: one with room, or one that does not say."""
    policy = door(full_queue=8, full_load=1.0, sources=pool_sources())
    d = policy(pages(**replicas))
    assert said(d) == (
        ("reject", "pool_saturated", 529) if full else ("admit", None, 200)
    )


def test_a_lone_series_does_not_speak_for_those_that_lack_it():
    """It is one of theirs; a rule of the host's own is about all of them."""
    policy = door(full_queue=8)
    one = pages("engine", a={"queue_depth": 9.0}, b={"queue_depth": None})
    assert policy(one).admitted
    policy = door(full_queue=8, sources={QUEUE_DEPTH: [lambda m: m["queue"]]})
    told = pages("engine", a={"queue_depth": None}, b={"queue_depth": None})
    assert policy({**told, "queue": 7.0}).admitted
    assert policy({**told, "queue": 8.0}).reason == "pool_saturated"


def test_a_replica_of_several_engines_has_room_while_one_of_them_has():
    """Its own balancer finds it."""
    policy = door(full_queue=8)
    ranks = pages("engine", **{"0": {"queue_depth": 50.0}, "1": {"queue_depth": 0.0}})
    assert policy(ranks).admitted
    ranks = pages("engine", **{"0": {"queue_depth": 50.0}, "1": {"queue_depth": 8.0}})
    assert policy(ranks).reason == "pool_saturated"


class Replicas:
    """A host that judges replica by replica."""

    def __init__(self, **bounds):
        self.clock = FakeClock(start_s=1000.0)
        self.policy = door(**bounds, clock=self.clock)
        self.at = {}

    def say(self, name, **told):
        """A replica says something new."""
        self.at[name] = Reading(
            page(**told), taken_ns=self.clock.monotonic_ns(), replica=name,
            interval_s=0.25, own_since=True,
        )  # fmt: skip
        self.policy.look(self.at[name])

    def ask(self, name, **facts):
        """What is said for one replica."""
        return said(self.policy(self.at[name], **facts))


def test_judged_one_by_one_a_full_replica_sends_to_the_next():
    """It refuses for itself with 503; only of all of them 529 is said."""
    pool = Replicas(full_queue=8)
    pool.say("a", queue_depth=9.0)
    pool.say("b", queue_depth=0.0)
    assert pool.ask("a") == ("defer", "queue_depth", 503)
    assert pool.ask("b") == ("admit", None, 200)
    pool.say("b", queue_depth=8.0)
    assert pool.ask("a") == pool.ask("b") == ("reject", "pool_saturated", 529)
    pool.say("a", queue_depth=1.0)
    assert pool.ask("b") == ("defer", "queue_depth", 503)


def test_a_replica_full_of_load_has_no_slots():
    """The reason says which of its bounds it is."""
    pool = Replicas(full_load=1.0, full_queue=8)
    pool.say("a", pool_load=1.2)
    pool.say("b")
    assert pool.ask("a") == ("defer", "slots", 503)
    pool.say("a", pool_load=1.2, queue_depth=9.0)
    assert pool.ask("a") == ("defer", "queue_depth", 503)


def test_a_replica_that_can_no_longer_be_read_is_none():
    """Nothing can be sent to it, so it does not keep 529 from being said."""
    pool = Replicas(full_queue=8)
    pool.say("gone", queue_depth=0.0)
    pool.say("a", queue_depth=9.0)
    assert pool.ask("a")[1] == "queue_depth"
    pool.clock.advance(2.0)
    pool.say("a", queue_depth=9.0)
    assert pool.ask("a")[1] == "pool_saturated"


@pytest.mark.parametrize("name", ["a", None])
def test_what_was_sent_since_the_reading_fills_a_replica_and_makes_nothing_final(name):
    """A burst is not let past the bound; only a reading says that it is too much."""
    pool = Replicas(full_queue=3)
    pool.say(name, queue_depth=1.0)
    assert [pool.ask(name)[:2] for _ in range(4)] == [
        ("admit", None),
        ("admit", None),
        ("defer", "queue_depth"),
        ("defer", "queue_depth"),
    ]
    pool.say(name, queue_depth=3.0)
    assert pool.ask(name) == ("reject", "pool_saturated", 529)


def test_of_a_burst_on_an_idle_engine_nobody_is_refused_for_good():
    """Of 100 at once those past the slots that were seen wait, and go with readings."""
    pool = Replicas(full_queue=16)
    pool.say(None, queue_depth=0.0, running=0.0)
    told = [pool.ask(None)[:2] for _ in range(100)]
    let_in = told.count(("admit", None))
    assert 16 < let_in < 100
    assert set(told[let_in:]) == {("defer", "queue_depth")}
    pool.clock.advance(0.25)
    pool.say(None, queue_depth=0.0, running=float(let_in))
    told = [pool.ask(None)[:2] for _ in range(100 - let_in)]
    assert told[:let_in] == [("admit", None)] * let_in


def test_with_its_slots_told_an_idle_engine_takes_the_burst_whole():
    """What need not be guessed defers nobody."""
    policy = door(full_queue=16)
    idle = page(queue_depth=0.0, running=0.0)
    reading = Reading(
        idle, taken_ns=policy.settings.clock.monotonic_ns(), own_since=True, slots=256
    )
    assert all(policy(reading).admitted for _ in range(100))


def test_a_replica_that_only_seems_full_keeps_529_from_being_said():
    """One is full by its reading, the other by what was sent to it since."""
    pool = Replicas(full_queue=8)
    pool.say("a", queue_depth=9.0)
    pool.say("b", queue_depth=7.0)
    assert pool.ask("b")[0] == "admit"
    assert pool.ask("b") == pool.ask("a") == ("defer", "queue_depth", 503)


def test_a_decision_remembers_no_replica():
    """Asking is free of traces; a reading is what is remembered."""
    policy = door(full_queue=8)
    other = Reading(page(), replica="other", taken_ns=0)
    seen = snapshot(WELL)
    policy.decide(seen)
    assert not policy._replicas._seen
    policy.look(other)
    assert set(policy._replicas._seen) == {"other"}


def test_names_of_replicas_fill_no_memory():
    """However many come and go."""
    pool = Replicas(full_queue=8)
    for number in range(2 * REPLICAS_MOST + 7):
        pool.say(f"r{number}", queue_depth=0.0)
    assert len(pool.policy._replicas._seen) <= REPLICAS_MOST


def test_a_full_pool_is_told_with_a_wait_of_its_own():
    """Longer than that of a burst, and not asked of who is held."""
    d = door(full_queue=8)(page(queue_depth=8.0))
    assert 15 <= int(d.headers()["Retry-After"]) <= 60


# All of it at once, by the books.


def known(values):
    """A value, or nothing."""
    return st.none() | values


BOUNDS = st.fixed_dictionaries(
    {
        "max_projected_kv": known(st.sampled_from([0.3, 0.6, 0.95])),
        "max_share": known(st.sampled_from([0.2, 0.5, 1.0])),
        "max_per_session": known(st.integers(1, 3)),
        "min_slack_s": known(st.just(0.0)),
        "high_water": st.sampled_from([0.5, 0.9]),
        "target_wait_s": known(st.sampled_from([1.0, 5.0])),
        "cheap_tokens": known(st.sampled_from([10, 500])),
        "full_queue": known(st.integers(1, 4)),
        "full_load": known(st.sampled_from([0.5, 1.0])),
    }
)
SITUATION = st.fixed_dictionaries(
    {
        "kv_pressure": st.sampled_from([0.0, 0.04, 0.3, 0.5, 0.89, 0.9, 0.96, 0.97, 1]),
        "kv_capacity_tokens": st.sampled_from([500, 5000]),
        "oldest_wait_s": st.sampled_from([0, 1.0, 1.1, 5.1, 10.1, 50.1]),
        "queue_depth": st.integers(0, 5),
        "pool_load": st.sampled_from([0.1, 0.5, 0.99, 1.0, 1.5]),
        "in_flight": st.just(9),
        "tenant_share": st.sampled_from([0.1, 0.2, 0.3, 0.6, 1.0]),
        "session_in_flight": st.integers(0, 4),
    }
)
SAID = st.fixed_dictionaries(
    {
        "tenant": known(st.just("t")),
        "session": known(st.just("s")),
        "deadline_s": known(st.sampled_from([-1.0, 0.0, 9.0])),
        "input_tokens": known(st.sampled_from([5, 400, 501, 3000])),
        "cached_tokens": known(st.sampled_from([0, 1, 395, 2995])),
        "max_output_tokens": known(st.sampled_from([1, 200, 4000])),
    }
)


def is_on(bound, *facts):
    """Whether a rule is on and its facts are there."""
    return bound is not None and all(fact is not None for fact in facts)


def size(bound, sees, asks):
    """What the first rule says; it needs the size."""
    most, tokens = bound["max_projected_kv"], asks["input_tokens"]
    if not is_on(most, tokens):
        return None
    whole = sees["kv_capacity_tokens"]
    if tokens > whole:
        return "too_large"
    if is_cheap(bound, asks):
        tokens, most = max(0, tokens - asks["cached_tokens"]), max(most, 0.97)
    own = (tokens + (asks["max_output_tokens"] or 0)) / whole
    return "kv_headroom" if sees["kv_pressure"] + min(own, most - 0.05) > most else None


def is_cheap(bound, asks):
    """Whether it counts as cheap."""
    cached, tokens, most = asks["cached_tokens"], asks["input_tokens"], "cheap_tokens"
    if not is_on(bound[most], tokens, cached) or cached == 0:
        return False
    return max(0, tokens - cached) <= bound[most]


def by_the_books(bound, sees, asks):
    """Which reasons there are to refuse, as the page says it, in order."""
    share, queue, load = (
        sees[name] for name in ("tenant_share", "queue_depth", "pool_load")
    )
    marked = sees["kv_pressure"] >= bound["high_water"]
    patience = 1 if queue else 10
    mark = 0.97 if is_cheap(bound, asks) else bound["high_water"]
    large = size(bound, sees, asks)
    return [
        reason
        for reason, holds in (
            ("too_large", large == "too_large"),
            (
                "tenant_share",
                is_on(bound["max_share"], asks["tenant"])
                and bound["max_share"] < share < 1
                and (marked or queue > 0),
            ),
            (
                "session_in_flight",
                is_on(bound["max_per_session"], asks["session"])
                and sees["session_in_flight"] >= bound["max_per_session"],
            ),
            (
                "deadline_unmeetable",
                is_on(bound["min_slack_s"], asks["deadline_s"])
                and asks["deadline_s"] <= 0,
            ),
            (
                "pool_saturated",
                (is_on(bound["full_queue"]) and queue >= bound["full_queue"])
                or (is_on(bound["full_load"]) and load >= bound["full_load"]),
            ),
            ("kv_headroom", large == "kv_headroom"),
            ("kv_pressure", sees["kv_pressure"] >= mark),
            (
                "queue_age",
                is_on(bound["target_wait_s"])
                and sees["oldest_wait_s"] > bound["target_wait_s"] * patience,
            ),
        )
        if holds
    ]


REJECTS = {"too_large", "tenant_share", "deadline_unmeetable", "pool_saturated"}


@settings(deadline=None, max_examples=100)
@given(bounds=BOUNDS, sees=SITUATION, asks=SAID)
def test_the_answer_is_the_one_by_the_books(bounds, sees, asks):
    """Whatever is on, seen and asked: the verdict, its reason and its rank."""
    reason = next(iter(by_the_books(bounds, sees, asks)), None)
    facts = {name: value for name, value in asks.items() if value is not None}
    hidden = {"tenant_share": "tenant", "session_in_flight": "session"}
    signals = {k: v for k, v in sees.items() if hidden.get(k, "tenant") in facts}
    signals |= {k: v for k, v in sees.items() if k not in hidden}
    d = door(**bounds).decide(snapshot(signals, **facts))
    verdict = "reject" if reason in REJECTS else "defer" if reason else "admit"
    assert (d.reason, str(d.verdict)) == (reason, verdict)
    first_out = verdict == "defer" and is_cheap(bounds, asks)
    assert d.rank == (FIRST_OUT if first_out else 0.0)


@pytest.mark.parametrize("reason", [None, "tenant_share", "pool_saturated"])
def test_cheap_or_not_is_nothing_to_these(reason):
    """A cached prefix skips no share and no full pool, and needs no excuse."""
    policy = door(high_water=0.9, cheap_tokens=500, max_share=0.5, full_queue=8)
    sees = {
        None: {},
        "tenant_share": {"tenant_share": 0.6, "queue_depth": 1},
        "pool_saturated": {"queue_depth": 8},
    }[reason]
    d = policy.decide(snapshot({**WELL, **sees}, tenant="t", **CACHED))
    assert d.reason == reason


@pytest.mark.parametrize("raw", [page(), QUEUE], ids=["none queued", "a queue"])
def test_a_stuck_request_is_found_out_by_a_probe(raw):
    """One is let in where nobody was for four seconds; served soon, it opens."""
    clock = FakeClock(start_s=1000.0)
    policy = door(target_wait_s=1.0, clock=clock)
    policy(raw, stream=True)
    clock.advance(30.0)
    probe = policy(raw)
    assert probe.admitted
    assert policy(raw).reason == "queue_age"
    clock.advance(0.2)
    policy.first_token(probe.request_id)
    policy.outcome(probe.request_id, ttft_ms=200.0, e2e_ms=200.0)
    assert policy(raw).admitted
    clock.advance(3.9)
    assert policy(raw).admitted
    clock.advance(9.0)
    policy(raw)
    assert policy(raw).reason == "queue_age"  # what was shown is ten seconds old


def test_a_probe_passes_the_forecast_of_what_is_stuck_too():
    """Tokens ahead that never are worked off refuse no deadline for ever."""
    clock = FakeClock(start_s=1000.0)
    policy = door(min_slack_s=0.0, clock=clock)
    for _ in range(3):
        d = policy(page(), input_tokens=100)
        clock.advance(0.1)
        policy.first_token(d.request_id)
        policy.outcome(d.request_id)
    policy(page(), input_tokens=50_000)
    clock.advance(3.9)
    caller = {"input_tokens": 100, "deadline_s": 5.0}
    assert policy(page(), **caller).reason == "deadline_unmeetable"
    clock.advance(0.2)
    assert policy(page(), **caller).admitted
