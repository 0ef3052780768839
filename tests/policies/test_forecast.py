"""When a request would begin, and how long it would take, from what was measured."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from admitperf import Policy
from admitperf.core.signals import IN_FLIGHT
from admitperf.policies.parts.forecast import SMOOTHING, Forecast, first_token_s
from admitperf.testing import FakeClock, snapshot


class Foretelling(Policy):
    """Admits everything and writes down what would have been."""

    name = "foretelling"
    requires = (IN_FLIGHT,)

    def __init__(self, **given):
        super().__init__(**given)
        self.forecast = Forecast()
        self.first_s = self.answer_s = None

    def decide(self, metrics):
        """Admit, and note what is foretold."""
        self.first_s = first_token_s(metrics)
        self.answer_s = self.forecast.answer_s(metrics, 0.9)
        return self.admit()

    def observe(self, metrics, outcome):
        """Learn."""
        self.forecast.observe(metrics, outcome)


@pytest.fixture
def clock():
    """The time of both host and policy."""
    return FakeClock(start_s=100.0)


@pytest.fixture
def policy(clock):
    """A policy whose host reports how requests end."""
    return Foretelling(clock=clock, reports_outcomes=True)


def serve(policy, clock, prompt=1000, answer=101, first_s=1.0, token_s=0.02, **facts):
    """One request by itself: its prompt, then its answer, token by token."""
    rid = policy({}, input_tokens=prompt, **facts).request_id
    clock.advance(first_s)
    policy.first_token(rid)
    took_s = first_s + token_s * (answer - 1)
    clock.advance(took_s - first_s)
    told = {"ttft_ms": 1000 * first_s, "e2e_ms": 1000 * took_s}
    policy.outcome(rid, **told, output_tokens=answer * facts.get("n", 1))


def test_nothing_is_foretold_before_anything_was_measured(policy):
    """No rate and no answer yet: not known, which is not the same as at once."""
    policy({}, input_tokens=1000)
    assert (policy.first_s, policy.answer_s) == (None, None)
    assert policy.forecast.token_s is None


def test_a_first_token_waits_for_the_prompts_ahead_and_its_own(policy, clock):
    """At 1000 prompt tokens a second, 3000 ahead and 500 of its own are 3.5 s."""
    for _ in range(3):
        serve(policy, clock)
    policy({}, input_tokens=3000)
    policy({}, input_tokens=500)
    assert policy.first_s == pytest.approx(3.5)


def test_tokens_known_cached_are_no_work(policy, clock):
    """Only what prefill has to compute takes its time."""
    for _ in range(3):
        serve(policy, clock)
    policy({}, input_tokens=5000, cached_tokens=4500)
    assert policy.first_s == pytest.approx(0.5)


def test_a_first_token_of_a_prompt_of_unknown_size_is_not_foretold(policy, clock):
    """Without the length of its prompt there is no time, rather than a low one."""
    for _ in range(3):
        serve(policy, clock)
    policy({})
    assert policy.first_s is None


def test_an_answer_takes_its_tokens_times_the_time_of_one(policy, clock):
    """An answer of 101 tokens at 0.02 s each is 2.02 s, whatever its prompt."""
    for _ in range(3):
        serve(policy, clock)
    policy({}, input_tokens=1000)
    assert policy.forecast.token_s == pytest.approx(0.02)
    assert policy.answer_s == pytest.approx(101 * 0.02)


def test_an_answer_takes_the_asked_quantile_of_lengths(policy, clock):
    """Of answers of 10 to 100 tokens, nine tenths stay within 90."""
    for tens in range(1, 11):
        serve(policy, clock, answer=10 * tens)
    policy({}, input_tokens=1000)
    assert policy.answer_s == pytest.approx(90 * 0.02)


def test_answers_side_by_side_take_the_time_of_one(policy, clock):
    """With `n` answers the tokens of all are told together and made together."""
    for _ in range(3):
        serve(policy, clock, n=4)
    assert policy.forecast.token_s == pytest.approx(0.02)
    policy({}, input_tokens=1000, n=4)
    assert policy.answer_s == pytest.approx(101 * 0.02)


def test_the_newest_answers_weigh_most(policy, clock):
    """One answer at another pace moves the pace by its weight, ten nearly all of it."""
    serve(policy, clock, token_s=1.0)
    serve(policy, clock, token_s=0.0)
    assert policy.forecast.token_s == pytest.approx(1.0 - SMOOTHING)
    for _ in range(10):
        serve(policy, clock, token_s=0.0)
    assert policy.forecast.token_s < 0.1


@pytest.mark.parametrize(
    "told",
    [
        {"ok": False, "ttft_ms": 1, "e2e_ms": 9000, "output_tokens": 10},
        {"e2e_ms": 9000, "output_tokens": 10},
        {"ttft_ms": 1, "output_tokens": 10},
        {"ttft_ms": 1, "e2e_ms": 9000},
        {"ttft_ms": 1, "e2e_ms": 9000, "output_tokens": 1},
        {"ttft_ms": 1, "e2e_ms": 9000, "output_tokens": 0},
        {"ttft_ms": 9000, "e2e_ms": 1, "output_tokens": 10},
    ],
)
def test_an_answer_that_tells_too_little_teaches_nothing(policy, clock, told):
    """Failed, not streamed, of one token, or with an end before its beginning."""
    serve(policy, clock)
    policy.outcome(policy({}).request_id, **told)
    assert policy.forecast.token_s == pytest.approx(0.02)


def test_a_reading_teaches_nothing():
    """`observe` is called with None for each new reading."""
    forecast = Forecast()
    forecast.observe(snapshot(), None)
    assert forecast.token_s is None


def test_nothing_is_foretold_from_a_rate_of_nothing(policy, clock):
    """First tokens of prompts without a length say that none was worked off."""
    for _ in range(4):
        serve(policy, clock, prompt=0)
    policy({}, input_tokens=1000)
    assert policy.first_s is None


@settings(deadline=None, max_examples=50)
@given(
    st.lists(
        st.tuples(st.integers(2, 500), st.floats(0, 1), st.floats(0.001, 3)),
        min_size=1,
        max_size=30,
    )
)
def test_a_pace_stays_between_the_fastest_and_the_slowest_answer(answers):
    """Whatever was seen, what is foretold is no further out than what was seen."""
    clock = FakeClock()
    policy = Foretelling(clock=clock, reports_outcomes=True)
    for answer, token_s, first_s in answers:
        serve(policy, clock, answer=answer, token_s=token_s, first_s=first_s)
    paces = [token_s for _, token_s, _ in answers]
    told = policy.forecast.token_s
    assert min(paces) - 1e-6 <= told <= max(paces) + 1e-6
