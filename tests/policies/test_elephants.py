"""The rule that the largest old session leaves."""

import pytest

from admitperf import Policy
from admitperf.core.request import Request
from admitperf.policies.parts.live.elephants import Elephants
from admitperf.policies.parts.live.sessions import Sessions
from admitperf.testing import FakeClock

QUANTUM = 3
SHARE = 0.5
LEASE = 60.0


class Keeper(Policy):
    """Lets everybody in, and keeps sessions."""

    name = "keeper"

    def __init__(self, **given):
        super().__init__(**given)
        self.sessions = Sessions(self.name, LEASE, "slots")

    def decide(self, metrics):
        """Whoever comes."""
        return self.admit()

    def decided(self, metrics, d):
        """What a policy with sessions does."""
        return self.sessions.decided(metrics, d)

    def observe(self, metrics, outcome):
        """What a policy with sessions does."""
        self.sessions.observe(metrics, outcome)


class Host:
    """Sessions that had some calls, and the rule over them."""

    def __init__(self, quantum=QUANTUM, share=SHARE):
        self.clock = FakeClock()
        self.policy = Keeper(clock=self.clock, reports_outcomes=True)
        self.rule = Elephants(self.policy.sessions, quantum, share)

    def had(self, name, calls, tokens, **facts):
        """A session's calls; what it is now."""
        for _ in range(calls):
            d = self.policy({}, session=name, input_tokens=tokens, **facts)
            self.policy.outcome(d.request_id)
        return self.find(name)

    def find(self, name):
        """The session of that name; None = there is none."""
        return self.policy.sessions.find(Request({"session": name}))

    def leaving(self):
        """Names of those that are to leave."""
        live = self.policy.sessions.live()
        return [session.root for session in live if self.rule.leaves(session)]


def test_nobody_leaves_while_nobody_is_turned_away():
    """A large session does no harm where there is room."""
    host = Host()
    host.had("large", 9, 90_000)
    assert host.leaving() == []


def test_the_largest_of_the_old_leaves():
    """Not the largest of all, and not the one with most calls."""
    host = Host()
    host.had("new", QUANTUM - 1, 9_000)
    host.had("small", 9, 5_000)
    host.had("large", QUANTUM, 8_000)
    host.rule.turned_away()
    assert host.leaving() == ["large"]


@pytest.mark.parametrize(("tokens", "leaving"), [(5_000, []), (5_001, ["old"])])
def test_only_while_the_old_hold_more_than_their_share(tokens, leaving):
    """Of all live contexts, those between their calls too."""
    host = Host()
    host.had("old", QUANTUM, tokens)
    host.had("new", 1, 5_000)
    host.rule.turned_away()
    assert host.leaving() == leaving


def test_contexts_that_nobody_counted_mark_nobody():
    """Without tokens there is no largest."""
    host = Host()
    host.had("old", 9, None)
    host.rule.turned_away()
    assert host.leaving() == []


def test_one_at_a_time():
    """Whoever is turned away meanwhile, until the one that is marked has left."""
    host = Host()
    largest = host.had("largest", QUANTUM, 9_000)
    host.had("large", QUANTUM, 8_000)
    for _ in range(5):
        host.rule.turned_away()
    assert host.leaving() == ["largest"]
    host.rule.left(largest)
    assert host.find("largest") is None
    assert host.leaving() == []
    host.rule.turned_away()
    assert host.leaving() == ["large"]


def test_one_that_grows_past_the_one_that_is_marked_is_not_marked_too():
    """The mark is a decision that was made."""
    host = Host()
    host.had("first", QUANTUM, 8_000)
    host.rule.turned_away()
    host.had("second", QUANTUM, 80_000)
    host.rule.turned_away()
    assert host.leaving() == ["first"]


def test_one_that_ends_before_its_next_call_takes_its_mark_along():
    """By its lease: the next one turned away finds another, also of the same name."""
    host = Host()
    host.had("silent", QUANTUM, 9_000)
    host.rule.turned_away()
    host.clock.advance(LEASE)
    host.had("other", QUANTUM, 1_000)
    assert host.find("silent") is None
    host.had("silent", 1, 500)
    assert host.leaving() == []
    host.rule.turned_away()
    assert host.leaving() == ["other"]


def test_a_session_with_open_calls_leaves_at_its_next_one():
    """Open calls go on; they count for nobody."""
    host = Host()
    session = host.had("old", QUANTUM, 9_000)
    d = host.policy({}, session="old", input_tokens=9_500)
    host.rule.turned_away()
    assert host.rule.leaves(session)
    host.rule.left(session)
    host.policy.outcome(d.request_id)
    assert (host.policy.sessions.active, host.policy.ledger.in_flight) == (0, 0)


def test_helpers_count_for_their_root():
    """The family's calls and its contexts, so that none hides behind the others."""
    host = Host()
    host.had("root", 1, 2_000)
    host.had("helper", 2, 4_000, parent_session="root")
    host.had("new", 1, 5_000)
    host.rule.turned_away()
    assert host.leaving() == ["root"]


def test_asking_changes_nothing():
    """It is asked in `decide`."""
    host = Host()
    session = host.had("old", QUANTUM, 9_000)
    host.rule.turned_away()
    assert all(host.rule.leaves(session) for _ in range(3))
    assert host.find("old") is session


def test_leaving_twice_is_leaving_once():
    """Another call of it may have been refused at the same time."""
    host = Host()
    session = host.had("old", QUANTUM, 9_000)
    host.rule.turned_away()
    host.rule.left(session)
    host.rule.left(session)
    assert not host.rule.leaves(session)
    assert host.policy.sessions.active == 0
