"""I11: every lease that is taken is given back exactly once."""

from collections import Counter

from hypothesis import given, settings
from tests.invariants.histories import histories, play, watched

LEASE_S = 900.0


def count(played, fact):
    """Open requests by one of their facts."""
    return Counter(facts.get(fact) for _, facts in played.open)


@given(history=histories(seconds=20.0))
@settings(deadline=None, max_examples=60)
def test_i11_what_is_open_is_what_was_let_in_and_has_not_ended(policy_class, history):
    """I11: pool, tenant and session counts follow the host's own books, step by step.

    The whole history is shorter than a lease, so nothing runs out.
    """
    policy, clock, _ = watched(policy_class)
    ledger = policy.ledger

    def agree(played):
        tenants, sessions = count(played, "tenant"), count(played, "session")
        assert ledger.in_flight == len(played.open)
        for name in "abc":
            assert ledger.tenant_in_flight(name) == tenants[name]
        for name in "st":
            assert ledger.session_in_flight(name) == sessions[name]

    agree(play(policy, clock, history, before_each=agree))


@given(history=histories(seconds=400.0))
@settings(deadline=None, max_examples=60)
def test_i11_a_host_that_forgets_to_report_leaks_nothing(policy_class, history):
    """I11: after silence longer than a lease nothing is held, whoever forgot what."""
    policy, clock, _ = watched(policy_class)
    play(policy, clock, history)
    clock.advance(2 * LEASE_S)
    last = policy({}, request_id="last")
    assert policy.ledger.in_flight == int(last.admitted)
    assert policy.ledger.tenant_in_flight("a") == 0
    assert policy.ledger.session_in_flight("s") == 0
