"""Tenants and sessions, counted by name."""

import pytest
from tests.reports.byhand import decision, header, outcome

from admitperf.reports.questions.seen import looked


@pytest.fixture
def callers(write):
    """The callers of lines."""

    def _callers(*lines):
        with looked([write(header(), *lines)]) as found:
            return found.seen[0].callers

    return _callers


def counts(part):
    """A share without its value."""
    return part.n, part.of


def by(tenant, tokens, *seqs):
    """Requests of one tenant."""
    return [
        decision(seq, facts={"tenant": tenant, "input_tokens": tokens}) for seq in seqs
    ]


def test_the_largest_tenant_by_requests_and_by_tokens(callers):
    """They need not be the same."""
    found = callers(*by("many", 10, 1, 2, 3), *by("long", 500, 4), decision(5))
    assert found.tenants == 2
    assert counts(found.largest) == (3, 4)
    assert counts(found.largest_tokens) == (500, 530)
    assert found.jain == pytest.approx(16 / 20)


def test_one_tenant_is_compared_with_nobody(callers):
    """An index of one name says nothing."""
    found = callers(*by("only", 10, 1, 2))
    assert (found.tenants, found.jain) == (1, None)


def test_sessions_and_what_became_of_them(callers):
    """Calls each, and whether any was refused or failed."""
    named = {seq: {"facts": {"session": name}} for seq, name in enumerate("aaabbc", 1)}
    found = callers(
        decision(1, **named[1]),
        decision(2, "defer", "queue_depth", **named[2]),
        decision(3, **named[3]),
        decision(4, **named[4]),
        decision(5, **named[5]),
        decision(6, **named[6]),
        decision(7),
        outcome(1),
        outcome(4),
        outcome(5, ok=False, error="reset"),
    )
    assert (found.sessions, found.calls.n, found.calls.high) == (3, 3, 3)
    assert counts(found.several) == (2, 3)
    assert counts(found.refused) == (1, 3)
    assert counts(found.failed) == (1, 2)


def test_a_line_that_stands_twice_counts_once(callers):
    """As everywhere in a report."""
    lines = by("a", 10, 1, 2)
    assert counts(callers(*lines, *lines).largest) == (2, 2)


def test_names_may_hold_anything(callers):
    """Quotes, other scripts, and what looks like SQL."""
    odd = ["it's", '"', "naïve", "'); DROP TABLE decision; --", "\u0000"]
    lines = [decision(seq, facts={"tenant": name}) for seq, name in enumerate(odd, 1)]
    found = callers(*lines)
    assert (found.tenants, counts(found.largest)) == (5, (1, 5))


def test_no_names_no_callers(callers):
    """And the lines are not read again for them."""
    found = callers(decision(1))
    assert (found.tenants, found.sessions) == (0, 0)
    assert found.largest.value is None
