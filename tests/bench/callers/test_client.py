"""What a refused caller does is declared in numbers, and kept."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.bench.callers.scenes import no, yes

from admitperf.bench.callers.client import CLIENTS, Client, client
from admitperf.simulator import Answer


def waits(of, answer, chance=None):
    """How long it waits before each further attempt, until it gives up."""
    chance, found = chance or Random(1), []
    while (wait_s := of.wait_s(len(found), answer, chance)) is not None:
        found.append(wait_s)
    return found


@pytest.mark.parametrize(
    ("name", "steady"),
    [
        ("none", []),
        ("patient", [1, 2, 4, 8, 16, 30, 30, 30, 30]),
        ("impatient", [2, 2, 2]),
        ("deaf", [0, 0, 0]),
        ("cancel", []),
        ("undo", []),
    ],
)
def test_the_models_wait_as_they_are_described(name, steady):
    """So many tries, so far apart."""
    assert waits(client(name, jitter=0.0), no()) == steady


@settings(deadline=None, max_examples=60)
@given(st.sampled_from(list(CLIENTS.values())), st.floats(0, 1e5), st.integers())
def test_jitter_makes_a_wait_longer_and_by_a_quarter_at_most(of, asked_ms, seed):
    """Nobody comes earlier than it was told to, but the deaf."""
    plain = waits(client(of.name, jitter=0.0), no(retry_after_ms=asked_ms))
    spread = waits(of, no(retry_after_ms=asked_ms), Random(seed))
    assert len(plain) == len(spread)
    for wait_s, longer_s in zip(plain, spread, strict=True):
        assert wait_s <= longer_s <= 1.25 * wait_s
        assert wait_s >= asked_ms / 1000 or not of.honours


def test_a_wait_that_has_grown_past_all_numbers_is_the_longest():
    """The client that never gives up waits 30 s for the thousandth time too."""
    assert (
        client("patient", tries=10**6, jitter=0.0).wait_s(5000, no(), Random(1)) == 30
    )


def test_told_that_it_is_no_use_only_the_deaf_come_again():
    """`x-should-retry: false`."""
    answer = no(should_retry=False)
    assert waits(client("patient"), answer) == []
    assert len(waits(client("deaf"), answer)) == 3


def test_an_answer_is_not_asked_for_again_unless_the_server_failed():
    """A good answer, a wrong request and a stream that died are final."""
    of = client("impatient")
    for final in (yes(), Answer(ok=False, status=404), Answer(ok=False, error="died")):
        assert waits(of, final) == []
    for again in (0, 408, 429, 500, 503, 529):
        assert len(waits(of, Answer(ok=False, status=again))) == 3


def test_a_model_may_be_changed_and_says_what_it_does():
    """The words stand in the log of a run."""
    assert client("none").words() == "does not retry; a refusal ends its session"
    assert client("none").words("request") == "does not retry"
    assert client("patient").words() == (
        "tries 10 times, 1 s apart and growing to 30, honours Retry-After; a"
        " refusal ends its session"
    )
    changed = client("impatient", tries=6, gives_up="call", honours=False)
    assert changed.words() == (
        "tries 6 times, 2 s apart, ignores Retry-After; a refusal ends that call only"
    )
    assert "hangs up after 5 s" in client("undo", patience_s=5).words()
    assert len({one.words() for one in CLIENTS.values()}) == len(CLIENTS)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"tries": 0}, "tries = 0 is under 1 or no number"),
        ({"tries": 2.5}, "tries = 2.5 is no int"),
        ({"tries": True}, "tries = True is no int"),
        ({"jitter": float("nan")}, "jitter = nan is under 0 or no number"),
        ({"factor": 0.5, "tries": 0}, "tries = 0 .*; factor = 0.5 is under 1"),
        ({"patience_s": 0}, "patience_s = 0 is no positive number"),
        ({"undoes": True}, "undoes needs patience_s"),
        ({"honours": "yes"}, "honours = 'yes' is no bool"),
        ({"gives_up": "all"}, "gives_up = 'all' is neither session nor call"),
        ({"retries": 3}, "client none: retries is not one of tries, "),
    ],
)
def test_a_model_that_makes_no_sense_is_refused_in_one_line(changed, said):
    """Every fault is named."""
    with pytest.raises(ValueError, match=said) as fault:
        client("none", **changed)
    assert "\n" not in str(fault.value)


def test_a_name_that_no_model_has_is_refused_with_those_there_are():
    """And a model of one's own needs no list."""
    with pytest.raises(ValueError, match="no client 'polite'; there are none, patient"):
        client("polite")
    assert Client(name="polite", tries=3).tries == 3
