"""A report's page as data: the words of the text page, the numbers of the document."""

import json
import re

import pytest
from tests.reports.byhand import START_US, decision, header, kv, outcome
from tests.reports.example_pages import example
from tests.reports.example_sheets import (
    COMMAND,
    blocks,
    document_on,
    example_document,
    example_sheet,
    figures,
    numbers,
    tables,
)
from tests.reports.examples import ALL, PAGES

from admitperf.reports.pages import render
from admitperf.reports.pages.checks import check
from admitperf.reports.pages.document import document
from admitperf.reports.pages.terminology import term
from admitperf.reports.runs.slo import Slo
from admitperf.reports.sheets.glossary import used
from admitperf.reports.sheets.report_sheet import (
    MOST_RUNS,
    report_sheet,
    run_lead,
    run_sections,
)
from admitperf.reports.sheets.run_figures import MOST_FIGURES, MOST_ROWS
from admitperf.reports.sheets.sheet import (
    Answers,
    Figure,
    Rows,
    Source,
    Table,
    Words,
)

SECTIONS = [
    "1 Could it have fired?",
    "2 Which signals moved",
    "3 What it did",
    "4 What it cost",
    "5 Faults of the instrument",
    "6 The seven reporting items",
    "Configuration",
]


@pytest.fixture
def sheet_on(write):
    """The page on the log that some lines make."""

    def _sheet_on(*lines):
        return report_sheet(document_on([write(*lines)]), COMMAND)

    return _sheet_on


def section(sheet, title):
    """The blocks of one section."""
    return next(one.blocks for one in sheet.sections if one.title == title)


def prose(sheet):
    """All sentences and rows on a page, as one text without breaks."""
    said = [sheet.title]
    for block in blocks(sheet):
        if isinstance(block, Words):
            said += [block.label, block.text]
        elif isinstance(block, Rows):
            said += [part for pair in block.pairs for part in pair]
        elif isinstance(block, Answers):
            said += [
                part
                for one in block.answers
                for part in (one.answer, f"{one.name}: {' '.join(one.says)}")
            ]
        elif isinstance(block, Table):
            said.append(block.note)
    return " ".join(" ".join(said).split())


# -------------------------------------------------------------------------- words


@pytest.mark.parametrize("name", PAGES)
def test_the_page_says_what_the_text_page_says(name):
    """Each sentence and each row of it, in the same words; tables aside."""
    made = example(name)
    sheet = report_sheet(document(made, check(made)))
    said = prose(sheet).replace(";", "")
    told = [one.replace(";", "") for one in sentences(render.text(made, check(made)))]
    assert len(told) > 20
    assert [one for one in told if one not in said] == []


def sentences(page):
    """Rows and sentences of a text page; its tables and its bars are left out."""
    joined = []
    for line in page.splitlines():
        if re.match(r" +[\d.e+-]+ to [\d.e+-]+ +\d+(?: #|$)", line):
            joined.append("")
            continue
        if line.startswith(" " * 16) and joined:
            joined[-1] += " " + line.strip()
        else:
            joined.append(line.strip())
    for line in joined:
        found = re.match(r"(\w[\w,-]*(?: \w+){0,2})  +(\S.*)", line)
        if found and not re.search(r"\S {2,}\S", found[2]):
            yield found[2]


@pytest.mark.parametrize("name", ALL)
def test_the_questions_are_asked_in_order(name):
    """The finding first; then the text page's sections, the configuration, files."""
    sheet = example_sheet(name)
    assert [one.title for one in sheet.sections] == [*SECTIONS, "Files", "Check"]
    assert sheet.word == example(name).runs[0].finding.word
    first = sheet.lead[0].pairs
    assert [pair[0] for pair in first][:1] == ["finding"]
    assert sheet.command == COMMAND


def test_stamps_and_notices_stand_above_everything(sheet_on):
    """Whoever reads one screen reads them."""
    notes = {"simulated": True, "oracle": True}
    sheet = sheet_on(header(notes=notes), *(kv(seq, 0.95) for seq in range(1, 31)))
    labels = [one.label for one in sheet.lead if isinstance(one, Words)]
    assert labels[:2] == ["SIMULATED", "ORACLE"]


@pytest.mark.parametrize("name", PAGES)
def test_every_heading_and_row_is_defined(name):
    """Names of columns and of rows; a reason is the log's own word."""
    sheet = example_sheet(name)
    asked = {one.name for table in tables(sheet) for one in table.columns}
    rows = [one for one in blocks(sheet) if isinstance(one, Rows)]
    asked |= {name for one in rows for name, _ in one.pairs}
    asked |= {one.label for one in blocks(sheet) if isinstance(one, Words)} - {""}
    own = re.compile(r"(admit|defer|reject)\b.*|others")
    missing = {one for one in asked if term(one) is None and not own.fullmatch(one)}
    assert missing == set()
    defined = {one.word for one in used(sheet)}
    assert {"finding", "offered", "goodput", "bin"} <= defined or name == "few"


# ------------------------------------------------------------------------ numbers


@pytest.mark.parametrize("name", PAGES)
def test_every_number_behind_a_figure_is_the_documents(name):
    """Nothing is computed twice, so a page cannot say another thing than the JSON."""
    known = numbers(example_document(name))
    for figure in figures(example_sheet(name)):
        for row in figure.table.rows:
            assert {cell for cell in row if isinstance(cell, int | float)} <= known


@pytest.mark.parametrize("name", ALL)
def test_a_figure_tells_its_numbers_in_words(name):
    """Who does not see the plot reads them; every figure has rows behind it."""
    for figure in figures(example_sheet(name)):
        assert re.search(r"\d", figure.says)
        assert figure.table.rows
        for row in figure.table.rows:
            assert len(row) == len(figure.table.columns)


def test_each_gates_bound_is_drawn_into_its_signal():
    """Both gates of a dual one, and what moved without a gate has none."""
    found = {one.title: one for one in figures(example_sheet("live"))}
    for signal, label in (("kv_pressure", ">= 0.9"), ("queue_depth", "> 32")):
        drawn = json.dumps(found[f"{signal} over time"].chart)
        assert label in drawn


def test_a_bound_too_far_off_to_draw_is_told(sheet_on):
    """Nobody has to guess why there is no line."""
    sheet = sheet_on(
        header(),
        *(
            decision(seq, signals={"queue_depth": seq}, gates=[gate])
            for seq in range(1, 61)
            for gate in [["queue_depth", seq, ">", 1e9, False]]
        ),
    )
    (figure,) = (one for one in figures(sheet) if one.title.startswith("queue_depth o"))
    assert "too far off to be drawn" in figure.says


def test_a_bound_without_an_end_is_told(sheet_on):
    """An infinite bound has no distance."""
    gate = ["queue_depth", 3, ">", None, False]
    lines = [
        decision(seq, signals={"queue_depth": 3}, gates=[gate]) for seq in range(1, 31)
    ]
    (figure, *_) = figures(sheet_on(header(), *lines))
    assert "its bound is not finite" in figure.says


def test_a_moving_bound_has_columns_of_its_own(sheet_on):
    """Its lowest and its highest in each bin."""
    lines = [
        decision(seq, signals={"kv_pressure": seq / 100}, gates=[gate])
        for seq in range(1, 91)
        for gate in [["kv_pressure", seq / 100, ">=", 0.5 + seq / 200, False]]
    ]
    sheet = sheet_on(header(), *lines)
    (figure,) = (one for one in figures(sheet) if one.title == "kv_pressure over time")
    names = [one.name for one in figure.table.columns]
    assert names[-2:] == ["lowest bound >=", "highest bound >="]
    assert "The bound moved" in figure.says


def test_a_signal_never_supplied_has_a_row_and_no_plot():
    """The catalogue's, so that what is missing shows."""
    sheet = example_sheet("live")
    rows = {row[0]: row for row in section(sheet, SECTIONS[1])[0].rows}
    assert rows["gpu_util"][2:] == (None, None, None, None, 0)
    assert not any("gpu_util" in one.title for one in figures(sheet))


# --------------------------------------------------------------------------- ends


@pytest.mark.parametrize(
    "lines",
    [
        [],
        [kv(1, 0.5)],
        [{**kv(seq, seq / 100), "t_us": 0} for seq in range(1, 50)],
        [
            decision(seq, blind="signal_absent", reason="signal_absent")
            for seq in (1, 2)
        ],
        [decision(seq, signals={"kv_pressure": 1e300 * seq}) for seq in range(1, 50)],
    ],
    ids=["none", "one", "no times", "all blind", "extremes"],
)
def test_odd_logs_have_a_page(sheet_on, lines):
    """Nothing to draw is no fault, and the page says what there is."""
    sheet = sheet_on(header(), *lines)
    assert [one.title for one in sheet.sections][:7] == SECTIONS


def test_a_run_without_times_says_why_nothing_is_drawn(sheet_on):
    """Neither an empty plot nor silence."""
    sheet = sheet_on(header(), *({**kv(s, s / 100), "t_us": 0} for s in range(1, 50)))
    assert "No decision has a time" in prose(sheet)
    assert not any("over time" in one.title for one in figures(sheet))


def test_samples_have_no_cost():
    """What `watch` leaves has decisions over time and no goodput."""
    titles = [one.title for one in figures(example_sheet("samples"))]
    assert "Decisions over time" in titles
    assert "Goodput over time" not in titles


def test_goodput_over_time_is_by_attempt_and_says_so():
    """The headline is by call, on the user's clock, where logical ids exist."""
    found = {one.title: one for one in figures(example_sheet("calls"))}
    assert "By attempt" in found["Goodput over time"].says
    assert "Calls, on the user's clock" in found["Goodput over time"].says


def test_many_reasons_are_cut_and_counted(sheet_on):
    """The rarer ones are one row that says how many they are, and none is lost."""
    lines = [decision(seq, "reject", f"r{seq}") for seq in range(1, 1001)]
    rows = section(sheet_on(header(), *lines), SECTIONS[2])[0].rows
    assert len(rows) == MOST_ROWS + 1
    assert rows[-1][:2] == (f"others ({1000 - MOST_ROWS})", 1000 - MOST_ROWS)
    assert sum(row[1] for row in rows) == 1000


def test_many_signals_are_all_in_the_table_and_few_drawn(sheet_on):
    """The page says how many more moved."""
    names = [f"x{place}" for place in range(40)]
    lines = [decision(seq, signals=dict.fromkeys(names, seq)) for seq in range(1, 41)]
    sheet = sheet_on(header(), *lines)
    drawn = [one for one in figures(sheet) if re.match(r"x\d+ over time", one.title)]
    assert len(drawn) == MOST_FIGURES
    assert f"{40 - MOST_FIGURES} more signals moved" in prose(sheet)
    known = {row[0] for row in section(sheet, SECTIONS[1])[0].rows}
    assert set(names) <= known


def test_many_gates_are_cut_and_counted(sheet_on):
    """A policy that names each comparison anew makes no book."""
    lines = [
        decision(seq, gates=[[f"g{seq}", 1.0, ">", 2.0, False]])
        for seq in range(1, 501)
    ]
    parts = section(sheet_on(header(), *lines), SECTIONS[0])
    table = next(one for one in parts if isinstance(one, Table))
    assert len(table.rows) == MOST_ROWS
    assert f"{500 - MOST_ROWS} more gates left out" in table.note


def test_reasons_that_are_cut_to_the_same_name_stand_apart(sheet_on):
    """Two long reasons that differ at their end are two series."""
    lines = [decision(s, "reject", "x" * 80 + str(s % 2)) for s in range(1, 101)]
    found = {one.title: one for one in figures(sheet_on(header(), *lines))}
    names = [one.name for one in found["Decisions over time"].table.columns]
    assert len(set(names)) == len(names) == 4


def test_several_runs_have_a_table_in_front():
    """Each whole, its parts one level down, and repeats side by side."""
    sheet = example_sheet("repeats")
    overview = next(one for one in sheet.lead if isinstance(one, Table))
    assert [row[0] for row in overview.rows] == [
        f"kv_threshold, r{n}" for n in (1, 2, 3)
    ]
    tops = [one.title for one in sheet.sections if one.level == 1]
    assert tops[:3] == [f"Run of kv_threshold, r{n}" for n in (1, 2, 3)]
    assert tops[3] == "Repeats of kv_threshold in pilot"
    assert (sheet.title, sheet.word) == ("3 runs", "")


def test_many_runs_are_a_row_each_and_the_first_whole(sheet_on):
    """A page of hundreds of runs would be read by nobody."""
    lines = [
        line
        for n in range(9)
        for line in (header(run=f"r{n}", name=f"r{n}"), kv(1, 0.5, run=f"r{n}"))
    ]
    sheet = sheet_on(*lines)
    whole = [one for one in sheet.sections if one.title.startswith("Run of")]
    assert len(whole) == MOST_RUNS
    overview = next(one for one in sheet.lead if isinstance(one, Table))
    assert len(overview.rows) == 9
    assert f"The first {MOST_RUNS} follow whole" in prose(sheet)


@pytest.mark.parametrize("name", ALL)
def test_one_runs_parts_are_those_of_the_whole_page(name):
    """A dashboard shows the same blocks."""
    (run,) = example_document(name)["runs"]
    sheet = example_sheet(name)
    assert list(run_sections(run)) == list(sheet.sections[:7])
    assert run_lead(run) == sheet.lead[: len(run_lead(run))]


def test_checks_stand_above_and_below():
    """The verdict on the first screen, what it rests on at the end."""
    sheet = example_sheet("live")
    claim = next(one for one in sheet.lead if getattr(one, "label", "") == "CHECK")
    assert claim.text == "The log does not support a claim: records lost."
    assert claim.mood == "bad"
    asked = section(sheet, "Check")
    assert any(isinstance(one, Answers) for one in asked)


def test_the_header_is_shown_whole(sheet_on):
    """Letter by letter, with each parameter and where its value is from."""
    lines = [header(params={"threshold": 0.9}), kv(1, 0.5)]
    parts = section(sheet_on(*lines), "Configuration")
    assert parts[0].rows == (("threshold", "0.9", "default"),)
    (source,) = (one for one in parts if isinstance(one, Source))
    assert json.loads(source.text)["params"] == {"threshold": 0.9}


# ------------------------------------------------------------------------ hostile

EVIL = "</script><b>\"'\u202eabc\x1b[31m\x00"


def test_text_of_the_log_is_shown_as_it_is_but_for_what_cannot_be_seen(sheet_on):
    """Any script of the world; nothing that turns a line round or rings a bell."""
    named = {"policy": "门控", "experiment": EVIL, "notes": {"model": "naïve"}}
    sheet = sheet_on(header(**named), *(kv(s, 0.95, reason=EVIL) for s in range(1, 9)))
    assert sheet.title == "Run of 门控"
    said = prose(sheet) + str(sheet)
    assert "naïve" in said
    assert "\u202e" not in said
    assert "\x1b" not in said
    assert "</script><b>" in said, "escaping is what HTML does, not the sheet"


def test_values_of_0_are_told_and_not_drawn(write):
    """A logarithmic axis has no place for them; a run of nothing else has no plot."""
    lines = [header()]
    for seq in range(1, 41):
        lines += [decision(seq), outcome(seq, ttft_ms=40 * (seq % 4), max_gap_ms=0)]
    found = {
        one.title: one for one in figures(report_sheet(document_on([write(*lines)])))
    }
    said = found["Distribution of TTFT"].says
    assert said.startswith("40 ok outcomes; ")
    assert re.search(r" 10 below \d+ ms are not drawn", said)
    assert "Distribution of longest stall" not in found


def test_the_bounds_of_an_slo_are_drawn_into_the_histograms(write):
    """Those of the header, of each class, or those that were asked for instead."""
    lines = [header(slo={"chat": {"ttft_ms": 700}, "": {"ttft_ms": 900}})]
    for seq in range(1, 41):
        lines += [
            decision(seq, t_us=START_US + seq * 10_000),
            outcome(seq, ttft_ms=40 * seq),
        ]
    path = write(*lines)
    for slo, labels in (
        (None, ["ttft_ms 700 (chat)", "ttft_ms 900 (others)"]),
        (Slo.parsed("ttft_ms=1200,stall_ms=40"), ["ttft_ms 1200"]),
    ):
        made = document_on([path], slo=slo)
        sheet = report_sheet(made)
        (figure,) = (one for one in figures(sheet) if "TTFT" in one.title)
        assert isinstance(figure, Figure)
        for label in labels:
            assert label in json.dumps(figure.chart)
            assert label in figure.says
