"""The backlog of prompt tokens."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from admitperf import ConfigError
from admitperf.policies.prefill_backlog import UNMEASURED_TOKENS, PrefillBacklog
from admitperf.testing import FakeClock, MemoryLog

RAW = {"running": 1.0}


def bounded(clock=None, **given):
    """A policy whose host reports first tokens and ends, and its clock."""
    clock = clock or FakeClock()
    return PrefillBacklog(clock=clock, reports_outcomes=True, **given), clock


def end(policy, d):
    """A request's first token and its end, at once."""
    policy.first_token(d.request_id)
    policy.outcome(d.request_id, output_tokens=10)


def measure(policy, clock, rate=1000.0):
    """Three prompts by themselves, so that the rate is known."""
    for _ in range(3):
        d = policy(RAW, input_tokens=1000)
        clock.advance(1000 / rate)
        end(policy, d)


def test_the_backlog_may_reach_the_bound_and_not_pass_it():
    """The newcomer's own tokens are in it; a first token takes its prompt out."""
    policy, _ = bounded(target_s=None, max_tokens=1000)
    first = policy(RAW, input_tokens=600)
    assert first.admitted
    assert policy(RAW, input_tokens=400).admitted
    refused = policy(RAW, input_tokens=1)
    assert (refused.reason, refused.status) == ("prefill_backlog", 503)
    assert str(refused.verdict) == "defer"
    policy.first_token(first.request_id)
    assert policy(RAW, input_tokens=600).admitted
    assert not policy(RAW, input_tokens=1).admitted


def test_an_end_without_a_first_token_takes_its_prompt_out_too():
    """A failed request does not stand in the backlog for ever."""
    policy, _ = bounded(target_s=None, max_tokens=1000)
    first = policy(RAW, input_tokens=1000)
    assert not policy(RAW, input_tokens=1).admitted
    policy.outcome(first.request_id, ok=False, error="gone")
    assert policy(RAW, input_tokens=1000).admitted


def test_with_nothing_ahead_a_request_of_any_length_passes():
    """One that is longer than the bound is served, by itself."""
    log = MemoryLog()
    policy, _ = bounded(target_s=None, max_tokens=1000, log=log)
    long = policy(RAW, input_tokens=50_000)
    assert long.admitted
    assert not policy(RAW, input_tokens=1).admitted
    assert not policy(RAW, input_tokens=50_000).admitted
    policy.first_token(long.request_id)
    assert policy(RAW, input_tokens=50_000).admitted
    lately = ["last_let_in_s", 0.0, "<", 4.0, True]
    assert [line["gates"] for line in log.decisions[:3]] == [
        [["prefill_backlog_tokens", 50_000.0, ">", 50_000.0, False]],
        [["prefill_backlog_tokens", 50_001.0, ">", 1000.0, True], lately],
        [["prefill_backlog_tokens", 100_000.0, ">", 50_000.0, True], lately],
    ]


def test_the_bound_follows_the_measured_rate():
    """Two seconds at 1000 tokens a second are 2000 tokens, at 5000 they are 10,000."""
    for rate in (1000.0, 5000.0):
        policy, clock = bounded(target_s=2.0)
        measure(policy, clock, rate)
        assert policy(RAW, input_tokens=int(2 * rate)).admitted
        assert not policy(RAW, input_tokens=1).admitted


def test_a_quiet_hour_does_not_lower_the_rate():
    """The rate is what prefill does while it has something to do."""
    policy, clock = bounded(target_s=2.0)
    measure(policy, clock)
    clock.advance(3600.0)
    assert policy(RAW, input_tokens=1500).admitted
    assert policy(RAW, input_tokens=500).admitted


def test_while_nothing_is_measured_the_bound_is_a_plain_number():
    """An unknown rate is neither a refusal of everything nor no bound at all."""
    policy, _ = bounded(target_s=0.001)
    assert policy(RAW, input_tokens=9000).admitted
    assert policy(RAW, input_tokens=int(UNMEASURED_TOKENS) - 9000).admitted
    refused = policy(RAW, input_tokens=1)
    assert (refused.reason, refused.wait) == ("prefill_backlog", "default")


def test_the_smaller_of_both_bounds_holds():
    """Whichever is met first, with and without a rate."""
    policy, _ = bounded(target_s=2.0, max_tokens=500)
    assert policy(RAW, input_tokens=400).admitted
    assert not policy(RAW, input_tokens=200).admitted
    policy, clock = bounded(target_s=0.1, max_tokens=5000)
    measure(policy, clock)
    assert policy(RAW, input_tokens=60).admitted
    assert not policy(RAW, input_tokens=50).admitted


def test_the_wait_is_the_excess_at_the_rate():
    """3500 tokens against 2000, at 1000 a second: 1.5 s."""
    policy, clock = bounded(target_s=2.0)
    measure(policy, clock)
    policy(RAW, input_tokens=2000)
    refused = policy(RAW, input_tokens=1500)
    assert (refused.wait, refused.estimate_ms) == ("policy", 1500)


def test_one_too_long_for_the_bound_waits_for_all_that_is_ahead():
    """Its own tokens are no part of the wait: they are there whenever it comes."""
    policy, clock = bounded(target_s=2.0)
    measure(policy, clock)
    policy(RAW, input_tokens=500)
    assert policy(RAW, input_tokens=90_000).estimate_ms == 500


def test_a_wait_past_the_deadline_is_a_reject():
    """Who cannot wait that long is not told to."""
    policy, clock = bounded(target_s=2.0)
    measure(policy, clock)
    policy(RAW, input_tokens=2000)
    refused = policy(RAW, input_tokens=1500, deadline_s=1.0)
    assert (str(refused.verdict), refused.reason) == ("reject", "prefill_backlog")


def test_cached_tokens_are_no_backlog():
    """Neither of the newcomer nor of those ahead."""
    policy, _ = bounded(target_s=None, max_tokens=1000)
    assert policy(RAW, input_tokens=90_000, cached_tokens=89_500).admitted
    assert policy(RAW, input_tokens=90_000, cached_tokens=89_500).admitted
    assert not policy(RAW, input_tokens=90_000, cached_tokens=89_999).admitted


def test_a_request_of_unknown_length_counts_as_nothing():
    """It passes beside a backlog that fits and waits behind one that does not."""
    policy, _ = bounded(target_s=None, max_tokens=1000)
    assert policy(RAW).admitted
    assert policy(RAW, input_tokens=1000).admitted
    assert policy(RAW).admitted
    assert not policy(RAW, input_tokens=1).admitted


def test_asking_again_and_again_adds_nothing():
    """A request that is held is in the backlog once it has started, not before."""
    policy, _ = bounded(target_s=None, max_tokens=1000)
    first = policy(RAW, input_tokens=900)
    asked = policy.ask(RAW, input_tokens=500)
    for _ in range(20):
        asked = policy.ask(RAW, request_id=asked.request_id, input_tokens=500)
        assert not asked.admitted
    assert policy.ledger.prefill.left == 900
    policy.first_token(first.request_id)
    assert policy.ask(RAW, request_id=asked.request_id, input_tokens=500).admitted


def test_an_engine_that_was_slow_and_recovers_is_believed_again():
    """One at a time still passes, and its first token tells the new rate."""
    policy, clock = bounded(target_s=2.0)
    measure(policy, clock, rate=10.0)
    first = policy(RAW, input_tokens=15)
    assert not policy(RAW, input_tokens=15).admitted
    end(policy, first)
    for _ in range(5):
        d = policy(RAW, input_tokens=10_000)
        clock.advance(1.0)
        end(policy, d)
    assert policy(RAW, input_tokens=100).admitted
    assert policy(RAW, input_tokens=100).admitted


def test_without_outcomes_it_is_blind_and_never_full():
    """A host that reports nothing would fill the backlog for ever."""
    policy = PrefillBacklog(clock=FakeClock(), on_blind="admit", max_tokens=1)
    for _ in range(5):
        d = policy(RAW, input_tokens=1000)
        assert (d.admitted, d.reason) == (True, "signal_absent")


def test_a_step_of_the_wall_clock_changes_nothing():
    """Time is the monotonic clock's."""
    policy, clock = bounded(target_s=2.0)
    measure(policy, clock)
    clock.set_wall(-1e9)
    assert policy(RAW, input_tokens=2000).admitted
    assert policy(RAW, input_tokens=1).estimate_ms == 1


@pytest.mark.parametrize(
    ("wrong", "fault"),
    [
        ({"target_s": None}, "at least one of target_s, max_tokens"),
        ({"target_s": 0.0}, "target_s"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"tokens": 5}, "tokens"),
    ],
)
def test_a_wrong_parameter_stops_at_construction(wrong, fault):
    """No policy starts without a bound that means something."""
    with pytest.raises(ConfigError, match=fault):
        PrefillBacklog(**wrong)


def test_a_host_of_several_processes_divides_the_tokens_and_not_the_time():
    """Each process measures its own part of the rate."""
    shares = PrefillBacklog.divided({"max_tokens": 1000, "target_s": 2.0}, 4)
    assert shares == {"max_tokens": 250, "target_s": 2.0}


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("open"), st.integers(0, 1500)),
        st.tuples(st.just("ask"), st.integers(0, 1500)),
        st.tuples(st.just("token"), st.integers(0, 9)),
        st.tuples(st.just("end"), st.integers(0, 9)),
        st.tuples(st.just("wait"), st.integers(0, 3)),
    ),
    max_size=60,
)


class Host:
    """A host that keeps its own books of what waits."""

    def __init__(self, bound):
        self.bound = bound
        self.policy, self.clock = bounded(target_s=None, max_tokens=bound)
        self.waiting = {}
        self.probes = set()
        self.open = []

    def start(self, call, tokens):
        """One request, let in exactly when it fits, or as a probe."""
        ahead = self.policy.ledger.prefill.left
        assert ahead <= sum(self.waiting.values())  # less what was overtaken
        d = call(RAW, input_tokens=tokens)
        probe = any(g.name == "last_let_in_s" and not g.held for g in d.gates)
        fits = ahead == 0 or ahead + tokens <= self.bound
        assert d.admitted is (fits or probe)
        if d.admitted:
            self.waiting[d.request_id] = tokens
            if not fits:
                self.probes.add(d.request_id)
            self.open.append(d.request_id)

    def do(self, what, number):
        """One step."""
        if what in ("open", "ask"):
            self.start(self.policy if what == "open" else self.policy.ask, number)
        elif what == "wait":
            self.clock.advance(number)
        elif self.open:
            rid = self.open[number % len(self.open)]
            self.waiting.pop(rid, None)
            if what == "token":
                self.policy.first_token(rid)
            else:
                self.open.remove(rid)
                self.policy.outcome(rid)


@settings(deadline=None, max_examples=100)
@given(steps=STEPS, bound=st.integers(1, 2000))
def test_no_order_of_events_gets_past_the_bound(steps, bound):
    """Two or more that wait are never over it, and in the end nothing waits."""
    host = Host(bound)
    for step in steps:
        host.do(*step)
        waiting = host.waiting.items()
        held = [tokens for rid, tokens in waiting if tokens and rid not in host.probes]
        assert len(held) < 2 or sum(held) <= bound
    for rid in host.open:
        host.policy.outcome(rid)
    assert host.policy.ledger.prefill.left == 0


def test_a_prompt_that_is_stuck_lets_a_probe_by():
    """One each four seconds; three first tokens later it is no backlog any more."""
    policy, clock = bounded(max_tokens=1000, target_s=None)
    policy({}, input_tokens=50_000, stream=True)
    clock.advance(30.0)
    let = []
    for _ in range(10):
        d = policy({}, input_tokens=100)
        let.append(d.admitted)
        clock.advance(0.2)
        if d.admitted:
            policy.first_token(d.request_id)
            policy.outcome(d.request_id)
        clock.advance(1.8)
    assert let == [True, False, True, False] + 6 * [True]
