"""The token bucket."""

import os
import threading
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from admitperf import ConfigError
from admitperf.core.request import Request
from admitperf.policies.rate_limit import BUCKETS_MOST, RateLimit
from admitperf.testing import FakeClock, MemoryLog, snapshot


def limited(clock=None, **given):
    """A limiter and its clock."""
    clock = clock or FakeClock()
    return RateLimit(**{"clock": clock, **given}), clock


def admitted(policy, count, **facts):
    """How many of `count` requests are let in now."""
    return sum(policy({}, **facts).admitted for _ in range(count))


def tokens(log):
    """What the bucket held at each decision, by the log."""
    return [line["gates"][0][1] for line in log.decisions]


def test_a_burst_passes_and_then_the_rate():
    """A full bucket lets `burst` through, an empty one `rate_per_s` a second."""
    policy, clock = limited(rate_per_s=2.0, burst=5)
    assert admitted(policy, 20) == 5
    for _ in range(4):
        clock.advance(1.0)
        assert admitted(policy, 20) == 2
    clock.advance(1000.0)
    assert admitted(policy, 20) == 5


def test_a_refusal_is_a_429_with_the_time_until_a_token():
    """The caller is told when a retry will do, and not sooner."""
    policy, clock = limited(rate_per_s=0.5, burst=1)
    policy({})
    clock.advance(0.5)
    d = policy({})
    assert (str(d.verdict), d.reason, d.status) == ("reject", "rate_limit", 429)
    assert (d.estimate_ms, d.wait, d.should_retry) == (1500, "policy", True)
    assert int(d.headers()["Retry-After"]) == 2
    clock.advance(1.4999)
    assert not policy({}).admitted
    clock.advance(0.0001)
    assert policy({}).admitted


def test_a_caller_that_spent_a_burst_waits_for_one_token_only():
    """The wait is until the next request fits, not until the bucket is full."""
    policy, _ = limited(rate_per_s=0.5, burst=5)
    assert admitted(policy, 5) == 5
    assert policy({}).estimate_ms == 2000


def test_a_rate_that_is_no_whole_number_of_nanoseconds_is_rounded_down():
    """Three a second is never a hair more than three a second."""
    policy, clock = limited(rate_per_s=3.0, burst=1)
    assert policy({}).admitted
    clock.advance(0.333_333_333)
    assert not policy({}).admitted
    clock.advance(0.000_000_001)
    assert policy({}).admitted


def test_a_wait_past_the_cap_says_that_retrying_will_not_help():
    """A bucket of one an hour is a quota: no, rather than come back in a minute."""
    policy, _ = limited(rate_per_s=1 / 3600, burst=1)
    policy({})
    d = policy({})
    assert d.should_retry is False
    assert d.headers()["x-should-retry"] == "false"
    assert int(d.headers()["Retry-After"]) <= 60
    assert d.body()["error"]["estimate_ms"] >= 3_600_000


def test_refused_work_takes_nothing():
    """Knocking on a closed door does not keep it closed."""
    policy, clock = limited(rate_per_s=1.0, burst=1)
    policy({})
    for _ in range(9):
        clock.advance(0.1)
        assert not policy({}).admitted
    clock.advance(0.1)
    assert policy({}).admitted


def test_a_request_that_another_rule_refuses_takes_nothing():
    """A rule that asks the bucket last charges only what starts."""

    class Both(RateLimit):
        name = "both"

        def decide(self, metrics):
            if metrics.request.priority < 0:
                return self.defer("slots")
            return super().decide(metrics)

    policy = Both(rate_per_s=1.0, burst=2, clock=FakeClock())
    assert admitted(policy, 50, priority=-1) == 0
    assert admitted(policy, 50, priority=1) == 2


def test_each_tenant_has_a_bucket_and_the_unnamed_share_one():
    """One caller's burst is no reason to refuse another."""
    policy, _ = limited(burst=3, rate_per_s=0.001)
    assert admitted(policy, 9, tenant="a") == 3
    assert admitted(policy, 9, tenant="b") == 3
    assert admitted(policy, 9) == 3
    assert admitted(policy, 9, tenant=None, session="s") == 0


def test_per_pool_there_is_one_bucket():
    """Under `per="pool"` the tenant makes no difference, and is not asked for."""
    policy, _ = limited(burst=3, rate_per_s=0.001, per="pool")
    assert sum(admitted(policy, 1, tenant=f"t{n}") for n in range(9)) == 3
    assert policy.requires == ()
    assert RateLimit().requires == ("tenant",)


def test_the_log_tells_how_many_tokens_there_were():
    """It tells how near a run came to refusing, and is never negative."""
    log = MemoryLog()
    policy, clock = limited(rate_per_s=1.0, burst=3, log=log)
    for pause_s in (0, 0, 0, 0, 0, 0.5, 0.5, 100):
        clock.advance(pause_s)
        policy({})
    assert tokens(log) == [3.0, 2.0, 1.0, 0.0, 0.0, 0.5, 1.0, 3.0]
    assert log.decisions[0]["gates"] == [["rate_limit_tokens", 3.0, "<", 1.0, False]]


def test_it_is_never_blind():
    """It needs no signal, so an engine that says nothing changes nothing."""
    policy, _ = limited(burst=1, on_blind="reject")
    assert policy({}).admitted
    assert policy({}).reason == "rate_limit"


@pytest.mark.parametrize(
    "wrong",
    [
        {"rate_per_s": 0},
        {"rate_per_s": -1.0},
        {"rate_per_s": float("nan")},
        {"rate_per_s": float("inf")},
        {"rate_per_s": 2e6},
        {"burst": 0},
        {"burst": 1.5},
        {"per": "session"},
        {"rate": 5},
    ],
)
def test_a_wrong_parameter_stops_at_construction(wrong):
    """No limiter starts with a rate that means nothing."""
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        RateLimit(**wrong)


def test_a_hundred_thousand_invented_tenants_cost_little_and_win_nothing():
    """The table is bounded, and names beyond it share one bucket."""
    policy, clock = limited(rate_per_s=1 / 60, burst=2)
    metrics, let_in = snapshot(), 0
    for n in range(100_000):
        metrics.request = Request({"tenant": f"tenant-{n}"})
        let_in += policy.decide(metrics).reason is None
    assert len(policy._full_at_ns) == BUCKETS_MOST + 1
    assert let_in == BUCKETS_MOST + policy.burst
    known = policy.decide(snapshot(tenant="tenant-0"))
    assert known.reason is None
    clock.advance(120.0)
    for _ in range(BUCKETS_MOST // 2 + 1):
        policy({}, tenant="one")
    assert len(policy._full_at_ns) == 1


def test_tenants_that_come_and_go_leave_nothing_behind():
    """Over a long day of new names the table holds those of the last seconds only."""
    policy, clock = limited(rate_per_s=1.0, burst=2)
    most = 0
    for n in range(2_000):
        policy({}, tenant=f"tenant-{n}")
        clock.advance(0.1)
        most = max(most, len(policy._full_at_ns))
    assert most < 20


def test_a_bucket_that_is_slow_to_fill_does_not_keep_the_others():
    """Each is looked at in its turn, whoever came first."""
    policy, clock = limited(rate_per_s=1.0, burst=50)
    for name in ("first", "second", "third"):
        assert admitted(policy, 50, tenant=name) == 50
    for n in range(20):
        policy({}, tenant=f"short-{n}")
    clock.advance(2.0)
    for _ in range(20):
        policy({}, tenant="first")
    assert set(policy._full_at_ns) == {"first", "second", "third"}


def test_threads_together_get_no_more_than_the_burst():
    """The bucket is touched under the policy's lock alone."""
    policy, _ = limited(burst=50, rate_per_s=0.001)
    start = threading.Barrier(8)
    got = []

    def ask():
        start.wait()
        got.append(admitted(policy, 100))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(got) == 50


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_goes_on_with_a_copy():
    """Parent and child each have what was left, as the reference page says."""
    policy, _ = limited(burst=4, rate_per_s=0.001)
    assert admitted(policy, 1) == 1
    child = os.fork()
    if child == 0:
        os._exit(admitted(policy, 10))
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 3
    assert admitted(policy, 10) == 3


class Oracle:
    """The bucket as the textbook has it, in exact arithmetic."""

    def __init__(self, rate_per_ns, burst):
        self.rate_per_ns = rate_per_ns
        self.burst = burst
        self.tokens = Fraction(burst)
        self.at_ns = 0

    def take(self, now_ns):
        """Whether a token was there."""
        gained = (now_ns - self.at_ns) * self.rate_per_ns
        self.tokens = min(Fraction(self.burst), self.tokens + gained)
        self.at_ns = now_ns
        if self.tokens < 1:
            return False
        self.tokens -= 1
        return True


RATES = st.sampled_from([0.1, 0.5, 1.0, 3.0, 7.0, 250.0, 1e6])
PAUSES = st.lists(
    st.tuples(
        st.sampled_from([0.0, 1e-9, 1e-6, 0.001, 0.1, 1 / 3, 1.0, 30.0]),
        st.sampled_from([None, "a", "b"]),
    ),
    min_size=1,
    max_size=80,
)


@settings(deadline=None, max_examples=200)
@given(rate=RATES, burst=st.integers(1, 6), pauses=PAUSES)
def test_it_answers_as_the_textbook_bucket_does(rate, burst, pauses):
    """At any moment and for any tenant: no rounding lets one more in, or one fewer."""
    policy, clock = limited(rate_per_s=rate, burst=burst)
    oracles = {
        key: Oracle(Fraction(1, policy._token_ns), burst) for key in (None, "a", "b")
    }
    for pause_s, tenant in pauses:
        clock.advance(pause_s)
        expected = oracles[tenant].take(clock.monotonic_ns())
        assert policy({}, tenant=tenant).admitted is expected


@settings(deadline=None, max_examples=200)
@given(
    rate=st.floats(0.01, 1000.0),
    burst=st.integers(1, 6),
    pauses=st.lists(st.floats(0, 3), max_size=60),
)
def test_no_stretch_of_time_lets_in_more_than_it_may(rate, burst, pauses):
    """In any stretch of t seconds there are at most burst + rate x t admissions."""
    policy, clock = limited(rate_per_s=rate, burst=burst)
    times = []
    for pause_s in pauses:
        clock.advance(pause_s)
        if policy({}).admitted:
            times.append(clock.monotonic_ns())
    for first, start in enumerate(times):
        for last in range(first, len(times)):
            allowed = burst + Fraction(rate) * (times[last] - start) / 10**9
            assert last - first + 1 <= allowed
