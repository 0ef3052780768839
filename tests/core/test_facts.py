"""Facts travel with a call, and none of them can hurt it."""

import enum
import logging
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.rules import admits, rule, sees, strict

from admitperf.core.signals import (
    ATTEMPT,
    DEADLINE_SLACK_S,
    INPUT_TOKENS,
    MAX_OUTPUT_TOKENS,
    SESSION_IN_FLIGHT,
    TENANT_SHARE,
    UNCACHED_TOKENS,
)
from admitperf.testing import MemoryLog

DEFAULTS = {
    "logical_id": None,
    "attempt": 0,
    "tenant": None,
    "session": None,
    "parent_session": None,
    "session_final": False,
    "model": None,
    "slo_class": None,
    "input_tokens": None,
    "cached_tokens": None,
    "max_output_tokens": None,
    "n": 1,
    "deadline_s": None,
    "priority": 0,
    "stream": None,
    "late_ms": None,
}
GIVEN = {
    "logical_id": "call-7",
    "attempt": 2,
    "tenant": "acme",
    "session": "s-1",
    "parent_session": "s-0",
    "session_final": True,
    "model": "qwen",
    "slo_class": "chat",
    "input_tokens": 2168,
    "cached_tokens": 512,
    "max_output_tokens": 256,
    "n": 2,
    "deadline_s": 30.5,
    "priority": -3,
    "stream": True,
    "late_ms": 12.5,
}
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([10**400, -(10**400), 1 << 53, (1 << 53) + 1, -1, 0])
    | st.floats()
    | st.text()
    | st.text(st.characters(categories=["Cs", "Cc", "Co"]))
    | st.binary()
    | st.sampled_from(["x" * 100_000, "\udc80" * 5_000, "\0", b"\xff" * 9_000])
    | st.builds(object)
    | st.complex_numbers()
    | st.fractions()
    | st.decimals()
)
ABSURD = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=3), inner, max_size=3)
        | st.tuples(inner)
        | st.frozensets(st.integers(), max_size=2)
    ),
    max_leaves=5,
)


class Level(enum.IntEnum):
    """How a host may spell a priority."""

    HIGH = 3


class Name(enum.StrEnum):
    """How a host may spell a tenant."""

    ACME = "acme"


class Oddly(float):
    """A float of another library, which shows itself in its own way."""

    def __repr__(self):
        return f"np.float64({float(self)})"


@pytest.fixture
def asked(log):
    """What `decide` and the log saw of one call's facts."""

    def ask(**facts):
        seen = []

        def decide(policy, metrics):
            request = metrics.request
            seen.append({name: getattr(request, name) for name in DEFAULTS})
            return policy.admit()

        rule(decide, log=log)({}, **facts)
        return seen[0], log.decisions[-1].get("facts")

    return ask


def test_every_fact_is_optional(asked):
    """A call without facts knows nothing, and the log says nothing of them."""
    seen, written = asked()
    assert seen == DEFAULTS
    assert written is None


def test_every_fact_reaches_the_rule_and_the_log(asked):
    """What the host said is what `decide` sees and what the line holds."""
    seen, written = asked(**GIVEN)
    assert seen == GIVEN
    assert written == GIVEN


@pytest.mark.parametrize("name", GIVEN)
def test_none_means_not_known(name, asked):
    """Passing None is the same as not passing the fact."""
    seen, written = asked(**{name: None})
    assert seen == DEFAULTS
    assert written is None


@pytest.mark.parametrize("name", GIVEN)
@pytest.mark.parametrize(
    "value", [object(), [], {}, (), math.nan, 10**400, 1j], ids=repr
)
def test_a_fact_of_the_wrong_type_or_size_is_unknown_and_noted(name, value, asked, log):
    """It counts as not given, and the log says which one was dropped."""
    seen, written = asked(**{name: value})
    assert seen == DEFAULTS
    assert written is None
    (note,) = [line for line in log.controls if line["event"] == "bad_fact"]
    assert name in note["facts"][0]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("input_tokens", -1),
        ("input_tokens", 1.5),
        ("input_tokens", "512"),
        ("input_tokens", True),
        ("cached_tokens", -512),
        ("max_output_tokens", 1 << 60),
        ("n", 0),
        ("attempt", -1),
        ("stream", "true"),
        ("stream", 1),
        ("session_final", 0),
        ("deadline_s", "5"),
        ("deadline_s", math.inf),
        ("late_ms", -0.5),
        ("late_ms", "12"),
        ("late_ms", True),
        ("late_ms", math.inf),
    ],
)
def test_a_fact_outside_its_meaning_is_unknown(name, value, asked, log):
    """Nothing is clamped or guessed: a negative count is no count."""
    seen, _ = asked(**{name: value})
    assert seen == DEFAULTS
    assert [line["event"] for line in log.controls] == ["bad_fact"]


@pytest.mark.parametrize(
    ("name", "value", "plain"),
    [
        ("priority", Level.HIGH, 3),
        ("attempt", Level.HIGH, 3),
        ("tenant", Name.ACME, "acme"),
        ("tenant", b"acme", "acme"),
        ("tenant", 7, "7"),
        ("input_tokens", 512.0, 512),
        ("deadline_s", Oddly(2.5), 2.5),
        ("deadline_s", -1, -1.0),
        ("late_ms", 0, 0.0),
        ("max_output_tokens", 0, 0),
        ("tenant", "", ""),
        ("tenant", "名前", "名前"),
        ("session", "a\udc80b", "a\\udc80b"),
    ],
)
def test_a_fact_in_another_spelling_is_the_fact(name, value, plain, asked, log):
    """Enums, bytes and other libraries' numbers are read, and the line stays JSON."""
    seen, written = asked(**{name: value})
    assert seen[name] == plain
    assert written == {name: plain}
    assert strict(log.texts[-1])["facts"] == {name: plain}


def test_a_fact_that_does_not_exist_is_noted_and_costs_nothing(asked, log):
    """A host that is newer, or misspells a name, is told in the log."""
    seen, written = asked(tenant="acme", inputtokens=5)
    assert (seen["tenant"], written) == ("acme", {"tenant": "acme"})
    (note,) = log.controls
    assert "inputtokens" in note["facts"][0]


def test_one_bad_fact_does_not_take_the_others_along(asked):
    """What is usable is used."""
    seen, written = asked(tenant="acme", input_tokens="many", session="s")
    assert written == {"tenant": "acme", "session": "s"}
    assert seen["input_tokens"] is None


@pytest.mark.parametrize("name", ["tenant", "session", "logical_id", "model"])
def test_a_long_name_is_cut_and_stays_its_own(name, asked):
    """Two long names that share their beginning stay two names, of bounded length."""
    one, other = ("n" * 5_000 + end for end in "ab")
    first, second = asked(**{name: one})[1][name], asked(**{name: other})[1][name]
    assert first != second
    assert max(len(first), len(second)) <= 256
    assert asked(**{name: one})[1][name] == first


@given(
    facts=st.dictionaries(
        st.sampled_from([*GIVEN, "no_such_fact", "", "ü", "self"[:3]]),
        ABSURD,
        max_size=6,
    ),
    request_id=ABSURD,
)
@settings(deadline=None, max_examples=150)
def test_no_fact_of_any_type_or_size_raises_or_breaks_the_log(facts, request_id):
    """There is a strict line, and each fact is on it, or noted, or was None."""
    logging.disable(logging.CRITICAL)
    log = MemoryLog()
    try:
        policy = rule(admits, log=log)
        d = policy({}, request_id=request_id, **facts)
        policy.first_token(request_id)
        policy.outcome(d.request_id)
    finally:
        logging.disable(logging.NOTSET)
    assert (d.admitted, d.reason) == (True, None)
    for text in log.texts:
        strict(text)
        assert len(text) < 20_000
    (line,) = log.decisions
    written = line.get("facts", {})
    noted = [what for c in log.controls for what in c.get("facts", [])]
    for name, value in facts.items():
        dropped = any(what.startswith(f"{name} ") for what in noted)
        assert (name in written) != (dropped or value is None), (name, value)
    assert len(log.outcomes) == 1


@given(
    told=st.fixed_dictionaries(
        {},
        optional=dict.fromkeys(
            ("ttft_ms", "max_gap_ms", "e2e_ms", "output_tokens", "cached_tokens",
             "finish_reason", "error", "ok"),
            ABSURD,
        ),
    )
)  # fmt: skip
@settings(deadline=None, max_examples=150)
def test_no_outcome_of_any_type_or_size_raises_or_breaks_the_log(told):
    """An end is taken whatever stands in it, and what is unusable is not known."""
    log = MemoryLog()
    policy = rule(admits, log=log)
    policy({}, request_id="r")
    policy.outcome("r", **told)
    line = strict(log.texts[-1])
    assert (line["k"], line["id"]) == ("outcome", "r")
    for name in ("ttft_ms", "max_gap_ms", "e2e_ms"):
        assert name not in line or line[name] == told[name] >= 0
    for name in ("output_tokens", "cached_tokens"):
        assert name not in line or 0 <= line[name] <= told[name]
    assert policy.ledger.in_flight == 0


def read(facts, *signals):
    """What signals read in a call with these facts."""
    seen = []
    rule(sees(seen, *signals), reports_outcomes=True)({}, **facts)
    return list(seen[0].values())


@pytest.mark.parametrize(
    ("facts", "uncached"),
    [
        ({"input_tokens": 100, "cached_tokens": 30}, 70.0),
        ({"input_tokens": 100, "cached_tokens": 130}, 0.0),
        ({"input_tokens": 100, "cached_tokens": 0}, 100.0),
        ({"input_tokens": 100}, None),
        ({"cached_tokens": 100}, None),
        ({}, None),
    ],
)
def test_uncached_tokens_are_known_only_when_both_counts_are(facts, uncached):
    """An unknown cache is not an empty one."""
    assert read(facts, UNCACHED_TOKENS) == [uncached]


@pytest.mark.parametrize(
    ("signal", "fact", "value"),
    [
        (INPUT_TOKENS, "input_tokens", 9),
        (MAX_OUTPUT_TOKENS, "max_output_tokens", 9),
        (DEADLINE_SLACK_S, "deadline_s", -0.5),
        (ATTEMPT, "attempt", 1),
        (TENANT_SHARE, "tenant", "t"),
        (SESSION_IN_FLIGHT, "session", "s"),
    ],
)
def test_a_signal_of_the_request_is_none_without_its_fact(signal, fact, value):
    """Absence is never zero."""
    assert read({}, signal) == [None]
    assert read({fact: value}, signal) != [None]


def test_a_first_attempt_and_an_unknown_one_are_two_things():
    """0 is a statement of the host, and its absence is not."""
    assert read({"attempt": 0}, ATTEMPT) == [0.0]
    assert read({}, ATTEMPT) == [None]
