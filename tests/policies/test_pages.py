"""The reference pages say what the classes say."""

import re
import tomllib
from pathlib import Path

import pytest
from tests.policies.verdicts import all_rows, needed, with_memory

from admitperf.core.declared import REQUIRED
from admitperf.core.reasons import DEFAULT, PRESETS, table
from admitperf.core.signal import Signal
from admitperf.policies import load
from admitperf.policies.parts.compose.composition import Composition

ROOT = Path(__file__).parents[2]


def ours():
    """Names of the policies this distribution offers, in the order it lists them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return list(project["project"]["entry-points"]["admitperf.policies"])


OURS = ours()
HEADINGS = ["Rule", "Reads", "Parameters", "Refuses with", "Cannot see", "Source"]


def sections(text):
    """A page's text by its second-level headings."""
    parts = re.split(r"^## (.+)$", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def rows(text):
    """The cells of a text's table rows, without head and rule."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines][2:]


@pytest.fixture
def page(root):
    """A policy's page, by name."""
    folder = root / "docs" / "reference" / "policies"
    return lambda name: (folder / f"{name}.md").read_text(encoding="utf-8")


def parameter_rows(cls):
    """The parameter table as the class would have it."""
    return [
        [
            f"`{p.name}`",
            p.param.doc,
            p.range_text(),
            "required" if p.default is REQUIRED else f"`{p.default}`",
            p.param.origin,
        ]
        for p in cls.declared().values()
    ]


@pytest.mark.parametrize("name", OURS)
def test_a_page_has_the_fixed_headings_and_something_under_each(name, page):
    """Knowing one page is knowing all; what a rule cannot see is never left out."""
    found = sections(page(name))
    assert list(found) == HEADINGS
    assert all(text.strip() for text in found.values())
    assert found["Cannot see"].count("\n- ") >= 2


@pytest.mark.parametrize("name", OURS)
def test_the_parameter_table_is_the_class(name, page):
    """Name, sentence, range, default and origin are written once and shown twice."""
    expected = parameter_rows(load(name))
    assert rows(sections(page(name))["Parameters"]) == expected
    if not expected:
        assert sections(page(name))["Parameters"].strip() == "None."


@pytest.mark.parametrize("name", OURS)
def test_the_page_names_what_the_policy_requires(name, page):
    """Each signal and fact that a start-up check would ask for has its row."""
    cls = load(name)
    bounds = {n: 1 for n in cls.declared() if n.startswith("max_per")}
    required = cls(**needed(name), **bounds).requires
    named = [r.name if isinstance(r, Signal) else r for r in required]
    told = [row[0] for row in rows(sections(page(name))["Reads"])]
    assert len(told) == len(named)
    for word, cell in zip(named, told, strict=True):
        assert cell.startswith(f"`{word}`")


@pytest.mark.parametrize("name", OURS)
def test_the_refusals_on_the_page_are_the_ones_that_are_tested(name, page):
    """Reason, usual verdict and status agree with the verdict table and the reasons."""
    told = {
        (name, reason.strip("`"), verdict.split(",")[0].split(" ")[0], int(status))
        for reason, verdict, status in rows(sections(page(name))["Refuses with"])
    }
    seen = {(c.policy, c.reason, c.verdict) for c in all_rows() if c.reason}
    seen |= with_memory()
    usual = {
        (policy, reason, verdict, DEFAULT[reason].status)
        for policy, reason, verdict in seen
        if policy == name and not (verdict == "reject" and _can_choose(policy))
    }
    assert told == usual


@pytest.mark.parametrize("name", OURS)
def test_the_class_says_the_refusals_of_the_page(name, page):
    """`admitperf policies` lists them; a composition's are those of its parts."""
    told = [row[0].strip("`") for row in rows(sections(page(name))["Refuses with"])]
    if not issubclass(load(name), Composition):
        assert list(load(name).refuses_with) == told


GIVEN = {
    "front_door": {
        "max_projected_kv": 0.9,
        "high_water": 0.9,
        "target_wait_s": 1.0,
        "full_queue": 8,
        "full_load": 1.0,
        "max_share": 0.5,
        "max_per_session": 2,
        "min_slack_s": 0.0,
        "cheap_tokens": 10,
    },
    "in_flight_cap": {"max_per_tenant": 1, "max_per_session": 1},
    "priority_shed": {"max_kv": 0.9, "max_waiting": 3, "max_wait_s": 1.0},
    "rate_limit": {"per=tenant": "tenant", "cost=tokens": "tokens"},
    "tenant_share": {"contended_at": 3},
    "thunder_inspired": {"shared=measured": "measured"},
}
"""A value of each parameter that adds to what its policy reads."""

MORE = {"rate_limit": {"rate_per_s": 1.0, "burst": 1}}


def test_every_policy_that_needs_more_is_looked_at():
    """A new one gets its row above."""
    assert {n for n in OURS if load(n).needs} == set(GIVEN)
    assert all(list(load(n).needs) == list(GIVEN[n]) for n in GIVEN)


@pytest.mark.parametrize("key", [(n, k) for n, given in GIVEN.items() for k in given])
def test_what_a_parameter_adds_is_what_is_required_with_it(key):
    """The class says it to a reader; the policy that is made goes by the same."""
    (name, parameter), cls = key, load(key[0])
    given = {parameter.partition("=")[0]: GIVEN[name][parameter]}
    made = cls(**{**needed(name), **MORE.get(name, {}), **given})
    assert set(cls.needs[parameter]) <= set(made.requires)


def test_a_parameter_that_is_off_adds_nothing():
    """What no bound that was given reads is not required."""
    door = load("front_door")
    made = door(high_water=None, target_wait_s=None, full_queue=3)
    assert made.requires == door.needs["full_queue"]


def _can_choose(policy):
    """Whether the verdict is a parameter."""
    return "action" in load(policy).declared()


def test_the_index_tells_each_policy_as_its_class_does(page):
    """Unit, quantity and structure come from the taxonomy, reasons from the pages."""
    found = rows(page("index").split("\n## ")[0])
    assert [row[0] for row in found] == [f"[`{name}`]({name}.md)" for name in OURS]
    for name, row in zip(OURS, found, strict=True):
        cls = load(name)
        assert row[1:4] == [cls.unit, cls.signal_quantity, cls.signal_structure]
        refusals = [r[0] for r in rows(sections(page(name))["Refuses with"])]
        assert row[4] == (", ".join(refusals) or "nothing: the baseline")


def reason_row(name):
    """A reason's row as the tables in core would have it."""
    reason = DEFAULT[name]
    codes = [str(table(preset, {})[name].status) for preset in PRESETS]
    return [f"`{name}`", reason.fault, *codes, _wait(reason), _retry(reason)]


def _wait(reason):
    """When a caller may come back, in the page's words."""
    if reason.fault == "size":
        return "none"
    if reason.least_s is None:
        return "computed"
    return f"{reason.least_s:g}-{reason.most_s:g} s"


def _retry(reason):
    """Whether coming back can help, in the page's words."""
    if not reason.retry:
        return "no"
    return "yes, no past 60 s" if reason.fault == "caller" else "yes"


def test_the_table_of_reasons_is_the_one_in_core(root):
    """Status under every preset, whose limit, wait and retry, for every reason."""
    text = (root / "docs" / "reference" / "reasons.md").read_text(encoding="utf-8")
    found = rows(text.split("\n## ")[0])
    assert [[row[0], *row[2:]] for row in found] == [reason_row(n) for n in DEFAULT]


def test_the_usual_verdicts_are_those_of_the_kind_of_fault(root):
    """Capacity that comes back defers, all else rejects, blindness leaves it open."""
    text = (root / "docs" / "reference" / "reasons.md").read_text(encoding="utf-8")
    verdicts = {row[0].strip("`"): row[1] for row in rows(text.split("\n## ")[0])}
    expected = {}
    for name, reason in DEFAULT.items():
        usual = "defer" if reason.fault == "capacity" else "reject"
        expected[name] = "by posture" if reason.fault == "instrument" else usual
    expected["pool_saturated"] = "reject"
    assert verdicts == expected
