"""The page of client models says what the models do."""

import re
from dataclasses import MISSING, fields
from typing import get_args

import pytest

from admitperf.bench.callers.client import CLIENTS, Client
from admitperf.bench.callers.records import Ended
from admitperf.reports.wording import number


@pytest.fixture(scope="module")
def page(root):
    """The page's text."""
    return (root / "docs" / "reference" / "clients.md").read_text("utf-8")


def rows(page, header):
    """The cells of a table's rows, by the header of its first column."""
    table = page.partition(f"| {header} |")[2].partition("\n\n")[0]
    lines = table.splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def waits(of):
    """How the page says that a client waits."""
    if of.tries == 1:
        return ""
    first, most = number(of.first_wait_s), number(of.most_wait_s)
    flat = of.factor == 1 or not of.first_wait_s
    return f"{first} s" if flat else f"{first} s, doubled each time up to {most} s"


def row(of):
    """A client's row."""
    heeds = "honoured" if of.honours else "ignored"
    drops = "the session" if of.undoes else "the call"
    patience = f"{number(of.patience_s)} s, then drops {drops}" if of.patience_s else ""
    return [
        f"`{of.name}`",
        str(of.tries),
        waits(of),
        heeds if of.tries > 1 else "",
        patience or "for ever",
        "ends its session" if of.gives_up == "session" else "ends that call",
    ]


def test_every_model_has_a_row_with_its_numbers(page):
    """In their order, and no other row."""
    assert rows(page, "client") == [row(of) for of in CLIENTS.values()]
    assert all(of.factor in {1, 2} for of in CLIENTS.values())


def test_every_number_of_a_client_has_a_row_with_its_default(page):
    """But for its name."""
    known = [field for field in fields(Client) if field.default is not MISSING]
    told = [(cells[0].strip("`"), cells[1]) for cells in rows(page, "field")]
    assert told == [(field.name, str(field.default)) for field in known]


def test_every_way_a_call_ends_is_named(page):
    """As the records say it."""
    named = set(re.findall(r"`(\w+)`", page.partition("A call is ")[2]))
    assert set(get_args(Ended)) <= named
