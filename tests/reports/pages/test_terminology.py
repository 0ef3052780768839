"""Every word on a page has one meaning, told in one place."""

import re
from typing import get_args

import pytest
from tests.reports.example_pages import example
from tests.reports.examples import PAGES
from tests.reports.repeats_byhand import repeat
from tests.reports.terms_page import page as terms_page

from admitperf.reports.comparison import verdict
from admitperf.reports.comparison.arms import arms
from admitperf.reports.comparison.comparison import compare_all
from admitperf.reports.pages import (
    checks,
    checks_page,
    columns,
    comparison_page,
    headline,
    items,
    layout,
    render,
    repeats_page,
    runs_page,
)
from admitperf.reports.pages.checks import check
from admitperf.reports.pages.terminology import SURVEY, TERMS, term
from admitperf.reports.report import report
from admitperf.reports.runs.log import Files


@pytest.fixture
def labels(monkeypatch):
    """The names of rows and columns that have been laid out."""
    found, laid = set(), layout.row

    def row(name, *rest):
        found.add(name)
        return laid(name, *rest)

    def table(name, cells):
        found.update((name, *cells))
        return layout.table(name, cells)

    for page in (
        render,
        layout,
        headline,
        checks_page,
        comparison_page,
    ):
        monkeypatch.setattr(page, "row", row)
    for page in (render, runs_page):
        monkeypatch.setattr(page, "table", table)
    return found


def test_the_page_of_terms_is_current(root, request):
    """It is made from the list, and rewritten by `--update`."""
    path = root / "docs" / "reference" / "terms.md"
    if request.config.getoption("--update"):
        path.write_text(terms_page(), encoding="utf-8")
    assert path.read_text(encoding="utf-8") == terms_page(), "`make golden` rewrites it"


def test_no_form_has_two_meanings():
    """A word defined twice is a word nobody can look up; only case tells BASELINE."""
    forms = [form for term in TERMS for form in (term.word, *term.also)]
    assert len(forms) == len(set(forms))
    folded = [form.lower() for form in forms]
    assert {form for form in folded if folded.count(form) > 1} == {"baseline"}


@pytest.mark.parametrize("one", TERMS, ids=[one.word for one in TERMS])
def test_a_meaning_is_a_sentence(one):
    """It begins, it ends, and it is printable ASCII."""
    assert re.fullmatch(r"[A-Z][ -~]+\.", one.means)
    assert "|" not in one.means


def test_case_tells_a_finding_from_an_arm():
    """`BASELINE` is a finding, `baseline` an arm; elsewhere case does not matter."""
    assert term("BASELINE").means != term("baseline").means
    assert term("Goodput") is term("goodput")
    assert term("no such word") is None


@pytest.mark.parametrize("name", PAGES)
def test_every_word_in_headings_and_columns_is_defined(name, labels):
    """Names of rows and of columns, on every kind of page."""
    made = example(name)
    render.text(made, check(made))
    assert {"finding", "signal", "lost records"} <= labels
    assert sorted(word for word in labels if word and term(word) is None) == []


@pytest.mark.parametrize("pairs", [2, 4, 6])
def test_every_word_of_a_comparison_is_defined(pairs, write, labels, monkeypatch):
    """Its rows, the columns of its repeats, and the verdicts of three designs."""
    paths = []
    for policy, good in (("kv_threshold", 60), ("no_admission", 40)):
        for n in range(pairs):
            lines = repeat(policy, f"r{n}", good + n, refused=20 * (good == 60))
            paths.append(write(*lines, name=f"{policy}-{n}"))
    sides = sorted(arms(report(paths).runs), key=lambda arm: arm.baseline)

    def aligned(rows):
        labels.update(rows[0][1:])
        return columns.aligned(rows)

    monkeypatch.setattr(repeats_page, "aligned", aligned)
    comparison_page.text(compare_all(*sides), Files())
    assert {"arm", "MDE", "p95 user"} <= labels
    words = {word.lower() for word in labels if word}
    assert sorted(word for word in words if term(word) is None) == []


def test_the_seven_items_and_their_answers_are_defined():
    """Each is a notion of the survey, and marked so."""
    for item in items.items(example("inert").runs[0]):
        assert term(item.name).origin == SURVEY
    for word in (*get_args(items.Answer), *get_args(checks.Answer)):
        assert term(word) is not None


def test_the_five_verdicts_and_the_findings_are_defined():
    """What a comparison concludes, and what a report finds."""
    for word in (*get_args(verdict.Word), "LIVE", "INERT", "UNKNOWN", "SHADOW"):
        assert term(word).word == word
