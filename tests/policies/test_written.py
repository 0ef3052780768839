"""`name:param=value` is read in one way, wherever it stands."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from admitperf.core.errors import ConfigError
from admitperf.policies.parts.compose.composition import spelt_short
from admitperf.policies.parts.compose.part_list import parts_of
from admitperf.policies.parts.compose.written import (
    LEFT_OUT,
    listed,
    part,
    read,
    replaced,
    spelt,
    strange,
    typed,
    with_none,
)


@pytest.mark.parametrize(
    ("text", "name", "parameters"),
    [
        ("queue_depth", "queue_depth", {}),
        ("queue_depth:max_waiting=8", "queue_depth", {"max_waiting": 8}),
        (
            "first_of:policies=(tenant_share; queue_depth:max_waiting=8)",
            "first_of",
            {"policies": "tenant_share; queue_depth:max_waiting=8"},
        ),
        ("tenant_share:weights=(a=2,b=1)", "tenant_share", {"weights": "a=2,b=1"}),
        ("priority_shed:levels=(0,10)", "priority_shed", {"levels": "0,10"}),
        ("priority_shed:levels=10", "priority_shed", {"levels": "10"}),
        ("front_door:high_water=none", "front_door", {"high_water": None}),
        (
            "kv_threshold: threshold=0.8 , action=reject",
            "kv_threshold",
            {"threshold": 0.8, "action": "reject"},
        ),
        (
            "any_of:policies=(first_of:policies=(queue_depth; kv_threshold))",
            "any_of",
            {"policies": "first_of:policies=(queue_depth; kv_threshold)"},
        ),
    ],
)
@pytest.mark.parametrize("marks", [",", ", \t\n"])
def test_a_policy_is_a_name_and_its_parameters(text, name, parameters, marks):
    """A value in brackets is one value, and numbers are numbers but for texts."""
    assert read(text, marks) == (name, parameters)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("queue_depth:8", "queue_depth: '8' is not PARAM=VALUE"),
        ("queue_depth:max_waiting=", "'max_waiting=' is not PARAM=VALUE"),
        ("queue_depth:max_waiting=1,max_waiting=2", "max_waiting is given twice"),
    ],
)
def test_a_fault_names_the_fragment_and_shows_the_form(text, says):
    """Whoever wrote it sees where it went wrong and how it is written."""
    with pytest.raises(ConfigError) as error:
        read(text)
    (fault,) = error.value.faults
    assert says in fault
    assert "stands in brackets, as in tenant_share:weights=(a=2,b=1)" in fault


def test_brackets_must_match():
    """With the text in which they do not."""
    for text in ("tenant_share:weights=(a=2", "tenant_share:weights=a=2)"):
        with pytest.raises(ConfigError, match="brackets do not match"):
            read(text)


def test_the_rest_of_a_value_that_lacks_its_brackets_is_named():
    """Its commas make parameters that the policy does not know."""
    name, found = read("tenant_share:weights=a=2,b=1", ",")
    (fault,) = strange(name, found)
    assert "b=1: b is no parameter (known: weights, contended_at); write " in fault
    assert strange("tenant_share", {"weights": "a=2", "enforce": 0.5}) == []


def test_a_part_that_lacks_brackets_shows_the_form():
    """Said by the policy, with how it is written after it."""
    with pytest.raises(ConfigError) as error:
        parts_of("tenant_share:weights=a=2,b=1")
    assert "tenant_share: b is no parameter" in str(error.value)
    assert "stands in brackets" in str(error.value)


def test_brackets_are_taken_off_when_they_hold_the_whole():
    """Two bracketed words are no bracketed one."""
    assert typed(None, "(a; b)") == "a; b"
    assert typed(None, "(a) (b)") == "(a) (b)"
    assert typed(None, "0.5") == 0.5


def test_a_file_may_say_none_as_the_command_line_does():
    """Where None may stand and no text may; nothing else is converted."""
    told = {"high_water": "none", "hard_kv": "0.5", "nobodys": "none"}
    assert with_none("front_door", told) == {**told, "high_water": None}
    assert with_none("tenant_share", {"weights": "none"}) == {"weights": "none"}
    assert with_none("no_such", {"x": "none"}) == {"x": "none"}


@pytest.mark.parametrize(
    "told",
    [
        "queue_depth:max_waiting=8",
        ("queue_depth", {"max_waiting": 8}),
        {"queue_depth": {"max_waiting": 8}},
        {"name": "queue_depth", "params": {"max_waiting": 8}},
        {"policy": "queue_depth", "parameters": {"max_waiting": 8}},
    ],
)
def test_a_part_may_have_the_form_of_a_pool_or_of_an_arm(told):
    """As it stands in a gateway's file, in a benchmark's, and in a text."""
    assert part(told) == ("queue_depth", {"max_waiting": 8})
    (made,) = parts_of([told])
    assert spelt_short(made) == "queue_depth:max_waiting=8"


def test_what_is_no_part_shows_a_form_that_is():
    """A setting of the whole beside a part's name is the usual slip."""
    told = {"name": "queue_depth", "params": {}, "enforce": 0.5}
    with pytest.raises(ConfigError, match="no policy and no name"):
        parts_of([told])
    with pytest.raises(ConfigError, match="are no parameters"):
        parts_of([{"name": "queue_depth", "params": 8}])


def test_values_are_replaced_also_in_nested_parts():
    """And left out where they are to keep their default."""
    text = "any_of:policies=(queue_depth:max_waiting=fitted; kv_threshold); rate_limit"
    fits = {"fitted": 7}
    assert replaced(text, lambda _, value: fits.get(value, value)) == (
        "any_of:policies=(queue_depth:max_waiting=7; kv_threshold); rate_limit"
    )
    off = {"fitted": LEFT_OUT}
    assert replaced(text, lambda _, value: off.get(value, value)) == (
        "any_of:policies=(queue_depth; kv_threshold); rate_limit"
    )


NAMES = st.text("abcxyz_", min_size=1, max_size=5)


@settings(max_examples=30)
@given(st.dictionaries(NAMES, st.integers(1, 9), min_size=1, max_size=4))
def test_what_is_spelt_is_read_as_the_same(weights):
    """Also a value that holds commas, three compositions deep."""
    text = spelt("tenant_share", {"weights": weights})
    for _ in range(3):
        text = spelt("first_of", {"policies": f"{text}; queue_depth"})
    for _ in range(3):
        text, second = listed(read(text)[1]["policies"])
        assert second == "queue_depth"
    told = ",".join(f"{k}={v}" for k, v in weights.items())
    assert read(text) == ("tenant_share", {"weights": told})
