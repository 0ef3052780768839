"""The token bucket."""

import os
import threading
from copy import deepcopy
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from admitperf import ConfigError
from admitperf.core.request import Request
from admitperf.policies.any_of import AnyOf
from admitperf.policies.parts.tenancy.bucket import LOWS_MOST, Bucket
from admitperf.policies.rate_limit import BUCKETS_MOST, DEBT_MOST_S, RateLimit
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
        d = policy.decide(metrics)
        policy.decided(metrics, d)
        let_in += d.reason is None
    assert len(policy._buckets) == BUCKETS_MOST + 1
    assert let_in == BUCKETS_MOST + policy.burst
    known = policy.decide(snapshot(tenant="tenant-0"))
    assert known.reason is None
    clock.advance(120.0)
    for _ in range(BUCKETS_MOST // 2 + 1):
        policy({}, tenant="one")
    assert len(policy._buckets) == 1


def test_tenants_that_come_and_go_leave_nothing_behind():
    """Over a long day of new names the table holds those of the last seconds only."""
    policy, clock = limited(rate_per_s=1.0, burst=2)
    most = 0
    for n in range(2_000):
        policy({}, tenant=f"tenant-{n}")
        clock.advance(0.1)
        most = max(most, len(policy._buckets))
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
    assert set(policy._buckets) == {"first", "second", "third"}


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


def test_asking_is_free_and_the_final_answer_is_charged_once():
    """A host that holds a request asks about it as often as it likes."""
    policy, _ = limited(rate_per_s=0.001, burst=2)
    refused = [policy.ask({}, request_id="x") for _ in range(3)]
    assert [d.admitted for d in refused] == [True] * 2 + [False]
    assert policy.ledger.charged(("rate_limit", None)) == 2
    for _ in range(50):
        assert not policy.ask({}, request_id=refused[2].request_id).admitted
    assert policy.answer(refused[2]).reason == "rate_limit"
    assert policy.ledger.charges(("rate_limit", None)) == 2


def test_a_refusal_says_the_limit_and_what_is_used_of_it():
    """The caller can see its own bound, in the bound's unit."""
    policy, clock = limited(rate_per_s=2 / 60, burst=2)
    for _ in range(2):
        policy({}, tenant="a")
    clock.advance(0.05)
    error = policy({}, tenant="a").body()["error"]
    assert (error["limit"], error["used"]) == (2, 2)
    assert "limit 2, used 2" in error["message"]


@pytest.mark.parametrize(
    ("ended", "left"),
    [
        ({"ok": False, "error": "upstream_refused"}, 4),
        ({"ok": False, "error": "timeout_first_token"}, 4),
        ({"ok": True}, 3),
        ({"ok": False, "ttft_ms": 80.0, "error": "upstream_ended_early"}, 3),
        ({"ok": False, "output_tokens": 5}, 3),
        ({"ok": False, "error": "client_closed"}, 3),
    ],
)
def test_what_the_engine_never_started_is_given_back(ended, left):
    """A caller pays for what was begun for it, and for what it walked away from."""
    policy, _ = limited(rate_per_s=0.001, burst=4)
    d = policy({})
    policy.outcome(d.request_id, **ended)
    assert policy.ledger.charged(("rate_limit", None)) == 0
    assert admitted(policy, 9) == left


TOKENS = {"cost": "tokens", "rate_per_s": 100.0, "burst": 10_000}
BIG = {"input_tokens": 4000, "max_output_tokens": 500}


def held(policy, **facts):
    """Tokens that the bucket has now."""
    metrics = snapshot(now_s=policy.settings.clock.monotonic_ns() / 1e9, **facts)
    policy.decide(metrics)
    return metrics.gates[-1].value


def test_a_request_costs_its_prompt_and_twice_its_answer():
    """The estimate is taken at once: two of three such requests fit."""
    policy, _ = limited(**TOKENS)
    first, second, third = (policy({}, **BIG) for _ in range(3))
    assert (first.admitted, second.admitted, third.admitted) == (True, True, False)
    assert policy.ledger.charged(("rate_limit", None)) == 10_000
    assert third.estimate_ms == 50_000
    assert (third.limit, third.used) == (10_000, 10_000)


def test_prompt_tokens_that_are_cached_cost_nothing():
    """What an engine need not compute is not charged."""
    policy, _ = limited(**TOKENS)
    policy({}, input_tokens=9000, cached_tokens=8500, max_output_tokens=0)
    assert held(policy) == 9500


@pytest.mark.parametrize(
    ("usage", "left"),
    [
        ({"output_tokens": 100}, 10_000 - 4200),
        ({"output_tokens": 500, "cached_tokens": 3000}, 10_000 - 2000),
        ({"output_tokens": 100, "input_tokens": 5000}, 10_000 - 5200),
        ({"output_tokens": 2000}, 10_000 - 8000),
        ({}, 5000),
        ({"ok": False}, 10_000),
    ],
)
def test_the_end_settles_the_account(usage, left):
    """By what the engine counted."""
    policy, _ = limited(**TOKENS)
    d = policy({}, **BIG)
    assert held(policy) == 5000
    policy.outcome(d.request_id, **{"ok": True, **usage})
    assert held(policy) == left


def test_what_is_given_back_is_what_was_taken():
    """Let in over an empty bucket it paid little, and gets no more than that back."""
    part, clock = limited(**TOKENS)
    policy = AnyOf(policies=[part, "no_admission"], clock=clock)
    policy({}, input_tokens=9000)
    d = policy({}, input_tokens=3000)
    assert d.admitted
    assert held(part) == 0
    policy.outcome(d.request_id, ok=False)
    assert held(part) == 1000


def test_a_probe_is_charged_nothing():
    """A host that lets one in although the answer was no does so at its own cost."""
    policy, _ = limited(**TOKENS)
    policy({}, input_tokens=9000)
    probe = policy.answer(policy.ask({}, input_tokens=3000), probe=True)
    assert probe.admitted
    assert held(policy) == 1000


def test_a_prompt_larger_than_the_burst_waits_for_a_full_bucket():
    """It is never refused for good: it goes into debt, and the rate is kept."""
    policy, clock = limited(**TOKENS)
    wish = {"input_tokens": 25_000, "max_output_tokens": 0}
    assert policy({}, **wish).admitted
    d = policy({}, **wish)
    assert (d.reason, d.status, d.estimate_ms) == ("rate_limit", 429, 250_000)
    clock.advance(249.9)
    assert not policy({}, **wish).admitted
    clock.advance(0.1)
    assert policy({}, **wish).admitted


@pytest.mark.parametrize("count", [1, 8, 64])
def test_what_fits_into_one_process_fits_into_one_of_many(count):
    """Dividing the limits over processes makes no request impossible."""
    whole = {"cost": "tokens", "rate_per_s": 8000.0, "burst": 16_000}
    policy, clock = limited(**RateLimit.divided(whole, count))
    for _ in range(3):
        assert policy({}, input_tokens=4000, max_output_tokens=0).admitted
        clock.advance(4000 / (8000 / count) + 2.0)


def test_answers_longer_than_the_burst_keep_the_rate():
    """What an answer took beyond the bucket has to refill before the next one."""
    policy, clock = limited(
        cost="tokens", rate_per_s=10.0, burst=1000, output_weight=1.0
    )
    times, spent = [], 0
    for _ in range(20_000):
        d = policy({}, input_tokens=1, max_output_tokens=50_000)
        if d.admitted:
            times.append(clock.monotonic_ns() / 1e9)
            policy.outcome(d.request_id, output_tokens=50_000, input_tokens=1)
            spent += 50_001
            assert spent <= 1000 + 10.0 * (times[-1] - times[0]) + 50_001
        clock.advance(1.0)
    assert len(times) == 4


def test_a_debt_is_told_in_time_and_not_in_tokens_below_none():
    """The log's number of tokens stays at 0; the caller sees use and wait."""
    log = MemoryLog()
    policy, _ = limited(log=log, **TOKENS)
    d = policy({}, **BIG)
    policy.outcome(d.request_id, output_tokens=9000)
    refused = policy({}, input_tokens=100, max_output_tokens=0)
    assert tokens(log) == [10_000, 0]
    assert (refused.limit, refused.used) == (10_000, 22_000)
    assert refused.estimate_ms == 121_000


def test_a_debt_is_bounded_by_a_day():
    """A wrong count of an engine keeps nobody out for longer."""
    policy, clock = limited(**TOKENS)
    d = policy({}, **BIG)
    policy.outcome(d.request_id, output_tokens=10**12)
    small = {"input_tokens": 100, "max_output_tokens": 0}
    clock.advance(DEBT_MOST_S)
    assert not policy({}, **small).admitted
    clock.advance(1.0)
    assert policy({}, **small).admitted


def test_before_anything_is_known_an_answer_costs_what_it_may_be():
    """What a caller allows is taken; where it says nothing, its prompt is."""
    policy, _ = limited(**TOKENS)
    policy({}, input_tokens=500, max_output_tokens=2000)
    assert held(policy) == 5500
    policy({}, input_tokens=500)
    assert held(policy) == 5000


def test_what_has_refilled_since_does_not_come_back():
    """A charge too large is no credit once the bucket would be full without it."""
    policy, clock = limited(
        cost="tokens", rate_per_s=10.0, burst=1000, output_weight=1.0
    )
    still = []
    for _ in range(20):
        d = policy({}, input_tokens=1, max_output_tokens=999)
        assert d.admitted
        still.append(d.request_id)
        clock.advance(101.0)
    let_in = 0
    for key in still:
        let_in += admitted(policy, 3, input_tokens=1000, max_output_tokens=0)
        policy.outcome(key, output_tokens=0, input_tokens=1)
    assert let_in == 1


def test_of_a_bucket_few_low_points_are_kept_and_the_lowest_of_them():
    """What it remembers is bounded; an old charge gets back less, and never more."""
    bucket = Bucket(0)
    for number in range(1, 101):
        bucket.take(number, 10, 10_000, 0)
    assert len(bucket._lows) == LOWS_MOST
    for number, back in ((99, 990), (50, 930), (1, 930)):
        trial = deepcopy(bucket)
        trial.give_back(number, 5000, 0)
        assert 1000 - trial.owed_ns(0) <= back
    bucket.give_back(99, 10, 0)
    assert bucket.owed_ns(0) == 990


def test_what_was_missing_all_the_time_comes_back():
    """A bucket that was never full without the charge gives all of it back."""
    policy, clock = limited(**TOKENS)
    d = policy({}, **BIG)
    for _ in range(30):
        policy({}, input_tokens=1000, max_output_tokens=0)
        clock.advance(10.0)
    before = held(policy)
    assert before == 5000
    policy.outcome(d.request_id, output_tokens=0, input_tokens=1000)
    assert held(policy) == before + 4000


def test_a_long_answer_that_is_only_feared_waits_for_a_full_bucket():
    """What a caller allows is no forecast: it is never refused for good by that."""
    policy, clock = limited(**TOKENS)
    wish = {"input_tokens": 100, "max_output_tokens": 32_000}
    d = policy({}, **wish)
    assert d.admitted
    assert not policy({}, **wish).admitted
    policy.outcome(d.request_id, output_tokens=50, input_tokens=100)
    assert held(policy) == 9800
    clock.advance(2.0)
    assert policy({}, **wish).admitted


def test_a_request_that_says_nothing_costs_little_until_it_ends():
    """No fact is needed; what it took is taken when that is known."""
    policy, _ = limited(**TOKENS)
    d = policy({})
    assert held(policy) == 9999
    policy.outcome(d.request_id, input_tokens=3000, output_tokens=1000)
    assert held(policy) == 5000


def test_tokens_need_numbers_of_their_own():
    """Ten tokens a second is nobody's wish."""
    for given_ in ({}, {"rate_per_s": 5.0}, {"burst": 5}):
        with pytest.raises(ConfigError, match="needs rate_per_s and burst"):
            RateLimit(cost="tokens", **given_)
    facts = ("input_tokens", "cached_tokens", "max_output_tokens")
    assert RateLimit(**TOKENS).requires == ("tenant", *facts)
    assert RateLimit(**TOKENS, per="pool").requires == facts


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["ask", "call", "end", "fail", "wait"]),
        st.sampled_from([0, 1, 30, 100, 500]),
        st.floats(0, 4),
    ),
    max_size=60,
)


@settings(deadline=None, max_examples=100)
@given(steps=STEPS, weight=st.sampled_from([0.0, 1.0, 2.0]))
def test_what_is_taken_less_what_goes_back_stays_within_the_rate(steps, weight):
    """In any order of asking, admitting and ending: never below 0, never above full."""
    policy, clock = limited(
        cost="tokens", rate_per_s=10.0, burst=300, output_weight=weight
    )
    begin_ns, still, spent = clock.monotonic_ns(), [], 0.0
    for what, size, amount in steps:
        before = held(policy)
        assert 0 <= before <= 300
        if what == "wait":
            clock.advance(amount)
            continue
        if what == "ask":
            d = policy.ask({}, request_id="held", input_tokens=size)
            assert d.admitted or held(policy) == before
        elif what == "call":
            d = policy({}, input_tokens=size, max_output_tokens=size)
            still += [d.request_id] if d.admitted else []
        elif still:
            usage = {"ok": True, "output_tokens": size} if what == "end" else {"ok": 0}
            policy.outcome(still.pop(0), **usage)
        spent += before - held(policy)
        came = 10.0 * (clock.monotonic_ns() - begin_ns) / 1e9
        assert spent <= 300 + came + 1e-6


CALLS = st.lists(
    st.tuples(
        st.sampled_from(["call", "call", "end", "wait"]),
        st.sampled_from([0, 1, 30, 100, 300]),
        st.integers(0, 300),
    ),
    max_size=60,
)


@settings(deadline=None, max_examples=100)
@given(calls=CALLS)
def test_what_requests_took_in_the_end_stays_within_the_rate(calls):
    """In any stretch of time, however much too large the guesses were."""
    policy, clock = limited(
        cost="tokens", rate_per_s=10.0, burst=300, output_weight=1.0
    )
    took, still = {}, []
    for what, size, number in calls:
        if what == "wait":
            clock.advance(number / 10)
        elif what == "call":
            before = policy.ledger.charged(("rate_limit", None))
            d = policy({}, input_tokens=1, max_output_tokens=size)
            if d.admitted:
                still.append(d.request_id)
                charged = policy.ledger.charged(("rate_limit", None)) - before
                took[d.request_id] = [clock.monotonic_ns(), round(charged)]
        elif still:
            key = still.pop(number % len(still))
            took[key][1] = max(1, min(number, took[key][1]))
            policy.outcome(key, output_tokens=took[key][1] - 1, input_tokens=1)
    spans = list(took.values())
    for first, (start_ns, _) in enumerate(spans):
        spent = 0
        for at_ns, cost in spans[first:]:
            spent += cost
            assert spent <= 300 + 10.0 * (at_ns - start_ns) / 1e9 + 1e-6


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
