"""The table on the statistics page is what `benchmarks/method.py` finds."""

import importlib.util
import math
import re
import sys

import pytest

from admitperf.reports.comparison.design import factor


@pytest.fixture(scope="module")
def method(root):
    """The script, as a module."""
    path = root / "benchmarks" / "method.py"
    spec = importlib.util.spec_from_file_location("method", path)
    made = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = made  # dataclasses look their module up
    spec.loader.exec_module(made)
    yield made
    del sys.modules[spec.name]


@pytest.fixture(scope="module")
def page(root):
    """The page."""
    return (root / "docs" / "statistics.md").read_text(encoding="utf-8")


def cells(page, method):
    """The rows of the tables on the page, without heads."""
    table = page.split(method.BEGIN)[1].split(method.END)[0]
    rows = re.findall(r"^\|(.*)\|$", table, re.MULTILINE)
    made = [[cell.strip() for cell in row.split("|")] for row in rows]
    return [row for row in made if re.fullmatch(r"[\d.]+", row[-1])]


def near(shown, found, draws, drawn):
    """Whether two shares differ by no more than chance, at four standard errors."""
    middle = min(max((shown + found) / 2, 0.02), 0.98)
    return abs(shown - found) < 4 * math.sqrt(
        middle * (1 - middle) * (1 / draws + 1 / drawn)
    )


def test_the_page_shows_what_the_script_finds(method, page):
    """Every share of the table again, with fewer draws."""
    found, family = method.measured(quick=True)
    shown = cells(page, method)
    assert len(shown) == len(found) + len(family)
    for row, one in zip(shown, found, strict=False):
        assert (row[0], int(row[3])) == (one.scenario, one.pairs)
        for cell, share in zip(
            row[5:9], (one.covered, one.better, one.worse, one.equivalent), strict=True
        ):
            assert near(float(cell), share, int(row[4]), one.draws), (row, one)
    for row, one in zip(shown[len(found) :], family, strict=True):
        assert row[0] == f"{one.pairs} pairs"
        assert near(float(row[2]), one.alone, int(row[1]), one.draws), (row, one)
        assert near(float(row[3]), one.raised, int(row[1]), one.draws), (row, one)


def test_the_page_keeps_the_promises_it_states(method, page):
    """Coverage, false alarms and power, as the table has them."""
    for row in cells(page, method)[:-4]:
        covered, better, worse = (float(cell) for cell in row[5:8])
        assert 0.91 < covered < 0.97, row
        if row[0].startswith("identical"):
            assert better + worse <= 0.05, row
        if row[0].startswith(("a large gain", "a small gain")) and row[3] == "8":
            assert better > 0.9, row
    for row in cells(page, method)[-4:]:
        assert float(row[3]) <= 0.05, row


def test_the_factors_on_the_page_are_computed(page):
    """The MDE of each number of pairs."""
    told = re.search(r"SD of the paired differences: (.*?)\. It is", page)[1]
    pairs = re.findall(r"([\d.]+) at (\d+)", told)
    assert len(pairs) == 6
    assert [(k, n) for k, n in pairs if f"{factor(int(n)):.2f}" != k] == []


def test_the_script_replaces_the_table_and_nothing_else(method, page):
    """What stands around it stays."""
    made = method.written(page, "| new |")
    assert "| new |" in made
    assert made.split(method.BEGIN)[0] == page.split(method.BEGIN)[0]
    assert made.split(method.END)[1] == page.split(method.END)[1]
    again = method.written(
        made, page.split(method.BEGIN)[1].split(method.END)[0].strip()
    )
    assert again == page


def test_the_same_seed_gives_the_same_blocks(method):
    """And another seed others."""
    scenario = method.SCENARIOS[0]
    one, two = (method.blocks(scenario, 40, 7) for _ in range(2))
    assert (one == two).all()
    assert (one != method.blocks(scenario, 40, 8)).any()
