"""Which attempts are tries at one call."""

from admitperf.core.verdict import Verdict
from admitperf.gateway.attempts import Attempts


def attempts(most=10):
    """A table of so many calls."""
    return Attempts(most)


def test_a_try_after_a_refusal_is_the_same_call():
    """The logical id stays, the number rises, and the time it was told is kept."""
    table = attempts()
    first = table.begin("a", None)
    table.refused(first, 5_000, "queue_depth", Verdict.DEFER)
    again = table.begin("a", None)
    assert (again.logical_id, again.tries, again.due_ns) == ("a", 1, 5_000)


def test_the_clients_own_count_comes_first():
    """An SDK that says 2 is at its third try, whatever we saw."""
    table = attempts()
    table.refused(table.begin("a", 0), 1, "queue_depth", Verdict.DEFER)
    assert table.begin("a", 2).tries == 2


def test_equal_requests_at_once_are_different_calls():
    """Two callers with one body, both open, are two wishes."""
    table = attempts()
    first, second = table.begin("a", None), table.begin("a", 0)
    assert first.logical_id != second.logical_id


def test_a_retry_while_the_first_copy_is_open_is_the_same_call():
    """An SDK's second try after its own time-out belongs to the first."""
    table = attempts()
    first = table.begin("a", 0)
    assert table.begin("a", 1).logical_id == first.logical_id


def test_a_call_that_was_served_is_over():
    """The same body asked later is a new call, from its first try."""
    table = attempts()
    first = table.begin("a", None)
    table.ended(first, served=True)
    again = table.begin("a", None)
    assert again.logical_id != first.logical_id
    assert again.tries == 0


def test_a_call_that_failed_upstream_may_come_back_at_once():
    """It was told no time by us."""
    table = attempts()
    first = table.begin("a", None)
    table.ended(first, served=False)
    again = table.begin("a", None)
    assert (again.tries, again.due_ns) == (1, 0)


def test_no_more_calls_than_allowed_are_remembered():
    """Inventing bodies fills no memory."""
    table = attempts(most=3)
    for number in range(100):
        table.begin(str(number), None)
    assert len(table._calls) == 3


def test_equal_requests_with_ids_of_their_own_are_different_calls():
    """A benchmark that repeats a prompt is no client that comes back."""
    table = attempts()
    first = table.begin("a", None, mark="r-1")
    table.refused(first, 5_000, "queue_depth", Verdict.DEFER)
    assert table.begin("a", None, mark="r-2").due_ns == 0
    again = table.begin("a", None, mark="r-2")
    assert again.logical_id != first.logical_id


def test_a_call_known_to_be_new_is_new():
    """A canary with a constant prompt is locked out by nobody's refusal."""
    table = attempts()
    first = table.begin("a", 0)
    table.refused(first, 5_000, "queue_depth", Verdict.DEFER)
    again = table.begin("a", 0, fresh=True)
    assert (again.due_ns, again.tries) == (0, 0)
    assert again.logical_id != first.logical_id
