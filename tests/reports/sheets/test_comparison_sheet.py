"""A comparison's page as data: the words of the text page, the document's numbers."""

import json
from dataclasses import replace

import pytest
from tests.reports.comparison_sheets import COMMAND, compared_on, document_on
from tests.reports.example_sheets import blocks, figures, numbers, tables
from tests.reports.html.test_page import Page, assert_harmless
from tests.reports.repeats_byhand import arm, baseline, better, worse

from admitperf.reports.html.page import html, written
from admitperf.reports.pages import comparison_page
from admitperf.reports.pages.comparison_document import document
from admitperf.reports.sheets.comparison_sheet import comparison_sheet
from admitperf.reports.sheets.sheet import Answers, Rows, Words

INERT = (90, 91, 92, 90, 91, 93)
KINDS = {
    "better": lambda: [*better(), *baseline()],
    "worse": lambda: [*worse(), *baseline()],
    "void": lambda: [*arm("queue_bound", INERT), *baseline()],
    "few": lambda: [*better(2), *baseline(2)],
    "one": lambda: [*better(1), *baseline(1)],
    "several": lambda: [*better(), *worse(), *baseline()],
}
EVIL = "</svg><script>alert(1)</script>\"'&\u202e门控" + "x" * 170


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The comparisons, the document and the page of each kind, made once."""
    known = {}

    def _made(name):
        if name not in known:
            folder = tmp_path_factory.mktemp(name)
            found, files = compared_on(folder, *KINDS[name]())
            files = replace(files, paths=("all.jsonl",))
            plain = json.loads(json.dumps(document(found, files, None)))
            known[name] = (found, plain, comparison_sheet(plain, COMMAND))
        return known[name]

    return _made


def prose(sheet):
    """All sentences and rows on a page, as one text without breaks."""
    said = [sheet.title, *(one.title for one in sheet.sections)]
    for block in blocks(sheet):
        if isinstance(block, Words):
            said += [block.label, block.text]
        elif isinstance(block, Rows):
            said += [part for pair in block.pairs for part in pair]
        elif isinstance(block, Answers):
            said += [
                part
                for one in block.answers
                for part in (one.answer, one.name, *one.says)
            ]
    return " ".join(" ".join(said).split())


# -------------------------------------------------------------------------- numbers


@pytest.mark.parametrize("name", KINDS)
def test_every_number_in_a_table_is_one_of_the_document(made, name):
    """Nothing is computed for the page."""
    _, plain, sheet = made(name)
    known = numbers(plain)
    shown = {
        cell
        for table in tables(sheet)
        for row in table.rows
        for cell in row
        if isinstance(cell, int | float)
    }
    assert shown
    assert shown <= known


@pytest.mark.parametrize("name", KINDS)
def test_every_point_that_is_drawn_stands_in_the_table_behind_it(made, name):
    """But for where the lines of no difference and of the margin are."""
    for figure in figures(made(name)[2]):
        behind = {cell for row in figure.table.rows for cell in row}
        layers = figure.chart.get("layer", [figure.chart])
        for layer in layers:
            for value in layer["data"]["values"]:
                drawn = {value.get(one) for one in ("at", "low", "high")} - {None}
                assert drawn <= behind | {0}


@pytest.mark.parametrize("name", ["better", "worse"])
def test_what_decides_is_on_the_page(made, name):
    """The verdict, n pairs, the interval, MDE, and p."""
    (one,), _, sheet = made(name)
    text = prose(sheet)
    found = one.statistics
    assert sheet.word == name
    assert f"{name.upper()} {comparison_page.verdict(one)}" in text
    assert "6 pairs" in text
    assert "MDE 0.0" in text
    assert f"{found.interval.low:+.3f} to {found.interval.high:+.3f}" in text
    assert "sign flips p 0.031" in text


# ---------------------------------------------------------------------------- words


@pytest.mark.parametrize("name", KINDS)
def test_it_says_what_the_text_page_says(made, name):
    """Every check, every sentence of the argument, every row of the statistics."""
    found, _, sheet = made(name)
    text = prose(sheet)
    for one in found:
        for check in one.checks:
            assert f"{check.answer} {check.number} {check.name}." in text
            assert " ".join(check.says) in text
        for said in (*one.says, *one.notices):
            assert " ".join(said.split()) in text
        for said in comparison_page.difference(one):
            assert (said if isinstance(said, str) else said[1]) in text


def test_parts_stand_in_the_order_of_the_text_page(made):
    """Checks before numbers."""
    (one,), _, sheet = made("better")
    titles = [section.title for section in sheet.sections]
    order = ["Checks before numbers", "Repeats", "What it comes to"]
    order += [comparison_page.DIFFERENCE]
    assert titles[:4] == order
    assert titles[-2:] == ["Configuration", "Files"]
    text = comparison_page.text([one], _files())
    assert sorted(order, key=text.index) == order


def _files():
    from admitperf.reports.runs.log import Files

    return Files()


def test_a_void_verdict_is_not_to_be_overlooked(made):
    """The failed check stands on the first screen; no difference is drawn or told."""
    _, _, sheet = made("void")
    assert (sheet.word, sheet.mood) == ("void", "bad")
    labels = [one.label for one in sheet.lead if isinstance(one, Words)]
    assert labels[:2] == ["VOID", "Check 1"]
    assert "no difference is judged" in prose(sheet)
    assert [one.title for one in figures(sheet)] == [
        "Goodput of offered, one dot a repeat"
    ]


@pytest.mark.parametrize(("name", "pairs"), [("one", "1 pair"), ("few", "2 pairs")])
def test_with_one_or_two_pairs_nothing_is_asked(made, name, pairs):
    """And it says so: no interval, none drawn."""
    _, _, sheet = made(name)
    text = prose(sheet)
    assert sheet.word == "inconclusive"
    assert "with fewer than 3 pairs, which arm is better is not asked" in text
    assert pairs in text


def test_one_pair_has_no_interval(made):
    """A point without a line, and `--` in the table."""
    _, _, sheet = made("one")
    forest = next(one for one in figures(sheet) if "each pair" in one.title)
    assert forest.table.rows[-1][0] == "mean"
    assert forest.table.rows[-1][2:] == (None, None)
    assert written(None, forest.table.columns[2]) == "--"
    assert "interval" not in forest.says


def test_several_arms_have_one_figure_in_front(made):
    """Each in a row, the corrected p beside it, then each arm whole."""
    found, _, sheet = made("several")
    assert sheet.word == ""
    forest = next(one for one in figures(sheet) if one.title.startswith("Every arm"))
    heads = [column.name for column in forest.table.columns]
    assert heads[-2:] == ["MDE", "Holm p"]
    rows = {row[0]: row for row in forest.table.rows}
    for one in found:
        own = rows[one.arm.label]
        assert own[1] == one.verdict
        assert own[3] == one.statistics.mean
        assert own[-1] == one.statistics.family_p
    tops = [one.title for one in sheet.sections if one.level == 1]
    assert tops == [f"{one.arm.label} against no_admission" for one in found] + [
        "Files"
    ]


def test_a_void_arm_among_several_keeps_its_row_empty(tmp_path):
    """Why it is void stands in front; its difference is neither drawn nor told."""
    lines = [*arm("inert", INERT), *worse(), *baseline()]
    sheet = comparison_sheet(document_on(tmp_path, *lines))
    failed = [one for one in sheet.lead if getattr(one, "label", "") == "Check 1"]
    assert failed[0].text.startswith("inert: inert r1 is INERT")
    forest = next(one for one in figures(sheet) if one.title.startswith("Every arm"))
    (void,) = (row for row in forest.table.rows if row[0] == "inert")
    assert void[1] == "void"
    assert void[3:7] == (None, None, None, None)
    drawn = json.dumps(forest.chart["layer"])
    assert '"name": "inert"' not in drawn
    assert "inert" in json.dumps(forest.chart["layer"][-1]["encoding"])


def test_a_claim_stands_above_all(tmp_path):
    """Whether it holds, and each reason why it does not."""
    plain = document_on(tmp_path, *worse(), *baseline(), claim="better")
    first, second = comparison_sheet(plain).lead[:2]
    assert (first.label, first.mood) == ("CHECK", "bad")
    assert first.text == "The claim 'better' is not supported."
    assert second.text == "kv_wall: worse, not better"


@pytest.mark.parametrize("stamp", ["simulated", "oracle"])
def test_stamps_stand_on_the_first_screen(made, stamp):
    """Of one arm and of several."""
    for name in ("better", "several"):
        _, plain, _ = made(name)
        many = [{**one, stamp: True} for one in plain["comparisons"]]
        sheet = comparison_sheet({**plain, "comparisons": many})
        labels = [one.label for one in sheet.lead if isinstance(one, Words)]
        assert stamp.upper() in labels


# -------------------------------------------------------------------------- hostile


def test_names_of_logs_are_shown_and_never_run(tmp_path):
    """Tags, quotes, endless names, and text that turns the line round."""
    lines = [*arm(EVIL + "1", (70, 73), refused=9), *baseline(2)]
    lines += arm(EVIL + "2", (60, 63), refused=9)
    sheet = comparison_sheet(document_on(tmp_path, *lines))
    text = html(sheet)
    assert_harmless(text)
    Page(text)
    assert "门控" in text
    assert "\u202e" not in text
    forest = next(one for one in figures(sheet) if one.title.startswith("Every arm"))
    names = forest.chart["layer"][-1]["encoding"]["y"]["scale"]["domain"]
    assert len(set(names)) == 2
    assert max(map(len, names)) < 50


def test_twenty_arms_are_one_page(tmp_path):
    """A row each in front, and no sentence that lists them all."""
    lines = [*baseline(2)]
    for n in range(20):
        lines += arm(f"policy_{n}", (60 + n, 62 + n), refused=9)
    sheet = comparison_sheet(document_on(tmp_path, *lines))
    front = [one for one in figures(sheet) if one in sheet.lead]
    assert len(front) == 2
    assert len(front[0].table.rows) == 20
    assert front[1].says == "21 arms; the table has every repeat."


def test_without_arms_it_says_so(made):
    """A page, not an error."""
    _, plain, _ = made("one")
    sheet = comparison_sheet({**plain, "comparisons": []})
    assert "There are no arms to compare." in prose(sheet)
    assert figures(sheet) == []


def test_a_repeat_without_outcomes_is_empty(tmp_path):
    """Neither zero nor a dot."""
    lines = [*better(2), *baseline(2)]
    lines = [one for one in lines if "outcome" not in one.values()]
    sheet = comparison_sheet(document_on(tmp_path, *lines))
    dots = next(one for one in figures(sheet) if "one dot" in one.title)
    assert dots.chart["data"]["values"] == []
    assert {row[2] for row in dots.table.rows} == {None}
    assert dots.says == "No repeat has outcomes."
    html(sheet)


# --------------------------------------------------------------------------- golden


def test_the_page_is_as_agreed(made, golden):
    """One of them as text; what makes a drawing is drawn elsewhere."""
    _, _, sheet = made("several")
    golden("compare_sheet.txt", outline(sheet))


def outline(sheet):
    """A page as lines: its parts, what is said, and the cells of its tables."""
    lines = [f"# {sheet.title} [{sheet.word}, {sheet.mood}]"]
    lines += _lines(sheet.lead)
    for section in sheet.sections:
        lines += ["", f"{'#' * (section.level + 1)} {section.title}"]
        lines += _lines(section.blocks)
    return "\n".join([*lines, "", f"$ {sheet.command}"]) + "\n"


def _lines(parts):
    for block in parts:
        if isinstance(block, Words):
            yield f"{block.label}|{block.text} ({block.mood})"
        elif isinstance(block, Rows):
            yield from (f"{name}: {said}" for name, said in block.pairs)
        elif isinstance(block, Answers):
            for one in block.answers:
                yield f"[{one.answer}] {one.name} {' '.join(one.says)}"
        else:
            table = getattr(block, "table", block)
            yield f"({getattr(block, 'says', '')}) {table.caption}"
            yield " | ".join(column.title for column in table.columns)
            for row in table.rows:
                cells = zip(row, table.columns, strict=True)
                yield " | ".join(written(cell, column) for cell, column in cells)
