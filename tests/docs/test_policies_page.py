"""The page of policies in their regimes: its script's rule, and what the page shows."""

import importlib.util
import re
import sys

import pytest

from admitperf.policies import available, load


@pytest.fixture(scope="module")
def script(root):
    """`benchmarks/policies.py`, as a module."""
    folder = root / "benchmarks"
    spec = importlib.util.spec_from_file_location(
        "policies_bench", folder / "policies.py"
    )
    made = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(folder))
    try:
        spec.loader.exec_module(made)
    finally:
        sys.path.remove(str(folder))
    return made


@pytest.fixture(scope="module")
def page(root):
    """What it wrote."""
    return (root / "docs" / "results" / "policies.md").read_text(encoding="utf-8")


def test_what_is_tuned_comes_from_its_grid(script):
    """Each grid has one winner, and it is one of its cells."""
    for key, regime in script.REGIMES.items():
        grids = {one.label: one for one in regime.own}
        assert set(script.TUNED[key]) == set(grids), key
        for label, family in grids.items():
            assert family.chosen(key) in family.candidates(), (key, label)


def test_the_best_is_the_highest_of_those_that_do_not_harm(script):
    """A loss below capacity puts a cell behind all without one, however high it is."""
    cells = [(False, 0.9, {"a": 1}), (True, 0.5, {"a": 2}), (True, 0.6, {"a": 3})]
    assert script.best(cells) == {"a": 3}
    assert script.best(cells[:1]) == {"a": 1}
    assert script.best([(True, 0.5, {"a": 1}), (True, 0.5, {"a": 2})]) == {"a": 1}


def test_a_share_becomes_a_rate(script):
    """Of the capacity that was measured."""
    assert script.rated({"share": 0.9, "burst": 2}, 4.0) == {
        "rate_per_s": 3.6,
        "burst": 2,
    }
    assert script.rated({"max_waiting": 0}, 4.0) == {"max_waiting": 0}


def test_the_page_says_what_it_is(script, page):
    """Simulated, how tuned, what it cannot see; every regime has a section."""
    assert "**SIMULATED**" in page
    assert "**How they were tuned.**" in page
    assert "\n## Cannot see\n" in page
    for regime in script.REGIMES.values():
        assert f"\n## {regime.title}\n" in page


def test_the_page_has_what_the_script_runs(script, page):
    """Every arm of every regime has its row, and every arm its parameters."""
    for key, regime in script.REGIMES.items():
        own = page.split(f"\n## {regime.title}\n")[1].split("\n## ")[0]
        for one in script.arms(key):
            assert f"\n| {script.shown(one['name'])} |" in own, (key, one["name"])
            assert f"\n- {script.shown(one['name'])}: " in own, (key, one["name"])


def test_every_policy_of_ours_has_its_cost(page):
    """One row each, and no row of another."""
    own = page.split("\n## What a decision costs\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \|.*\| (?:met|MISSED) \|$", own, re.MULTILINE)
    ours = [n for n in available() if load(n).__module__.startswith("admitperf.")]
    assert rows == ours


def test_no_table_is_wider_than_a_page(page):
    """Eight columns at most."""
    heads = re.findall(r"^\|(?:---\|)+$", page, re.MULTILINE)
    assert heads
    assert max(head.count("---") for head in heads) <= 8
