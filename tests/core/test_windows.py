"""Counters over time, restarts included."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.rules import reading, rule, sees

from admitperf import Source
from admitperf.core.series import Series
from admitperf.core.signals import PREEMPTIONS, PREFIX_HIT_RATE
from admitperf.core.window import Window

COUNTER = "vllm:num_preemptions_total"


def rises(*pages, seconds=1.0, name="hits_total"):
    """The rise of a counter over pages that follow each other, summed over series."""
    window = Window.EMPTY
    for before, after in itertools.pairwise(pages):
        window = window.then(Window.between(Series(before), Series(after), seconds))
    found = window.increase(name)
    return None if found is None else sum(found.values())


def test_one_page_has_no_window():
    """A counter's value alone is no rate, and neither is it zero."""
    assert Window.EMPTY.increase("hits_total") is None
    assert Window.EMPTY.seconds == 0.0


@pytest.mark.parametrize(
    ("pages", "rise"),
    [
        ([{"hits_total": 5}, {"hits_total": 8}], 3),
        ([{"hits_total": 5}, {"hits_total": 5}], 0),
        ([{"hits_total": 5}, {"hits_total": 2}], 2),
        ([{"hits_total": 5}, {"hits_total": 0}], 0),
        ([{"hits_total": v} for v in (1, 4, 2, 9)], 12),
        ([{'hits_total{e="0"}': 5, 'hits_total{e="1"}': 9},
          {'hits_total{e="0"}': 1, 'hits_total{e="1"}': 12}], 4),
        ([{'hits_total{e="0"}': 5},
          {'hits_total{e="0"}': 6, 'hits_total{e="1"}': 50}], 1),
        ([{'hits_total{e="0"}': 5, 'hits_total{e="1"}': 9},
          {'hits_total{e="0"}': 7}], 2),
    ],
)  # fmt: skip
def test_a_rise_is_taken_per_series_and_a_fall_is_a_restart(pages, rise):
    """A restarted engine counts from zero; one that appears or vanishes is left out."""
    assert rises(*pages) == rise


@pytest.mark.parametrize(
    "pages",
    [
        [{"other": 1}, {"other": 2}],
        [{"hits_total": 1}, {"other": 2}],
        [{'hits_total{e="0"}': 1}, {'hits_total{e="1"}': 2}],
        [{"hits_total": float("nan")}, {"hits_total": 2}],
        [{"hits_total": -1}, {"hits_total": 2}],
    ],
)
def test_without_a_series_on_both_pages_a_rise_is_not_known(pages):
    """It is None, and never zero."""
    assert rises(*pages) is None


@pytest.mark.parametrize("marker", ["hits_created", "process_start_time_seconds"])
def test_a_restart_that_its_marker_shows_is_seen_although_the_counter_is_higher(marker):
    """An engine that restarted and caught up counts from zero."""
    assert (
        rises({"hits_total": 5, marker: 100.0}, {"hits_total": 8, marker: 200.0}) == 8
    )
    assert (
        rises({"hits_total": 5, marker: 100.0}, {"hits_total": 8, marker: 100.0}) == 3
    )


@given(
    steps=st.lists(
        st.tuples(st.integers(0, 100), st.booleans(), st.booleans()), max_size=12
    )
)
def test_a_rise_never_exceeds_what_was_counted_and_is_never_negative(steps):
    """Over any restarts the measured rise is a lower bound of the true one."""
    counter, true_rise, pages = 0, 0, [{"hits_total": 0}]
    for amount, restart, scraped in steps:
        counter = amount if restart else counter + amount
        true_rise += amount
        if scraped:
            pages.append({"hits_total": counter})
    measured = rises(*pages)
    assert measured is None or 0 <= measured <= true_rise


def rate_of(pages, clock, signal=PREEMPTIONS, step_s=1.0, **given):
    """What a windowed signal reads, page by page."""
    seen = []
    policy = rule(sees(seen, signal), clock=clock, **given)
    for page in pages:
        policy(reading(clock, page))
        clock.advance(step_s)
    return [s[signal.name] for s in seen]


def test_a_windowed_signal_is_none_on_the_first_page_and_a_rate_after_it(clock):
    """Four preemptions in two seconds are two per second."""
    pages = [{COUNTER: value} for value in (10, 12, 14)]
    assert rate_of(pages, clock) == [None, 2.0, 2.0]


def test_a_quiet_counter_is_a_true_zero(clock):
    """Counted and found to be nothing is not the same as unknown."""
    assert rate_of([{COUNTER: 7}] * 3, clock) == [None, 0.0, 0.0]


def test_a_rate_forgets_after_its_window(clock):
    """A burst of a minute ago says nothing about now."""
    pages = [{COUNTER: 0}, {COUNTER: 50}] + [{COUNTER: 50}] * 30
    rates = rate_of(pages, clock)
    assert rates[1] == 50.0
    assert rates[-1] == 0.0


def test_a_restart_does_not_make_a_rate_negative(clock):
    """The engine came back with a fresh counter."""
    rates = rate_of([{COUNTER: v} for v in (1_000, 1_002, 1, 3)], clock)
    assert all(rate is None or rate >= 0 for rate in rates)
    assert max(rate for rate in rates if rate is not None) <= 2.0


def test_a_hit_rate_without_lookups_is_not_known(clock):
    """Nothing was looked up: that is no miss."""
    hits, lookups = "vllm:prefix_cache_hits_total", "vllm:prefix_cache_queries_total"
    pages = [
        {hits: 10, lookups: 20}, {hits: 10, lookups: 20}, {hits: 13, lookups: 24},
    ]  # fmt: skip
    assert rate_of(pages, clock, PREFIX_HIT_RATE) == [None, None, 0.75]


def test_readings_that_arrive_out_of_order_do_not_look_like_a_restart(clock):
    """An older page that comes late adds nothing: its counter did not fall."""
    pages = [(0.0, 1_000), (1.0, 1_001), (2.0, 1_002), (1.5, 1_001), (3.0, 1_003)]
    seen = []
    policy = rule(sees(seen, PREEMPTIONS), clock=clock)
    start_ns = clock.monotonic_ns()
    clock.advance(3.0)
    from admitperf import Reading

    for at_s, value in pages:
        policy(Reading({COUNTER: value}, taken_ns=start_ns + int(at_s * 1e9)))
    rates = [s["preemptions"] for s in seen if s["preemptions"] is not None]
    assert rates
    assert max(rates) <= 2.0


def test_each_replica_has_its_own_window(clock):
    """Two engines whose pages alternate are not one engine that restarts."""
    seen = []
    policy = rule(sees(seen, PREEMPTIONS), clock=clock)
    for n in range(4):
        policy(reading(clock, {COUNTER: 1_000 + n}, replica="a"))
        policy(reading(clock, {COUNTER: 5 + n}, replica="b"))
        clock.advance(1.0)
    rates = [s["preemptions"] for s in seen]
    assert rates == [None, None] + [1.0] * 6


def test_a_formula_may_use_the_window(clock):
    """A source of one's own can turn counters into a rate."""

    def rate(_series, window):
        rise = window.increase("jobs_total")
        return None if rise is None else sum(rise.values()) / window.seconds

    own = {PREEMPTIONS: [Source("jobs", formula=rate)]}
    pages = [{"jobs_total": v} for v in (0, 4, 8)]
    assert rate_of(pages, clock, step_s=2.0, sources=own) == [None, 2.0, 2.0]
