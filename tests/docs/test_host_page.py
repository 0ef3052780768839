"""The page for people who write a host says what the code says."""

import re
from dataclasses import MISSING, fields
from inspect import Parameter, signature
from types import NoneType
from typing import get_args, get_type_hints

import pytest

from admitperf import Policy, Reading
from admitperf.core.blind import GOOD_READINGS, SEEN_LEAST
from admitperf.core.clock import SYSTEM
from admitperf.core.decision import Decision
from admitperf.core.facts import Facts
from admitperf.core.ledger import LEASE_S
from admitperf.core.log import EXIT_S
from admitperf.core.reasons import DEFAULT, PRESETS
from admitperf.core.request import Request
from admitperf.core.resolver import MIN_AGE_LIMIT_S
from admitperf.core.settings import POSTURES, RAW_MODES, Settings
from admitperf.core.slo import LIMITS
from admitperf.core.verdict import Verdict

UNITS = {"_ms": "ms", "_ns": "ns", "_s": "s", "_mb": "MB", "_tokens": "tokens"}


@pytest.fixture(scope="module")
def page(root):
    """The page."""
    return (root / "docs/reference/host.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def table(page):
    """A table's rows as lists of cells, by the head of its first column."""

    def rows(first):
        _, _, rest = page.partition(f"\n| {first} |")
        lines = rest.partition("\n\n")[0].splitlines()[2:]
        return [[cell.strip() for cell in line[1:-1].split("|")] for line in lines]

    return rows


def default(parameter):
    """A keyword's default as the page spells it."""
    if parameter.default is Parameter.empty:
        return "required"
    return f"`{parameter.default!r}`"


def told(rows, *columns):
    """The first cell of each row and those of some columns, counted from it."""
    return [tuple(row[column] for column in (0, *columns)) for row in rows]


def named(function):
    """A function's arguments, by name, without `self`."""
    given = dict(signature(function).parameters)
    given.pop("self", None)
    return given


def test_every_reserved_keyword_has_a_row_with_its_default(table):
    """Whoever sets up a policy finds each keyword, and what it is when left out."""
    expected = []
    for field in fields(Settings):
        made = field.default_factory is not MISSING
        value = field.default_factory() if made else field.default
        cell = "the system's" if value is SYSTEM else f"`{value!r}`"
        expected.append((f"`{field.name}`", cell))
    assert told(table("keyword"), 2) == expected


def test_every_choice_of_a_keyword_is_listed(table):
    """A word that may be given can be found without trying."""
    meaning = dict(told(table("keyword"), 1))
    choices = {"on_blind": POSTURES, "raw": RAW_MODES, "preset": PRESETS}
    for name, words in choices.items():
        found = re.findall(r"`([a-z_-]+)`", meaning[f"`{name}`"])
        assert tuple(found) == words, name


def test_every_fact_has_a_row_with_its_type_and_default(table):
    """A host learns from the page what it may tell about a request."""
    expected = []
    for name, hint in get_type_hints(Facts).items():
        kinds = [kind for kind in get_args(hint) if kind is not NoneType] or [hint]
        value = f"`{getattr(Request, name)!r}`"
        expected.append((f"`{name}`", kinds[0].__name__, value))
    assert told(table("fact"), 2, 3) == expected


@pytest.mark.parametrize(
    ("first", "function"),
    [("field of an outcome", Policy.outcome), ("of a `Reading`", Reading)],
)
def test_every_argument_has_a_row_with_its_default(table, first, function):
    """What may be told is listed, in the order of the signature."""
    expected = [(f"`{name}`", default(p)) for name, p in named(function).items()]
    assert told(table(first), 2) == expected


@pytest.mark.parametrize(
    ("first", "column"),
    [
        ("keyword", 3),
        ("fact", 4),
        ("field of an outcome", 3),
        ("of a `Reading`", 3),
    ],
)
def test_a_unit_is_the_one_the_name_ends_in(table, first, column):
    """A number whose name ends in a unit is in that unit."""
    ended = 0
    for name, unit in told(table(first), column):
        end = next((e for e in UNITS if name.strip("`").endswith(e)), None)
        if end is not None:
            ended += 1
            assert unit == UNITS[end], name
    assert ended


def test_what_is_said_of_a_decision_can_be_read_from_one(table):
    """Each attribute and method the page names is there."""
    found = [re.findall(r"`(\w+)", cell) for (cell,) in told(table("of a decision"))]
    names = [name for cell in found for name in cell]
    assert len(names) > len(found)
    for name in names:
        assert hasattr(Decision(Verdict.ADMIT), name), name


def test_every_posture_has_a_row(table):
    """What each does when a policy is blind is said, the default first."""
    names = [cell.strip("`") for (cell,) in told(table("posture"))]
    assert tuple(names) == POSTURES
    assert names[0] == Settings().on_blind


def test_every_bound_of_an_slo_has_a_row(table):
    """The limits that may stand in `slo` are those the code takes."""
    assert [cell.strip("`") for (cell,) in told(table("bound"))] == list(LIMITS)


def test_every_call_of_a_host_is_listed(page):
    """Whatever a policy has for its host stands on the page."""
    subclass = {"admit", "defer", "reject", "require", "declared"}
    subclass |= {"decide", "decided", "observe", "task", "task_done", "wait_told_ms"}
    calls = {
        name
        for name, value in vars(Policy).items()
        if not name.startswith("_")
        and (callable(value) or isinstance(value, classmethod))
    }
    assert calls - subclass
    for name in calls - subclass:
        assert f"`policy.{name}(" in page, name


def test_the_numbers_in_the_text_are_the_ones_in_the_code(page):
    """A constant that changes takes its sentence along."""
    blind = DEFAULT["signal_absent"]
    for sentence in (
        f"counts for {LEASE_S:g} s without a sign of life",
        f"too old after {MIN_AGE_LIMIT_S:g} s",
        f"once there are at least {SEEN_LEAST}",
        f"`blind_cap` is given or {SEEN_LEAST} good decisions were seen",
        f"takes {GOOD_READINGS} good readings",
        f"carries {blind.status} and a wait of {blind.least_s:g} to {blind.most_s:g} s",
        f"`policy.flush(timeout_s={EXIT_S})`",
        f"wait for the disk, {EXIT_S:g} s at most",
    ):
        assert sentence in page, sentence
