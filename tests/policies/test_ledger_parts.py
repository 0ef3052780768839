"""What `session_ledger` learns: of calls, of whole tasks and of its engines."""

from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from admitperf.core.outcome import Outcome
from admitperf.core.recent import KEPT, Recent
from admitperf.core.request import Request
from admitperf.policies.parts.ledger.engine import (
    ADOPT_S,
    DRIFT,
    DRIFT_EVERY_S,
    DRIFT_ROUNDS,
    FORGETS,
    FRESH_LEAST,
    RETAINED,
    TO_SPARE,
    TRUST_AT_FIRST,
    TRUST_LEAST,
    UNHEARD_S,
    Engine,
)
from admitperf.policies.parts.ledger.history import (
    GAP_S,
    GROWTH,
    HORIZON_CALLS,
    HORIZON_S,
    LEARNT_AFTER,
    SERVICE_S,
    History,
)
from admitperf.policies.parts.ledger.needs import Needs
from admitperf.policies.parts.ledger.rate import LOOKS_BACK_S, Rate
from admitperf.policies.parts.ledger.sums import Sums
from admitperf.policies.parts.ledger.task import WEIGHT, Task
from admitperf.policies.parts.replicas import REPLICAS_MOST
from admitperf.testing import snapshot

SECOND_NS = 1_000_000_000

# ------------------------------------------------------------------- the last values

VALUES = st.lists(st.integers(0, 50), min_size=1, max_size=3 * KEPT)


def recent(values):
    """With these, in order."""
    made = Recent()
    for value in values:
        made.add(value)
    return made


@given(values=VALUES, q=st.sampled_from([0.01, 0.2, 0.5, 0.8, 1.0]))
def test_a_quantile_is_a_value_that_such_a_part_stays_within(values, q):
    """And no smaller value is; of the last ones alone."""
    made, kept = recent(values), values[-KEPT:]
    found = made.quantile(q)
    assert len(made) == len(kept)
    assert found in kept
    assert sum(value <= found for value in kept) >= q * len(kept)
    assert sum(value < found for value in kept) < q * len(kept)


@given(values=VALUES, value=st.integers(-1, 51))
def test_the_middle_of_those_above_a_value_is_one_of_them(values, value):
    """As many under it as over it; None where there is none."""
    above = sorted(one for one in values[-KEPT:] if one > value)
    found = recent(values).middle_above(value)
    if not above:
        assert found is None
        return
    assert found == above[(len(above) - 1) // 2]


def test_of_nothing_there_is_no_quantile():
    """Nobody takes 0 for a measurement."""
    assert (Recent().quantile(0.5), Recent().middle_above(0)) == (None, None)


# ------------------------------------------------------------------------- a class


def lived(*lengths):
    """A class whose tasks had so many calls."""
    made = History()
    for calls in lengths:
        made.learn(calls, 10.0 * calls)
    return made


def test_before_anything_was_seen_it_is_what_agents_mostly_are():
    """And five values are needed for something else."""
    made = History()
    for value in (100, 200, 300, 400):
        made.growth.add(value)
    assert (made.grows, made.call_s, made.pause_s) == (GROWTH, SERVICE_S, GAP_S)
    assert made.duty == pytest.approx(SERVICE_S / (SERVICE_S + GAP_S))
    assert (made.lasts_s, made.remaining(0)) == (HORIZON_S, HORIZON_CALLS)
    made.growth.add(500)
    assert made.grows == 300


def test_the_calls_to_come_are_of_those_that_got_so_far():
    """Most are short; who is past these is one of the long ones."""
    made = lived(2, 2, 2, 2, 30, 40, 50)
    assert made.remaining(0) == 2
    assert made.remaining(2) == 38
    assert made.remaining(39) == 1


@pytest.mark.parametrize("made", [50, 90, 400])
def test_who_outlived_all_others_will_go_on_as_long_again(made):
    """The heavier the tail, the longer: at each call anew."""
    assert lived(2, 2, 2, 2, 50).remaining(made) == made


@given(
    lengths=st.lists(st.integers(1, 200), min_size=LEARNT_AFTER, max_size=60),
    made=st.integers(0, 300),
)
def test_there_is_always_one_more_call_to_come(lengths, made):
    """Whatever was seen; and what is reserved for stays within the horizon."""
    history = lived(*lengths)
    longer = [one - made for one in lengths if one > made]
    assert history.remaining(made) >= 1
    if longer:
        assert min(longer) <= history.remaining(made) <= max(longer)
        assert history.remaining(made) <= median(longer)
    assert history.ahead(made) <= HORIZON_CALLS


def test_slow_calls_leave_fewer_within_the_horizon():
    """A minute of them."""
    made = History()
    for _ in range(LEARNT_AFTER):
        made.service_s.add(25.0)
        made.gap_s.add(5.0)
    assert made.ahead(0) == 2


def test_a_call_that_hardly_waited_is_one_of_the_quickest_fifth():
    """What a crowded engine hides."""
    made = History()
    for took_s in (1.0, 2.0, 30.0, 40.0, 50.0):
        made.service_s.add(took_s)
    assert (made.quick_s, made.call_s) == (1.0, 30.0)
    assert History().quick_s == SERVICE_S


# -------------------------------------------------------------------------- a task


def task(before=None):
    """One of a class of which nothing is known."""
    return Task("s", 0, History() if before is None else before.history, "t", before)


def test_a_task_begins_as_its_class_is_and_moves_to_what_it_is():
    """By three tenths a call."""
    made = task()
    assert (made.growth, made.fresh) == (GROWTH, GROWTH)
    made.asks(1_000)
    assert made.growth == GROWTH
    made.asks(3_000)
    assert made.growth == pytest.approx(GROWTH + WEIGHT * (2_000 - GROWTH))
    made.paused(10.0)
    assert made.gap_s == pytest.approx(GAP_S + WEIGHT * (10.0 - GAP_S))


def test_a_prompt_that_is_shorter_did_not_grow():
    """A context that was compacted gives nothing back by what is to come."""
    made = task()
    made.asks(5_000)
    made.asks(1_000)
    assert made.growth == pytest.approx((1 - WEIGHT) * GROWTH)
    assert made.history.growth.quantile(0.0) == 0


def test_what_prefill_computes_of_a_first_prompt_is_apart():
    """It comes once; what it does to the mean of the others would last."""
    made = task()
    made.calls = 1
    made.served(2.0, 40_000)
    assert (made.first, made.fresh) == (40_000, GROWTH)
    made.calls = 2
    made.served(2.0, 100)
    assert (made.first, made.fresh) == (40_000, pytest.approx(660))
    assert made.service_s == pytest.approx(SERVICE_S + (1 - 0.7**2) * (2 - SERVICE_S))


def test_one_that_comes_back_calls_as_it_did():
    """Its averages, and neither its calls nor its context."""
    made = task()
    for tokens in (1, 9_001, 18_001):
        made.asks(tokens)
    made.paused(60.0)
    again = task(made)
    assert (again.growth, again.gap_s) == (made.growth, made.gap_s)
    assert (again.calls, again.tokens, again.prompt) == (0, 0, 0)


def test_calls_a_second_are_reckoned_without_the_crowd():
    """Waiting makes a task look as if it needed less."""
    made = task()
    made.history.service_s.add(1.0)
    made.service_s = 100.0
    assert made.turns_per_s == pytest.approx(1 / (1.0 + GAP_S))


def test_a_call_that_took_no_time_is_reckoned_as_a_millisecond():
    """A clock may stand still between two events; what it then says is no pace."""
    made = task()
    for _ in range(60):
        made.served(0.0, 10.0)
        made.paused(0.0)
    assert made.turns_per_s == pytest.approx(1_000)
    assert made.duty == pytest.approx(1.0)
    assert made.history.ahead(1) == HORIZON_CALLS


# ------------------------------------------------------------------- what it needs


def test_a_newcomer_needs_its_prompt_its_growth_and_its_part_of_the_engine():
    """A first prompt is spread over the time that tasks last."""
    needs = Needs.begun(History(), 6_000, 500)
    turn_s = SERVICE_S + GAP_S
    kv, slots, prefill = needs.all
    assert kv == 6_000 + HORIZON_CALLS * 500
    assert slots == pytest.approx(SERVICE_S / turn_s)
    assert prefill == pytest.approx(GROWTH / turn_s + 6_000 / HORIZON_S)
    assert needs.since_ns is None


def test_a_live_task_needs_its_context_but_for_what_all_share():
    """That is in the cache once."""
    made = task()
    made.holds("s", 9_000, 0)
    assert made.charged(2_000).all[0] == 7_000 + HORIZON_CALLS * GROWTH
    assert made.charged(99_000).all[0] == HORIZON_CALLS * GROWTH


def test_a_task_with_an_open_call_is_not_idle():
    """Since its call ended it counts for less and less."""
    made = task()
    made.busy, made.idle_ns = True, 7
    assert made.charged(0).since_ns is None
    made.busy = False
    assert made.charged(0).since_ns == 7


def test_what_it_takes_to_finish_is_for_the_calls_that_are_left():
    """Of a newcomer with its first prompt; what a live one has done is done."""
    needs = Needs.begun(History(), 6_000, 500)
    kv, slots, _ = needs.all
    told = (10 * kv, 10 * slots, 6_000 + 10 * GROWTH)
    assert needs.to_finish(10) == pytest.approx(told)
    made = task()
    assert made.to_finish() == (0.0, 0.0, 0.0)
    made.first, made.needs = 6_000, made.charged(0)
    kv, slots, _ = made.needs.all
    told = (HORIZON_CALLS * kv, HORIZON_CALLS * slots, HORIZON_CALLS * GROWTH)
    assert made.to_finish() == pytest.approx(told)


def test_one_request_by_itself_needs_its_prompt_and_a_slot():
    """One without a count needs none that is known."""
    assert Needs.once(700).all == (700.0, 1.0, 0.0)
    assert Needs.once(None).all == (0.0, 1.0, 0.0)


# -------------------------------------------------------------------- what is free


def test_a_rate_is_of_the_time_since_there_was_anything_to_come_free():
    """And of a minute back at most; nothing is known before anything came free."""
    rate = Rate()
    rate.begin(0)
    assert rate.per_s(30 * SECOND_NS) is None
    for second in range(1, 601):
        rate.add(100.0, second * SECOND_NS)
        if second >= 30:
            assert rate.per_s(second * SECOND_NS) == pytest.approx(100, rel=0.05)


def test_the_beginning_is_the_first_one():
    """Later tasks do not set it back."""
    rate = Rate()
    rate.begin(0)
    rate.begin(50 * SECOND_NS)
    rate.add(6_000.0, 60 * SECOND_NS)
    expected = 100 / (1 - 2.718281828 ** (-60 / LOOKS_BACK_S))
    assert rate.per_s(60 * SECOND_NS) == pytest.approx(expected)


def test_what_came_free_long_ago_is_forgotten():
    """A third after a minute."""
    rate = Rate()
    rate.begin(0)
    rate.add(6_000.0, 600 * SECOND_NS)
    now, later = (rate.per_s(s * SECOND_NS) for s in (600, 660))
    assert later / now == pytest.approx(1 / 2.718281828, rel=1e-3)


def test_what_came_free_at_once_is_no_rate():
    """The first moment is reckoned as a twentieth of the time looked back on."""
    rate = Rate()
    rate.begin(0)
    rate.add(60.0, 0)
    assert rate.per_s(0) == pytest.approx(20.0)


def test_a_sum_of_none_is_nothing():
    """Whatever adding has rounded off."""
    sums = Sums()
    for _ in range(3):
        sums.add((0.1, 0.2, 0.3), 1, 0.7)
    sums.scale(0.3)
    for part in (0.1, 0.2, 0.3):
        sums.add((0.1, 0.2, 0.3), -1, part)
    assert (sums.count, sums.all) == (0, (0.0, 0.0, 0.0))


def test_a_sum_counts_parts():
    """All of them scaled together."""
    sums = Sums()
    sums.add((10.0, 1.0, 4.0), 1)
    sums.scale(0.5)
    sums.add((10.0, 1.0, 4.0), 1, 0.25)
    assert sums.all == pytest.approx((7.5, 0.75, 3.0))


# ----------------------------------------------------------------------- the engine


class Host:
    """Readings and ends, one after another."""

    def __init__(self, slots=None, now_s=1000.0):
        self.engine = Engine(slots)
        self.now_s = now_s

    def read(self, seconds=0.0, kept=None, replica=None, open_tokens=None, **signals):
        """A reading, so many seconds later."""
        self.now_s += seconds
        told = {"kv_capacity_tokens": 10_000, "kv_pressure": 0.0, **signals}
        metrics = snapshot(told, now_s=self.now_s)
        if replica is not None:
            metrics = _Named(metrics, replica)
        self.engine.observe(metrics, None, kept)
        if open_tokens is not None:
            self.engine.compare(metrics, open_tokens, 1.0)

    def end(self, tokens, ttft_ms, cached=0, asked=None):
        """The end of a request with such a prompt."""
        request = Request({"input_tokens": tokens, "cached_tokens": asked})
        told = {
            "ttft_ms": ttft_ms,
            "first_text_ms": None,
            "max_gap_ms": None,
            "e2e_ms": None,
            "output_tokens": 1,
            "cached_tokens": cached,
            "input_tokens": None,
            "finish_reason": None,
            "error": None,
        }
        outcome = Outcome("r", ok=True, request=request, **told)
        self.engine.observe(snapshot({}, now_s=self.now_s), outcome, None)


class _Named:
    """A snapshot of one replica of several."""

    def __init__(self, metrics, replica):
        self.read, self.now_s, self.replica = metrics.read, metrics.now_s, replica


@pytest.mark.parametrize(
    ("signals", "slots"),
    [
        ({"running": 7, "queue_depth": 2, "kv_pressure": TO_SPARE - 0.01}, 7),
        ({"running": 7, "queue_depth": 2, "kv_pressure": None}, 7),
        ({"running": 7, "queue_depth": 2, "kv_pressure": TO_SPARE}, None),
        ({"running": 7, "queue_depth": 0}, None),
        ({"running": 7}, None),
        ({"running": 0, "queue_depth": 2}, None),
    ],
)
def test_slots_are_those_that_ran_while_others_waited_with_memory_to_spare(
    signals, slots
):
    """With a full cache the queue may be for memory."""
    host = Host()
    host.read(**signals)
    assert host.engine.slots == slots


def test_slots_that_are_known_only_grow():
    """By more that run, also without a queue; by what waits while few run they do not.

    An engine that begins has few running and some waiting.
    """
    host = Host()
    host.read(running=7, queue_depth=2)
    host.read(running=3, queue_depth=2)
    assert host.engine.slots == 7
    host.read(running=9)
    assert host.engine.slots == 9


def test_slots_that_are_given_are_each_replicas():
    """As many times as there are replicas."""
    host = Host(slots=4)
    assert host.engine.slots == 4
    for replica in "abc":
        host.read(replica=replica, running=7, queue_depth=2)
    assert host.engine.slots == 12


def test_slots_of_a_pool_are_known_when_each_replicas_are():
    """Those of one are not those of all."""
    host = Host()
    host.read(replica="a", running=7, queue_depth=2)
    host.read(replica="b", running=1)
    assert host.engine.slots is None
    host.read(replica="b", running=5, queue_depth=2)
    assert host.engine.slots == 12


def test_a_pool_has_what_its_replicas_have():
    """The largest tells what fits at all."""
    host = Host()
    assert (host.engine.tokens, host.engine.largest) == (0.0, 0.0)
    host.read(replica="a")
    host.read(replica="b", kv_capacity_tokens=6_000)
    assert (host.engine.tokens, host.engine.largest) == (16_000, 10_000)
    host.end(1_000, 1_000)
    assert host.engine.prefill == 2_000


def test_a_replica_that_is_not_heard_of_any_more_counts_no_more():
    """After a minute."""
    host = Host()
    host.read(replica="a")
    host.read(UNHEARD_S, replica="b")
    assert host.engine.tokens == 20_000
    host.read(0.1, replica="b")
    assert host.engine.tokens == 10_000


def test_no_more_replicas_are_kept_than_there_may_be():
    """Then all are learnt anew."""
    host = Host()
    for number in range(REPLICAS_MOST + 1):
        host.read(replica=f"r{number}")
    assert host.engine.tokens <= REPLICAS_MOST * 10_000


def test_a_reading_that_says_no_size_changes_nothing():
    """What was known of it stays."""
    host = Host()
    host.read()
    host.read(kv_capacity_tokens=None)
    assert host.engine.tokens == 10_000


def test_prefill_is_as_fast_as_the_fastest_prompt_was():
    """One that waited was no slower than that; but the fastest is forgotten."""
    host = Host()
    assert host.engine.prefill is None
    host.end(1_000, 1_000)
    assert host.engine.prefill == 1_000
    host.end(1_000, 500)
    assert host.engine.prefill == 2_000
    host.end(1_000, 4_000)
    assert host.engine.prefill == 2_000 * FORGETS
    for _ in range(100):
        host.end(1_000, 4_000)
    assert host.engine.prefill == pytest.approx(2_000 * FORGETS**101)


@pytest.mark.parametrize(
    ("tokens", "ttft_ms", "cached", "rate"),
    [
        (5_000, 1_000, 4_000, 1_000),
        (5_000, 1_000, None, None),
        (5_000, None, 0, None),
        (None, 1_000, 0, None),
        (FRESH_LEAST, 1_000, 0, FRESH_LEAST),
        (FRESH_LEAST - 1, 1_000, 0, None),
        (5_000, 1_000, 4_900, None),
    ],
)
def test_what_was_cached_took_no_time_and_a_short_prompt_tells_nothing(
    tokens, ttft_ms, cached, rate
):
    """Where it is not told what was cached, the whole prompt would be far too fast."""
    host = Host()
    host.end(tokens, ttft_ms, cached)
    assert host.engine.prefill == rate


def test_what_the_caller_said_was_cached_was_not_measured():
    """The engine's word is needed."""
    host = Host()
    host.end(5_000, 1_000, None, asked=0)
    assert host.engine.prefill is None


def test_trust_falls_by_a_factor_and_rises_by_a_step():
    """A bad second costs five good ones, and it is never under a half."""
    host = Host()
    host.read()
    host.read(1.0, kept=RETAINED - 0.01)
    assert host.engine.trust == pytest.approx(0.95)
    host.read(1.0, kept=RETAINED)
    assert host.engine.trust == pytest.approx(0.96)
    host.read(1.0, kept=None)
    assert host.engine.trust == pytest.approx(0.97)
    for _ in range(50):
        host.read(1.0, kept=0.0)
    assert host.engine.trust == TRUST_LEAST
    for _ in range(99):
        host.read(1.0)
    assert host.engine.trust == 1.0


def test_memory_that_ran_out_between_two_looks_is_not_overlooked():
    """Readings come more often than a second."""
    host = Host()
    host.read()
    host.read(0.25, preemptions=3.0)
    host.read(0.25, preemptions=0.0)
    assert host.engine.trust == 1.0
    host.read(0.5, preemptions=0.0)
    assert host.engine.trust == pytest.approx(0.95)
    host.read(1.0, preemptions=0.0)
    assert host.engine.trust == pytest.approx(0.96)


@pytest.mark.parametrize(
    ("running", "trust"), [(3, TRUST_AT_FIRST), (0, 1.0), (None, 1.0)]
)
def test_before_an_engine_at_work_trust_has_to_be_won(running, trust):
    """And for half a minute all is handed out, to those that were there."""
    host = Host()
    host.read(running=running)
    host.read(running=9)
    engine = host.engine
    assert engine.trust == trust
    assert engine.trusted(host.now_s + ADOPT_S - 0.1) == 1.0
    assert engine.trusted(host.now_s + ADOPT_S) == trust


def test_what_nobody_knows_of_is_believed_after_three_rounds():
    """Not at once: a call may be open that has just ended."""
    host = Host()
    host.read(open_tokens=1_000)
    for _ in range(DRIFT_ROUNDS - 1):
        host.read(DRIFT_EVERY_S, open_tokens=1_000, kv_pressure=0.5)
    assert host.engine.foreign == 0.0
    host.read(DRIFT_EVERY_S - 1, open_tokens=1_000, kv_pressure=0.5)
    assert host.engine.foreign == 0.0
    host.read(1, open_tokens=1_000, kv_pressure=0.5)
    assert host.engine.foreign == 4_000
    host.read(DRIFT_EVERY_S, open_tokens=3_000, kv_pressure=0.5)
    assert host.engine.foreign == 2_000


@pytest.mark.parametrize(("known", "foreign"), [(5_000 / DRIFT, 0.0), (4_000, 1_000)])
def test_a_little_more_than_is_known_is_nobodys(known, foreign):
    """Counts of tokens are not exact; and one good round begins it anew."""
    host = Host()
    for _ in range(9):
        host.read(DRIFT_EVERY_S, open_tokens=known, kv_pressure=0.5)
    assert host.engine.foreign == foreign
    host.read(DRIFT_EVERY_S, open_tokens=5_000, kv_pressure=0.5)
    host.read(DRIFT_EVERY_S, open_tokens=1_000, kv_pressure=0.5)
    assert host.engine.foreign == 0.0
