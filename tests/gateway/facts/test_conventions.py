"""Places are data: each can be replaced, and everything wrong is said at once."""

from dataclasses import fields

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from admitperf.core.errors import ConfigError
from admitperf.gateway.facts.conventions import (
    BODY,
    UNITS,
    Conventions,
    Deadline,
    Priority,
)


@pytest.mark.parametrize(
    ("unit", "said", "seconds"),
    [
        ("go", "1m30s", 90.0),
        ("go", "1.5s", 1.5),
        ("go", "+.5h", 1800.0),
        ("go", "250ms", 0.25),
        ("go", "2us3ns", 2.003e-6),
        ("go", "2µs", 2e-6),
        ("go", "2μs", 2e-6),
        ("go", "-1s", None),
        ("go", "0s", None),
        ("go", "30", None),
        ("go", "1s ", 1.0),
        ("go", "1 s", None),
        ("go", "1..5s", None),
        ("go", "1s" * 1000, None),
        ("go", "", None),
        ("grpc", "100m", 0.1),
        ("grpc", "2S", 2.0),
        ("grpc", "1H", 3600.0),
        ("grpc", "3M", 180.0),
        ("grpc", "5u", 5e-6),
        ("grpc", "123456789m", None),
        ("grpc", "1s", None),
        ("ms", "1500", 1.5),
        ("ms", "0", None),
        ("ms", "-5", None),
        ("ms", "1e3", None),
        ("s", "30", 30.0),
        ("s", "0.5", 0.5),
        ("s", "nan", None),
        ("s", "inf", None),
        ("s", "None", None),
        ("s", "٣", None),
        ("s", "999999999999", None),
    ],
)
def test_each_unit_is_read_and_nothing_else(unit, said, seconds):
    """A deadline is a positive time as its source writes it, or it is not known."""
    found = Deadline(place="x", unit=unit).read_s(said)
    assert found == (None if seconds is None else pytest.approx(seconds))


@settings(deadline=None)
@given(st.text(max_size=80))
def test_no_text_breaks_a_reader(said):
    """Whatever a header says, the answer is a time, a priority or None."""
    for unit in UNITS:
        seconds = Deadline(place="x", unit=unit).read_s(said)
        assert seconds is None or seconds > 0
    for direction in ("higher", "lower"):
        priority = Priority(place="x", direction=direction).read(said)
        assert priority is None or isinstance(priority, int)


def test_what_the_clients_send_by_default_is_no_deadline():
    """600 s is what both official clients send when nobody set anything."""
    place = Deadline(place="x", unit="s", unset_s=600.0)
    assert place.read_s("600") is None
    assert place.read_s("600.0") is None
    assert place.read_s("601") == 601.0
    assert Deadline(place="x", unit="s").read_s("600") == 600.0


@pytest.mark.parametrize(
    ("place", "said", "priority"),
    [
        (Priority(place="x", direction="higher"), "5", 5),
        (Priority(place="x", direction="higher"), " -2 ", -2),
        (Priority(place="x", direction="lower"), "5", -5),
        (Priority(place="x", direction="lower"), 5, -5),
        (Priority(place="x", direction="lower"), -5, 5),
        (Priority(place="x", direction="lower", neutral=3), "u=1, i", 2),
        (Priority(place="x", direction="lower", neutral=3), "i, u=7", -4),
        (Priority(place="x", direction="lower", neutral=3), "i", None),
        (Priority(place="x", direction="lower", neutral=3), "u=8", None),
        (Priority(place="x", direction="lower", neutral=3), "u=12", None),
        (Priority(place="x", direction="lower", neutral=1), "1", 0),
        (Priority(place="x", direction="higher", words={"flex": -1}), "Flex", -1),
        (Priority(place="x", direction="higher", words={"flex": -1}), "auto", None),
        (Priority(place="x", direction="higher"), "9999999999", None),
        (Priority(place="x", direction="higher"), "٣", None),
    ],
)
def test_the_direction_of_a_priority_is_explicit(place, said, priority):
    """Lower-wins numbers are turned round, so that higher always matters more."""
    assert place.read(said) == priority


def test_what_is_not_configured_stays():
    """An empty configuration is the defaults."""
    assert Conventions.of({}) == Conventions()


def test_every_fact_can_be_replaced():
    """Names are taken in any case, one name stands for a list of one."""
    made = Conventions.of(
        {
            "session": ["X-My-Session", "body:user"],
            "tenant": "X-Team",
            "priority": [
                {"place": "X-Prio", "direction": "lower", "neutral": 2},
                {
                    "place": "body:service_tier",
                    "direction": "higher",
                    "words": {"Flex": -9},
                },
            ],
            "deadline": [{"place": "x-ttl", "unit": "ms", "unset_s": 1.5}],
            "charge": "child",
            "only_trusted": ["priority", "session"],
            "attempt": [],
        }
    )
    assert made == Conventions(
        session=("x-my-session", "body:user"),
        tenant=("x-team",),
        priority=(
            Priority(place="x-prio", direction="lower", neutral=2),
            Priority(place="body:service_tier", direction="higher", words={"flex": -9}),
        ),
        deadline=(Deadline(place="x-ttl", unit="ms", unset_s=1.5),),
        charge="child",
        only_trusted=("priority", "session"),
        attempt=(),
    )


@pytest.mark.parametrize("name", [each.name for each in fields(Conventions)])
def test_the_defaults_can_be_written_as_configuration(name):
    """What the defaults say is itself valid, for each fact."""
    value = getattr(Conventions(), name)
    if name in ("priority", "deadline"):
        value = [
            {each.name: getattr(v, each.name) for each in fields(v)} for v in value
        ]
    assert Conventions.of({name: value}) == Conventions()


@pytest.mark.parametrize(
    ("mapping", "fault"),
    [
        ({"sessions": []}, "sessions is not one of request_id, "),
        ({"session": 5}, "session = 5 is no list"),
        ({"session": ["a b"]}, "session[0]: 'a b' is no name of a header"),
        ({"session": ["body:x"]}, "session[0]: body:x is not one of body:"),
        ({"session": [None]}, "session[0] = None is no name"),
        ({"tenant": ["body:user"]}, "tenant[0]: body:user is in the body"),
        ({"charge": "me"}, "charge = 'me' is not one of root, child"),
        ({"only_trusted": ["tenant"]}, "only_trusted[0] = 'tenant' is not one of"),
        ({"priority": ["x"]}, "priority[0] = 'x' is no mapping with place, direction"),
        ({"priority": [{"place": "x"}]}, "priority[0].direction is missing"),
        (
            {"priority": [{"place": "x", "direction": "up"}]},
            "priority[0].direction = 'up' is not one of higher, lower",
        ),
        (
            {"priority": [{"place": "x", "direction": "lower", "neutral": True}]},
            "priority[0].neutral = True is no whole number",
        ),
        (
            {"priority": [{"place": "x", "direction": "lower", "words": {"a": "b"}}]},
            "priority[0].words.a = 'b' is no whole number",
        ),
        (
            {"priority": [{"place": "x", "direction": "lower", "words": 3}]},
            "priority[0].words = 3 maps no words to priorities",
        ),
        ({"deadline": [{"place": "x", "unit": "h"}]}, "deadline[0].unit = 'h' is not"),
        ({"deadline": [{"place": "x", "unit": "s", "y": 1}]}, "deadline[0].y is not"),
        (
            {"deadline": [{"place": "x", "unit": "s", "unset_s": "a"}]},
            "deadline[0].unset_s = 'a' is no number of seconds",
        ),
        (
            {"deadline": [{"place": "body:user", "unit": "s"}]},
            "deadline[0].place: body:user is in the body",
        ),
    ],
)
def test_each_fault_names_its_place(mapping, fault):
    """A configuration that cannot be meant stops the start."""
    with pytest.raises(ConfigError) as caught:
        Conventions.of(mapping)
    assert any(one.startswith(fault) for one in caught.value.faults)


def test_all_faults_are_said_at_once():
    """Nobody has to start three times to find three typing errors."""
    with pytest.raises(ConfigError) as caught:
        Conventions.of({"x": 1, "session": [1, 2], "charge": "me"})
    assert len(caught.value.faults) == 4


def test_the_page_names_every_place(root):
    """The reference page and the code have the same names."""
    page = (root / "docs/reference/conventions.md").read_text(encoding="utf-8")
    made = Conventions()
    places = {
        getattr(place, "place", place)
        for each in fields(made)
        if isinstance(getattr(made, each.name), tuple)
        for place in getattr(made, each.name)
    }
    names = {each.name for each in fields(made)}
    assert {
        name for name in places | names | set(BODY) if f"`{name}`" not in page
    } == set()
