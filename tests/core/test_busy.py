"""Work done per busy second, and the prompts that wait for their first token."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.rules import QUIET, rule

from admitperf.core.busy import KEPT_S, MEASURED_AFTER, Busy
from admitperf.testing import FakeClock

S = 1_000_000_000


def test_only_busy_time_counts():
    """A tenth of the time busy at 100 a second is 100 a second, not 10."""
    busy = Busy()
    for number in range(10):
        start = number * 10 * S
        busy.more(100.0, start)
        busy.less(100.0, start + S, done=True)
    assert busy.rate_per_s(200 * S) == pytest.approx(100.0)
    assert busy.left == 0.0


def test_few_ends_are_no_rate():
    """The first one says when it began, not how fast it goes."""
    busy = Busy()
    for number in range(MEASURED_AFTER):
        assert busy.rate_per_s(number * S) is None
        busy.more(10.0, number * S)
        busy.less(10.0, (number + 1) * S, done=True)
    assert busy.rate_per_s(MEASURED_AFTER * S) == pytest.approx(10.0)


def test_what_was_given_up_was_not_done():
    """Callers who leave do not make an engine fast."""
    busy = Busy()
    for _ in range(4):
        busy.more(100.0, 0)
    for number in range(1, 5):
        busy.less(100.0, number * S, done=number != 2)
    assert busy.rate_per_s(4 * S) == pytest.approx(75.0)


def test_a_stall_shows_while_it_lasts():
    """Nothing ends, and the rate falls with every second, ten of them."""
    busy = Busy()
    for _ in range(4):
        busy.more(10.0, 0)
    for number in range(1, 4):
        busy.less(10.0, number * S, done=True)
    assert busy.rate_per_s(3 * S) == pytest.approx(10.0)
    assert busy.rate_per_s(8 * S) == pytest.approx(30 / 8)
    assert busy.rate_per_s(900 * S) == busy.rate_per_s(13 * S) == pytest.approx(30 / 13)


def test_an_engine_that_changed_is_believed_soon():
    """What was measured before counts half after some busy seconds."""
    busy, now = Busy(), 0
    for speed in (100.0, 10.0):
        for _ in range(int(4 * KEPT_S)):
            busy.more(speed, now)
            now += S
            busy.less(speed, now, done=True)
    assert 10.0 <= busy.rate_per_s(now) < 25.0


def test_time_that_goes_back_counts_nothing():
    """A reading of another clock makes no negative time."""
    busy = Busy()
    busy.more(5.0, 5 * S)
    busy.more(5.0, 5 * S)
    busy.less(5.0, 2 * S, done=True)
    busy.less(5.0, 6 * S, done=True)
    assert busy._busy_s == pytest.approx(1.0)


def test_a_slow_engine_is_slow():
    """A minute for one piece is a minute, with nothing beside it."""
    busy = Busy()
    for number in range(3):
        busy.more(600.0, number * 100 * S)
        busy.less(600.0, (number * 100 + 60) * S, done=True)
    assert busy.rate_per_s(400 * S) == pytest.approx(10.0)


def test_nothing_left_is_nothing_at_all():
    """Sizes that a float cannot tell apart leave no rest behind."""
    busy = Busy()
    for amount in (2.0**53, 3.0):
        busy.more(amount, 0)
    for amount in (2.0**53, 3.0):
        busy.less(amount, S, done=True)
    assert busy.left == 0.0


@given(
    st.lists(
        st.tuples(st.booleans(), st.floats(0.0, 1e6), st.integers(0, 5 * S)),
        max_size=40,
    )
)
def test_nothing_is_ever_negative(steps):
    """In any order of coming and going."""
    busy, now = Busy(), 0
    for more, amount, later in steps:
        now += later
        if more:
            busy.more(amount, now)
        else:
            busy.less(amount, now, done=True)
        rate = busy.rate_per_s(now)
        assert busy.left >= 0.0
        assert rate is None or rate >= 0.0


@pytest.fixture
def seen():
    """What a policy sees of prompts, and the policy."""
    told = []

    def decide(policy, metrics):
        told.append((metrics.prefill_tokens, metrics.prefill_rate))
        return policy.admit()

    clock = FakeClock()
    return told, rule(decide, clock=clock, reports_outcomes=True), clock


def test_prompts_wait_until_their_first_token(seen):
    """Uncached tokens where that is known; the newcomer itself is not in it yet."""
    told, policy, clock = seen
    first = policy(QUIET, input_tokens=1000)
    policy(QUIET, input_tokens=1000, cached_tokens=900)
    policy(QUIET)
    clock.advance(2.0)
    policy.first_token(first.request_id)
    policy(QUIET)
    assert [tokens for tokens, _ in told] == [0, 1000, 1100, 100]


def test_who_leaves_waits_no_longer_and_did_no_work(seen):
    """An end without a first token frees the backlog and measures nothing."""
    told, policy, clock = seen
    for _ in range(6):
        d = policy(QUIET, input_tokens=500)
        clock.advance(1.0)
        policy.outcome(d.request_id, ok=False)
    policy(QUIET)
    assert told[-1] == (0.0, None)


def test_a_rate_is_tokens_per_busy_second(seen):
    """A thousand tokens in half a second each, with idle time between."""
    told, policy, clock = seen
    for _ in range(5):
        d = policy(QUIET, input_tokens=1000)
        clock.advance(0.5)
        policy.first_token(d.request_id)
        policy.first_token(d.request_id)
        clock.advance(20.0)
        policy.outcome(d.request_id)
    policy(QUIET)
    assert told[-1] == (0.0, pytest.approx(2000.0))


def test_what_is_not_streamed_has_no_first_token_to_wait_for(seen):
    """Nobody would ever say that it came."""
    told, policy, _ = seen
    policy(QUIET, input_tokens=1000, stream=False)
    policy(QUIET)
    assert told[-1] == (0.0, None)


def test_without_outcomes_nothing_is_known(seen):
    """No outcomes means no ledger, never an empty backlog."""
    told = []

    def decide(policy, metrics):
        told.append((metrics.prefill_tokens, metrics.prefill_rate))
        return policy.admit()

    rule(decide, clock=FakeClock())(QUIET, input_tokens=10)
    assert told == [(None, None)]


def test_a_lease_that_ran_out_waits_no_longer_and_may_come_back(seen):
    """Late news of a first token finds its prompt once and frees it once."""
    told, policy, clock = seen
    d = policy(QUIET, input_tokens=700)
    clock.advance(901.0)
    for _ in range(2):
        policy(QUIET)
    assert policy.ledger.prefill.left == 0.0
    policy.first_token(d.request_id)
    policy(QUIET)
    assert told[-1][0] == 0.0


def test_what_others_overtake_is_stuck_and_no_work(seen):
    """After three first tokens of later ones its prompt is not waited for."""
    told, policy, clock = seen
    policy(QUIET, input_tokens=5000)
    for _ in range(4):
        d = policy(QUIET, input_tokens=100)
        clock.advance(0.1)
        policy.first_token(d.request_id)
        policy.outcome(d.request_id)
    policy(QUIET)
    assert [tokens for tokens, _ in told] == [0, 5000, 5000, 5000, 0, 0]


def test_one_that_never_ends_does_not_make_an_engine_slow(seen):
    """Ten minutes in which nobody else asks say little of its speed."""
    told, policy, clock = seen
    for _ in range(20):
        d = policy(QUIET, input_tokens=1000)
        clock.advance(0.5)
        policy.first_token(d.request_id)
        policy.outcome(d.request_id)
    policy(QUIET, input_tokens=1000)
    clock.advance(600.0)
    policy(QUIET)
    assert told[-1][1] == pytest.approx(20_000 / 20)


def test_two_that_are_overtaken_are_both_no_work(seen):
    """The second counts its own three, once the first is known to be stuck."""
    told, policy, clock = seen
    for tokens in (5000, 7000):
        policy(QUIET, input_tokens=tokens)
    for _ in range(6):
        d = policy(QUIET, input_tokens=100)
        clock.advance(0.1)
        policy.first_token(d.request_id)
        policy.outcome(d.request_id)
    policy(QUIET)
    ahead = [tokens for tokens, _ in told]
    assert ahead[2:] == [12_000, 12_000, 12_000, 7000, 7000, 7000, 0]
