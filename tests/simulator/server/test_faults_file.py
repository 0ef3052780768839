"""Faults as they are written: strict, and everything that is wrong at once."""

import json
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from admitperf.core.errors import ConfigError
from admitperf.simulator.server.faults import KINDS, faults, parsed, written

VALUES = {"slow": "factor=3", "renamed": "from=a,to=b", "cut": "after=5"}
VALUES["scrape_delay"] = "seconds=0.2"


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_can_be_written_both_ways(kind):
    """A command line and a file say the same."""
    short = ",".join(filter(None, (VALUES.get(kind, ""), "at=2")))
    (one,) = written([f"{kind}:{short}"])
    (other,) = faults({"faults": [one.document()]}, "test")
    assert one == other
    assert (one.kind, one.at_s, one.for_s) == (kind, 2.0, inf)


def test_the_example_of_the_documentation_means_what_it_says():
    """Three times slower, from the tenth second to the fifteenth."""
    (fault,) = written(["slow:factor=3,at=10,for=5"])
    assert (fault.number("factor"), fault.at_s, fault.for_s) == (3.0, 10.0, 5.0)


def test_everything_that_is_wrong_is_named_at_once():
    """One reading is enough to mend a file."""
    wrong = [
        {"kind": "slow", "factor": 0},
        {"kind": "slow"},
        {"kind": "melt"},
        {"kind": "cut", "after": 1.5, "how": "gently"},
        {"kind": "nan", "at": -1, "colour": "red"},
        {"kind": "restart", "down": True, "for": 3},
        7,
    ]
    with pytest.raises(ConfigError) as caught:
        faults({"faults": wrong, "more": 1}, "f.json")
    text = str(caught.value)
    assert len(caught.value.faults) == 11
    for said in (
        "'more' is unknown", "fault 1 (slow): factor = 0 is no number from 0.01",
        "fault 2 (slow): 'factor' is missing", "fault 3: kind 'melt' is none of slow,",
        "after = 1.5 is no whole number", "how = 'gently' is none of end, reset",
        "at = -1 is no number from 0", "'colour' is unknown", "down = True",
        "fault 6 (restart): 'for' is unknown", "fault 7 is no object",
    ):  # fmt: skip
        assert said in text


@pytest.mark.parametrize(
    ("text", "said"),
    [("{", "is no JSON"), ("{}", "no list of faults"), ("[" * 99999, "is no JSON"),
     ('{"faults": 3}', "no list"), ("\xff", "is no JSON"), ("NaN", "no list")],
)  # fmt: skip
def test_what_is_no_file_of_faults_is_said_in_one_line(text, said):
    """Whatever it is."""
    with pytest.raises(ConfigError) as caught:
        parsed(text, "f.json")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({"kind": "slow", "factor": 10**400}, "factor = 1000"),
        ({"kind": "slow", "factor": -(10**400)}, "is no number"),
        ({"kind": "cut", "after": 10**400}, "is no whole number"),
        ({"kind": "cut", "after": inf}, "is no whole number"),
        ({"kind": "nan", "at": 10**400}, "at = "),
        ({"kind": "nan", "for": float("nan")}, "for = nan"),
        ({"kind": "frozen", "what": 10**400}, "is no text"),
        ({"kind": 10**400}, "is none of"),
        ({"kind": "nan", "x" * 9999: 1}, "is unknown"),
        ({"kind": "renamed", "from": "a", "to": "\ud800"}, "is no text"),
        ({"kind": "renamed", "from": "a\n", "to": "b"}, "is no text"),
        ({"kind": "renamed", "from": "a", "to": "b" * 201}, "more than 200 characters"),
    ],
    ids=range(12),
)
def test_values_no_fault_can_have_are_named_in_short(told, said):
    """Numbers that no float holds, and words that no page can show."""
    with pytest.raises(ConfigError) as caught:
        faults([told], "f.json")
    assert said in str(caught.value)
    assert len(str(caught.value)) < 500
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("field", ["kind", "at", "from"])
def test_values_nested_deeply_are_named_in_short(field):
    """No error is as deep as what it is about."""
    told = {"kind": "renamed", "from": "a", "to": "b"}
    text = json.dumps({**told, field: 0}).replace(": 0", ": " + "[" * 900 + "]" * 900)
    with pytest.raises(ConfigError) as caught:
        parsed(f"[{text}]", "f.json")
    assert len(str(caught.value)) < 500


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["kind", "at", "for", "factor", "x"]), inner)
    ),
    max_leaves=8,
)
FAULT = st.fixed_dictionaries(
    {"kind": st.sampled_from([*KINDS, "melt"])},
    optional=dict.fromkeys(("at", "for", "factor", "share", "after", "to"), JSON),
)


@settings(deadline=None, max_examples=150)
@given(told=st.lists(FAULT | JSON, max_size=4) | JSON)
def test_any_document_is_faults_or_a_list_of_what_is_wrong(told):
    """Nothing else ever comes out."""
    try:
        made = faults(told, "test")
    except ConfigError as error:
        assert error.faults  # noqa: PT017  either is right, and neither is empty
        return
    assert faults([fault.document() for fault in made], "again") == made
    json.dumps([fault.document() for fault in made], allow_nan=False)
