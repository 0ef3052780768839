"""How much of a context was still cached."""

import pytest

from admitperf import Policy
from admitperf.policies.parts.live.retention import TURNS_LEAST, Retention
from admitperf.policies.parts.live.sessions import SESSIONS_MOST
from admitperf.testing import FakeClock

LEASE = 60.0


class Keeper(Policy):
    """Lets everybody in, and looks at what was cached."""

    name = "keeper"

    def __init__(self, **given):
        super().__init__(**given)
        self.retention = Retention(LEASE)

    def decide(self, metrics):
        """Whoever comes."""
        return self.admit()

    def observe(self, metrics, outcome):
        """Ends and readings alike."""
        self.retention.observe(metrics, outcome)


class Host:
    """A host whose sessions call."""

    def __init__(self):
        self.clock = FakeClock()
        self.policy = Keeper(clock=self.clock, reports_outcomes=True)

    def call(self, name, prompt, cached=None, *, output=0, ok=True, **facts):
        """One call and its end."""
        d = self.policy({}, session=name, input_tokens=prompt, **facts)
        told = {"cached_tokens": cached, "output_tokens": output, "ok": ok}
        self.policy.outcome(d.request_id, **told)

    def turns(self, *kept, name="s", context=1_000):
        """Continuing turns of a session that kept such parts of its context."""
        self.call(name, context, 0)
        for part in kept:
            self.call(name, context, int(part * context))

    @property
    def value(self):
        """What is known."""
        return self.policy.retention.value

    @property
    def seen(self):
        """Continuing turns."""
        return self.policy.retention.turns


def test_it_is_not_known_before_five_continuing_turns():
    """First calls, however many, tell nothing: their cache was never there."""
    host = Host()
    for number in range(20):
        host.call(f"s{number}", 1_000, 0)
    assert (host.seen, host.value) == (0, None)
    host.turns(*[0.5] * (TURNS_LEAST - 1))
    assert host.value is None
    host.call("s", 1_000, 500)
    assert host.value == pytest.approx(0.5)


def test_the_former_context_is_the_prompt_and_the_answer_of_the_last_call():
    """900 and 100 were there; 600 of the next prompt came from the cache."""
    host = Host()
    for _ in range(TURNS_LEAST):
        host.call("s", 900, 0, output=100, session_final=False)
        host.call("s", 1_400, 600, session_final=True)
    assert (host.seen, host.value) == (TURNS_LEAST, pytest.approx(0.6))


def test_more_cached_than_there_was_is_all_of_it():
    """Other sessions share a prefix: no value is over 1."""
    host = Host()
    host.call("s", 1_000, 0)
    for _ in range(TURNS_LEAST):
        host.call("s", 1_000, 9_000)
    assert host.value == 1.0


def test_the_newest_turn_counts_most_and_the_first_ones_alike():
    """A mean of the first ten, then a tenth of the way to each new one."""
    host = Host()
    host.turns(*[1.0] * 5, *[0.0] * 5)
    assert host.value == pytest.approx(0.5)
    host.call("s", 1_000, 1_000)
    assert host.value == pytest.approx(0.55)


@pytest.mark.parametrize(
    "facts",
    [
        {"prompt": 999, "cached": 0},
        {"prompt": 1_000, "cached": None},
        {"prompt": 1_000, "cached": 0, "ok": False},
        {"prompt": None, "cached": 0},
    ],
)
def test_what_is_no_continuing_turn_or_not_known_does_not_count(facts):
    """A shorter prompt is another context; a count that is missing is not 0."""
    host = Host()
    host.call("s", 1_000, 0)
    host.call("s", **facts)
    assert host.seen == 0


def test_a_request_without_a_session_continues_nothing():
    """Nobody knows whose context it had."""
    host = Host()
    for _ in range(9):
        host.call(None, 1_000, 0)
    assert host.seen == 0


def test_a_session_that_said_it_was_over_or_was_silent_begins_anew():
    """Its cache may be gone by right."""
    host = Host()
    host.call("over", 1_000, 0, session_final=True)
    host.call("over", 1_000, 0)
    host.call("silent", 1_000, 0)
    host.clock.advance(LEASE)
    host.call("silent", 1_000, 0)
    assert host.seen == 0
    host.call("silent", 1_000, 0)
    assert host.seen == 1


def test_helpers_have_contexts_of_their_own():
    """A helper's first call is no continuing turn of its root."""
    host = Host()
    host.call("root", 1_000, 0)
    host.call("helper", 1_000, 0, parent_session="root")
    assert host.seen == 0
    host.call("helper", 1_000, 1_000, parent_session="root")
    assert host.seen == 1


def test_the_engines_count_of_the_prompt_goes_before_the_callers():
    """The caller may have guessed it."""
    host = Host()
    d = host.policy({}, session="s", input_tokens=10)
    host.policy.outcome(d.request_id, input_tokens=1_000)
    host.call("s", 500, 500)
    assert host.seen == 0


def test_it_keeps_no_more_sessions_than_there_may_be():
    """Who was silent longest is forgotten first."""
    host = Host()
    for number in range(SESSIONS_MOST + 50):
        host.call(f"s{number}", 10)
    assert len(host.policy.retention._left) == SESSIONS_MOST
    host.call("s0", 10, 0)
    assert host.seen == 0
    host.call(f"s{SESSIONS_MOST + 49}", 10, 0)
    assert host.seen == 1
