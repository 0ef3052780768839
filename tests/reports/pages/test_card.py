"""The card for a paper: Markdown that shows what it holds."""

import re

import pytest
from tests.reports.byhand import header, kv
from tests.reports.example_pages import example
from tests.reports.examples import PAGES

from admitperf.reports.pages.card import card
from admitperf.reports.report import report

COMMAND = "admitperf report run.jsonl --card md"


def made(name):
    """The card on an example."""
    return card(example(name), COMMAND)


def rows(text, heading):
    """The rows of a table under a heading, as lists of cells."""
    section = text.split(f"## {heading}\n\n")[1].split("\n\n")[0].splitlines()
    cut = [re.split(r"(?<!\\)\|", line)[1:-1] for line in section]
    return [[cell.strip() for cell in cells] for cells in (cut[0], *cut[2:])]


@pytest.mark.parametrize("name", PAGES)
def test_every_table_has_equal_rows_of_printable_ascii(name):
    """On every kind of log, so that it renders everywhere."""
    text = made(name)
    assert re.fullmatch(r"[ -~\n]+", text)
    for heading, columns in (
        ("Reporting items", 3),
        ("Configuration", 2),
        ("Numbers", 4),
    ):
        assert {len(cells) for cells in rows(text, heading)} == {columns}
    assert len(rows(text, "Reporting items")) == 8


def test_the_card_as_agreed(golden):
    """Letter by letter, on a run that carries nearly everything."""
    golden("report_card.md", made("calls"))


def test_every_number_has_its_n_and_its_denominator():
    """A paper quotes a row, and the row must stand alone."""
    table = rows(made("live"), "Numbers")
    found = {name: (value, n, of) for name, value, n, of in table}
    assert found["goodput"] == ("0.564", "57", "101 calls offered")
    assert found["SLO attainment"] == ("0.738", "107", "145 attempts with an outcome")
    assert found["refused"] == ("0.275", "55", "200 attempts offered")
    assert found["p95 of TTFT, ms"] == ("1828", "140", "attempts that ended well")


def test_what_is_withheld_says_why():
    """And what is not known is no zero."""
    table = rows(made("baseline"), "Numbers")
    found = {name: value for name, value, *_ in table}
    assert found["p99 of TTFT, ms"] == "too few samples (30)"
    table = rows(made("inert"), "Numbers")
    assert {name: value for name, value, *_ in table}["goodput"] == "--"


def test_it_says_whether_the_log_supports_a_claim():
    """A card without that could be pasted from any log."""
    assert "- Checks: the log supports a claim.\n" in made("baseline")
    text = made("inert")
    assert "does not support a claim: fired, or a baseline." in text


def test_it_ends_with_what_makes_it_again():
    """Command and definitions travel with the numbers."""
    text = made("live")
    assert text.endswith(f"## Made by\n\n    {COMMAND}\n")
    assert "- **goodput**: Met its SLO, of what was offered." in text


def test_names_from_the_log_cannot_break_a_table(write):
    """Pipes, tags, code marks and line ends are shown, not obeyed."""
    odd = "a|b<script>`x`\n# c"
    path = write(header(policy=odd, params={odd: odd}), kv(1, 0.5))
    text = card(report([path]), COMMAND)
    assert {len(cells) for cells in rows(text, "Configuration")} == {2}
    assert r"a\|b\<script>\`x\`?# c" in text


def test_the_card_says_what_an_oracle_told(write):
    """A number that no host could reach does not go into a paper unmarked."""
    lines = (header(notes={"simulated": True, "oracle": True}), *kv(0.1, 0.95))
    text = card(report([write(*lines)]), COMMAND)
    told = ["ORACLE", "the policy was told how long answers would be"]
    assert told in rows(text, "Configuration")


def test_a_plan_is_what_goodput_is_of():
    """Its calls, and how many of them were never asked."""
    told = card(example("planned"), "admitperf report planned.jsonl --card md")
    assert "| goodput | 0.447 | 21 | 47 planned calls offered |" in told
    assert "| never asked | 0.213 | 10 | 47 planned calls offered |" in told
