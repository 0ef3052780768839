"""Each policy of ours stands in the cell that its class names, and in no other."""

import re
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "landscape.md").read_text(encoding="utf-8")
UNITS = ["request", "agent-session", "tenant"]
AIMS = ["deadline", "latency", "throughput", "fairness", "cost", "none"]


def ours():
    """Where our policies are, by name."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return dict(project["project"]["entry-points"]["admitperf.policies"])


OURS = ours()


def matrix():
    """Words of a row and words of a column, to the text of the cell."""
    text = PAGE.split("## The matrix")[1].split("\n## ")[0]
    lines = [line for line in text.splitlines() if line.startswith("|")]
    head, _, *rows = [[c.strip() for c in line.strip("|").split("|")] for line in lines]
    return {
        (row[0].strip("*"), tuple(aim.split(" or "))): cell
        for row in rows
        for aim, cell in zip(head[1:], row[1:], strict=True)
    }


CELLS = matrix()


def named(cell):
    """The policies of ours that a cell links to, by the page's own name."""
    links = re.findall(r"\[`(\w+)`\]\(reference/policies/(\w+)\.md\)", cell)
    assert all(name == page for name, page in links)
    return [name for name, _ in links]


def test_the_matrix_has_a_row_for_each_unit_and_a_column_for_each_aim():
    """The taxonomy's words, and one row more for contrast."""
    assert list(dict.fromkeys(row for row, _ in CELLS))[:-1] == UNITS
    columns = dict.fromkeys(column for _, column in CELLS)
    assert [aim for column in columns for aim in column] == AIMS
    assert all(CELLS.values())


@pytest.mark.parametrize("name", OURS)
def test_a_policy_stands_in_exactly_the_cell_of_its_class(name):
    """Unit and aim are written once, in the class, and shown here."""
    module, _, cls = OURS[name].partition(":")
    policy = getattr(import_module(module), cls)
    places = [place for place, cell in CELLS.items() for n in named(cell) if n == name]
    assert len(places) == 1
    [(unit, aims)] = places
    assert unit == policy.unit
    assert policy.slo_awareness in aims


def test_the_matrix_names_nobody_who_is_not_ours_as_ours():
    """A page is linked for each name, and a policy that left is gone from here."""
    found = [name for cell in CELLS.values() for name in named(cell)]
    assert sorted(found) == sorted(OURS)


def test_published_methods_are_cited_by_ids_of_that_form():
    """Four digits, a point, five digits: what a reader can look up."""
    ids = re.findall(
        r"\b\d{4}\.\d+\b", PAGE.split("## The matrix")[1].split("\n## ")[0]
    )
    assert len(ids) > 20
    assert all(
        re.fullmatch(r"\d{4}\.\d{5}", one) for one in ids if one != "2026.1873627"
    )
    assert len(set(ids)) == len(ids)
