"""The projected KV cache."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from admitperf import ConfigError
from admitperf.core.reading import Reading
from admitperf.policies.kv_headroom import KvHeadroom
from admitperf.testing import FakeClock, MemoryLog

CAPACITY = 10_000


def engine(used=0.0):
    """What an engine of 10,000 tokens shows."""
    return {"kv_pressure": used, "kv_capacity_tokens": CAPACITY}


def headroom(clock=None, **given):
    """A policy whose host reports how requests end, and its clock."""
    clock = clock or FakeClock()
    return KvHeadroom(clock=clock, reports_outcomes=True, **given), clock


def learn(policy, lengths, **facts):
    """Answers of these lengths, one after another."""
    for tokens in lengths:
        d = policy(engine(), **facts)
        policy.outcome(d.request_id, output_tokens=tokens)


def charges(policy, replica=None):
    """What is booked: prompts, and predicted answers."""
    return tuple(
        policy.ledger.charged(("kv_headroom", what, replica))
        for what in ("prompts", "answers")
    )


def test_a_burst_between_two_readings_is_stopped():
    """The engine shows nothing yet; what was sent is counted all the same."""
    policy, _ = headroom()
    let_in = sum(policy(engine(), input_tokens=1000).admitted for _ in range(50))
    assert let_in == 9
    assert charges(policy) == (9000, 0)


def test_what_the_engine_shows_and_what_was_booked_are_not_added_up():
    """Prompts that were sent are, a moment later, what the engine shows."""
    policy, _ = headroom()
    for _ in range(4):
        assert policy(engine(), input_tokens=1000).admitted
    assert policy(engine(0.4), input_tokens=4000).admitted
    assert not policy(engine(0.8), input_tokens=1500).admitted


def test_half_of_the_open_answers_and_the_whole_of_the_new_one_count():
    """4 open ones of 1000 predicted tokens are 2000; the newcomer is 1000."""
    policy, _ = headroom()
    learn(policy, [1000] * 5)
    for _ in range(4):
        assert policy(engine()).admitted
    assert charges(policy) == (0, 4000)
    assert policy.ask(engine(0.60)).reason is None
    policy, _ = headroom()
    learn(policy, [1000] * 5)
    for _ in range(4):
        policy(engine())
    assert policy(engine(0.61)).reason == "kv_headroom"


@pytest.mark.parametrize(("to_come", "at"), [(0.0, 0.80), (0.5, 0.60), (1.0, 0.40)])
def test_how_much_is_to_come_is_a_parameter(to_come, at):
    """None, half or all of what was predicted for the open ones."""
    for used, admitted in ((at, True), (at + 0.01, False)):
        policy, _ = headroom(to_come=to_come)
        learn(policy, [1000] * 5)
        for _ in range(4):
            policy(engine())
        assert policy(engine(used)).admitted is admitted


def test_a_prediction_takes_the_asked_quantile_and_the_callers_bound():
    """Of ten lengths up to 1000 four fifths stay within 800; it may ask for less."""
    policy, _ = headroom()
    learn(policy, range(100, 1001, 100))
    policy(engine(), input_tokens=10)
    assert charges(policy) == (10, 800)
    policy(engine(), max_output_tokens=50)
    assert charges(policy) == (10, 850)


def test_charges_are_given_back_with_the_end_however_it_comes():
    """Answered, failed, or silent for longer than its lease: nothing stays booked."""
    policy, clock = headroom()
    learn(policy, [100] * 5)
    ends = [policy(engine(), input_tokens=500).request_id for _ in range(3)]
    policy.outcome(ends[0], output_tokens=7)
    policy.outcome(ends[0], output_tokens=7)
    policy.outcome(ends[1], ok=False, error="gone")
    assert charges(policy) == (500, 100)
    clock.advance(901.0)
    policy(engine(), input_tokens=20)
    assert charges(policy) == (20, 100)


def test_asking_and_refusing_charge_nothing():
    """Only a request that starts is booked."""
    policy, _ = headroom()
    first = policy(engine(), input_tokens=8000)
    asked = policy.ask(engine(), input_tokens=1500)
    for _ in range(20):
        asked = policy.ask(engine(), request_id=asked.request_id, input_tokens=1500)
        assert not asked.admitted
    assert not policy(engine(), input_tokens=1500).admitted
    assert charges(policy) == (8000, 0)
    policy.outcome(first.request_id)
    assert policy.ask(engine(), input_tokens=1500).admitted
    assert charges(policy) == (1500, 0)


def test_a_cached_prompt_is_booked_as_a_whole():
    """While it runs its blocks are in use, whoever computed them."""
    policy, _ = headroom()
    assert policy(engine(), input_tokens=1000, cached_tokens=900).admitted
    assert charges(policy) == (1000, 0)


def test_what_a_split_lets_in_is_not_charged_as_admitted():
    """A request refused on paper and served is the engine's news, not our promise."""
    policy, _ = headroom(enforce=0.0)
    for _ in range(20):
        policy(engine(), input_tokens=1000)
    assert charges(policy) == (9000, 0)


def test_each_replica_has_its_own_accounts():
    """What was sent to one takes nothing from the other."""
    policy, clock = headroom()

    def reading(name):
        return Reading(engine(), taken_ns=clock.monotonic_ns(), replica=name)

    assert policy(reading("a"), input_tokens=8000).admitted
    assert not policy(reading("a"), input_tokens=2000).admitted
    assert policy(reading("b"), input_tokens=8000).admitted
    assert charges(policy, "a") == charges(policy, "b") == (8000, 0)


def test_one_that_never_fits_is_told_so_and_not_to_come_back():
    """413, no wait, whatever is in use."""
    policy, _ = headroom()
    d = policy(engine(), input_tokens=9000, max_output_tokens=1001)
    assert (str(d.verdict), d.reason, d.status) == ("reject", "too_large", 413)
    assert "Retry-After" not in d.headers()


def test_one_over_the_high_water_mark_by_itself_waits_for_an_empty_cache():
    """It is served when nothing else is, and not beside anything."""
    policy, _ = headroom()
    small = policy(engine(), input_tokens=10)
    assert policy(engine(0.001), input_tokens=9500).reason == "kv_headroom"
    policy.outcome(small.request_id)
    assert policy(engine(), input_tokens=9500).admitted


def test_the_wait_is_how_long_the_engine_takes_to_make_room():
    """The cache falls by 0.1 a second and is 0.3 too full for this request: 3 s."""
    policy, clock = headroom()
    for step in range(6):
        policy(engine(0.9 - 0.05 * step))
        clock.advance(0.5)
    refused = policy(engine(0.6), input_tokens=6000)
    assert refused.reason == "kv_headroom"
    assert refused.wait == "measured"
    assert 2500 <= refused.estimate_ms <= 3700


def test_the_gates_are_there_when_they_do_not_hold_too():
    """A run in which nothing was refused can be told how near it came."""
    log = MemoryLog()
    policy, _ = headroom(log=log)
    policy(engine(0.5), input_tokens=1000, max_output_tokens=1000)
    assert [
        (name, value, held) for name, value, _, _, held in log.decisions[-1]["gates"]
    ] == [
        ("kv_needed_tokens", 2000.0, False),
        ("kv_pressure", 0.5, False),
        ("projected_kv", pytest.approx(0.7), False),
    ]


def test_without_its_signals_it_is_blind():
    """Neither an empty cache nor a full one is made of a missing number."""
    for missing in engine():
        raw = {name: v for name, v in engine(0.99).items() if name != missing}
        policy, _ = headroom(on_blind="admit")
        d = policy(raw, input_tokens=1)
        assert (d.admitted, d.reason) == (True, "signal_absent")
    policy = KvHeadroom(clock=FakeClock(), on_blind="admit")
    assert policy(engine(0.99)).reason == "signal_absent"


@pytest.mark.parametrize(
    "wrong",
    [
        {"high_water": 0.0},
        {"high_water": 1.1},
        {"quantile": 0.0},
        {"to_come": 1.5},
        {"threshold": 0.9},
    ],
)
def test_a_wrong_parameter_stops_at_construction(wrong):
    """No policy starts with a number that was not meant."""
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        KvHeadroom(**wrong)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("open"), st.integers(0, 4000), st.integers(0, 4000)),
        st.tuples(st.just("ask"), st.integers(0, 4000), st.integers(0, 4000)),
        st.tuples(st.just("token"), st.integers(0, 9), st.none()),
        st.tuples(st.just("end"), st.integers(0, 9), st.integers(0, 3000)),
        st.tuples(st.just("read"), st.floats(0, 1), st.none()),
        st.tuples(st.just("wait"), st.integers(0, 400), st.none()),
    ),
    max_size=60,
)


class Host:
    """A host whose engine shows anything at any time."""

    def __init__(self):
        self.policy, self.clock = headroom()
        self.raw = engine()
        self.prompts = {}

    def live(self):
        """What is open, by the policy's own ledger of leases."""
        opened = self.policy.ledger.opened
        return {rid: p for rid, p in self.prompts.items() if rid in opened}

    def start(self, call, prompt, most):
        """One request; those that are open together stay within the bound."""
        d = call(self.raw, input_tokens=prompt, max_output_tokens=most)
        if not d.admitted:
            return
        before = sum(self.live().values())
        self.prompts[d.request_id] = prompt
        held = sum(self.live().values())
        assert held <= 0.9 * CAPACITY or before == 0

    def do(self, what, first, second):
        """One step."""
        some = list(self.prompts)
        if what in ("open", "ask"):
            self.start(
                self.policy if what == "open" else self.policy.ask, first, second
            )
        elif what == "read":
            self.raw = engine(first)
        elif what == "wait":
            self.clock.advance(first)
        elif some:
            rid = some[first % len(some)]
            if what == "token":
                self.policy.first_token(rid)
            else:
                self.policy.outcome(rid, output_tokens=second)
                del self.prompts[rid]


@settings(deadline=None, max_examples=100)
@given(steps=STEPS)
def test_no_order_of_events_gets_past_the_high_water_mark(steps):
    """The prompts of two or more open requests never exceed it; nothing leaks."""
    host = Host()
    for step in steps:
        host.do(*step)
    for rid in host.prompts:
        host.policy.outcome(rid)
    assert charges(host.policy) == (0, 0)
