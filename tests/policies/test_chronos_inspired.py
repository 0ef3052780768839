"""The bound on the first token's delay, and what the paper's own numbers come to."""

import math
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from admitperf import ConfigError, Reading
from admitperf.bench.callers.records import CallRecord
from admitperf.bench.callers.score import score
from admitperf.bench.callers.slo import Slo
from admitperf.policies.chronos_inspired import ChronosInspired
from admitperf.policies.parts.chronos.admissions import Admissions
from admitperf.policies.parts.chronos.response_time import (
    decodes_most,
    first_token_bound,
    load_most,
    prefill_time,
)
from admitperf.policies.parts.replicas import REPLICAS_MOST
from admitperf.testing import FakeClock, MemoryLog

IDLE = {"running": 0.0}
CHUNK_S = 0.01724
"""One chunk of the inherited model: 128 x 0.080 + 7.0 ms."""


def bounded(clock=None, **parameters):
    """The policy and its clock."""
    clock = clock or FakeClock()
    made = {"clock": clock, "reports_outcomes": True, **parameters}
    return ChronosInspired(**made), clock


def said(d):
    """What a decision says, in short."""
    return (str(d.verdict), d.reason, d.status)


def gates(d):
    """(value, bound, held) of a decision's gates, by name."""
    return {gate.name: (gate.value, gate.bound, gate.held) for gate in d.gates}


def admitted(policy, count, raw=IDLE, **facts):
    """How many of `count` are let in now."""
    return sum(policy(raw, **facts).admitted for _ in range(count))


OFFERED = 2000


def call(number, ended, ttft_ms=None):
    """A call of a run, as a benchmark records it."""
    return CallRecord(
        id=f"c{number}",
        session=f"s{number}",
        tenant=None,
        slo_class="",
        kind="",
        place=0,
        due_s=0.0,
        input_tokens=1,
        output_tokens=1,
        new_tokens=1,
        ended=ended,
        ttft_ms=ttft_ms,
        e2e_ms=ttft_ms,
    )


# The paper's own arithmetic.


def test_theorem_3_gives_the_published_731_with_a_chunk_of_128():
    """(200 - 7 - 0.080 x 128) / 0.250 = 731.04; without the chunk it is 772."""
    assert decodes_most(200.0, 128, 0.080, 0.250, 7.0) == 731
    assert math.isclose((200.0 - 7.0 - 0.080 * 128) / 0.250, 731.04)
    assert decodes_most(200.0, 512, 0.080, 0.250, 7.0) == 608
    assert math.floor((200.0 - 7.0) / 0.250) == 772


def test_a_prompt_costs_a_step_for_each_chunk():
    """C_pre = ceil(l/B) (alpha B + gamma): 17.24 ms for each 128 tokens begun."""
    assert math.isclose(prefill_time(128, 128, 0.080, 7.0), 17.24)
    assert math.isclose(prefill_time(129, 128, 0.080, 7.0), 34.48)
    assert math.isclose(prefill_time(1000, 128, 0.080, 7.0), 8 * 17.24)
    assert math.isclose(prefill_time(0, 128, 0.080, 7.0), 17.24)
    assert round(128 / 0.01724, -2) == 7400.0


def test_theorem_1_by_hand():
    """Half loaded, 2 s allowed and 0.1 s of work: 0.5 x 2 / 0.5 + 0.1 = 2.1 s."""
    assert math.isclose(first_token_bound(0.5, 0.1, 2.0), 2.1)
    assert math.isclose(first_token_bound(0.0, 0.1, 2.0), 0.1)
    assert first_token_bound(1.0, 0.1, 2.0) == math.inf


@settings(max_examples=100, deadline=None)
@given(
    deadline=st.floats(0.01, 1e4),
    part=st.floats(0.001, 0.999),
    load=st.floats(0.0, 0.999),
)
def test_the_bound_is_a_cap_on_utilisation_below_one_half(deadline, part, load):
    """Bound <= D if and only if load <= (D - C) / (2D - C), whatever the deadline."""
    cost = part * deadline
    most = load_most(cost, deadline)
    assert 0.0 < most < 0.5
    if not math.isclose(load, most, rel_tol=1e-9):
        in_time = first_token_bound(load, cost, deadline) <= deadline
        assert in_time is (load <= most)


def test_a_prompt_as_long_as_its_deadline_fits_no_load_at_all():
    """Not even none: the cap is then below zero."""
    assert load_most(2.0, 2.0) < 0.0
    assert load_most(3.0, 2.0) < 0.0
    assert load_most(0.0, 0.0) < 0.0


@pytest.mark.parametrize(
    ("let_in", "missed", "over_offered"),
    [
        (0.889, 0.0, 0.889),
        (1.0, 0.0, 1.0),
        (0.889, 0.0680, 0.829),
        (0.539, 0.0, 0.539),
        (1.0, 0.9944, 0.006),
        (1.0, 0.2255, 0.775),
    ],
)
def test_the_headline_over_what_was_offered(let_in, missed, over_offered):
    """No miss among the admitted is 0.539 of the offered, below SLAI's 0.775."""
    started = round(let_in * OFFERED)
    late = round(missed * started)
    records = [
        *(call(n, "refused") for n in range(started, OFFERED)),
        *(call(n, "answered", ttft_ms=4127.0) for n in range(late)),
        *(call(n, "answered", ttft_ms=111.0) for n in range(late, started)),
    ]
    summary = score(records, Slo(classes={"": {"ttft_ms": 2000.0}}), unloaded_s=None)
    assert summary.offered == OFFERED
    assert math.isclose(summary.goodput, over_offered, abs_tol=0.0006)


# The checks, in their order.


def test_the_cap_on_utilisation_is_what_refuses():
    """C = 1 s against 2 s allows a load of 1/3: three in ten seconds, not four."""
    policy, _ = bounded(alpha_ms=1000 / 128, gamma_ms=0.0, tbt_ms=1e5)
    assert admitted(policy, 3, input_tokens=128) == 3
    d = policy(IDLE, input_tokens=128)
    assert said(d) == ("reject", "deadline_unmeetable", 503)
    assert d.should_retry is False
    load, most, over = gates(d)["prefill_utilisation"]
    assert (round(load, 9), most, over) == (0.4, 1.0, False)
    bound_s, left_s, late = gates(d)["first_token_bound_s"]
    assert (round(bound_s, 6), left_s, late) == (2.333333, 2.0, True)


def test_a_generous_deadline_buys_no_more_than_half():
    """With an hour to spare, five seconds of work in ten are still too many."""
    policy, _ = bounded(alpha_ms=1000 / 128, gamma_ms=0.0, tbt_ms=1e5)
    assert admitted(policy, 20, input_tokens=128, deadline_s=3600.0) == 4


def test_the_wait_is_until_enough_admissions_have_left_the_window():
    """The peak of the first ten seconds leaves a window of sixty after sixty."""
    policy, clock = bounded(
        clock=FakeClock(start_s=600.0), alpha_ms=1000 / 128, gamma_ms=0.0, tbt_ms=1e5
    )
    assert admitted(policy, 3, input_tokens=128) == 3
    clock.advance(4.0)
    assert policy(IDLE, input_tokens=128).estimate_ms == 6000
    clock.advance(6.0)
    assert policy(IDLE, input_tokens=128).admitted


def test_a_dearer_mix_waits_for_the_peak_to_leave():
    """Many small prompts make a high rate; a large one is charged at that rate."""
    policy, clock = bounded(clock=FakeClock(start_s=600.0))
    assert admitted(policy, 200, input_tokens=128) == 200
    clock.advance(10.0)
    assert policy(IDLE, input_tokens=2_000).admitted
    d = policy(IDLE, input_tokens=8_000)
    assert (d.reason, d.estimate_ms) == ("deadline_unmeetable", 50_000)
    clock.advance(50.0)
    assert policy(IDLE, input_tokens=8_000).admitted


def test_the_mean_rate_takes_the_whole_window():
    """What the peak refuses in ten seconds fits sixty."""
    facts = {"alpha_ms": 1000 / 128, "gamma_ms": 0.0, "tbt_ms": 1e5}
    peak, _ = bounded(**facts)
    mean, _ = bounded(rate="mean", **facts)
    assert admitted(peak, 50, input_tokens=128) == 3
    assert admitted(mean, 50, input_tokens=128) == 20


def test_utilisation_of_one_defers_and_says_when():
    """Blind admissions count too; past 1 there is no bound, only a window to empty."""
    policy, clock = bounded(
        clock=FakeClock(start_s=600.0), alpha_ms=1000 / 128, gamma_ms=0.0, tbt_ms=1e5
    )
    assert admitted(policy, 12, raw={}, input_tokens=128) == 12
    clock.advance(1.0)
    d = policy(IDLE, input_tokens=128)
    assert said(d) == ("defer", "prefill_backlog", 503)
    assert gates(d)["prefill_utilisation"] == (pytest.approx(1.3), 1.0, True)
    assert "first_token_bound_s" not in gates(d)
    assert d.estimate_ms == 59_000
    clock.advance(58.999)
    assert not policy(IDLE, input_tokens=128).admitted
    clock.advance(0.001)
    assert policy(IDLE, input_tokens=128).admitted


def test_a_deadline_long_past_is_not_met_by_a_bound_that_is_negative():
    """Time left is never less than none, however busy the window."""
    policy, _ = bounded(alpha_ms=1000 / 128, gamma_ms=0.0, tbt_ms=1e5)
    assert admitted(policy, 6, raw={}, input_tokens=128) == 6
    d = policy(IDLE, input_tokens=128, deadline_s=-100.0)
    assert d.reason == "deadline_unmeetable"
    assert gates(d)["first_token_bound_s"][1:] == (0.0, True)


def test_what_no_empty_window_would_fit_is_told_so():
    """A prompt that alone takes longer than its deadline is not sent to wait."""
    policy, _ = bounded()
    d = policy(IDLE, input_tokens=200_000, deadline_s=20.0)
    assert said(d) == ("reject", "deadline_unmeetable", 503)
    assert gates(d)["first_token_bound_s"][2] is True
    assert d.wait == "default"


@pytest.mark.parametrize("share", [1.0, 0.125])
def test_one_before_an_idle_engine_is_no_rate(share):
    """It passes if it is done in time by itself, whatever part is this process's."""
    for tokens in (8_000, 80_000):
        policy, clock = bounded(clock=FakeClock(start_s=600.0), prefill_share=share)
        assert policy(IDLE, input_tokens=tokens, deadline_s=600.0).admitted
    busy = {"running": 1.0}
    d = policy(busy, input_tokens=80_000, deadline_s=600.0)
    assert (d.reason, d.estimate_ms) == ("prefill_backlog", 60_000)
    clock.advance(60.0)
    assert not policy(busy, input_tokens=80_000, deadline_s=600.0).admitted
    assert policy(IDLE, input_tokens=80_000, deadline_s=600.0).admitted


def test_a_part_of_an_engine_bounds_what_others_may_have_sent():
    """Eight processes: an admission here stands for eight, the newcomer for itself."""
    policy, _ = bounded(
        alpha_ms=100 / 128, gamma_ms=0.0, tbt_ms=1e5, prefill_share=0.125
    )
    loads = []
    for _ in range(3):
        d = policy({"running": 1.0}, input_tokens=128)
        loads.append(gates(d)["prefill_utilisation"][0])
        assert d.admitted
    assert loads == pytest.approx([0.01, 0.09, 0.17])


def test_each_check_leaves_its_gate_and_the_first_one_answers():
    """Whatever the others say, so that a run tells how near each one came."""
    policy, _ = bounded()
    d = policy({"running": 731.0}, input_tokens=14_000)
    assert d.reason == "deadline_unmeetable"
    assert gates(d)["running"] == (731.0, 730.0, True)
    d = policy({"running": 731.0}, input_tokens=128)
    assert said(d) == ("defer", "slots", 503)
    assert gates(d)["first_token_bound_s"][2] is False
    d = policy(IDLE, input_tokens=128)
    assert [held for *_, held in gates(d).values()] == [False, False, False]


def test_without_a_size_only_the_last_check_applies():
    """A host that counts no tokens is held by the number of answers."""
    policy, _ = bounded()
    assert list(gates(policy(IDLE, deadline_s=0.0))) == ["running"]
    assert policy({"running": 731.0}).reason == "slots"


def test_a_request_of_unknown_size_counts_as_the_mean_of_the_others():
    """It is an arrival all the same."""
    policy, _ = bounded(alpha_ms=1000 / 128, gamma_ms=0.0, tbt_ms=1e5)
    assert policy(IDLE, input_tokens=128).admitted
    assert admitted(policy, 2) == 2
    assert not policy(IDLE, input_tokens=128).admitted


def test_the_deadline_comes_from_the_request_then_the_slo_then_the_parameter():
    """The time left for the first token, in that order."""
    slo = {"chat": {"ttft_ms": 4000}, "batch": {"stall_ms": 500}}
    policy, _ = bounded(slo=slo, ttft_s=8.0)
    left = [
        gates(policy(IDLE, input_tokens=1, **facts))["first_token_bound_s"][1]
        for facts in (
            {"slo_class": "chat", "deadline_s": 1.5},
            {"slo_class": "chat"},
            {"slo_class": "batch"},
            {},
        )
    ]
    assert left == [1.5, 4.0, 8.0, 8.0]
    flat, _ = bounded(slo={"ttft_ms": 3000}, ttft_s=8.0)
    d = flat(IDLE, input_tokens=1, slo_class="any")
    assert gates(d)["first_token_bound_s"][1] == 3.0


def test_the_budget_for_a_token_comes_from_the_slo_of_the_class():
    """A stall of 55 ms leaves room for 151 answers, 200 ms for 731."""
    policy, _ = bounded(slo={"chat": {"stall_ms": 55}})
    assert gates(policy(IDLE, slo_class="chat"))["running"][1] == 150
    assert gates(policy(IDLE))["running"][1] == 730


@pytest.mark.parametrize(
    "wrong",
    [
        {"tbt_ms": 17.0},
        {"slo": {"chat": {"stall_ms": 1}}},
        {"alpha_ms": 0.0},
        {"beta_ms": 0.0},
        {"chunk_tokens": 0},
        {"sub_windows": 31},
        {"rate": "median"},
        {"prefill_share": 0.0},
        {"beta_ms": 1e-320},
        {"window_s": 1e-320},
        {"prefill_share": 1e-320},
    ],
)
def test_a_wrong_parameter_stops_at_construction(wrong):
    """A budget that no answer fits would refuse everything for good."""
    with pytest.raises(
        ConfigError, match="tbt_ms" if "slo" in wrong else next(iter(wrong))
    ):
        ChronosInspired(**wrong)


# What is counted, and when.


def test_being_asked_many_times_counts_nothing():
    """Only a final answer that lets a request in is an arrival."""
    policy, _ = bounded(alpha_ms=1000 / 128, gamma_ms=0.0, tbt_ms=1e5)
    assert admitted(policy, 3, input_tokens=128) == 3
    held = policy.ask(IDLE, input_tokens=128)
    for _ in range(50):
        held = policy.ask(IDLE, request_id=held.request_id, input_tokens=128)
    assert round(gates(held)["prefill_utilisation"][0], 9) == 0.4
    policy.answer(held)
    d = policy(IDLE, input_tokens=128)
    assert round(gates(d)["prefill_utilisation"][0], 9) == 0.4


def test_offered_load_alone_refuses_nobody_later():
    """A stationary overload of refusals leaves the window as it was."""
    policy, clock = bounded(alpha_ms=1000 / 128, gamma_ms=0.0, tbt_ms=1e5)
    let_in = []
    for _ in range(12):
        let_in.append(admitted(policy, 100, input_tokens=128))
        clock.advance(10.0)
    assert let_in == [3] * 12


def test_each_replica_has_a_window_and_their_number_is_bounded():
    """What was sent to one engine is no load of another's."""
    policy, _ = bounded(alpha_ms=1000 / 128, gamma_ms=0.0, tbt_ms=1e5)
    for name in ("a", "b"):
        at = Reading(IDLE, taken_ns=0, replica=name)
        assert admitted(policy, 9, raw=at, input_tokens=128) == 3
    for n in range(2 * REPLICAS_MOST):
        policy(Reading(IDLE, taken_ns=0, replica=f"r{n}"), input_tokens=128)
    assert len(policy._admissions) <= REPLICAS_MOST + 1


def test_a_process_of_several_uses_its_part():
    """Two workers before one engine have half of it each."""
    halved = ChronosInspired.divided({}, 2)
    assert halved["prefill_share"] == 0.5
    assert halved.get("tbt_ms", 200.0) == 200.0
    facts = {"alpha_ms": 500 / 128, "gamma_ms": 0.0, "tbt_ms": 1e5}
    whole, _ = bounded(**facts)
    half, _ = bounded(**facts, prefill_share=0.5)
    assert admitted(whole, 50, input_tokens=128) == 8
    assert admitted(half, 50, input_tokens=128) == 4


def test_setting_the_wall_clock_changes_nothing():
    """Time is the monotonic clock's."""
    policy, clock = bounded(alpha_ms=1000 / 128, gamma_ms=0.0, tbt_ms=1e5)
    assert admitted(policy, 9, input_tokens=128) == 3
    clock.set_wall(4e9)
    assert admitted(policy, 9, input_tokens=128) == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_goes_on_with_a_copy():
    """Parent and child each have what was left, as the reference page says."""
    policy, _ = bounded(alpha_ms=1000 / 128, gamma_ms=0.0, tbt_ms=1e5)
    assert admitted(policy, 1, input_tokens=128) == 1
    child = os.fork()
    if child == 0:
        os._exit(admitted(policy, 10, input_tokens=128))
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 2
    assert admitted(policy, 10, input_tokens=128) == 2


def test_a_window_keeps_its_sub_windows_and_no_more():
    """A year of requests leaves six numbers."""
    window = Admissions(60.0, 6, peak=True)
    for second in range(5_000):
        window.add(second * 7.0, 0.1)
    assert len(window._kept) == 6
    assert window.load(1e9, 0.5, 1.0) == pytest.approx(0.05)


def test_the_gates_are_in_the_log():
    """A report can say how near a run came to each check."""
    log = MemoryLog()
    policy, _ = bounded(log=log)
    policy(IDLE, input_tokens=256)
    names = [gate[0] for gate in log.decisions[0]["gates"]]
    assert names == ["prefill_utilisation", "first_token_bound_s", "running"]


class Oracle:
    """The paper's check (b) with a window made of its definition."""

    def __init__(self, parts, part_s):
        self.parts, self.part_s = parts, part_s
        self.seen = []

    def load(self, now_s, cost):
        """Peak rate x mean cost, the candidate among both; alone it is none."""
        number = int(now_s // self.part_s)
        seen = [(n, c) for n, c in self.seen if n > number - self.parts]
        if not seen:
            return 0.0
        seen.append((number, cost))
        numbers = [n for n, _ in seen]
        peak = max(numbers.count(n) for n in set(numbers)) / self.part_s
        return peak * sum(c for _, c in seen) / len(seen)


CALLS = st.lists(
    st.tuples(
        st.sampled_from([0.0, 0.1, 1.0, 9.9, 30.0]),
        st.sampled_from([1, 128, 1000, 8000, 12_000, 40_000]),
        st.sampled_from([None, 0.5, 2.0, 60.0]),
        st.booleans(),
    ),
    min_size=1,
    max_size=60,
)


@settings(max_examples=60, deadline=None)
@given(calls=CALLS)
def test_nothing_is_admitted_over_the_bound_in_any_interleaving(calls):
    """Calls, questions and time in any order: the definition agrees each time.

    And of what these checks let in beside others, utilisation stays below one half.
    """
    policy, clock = bounded(clock=FakeClock(start_s=1000.0))
    oracle = Oracle(6, 10.0)
    for pause_s, tokens, deadline_s, only_asked in calls:
        clock.advance(pause_s)
        cost = math.ceil(tokens / 128) * CHUNK_S
        load = oracle.load(clock.monotonic_ns() / 1e9, cost)
        left_s = 2.0 if deadline_s is None else deadline_s
        fits = load <= load_most(cost, left_s)
        call = policy.ask if only_asked else policy
        d = call(IDLE, input_tokens=tokens, deadline_s=deadline_s)
        if not math.isclose(load, load_most(cost, left_s), rel_tol=1e-9):
            assert d.admitted is fits
        assert d.reason in (None, "deadline_unmeetable", "prefill_backlog")
        if d.admitted:
            assert load < 0.5
            oracle.seen.append((int(clock.monotonic_ns() / 1e9 // 10.0), cost))
