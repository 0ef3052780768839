"""Annotations on the class are the parameters."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import pytest
from tests.core.rules import KvWall, admits, strict

from admitperf import ConfigError, Param, Policy
from admitperf.core.signals import KV_PRESSURE
from admitperf.testing import MemoryLog

if TYPE_CHECKING:
    from somewhere import OnlyForATypeChecker


class Declared(Policy):
    """Every kind of parameter."""

    name = "declared"
    decide = admits

    needed: int
    threshold: Annotated[float, Param("a fraction", low=0.0, high=1.0)] = 0.9
    rate: Annotated[float, Param("a rate", above=0.0)] = 1.0
    cap: Annotated[int | None, Param("a cap", low=1)] = None
    word: str = "w"
    flag: bool = False


class Child(Declared):
    """A policy of a policy."""

    name = "child"
    threshold = 0.5
    extra: float | None = None


class Checked(Policy):
    """An annotation that nobody can read at run time, beside ones that all can."""

    name = "checked"
    decide = admits

    table: ClassVar[dict[str, int]] = {}
    unread: ClassVar[OnlyForATypeChecker] = None
    odd: OnlyForATypeChecker = None
    mode: Literal["a", "b"] = "a"
    some: str | list[str] = "x"
    threshold: Annotated[float, Param("a fraction", low=0.0, high=1.0)] = 0.9
    _private: int = 3


def faults(cls, **given):
    """What construction complains about."""
    with pytest.raises(ConfigError) as caught:
        cls(**given)
    return caught.value.faults


def test_parameters_become_attributes_with_their_defaults():
    """What is not given is the default, what is given stands."""
    policy = Declared(needed=3, threshold=0.8, cap=7)
    assert (policy.needed, policy.threshold, policy.cap) == (3, 0.8, 7)
    assert (policy.rate, policy.word, policy.flag) == (1.0, "w", False)
    assert policy.parameters == {
        "needed": 3, "threshold": 0.8, "rate": 1.0, "cap": 7, "word": "w",
        "flag": False,
    }  # fmt: skip


def test_a_parameter_without_a_default_is_required():
    """Its absence is a fault that names it."""
    (fault,) = faults(Declared)
    assert "needed" in fault


def test_an_unknown_keyword_fails_and_names_the_known_ones():
    """A misspelt parameter is not ignored."""
    (fault,) = faults(Declared, needed=1, limit=0.8)
    assert "limit" in fault
    assert "threshold" in fault


def test_all_faults_are_told_at_once():
    """One construction tells everything that is wrong, settings included."""
    told = faults(
        Declared, threshold=7, rate=0, cap=0, word=3, flag="yes", what=1, enforce=2,
        on_blind="pray", preset="x",
    )  # fmt: skip
    for name in (
        "needed", "threshold", "rate", "cap", "word", "flag", "what", "enforce",
        "on_blind", "preset",
    ):  # fmt: skip
        assert sum(name in fault.split("=")[0].split(" is ")[0] for fault in told) == 1
    assert len(told) == 10


@pytest.mark.parametrize("value", [0.0, 1.0, 0, 1, 0.5])
def test_a_range_includes_its_ends(value):
    """`low` and `high` are legal."""
    assert Declared(needed=1, threshold=value).threshold == value


@pytest.mark.parametrize(
    "value", [-0.01, 1.01, 10**400, math.nan, math.inf, "0.9", None, True, [0.9]]
)
def test_a_value_outside_its_range_or_type_fails(value):
    """It is told with the parameter, the value and the range."""
    (fault,) = faults(Declared, needed=1, threshold=value)
    assert fault.startswith("threshold")


def test_none_is_legal_only_where_the_annotation_says_so():
    """`int | None` may be None, `int` may not."""
    assert Declared(needed=1, cap=None).cap is None
    assert "needed" in faults(Declared, needed=None)[0]


def test_a_subclass_inherits_parameters_and_may_move_a_default():
    """The parent's come first, and its ranges still hold."""
    policy = Child(needed=1)
    assert list(policy.parameters) == [
        "needed", "threshold", "rate", "cap", "word", "flag", "extra",
    ]  # fmt: skip
    assert (policy.threshold, policy.extra) == (0.5, None)
    assert "threshold" in faults(Child, needed=1, threshold=2)[0]


def test_a_wrong_default_is_a_fault_too():
    """A class whose own default breaks its range cannot be used by accident."""

    class Wrong(Declared):
        name = "wrong"
        threshold = 90

    assert "threshold" in faults(Wrong, needed=1)[0]


def test_annotations_may_be_postponed():
    """This file postpones them: types and ranges are checked all the same."""
    assert isinstance(Declared.__annotations__["threshold"], str)
    assert "threshold" in faults(Declared, needed=1, threshold=2)[0]


def test_an_annotation_only_a_type_checker_can_read_hides_no_other():
    """One name imported under TYPE_CHECKING does not switch the checks off."""
    (fault,) = faults(Checked, threshold=7)
    assert "threshold" in fault
    assert Checked(odd=object()).odd is not None


def test_class_variables_and_private_names_are_no_parameters():
    """`ClassVar` says so, readable or not, and so does an underscore."""
    assert list(Checked.declared()) == ["odd", "mode", "some", "threshold"]
    for name in ("table", "unread", "_private"):
        assert faults(Checked, **{name: 1})


def test_a_type_that_cannot_be_checked_is_not_guessed():
    """A list is legal where the annotation says `str | list[str]`."""
    assert Checked(some=["a", "b"]).some == ["a", "b"]


def test_a_class_that_annotates_none_takes_free_keywords():
    """The sample runs as printed."""
    policy = KvWall(threshold=0.9, max_waiting=32, anything={"a": 1})
    assert policy.anything == {"a": 1}
    assert policy.parameters == {
        "threshold": 0.9, "max_waiting": 32, "anything": {"a": 1},
    }  # fmt: skip


def test_redeclaring_what_every_policy_has_adds_no_parameter():
    """`name: str = "x"` is how some type checkers want it written."""

    class Typed(Policy):
        name: str = "typed"
        unit: str = "tenant"
        requires: tuple = (KV_PRESSURE,)
        baseline: bool = False
        decide = admits

    assert Typed.declared() == {}
    assert Typed(threshold=0.5).threshold == 0.5


RESERVED = [
    "log", "experiment", "run", "notes", "provenance", "enforce", "slo", "sources",
    "on_blind", "blind_cap", "hold_last_s", "max_age_s", "max_defer_s", "preset", "raw",
    "log_max_mb", "log_keep", "clock", "reports_outcomes",
]  # fmt: skip


@pytest.mark.parametrize("name", RESERVED)
def test_reserved_names_are_no_parameters(name):
    """A policy cannot take a keyword that every policy already has."""
    cls = type(
        "Taken",
        (Policy,),
        {"name": "taken", "__annotations__": {name: object}, name: None},
    )
    assert any(name in fault and "reserved" in fault for fault in faults(cls))


def test_no_other_name_is_reserved():
    """The list of reserved keywords is the contract's."""
    from admitperf.core.settings import RESERVED as KNOWN

    assert sorted(KNOWN) == sorted(RESERVED)


def test_a_policy_without_a_name_cannot_be_made():
    """Logs and entry points call it by name."""

    class Nameless(Policy):
        decide = admits

    assert "name" in faults(Nameless)[0]


def test_a_fault_is_a_value_error_with_its_facts():
    """`ConfigError` can be caught as what it is, and says where and what."""
    with pytest.raises(ValueError, match="policy declared: ") as caught:
        Declared(needed="x", cap=0)
    assert len(caught.value.faults) == 2


@pytest.mark.parametrize(
    "value",
    [object(), {1, 2}, 10**30, math.inf, "\udc80", b"\xff", {"deep": [math.nan]}],
)
def test_any_parameter_value_leaves_a_strict_header(value, tmp_path):
    """The header holds what JSON can say of a value."""
    path = tmp_path / "log.jsonl"
    with KvWall(threshold=0.9, max_waiting=value, log=path) as policy:
        policy({"kv_pressure": 0.95})
    header = strict(path.read_text().splitlines()[0])
    assert (header["k"], header["params"]["threshold"]) == ("run", 0.9)


def test_provenance_is_default_unstated_or_what_the_user_said(tmp_path):
    """A report can tell a fitted threshold from one nobody chose."""
    path = tmp_path / "log.jsonl"
    with Declared(
        needed=1, threshold=0.8, log=path, provenance={"threshold": "fitted"}
    ) as policy:
        policy({})
    header = strict(path.read_text().splitlines()[0])
    stated = header["provenance"]
    assert stated["threshold"] == "fitted"
    assert stated["rate"] == "default"
    assert stated["needed"] not in ("default", "fitted", "inherited")


def test_two_policies_of_a_class_do_not_share_parameters():
    """A value belongs to its policy."""
    one, other = (KvWall(threshold=t, max_waiting=1) for t in (0.1, 0.9))
    raw = {"kv_pressure": 0.5, "queue_depth": 0}
    assert (one(raw).admitted, other(raw).admitted) == (False, True)
    assert MemoryLog().lines == []


@pytest.mark.parametrize(
    "typo", ["enforced", "on_blnd", "blind_caps", "reports_outcome"]
)
def test_a_free_keyword_that_looks_reserved_is_a_fault(typo):
    """A misspelt shadow switch must not govern live traffic in silence."""
    with pytest.raises(ConfigError, match="looks like the reserved keyword"):
        KvWall(threshold=0.9, max_waiting=32, **{typo: 0.0})


class Shared(Policy):
    """Bounds of one process, and bounds of the engine."""

    name = "shared"
    decide = admits

    cap: Annotated[int | None, Param("requests", per_process=True)] = 100
    rate: Annotated[float, Param("a rate", per_process=True)] = 10.0
    burst: Annotated[int, Param("requests", per_process=True)] = 20
    threshold: Annotated[float, Param("of the engine")] = 0.9


def test_what_bounds_a_process_is_divided_among_several():
    """Whole numbers up, to at least 1; rates exactly; the engine's own not at all."""
    whole = {"cap": 10, "threshold": 0.8, "burst": 1, "rate": 6, "blind_cap": 5}
    assert Shared.divided(whole, 4) == {
        "cap": 3, "threshold": 0.8, "burst": 1, "rate": 1.5, "blind_cap": 2,
    }  # fmt: skip
    assert Shared(**Shared.divided(whole, 4)).rate == 1.5


def test_a_bound_left_at_its_default_is_divided_as_well():
    """Four processes of a default of 100 are 100 in all, not 400."""
    assert Shared.divided({}, 4) == {"cap": 25, "rate": 2.5, "burst": 5}
    assert Shared.divided({"cap": None}, 3)["cap"] is None


@pytest.mark.parametrize("count", [1, 0, -2])
def test_one_process_has_it_all(count):
    """Nothing is added and nothing is changed."""
    assert Shared.divided({"rate": 6, "blind_cap": 5}, count) == {
        "rate": 6, "blind_cap": 5,
    }  # fmt: skip


def test_what_cannot_be_divided_is_left_for_the_constructor_to_refuse():
    """A text for a number is the same fault with one process and with four."""
    divided = Shared.divided({"rate": "fast", "blind_cap": True}, 4)
    assert (divided["rate"], divided["blind_cap"]) == ("fast", True)
