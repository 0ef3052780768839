"""A benchmark's page as data: the words of the text page, the document's numbers."""

import json
from dataclasses import replace

import pytest
from tests.bench.design import experiments
from tests.reports.example_sheets import blocks, figures, numbers, tables
from tests.reports.html.test_page import Page, assert_harmless
from tests.reports.sheets.test_comparison_sheet import outline, prose

from admitperf.bench.design.comparison import compare
from admitperf.bench.pages import page
from admitperf.bench.pages.document import document
from admitperf.bench.pages.sheet import bench_sheet
from admitperf.reports.html.page import html
from admitperf.reports.sheets.sheet import Answers, Words

EVIL = "</svg><script>alert(1)</script>\"'&\u202e门控" + "x" * 170


def document_of(made, runs=(), claim=None):
    """As a reader parses it."""
    return json.loads(json.dumps(document(made, claim, (), runs), allow_nan=False))


@pytest.fixture(scope="module")
def plain(verdicts, runs):
    """The document with an arm of each kind."""
    return document_of(verdicts, runs)


@pytest.fixture(scope="module")
def sheet(plain):
    """Its page."""
    return bench_sheet(plain, "admitperf bench compare made --html page.html")


def figure(sheet, title):
    """The one with a title that ends so."""
    (found,) = (one for one in figures(sheet) if one.title.endswith(title))
    return found


# -------------------------------------------------------------------------- numbers


def test_every_number_in_a_table_is_one_of_the_document(sheet, plain):
    """Nothing is computed for the page."""
    known = numbers(plain)
    for table in tables(sheet):
        shown = {
            cell for row in table.rows for cell in row if isinstance(cell, int | float)
        }
        assert shown <= known, table.caption


def test_every_mean_and_interval_is_drawn_and_in_the_table(sheet, plain):
    """Of every arm at every load, the baseline too."""
    points = [
        (
            curve["arm"],
            point["load"],
            point["n"],
            point["mean"],
            point["interval"]["low"],
            point["interval"]["high"],
        )
        for curve in plain["comparison"]["curves"]
        for point in curve["points"]
    ]
    found = figure(sheet, "against load")
    assert list(found.table.rows) == points
    drawn = found.chart["layer"][-1]["data"]["values"]
    assert [
        (one["arm"], one["load"], one["mean"], one["low"], one["high"]) for one in drawn
    ] == [(arm, load, *rest) for arm, load, _, *rest in points]


def test_arms_with_the_same_means_do_not_hide_each_other(sheet):
    """Each stands a little beside its load, and near it."""
    drawn = figure(sheet, "against load").chart["layer"][-1]["data"]["values"]
    at = {(one["arm"], one["load"]): one["at"] for one in drawn}
    assert len(set(at.values())) == len(at)
    assert all(abs(one["at"] - one["load"]) < 0.035 for one in drawn)


def test_capacity_is_marked_where_loads_lie_on_both_sides(sheet, verdicts):
    """And nowhere else."""
    marked = '"datum": 1.0'
    assert marked in json.dumps(figure(sheet, "against load").chart)
    above = tuple(
        replace(curve, points=tuple(one for one in curve.points if one.load > 1))
        for curve in verdicts.curves
    )
    other = bench_sheet(document_of(replace(verdicts, curves=above)))
    assert marked not in json.dumps(figure(other, "against load").chart)


def test_arms_are_told_apart_without_colour(sheet):
    """A dash and a shape each."""
    *_, lines, points = figure(sheet, "against load").chart["layer"]
    dashes = lines["encoding"]["strokeDash"]["scale"]["range"]
    shapes = points["encoding"]["shape"]["scale"]["range"]
    assert len({str(one) for one in dashes}) == len(set(shapes)) == 6


def test_both_claims_of_every_arm_have_interval_mde_and_p(sheet, plain):
    """Those of a void arm are not shown."""
    table = figure(sheet, "two claims of every arm").table
    heads = [column.name for column in table.columns]
    rows = [dict(zip(heads, row, strict=True)) for row in table.rows]
    assert "inert" not in {row["arm"] for row in rows}
    for row in rows:
        (arm,) = (o for o in plain["comparison"]["arms"] if o["arm"] == row["arm"])
        own = arm[row["claim"].replace(" ", "_")]["statistics"]
        assert row["mean"] == own["mean"]
        assert row["95 % low"] == own["interval"]["low"]
        assert row["MDE"] == own["smallest_effect"]
        assert row["Holm p"] == own["family_p"]
        assert row["blocks"] == own["n"] == 6


def test_no_latency_of_those_served_stands_alone(plain):
    """That of all offered is beside it, also where no run has it."""
    table = next(
        one for one in tables(bench_sheet(plain)) if one.caption.startswith("Medians")
    )
    heads = [column.name for column in table.columns]
    place = heads.index("TTFT p95 offered ms")
    assert heads[place + 1] == "TTFT p95 served ms"
    assert {row[place] for row in table.rows} == {None}


# ---------------------------------------------------------------------------- words


def test_it_says_what_the_text_page_says(sheet, verdicts):
    """Verdicts, claims, checks, the design and what it can show."""
    text = prose(sheet)
    for word, said in page.head(verdicts):
        assert " ".join(f"{word} {said}".split()) in text
    for one in verdicts.arms:
        for said in page.claims(one):
            assert (said if isinstance(said, str) else said[1]) in text
    for check in verdicts.checks:
        assert f"{check.answer} {check.number} {check.name}" in text
    for _, said in page.design(verdicts):
        assert said in text
    for said in (*verdicts.plan, *verdicts.left_out, *verdicts.notices):
        assert " ".join(said.split()) in text


def test_failed_checks_stand_on_the_first_screen(sheet):
    """With whom they void; a void arm is red."""
    labels = {one.label: one for one in sheet.lead if isinstance(one, Words)}
    assert labels["VOID"].mood == "bad"
    assert "(voids inert)" in labels["Check 3"].text
    assert labels["SIMULATED"].mood == "unsure"


def test_one_verdict_of_all_arms_is_the_pages_word(verdicts, sheet):
    """Several are none."""
    assert sheet.word == ""
    (first, *_) = verdicts.arms
    one = bench_sheet(document_of(replace(verdicts, arms=(first,))))
    assert (one.word, one.mood) == ("better", "good")


def test_an_exploratory_metric_says_so_first(verdicts):
    """Before any verdict."""
    made = replace(verdicts, exploratory=True, metric="wasted_share", better="lower")
    found = bench_sheet(document_of(made))
    assert found.lead[0].label == "EXPLORATORY"
    assert "lower is better" in prose(found)


def test_a_claim_that_fails_stands_above_all(verdicts):
    """Each reason, as standard error has it."""
    found = bench_sheet(document_of(verdicts, claim="better"))
    assert found.lead[0].text == "The claim 'better' is not supported."
    told = [one.text for one in found.lead if getattr(one, "label", "") == "CHECK"]
    assert told[1:] == list(verdicts.against("better"))


# ----------------------------------------------------------------------------- edges


@pytest.mark.parametrize("blocks_run", [1, 2])
def test_with_one_or_two_blocks_nothing_is_claimed(tmp_path, blocks_run):
    """No interval from one block: none is drawn, and the cells are `--`."""
    made = experiments.made(tmp_path, ("bounded",), blocks=blocks_run)
    found = bench_sheet(document_of(compare(experiments.read_experiment(made))))
    assert found.word == "inconclusive"
    lows = {row[-2] for row in figure(found, "against load").table.rows}
    assert (lows == {None}) == (blocks_run == 1)
    html(found)


def test_loads_of_one_side_leave_a_claim_unasked(verdicts):
    """It says so in place of a number, and draws one claim an arm."""
    arms = tuple(replace(one, no_harm=None) for one in verdicts.arms)
    found = bench_sheet(document_of(replace(verdicts, arms=arms)))
    assert "no harm not asked: no load of its kind was run" in prose(found)
    rows = figure(found, "two claims of every arm").table.rows
    assert {row[1] for row in rows} == {"gain"}


def test_loads_below_capacity_alone_are_void_and_said(tmp_path):
    """Nothing above capacity was met, so nothing fired there."""
    made = experiments.made(tmp_path, ("bounded",), loads=(0.8,))
    found = bench_sheet(document_of(compare(experiments.read_experiment(made))))
    assert found.word == "void"
    assert "no difference is judged" in prose(found)
    html(found)


def test_a_load_that_an_arm_lacks_is_left_out(verdicts):
    """Of that arm alone: no row and no point, and none at 0."""
    first, *others = verdicts.curves
    short = replace(first, points=first.points[:1])
    made = replace(verdicts, curves=(short, *others))
    found = figure(bench_sheet(document_of(made)), "against load")
    assert [row[1] for row in found.table.rows if row[0] == first.arm] == [0.8]
    drawn = found.chart["layer"][-1]["data"]["values"]
    assert len([one for one in drawn if one["arm"] == first.arm]) == 1


def test_without_any_point_there_is_no_figure(verdicts):
    """A sentence in its place."""
    bare = tuple(replace(curve, points=()) for curve in verdicts.curves)
    made = replace(verdicts, curves=bare, arms=(), checks=(), plan=(), slo={})
    found = bench_sheet(document_of(replace(made, capacity={}, left_out=())))
    assert "No run can be shown." in prose(found)
    assert figures(found) == []
    html(found)


def test_all_void_has_no_forest(verdicts):
    """Nothing is judged, so nothing is drawn."""
    arms = tuple(replace(one, verdict="void") for one in verdicts.arms)
    found = bench_sheet(document_of(replace(verdicts, arms=arms)))
    assert [one.title for one in figures(found)] == ["goodput against load"]
    assert not any(one.caption.startswith("Difference") for one in tables(found))
    assert (found.word, found.mood) == ("void", "bad")


def test_names_are_shown_and_never_run(verdicts):
    """Tags, quotes, endless names, and text that turns the line round."""
    renamed = {one.arm: f"{EVIL}{place}" for place, one in enumerate(verdicts.arms)}
    arms = tuple(replace(one, arm=renamed[one.arm]) for one in verdicts.arms)
    curves = tuple(
        replace(one, arm=renamed.get(one.arm, one.arm)) for one in verdicts.curves
    )
    made = replace(verdicts, arms=arms, curves=curves, experiment=EVIL, workload=EVIL)
    found = bench_sheet(document_of(made), EVIL)
    text = html(found)
    assert_harmless(text)
    Page(text)
    assert "\u202e" not in text
    legend = figure(found, "against load").chart["layer"][-1]["encoding"]["color"]
    assert len(set(legend["scale"]["domain"])) == 6


def test_twenty_arms_are_one_page(verdicts):
    """No sentence lists them all."""
    (curve, *_) = verdicts.curves
    many = tuple(replace(curve, arm=f"arm_{n}") for n in range(20))
    found = bench_sheet(document_of(replace(verdicts, curves=many)))
    says = figure(found, "against load").says
    assert says.startswith("20 arms; the table has the mean of each.")
    drawn = figure(found, "against load").chart["layer"][-1]["data"]["values"]
    assert all(abs(one["at"] - one["load"]) < 0.035 for one in drawn)
    html(found)


# --------------------------------------------------------------------------- golden


def test_the_page_is_as_agreed(sheet, golden):
    """With an arm of each kind."""
    golden("bench_sheet.txt", outline(sheet))


def test_the_parts_of_the_agreed_page(sheet):
    """Checks and design are there whatever the golden file holds."""
    titles = [section.title for section in sheet.sections]
    assert titles[0] == "Goodput by load: mean of 6 blocks"
    assert {"Claims", "Checks before numbers", "Design", "Configuration"} <= {*titles}
    assert any(isinstance(one, Answers) for one in blocks(sheet))
