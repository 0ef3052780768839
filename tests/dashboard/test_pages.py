"""Every page shows what the commands print as JSON, and says what it cannot show."""

import json
import shutil

import pytest
from streamlit.testing.v1 import AppTest

from admitperf.bench.pages.sheet import bench_sheet
from admitperf.dashboard.show import frame, literal
from admitperf.reports.pages.terminology import GROUPS, SURVEY
from admitperf.reports.sheets.comparison_sheet import comparison_sheet
from admitperf.reports.sheets.report_sheet import run_sections
from admitperf.reports.sheets.sheet import Figure, Table

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

PAGES = ("experiments", "log", "compare", "live", "items", "terms")


def shown(page, *asked):
    """A page after its first run."""
    script = f"""
from admitperf.dashboard import {page}_page
from admitperf.dashboard.reading import Asked
{page}_page.show_page(Asked({", ".join(repr(str(one)) for one in asked)}))
"""
    return AppTest.from_string(script, default_timeout=60).run()


def frames(sections):
    """What the tables of some sections hold, those behind figures too."""
    for section in sections:
        for block in section.blocks:
            if isinstance(block, Figure):
                yield frame(block.table)
            elif isinstance(block, Table):
                yield frame(block)


@pytest.fixture
def drawn(monkeypatch):
    """The figures that pages hand to Streamlit, which rearranges them."""
    from admitperf.dashboard import show

    specs = []
    monkeypatch.setattr(show, "chart", specs.append)
    return specs


def charts(sections):
    """The figures of some sections."""
    return [
        block.chart
        for section in sections
        for block in section.blocks
        if isinstance(block, Figure)
    ]


def rounded(value):
    """A figure without the last digits of its numbers."""
    if isinstance(value, dict):
        return {name: rounded(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(one) for one in value]
    return cell(value) if isinstance(value, float) else value


def inside(wanted, values):
    """Whether each of some frames is among those shown."""
    there = [cells(value) for value in values]
    return all(cells(one) in there for one in wanted)


def cells(made):
    """Headings and values of a frame, whatever types they were carried as."""
    rows = [[cell(value) for value in row] for row in made.itertuples(index=False)]
    return [list(made.columns), *rows]


def cell(value):
    """None for what is not known; numbers as numbers, also where text is beside."""
    if value is None or value != value:  # noqa: PLR0124  NaN
        return None
    try:
        return float(f"{float(value):.9g}")  # sums of floats depend on their order
    except (TypeError, ValueError):
        return str(value)


def test_every_number_of_the_log_page_is_one_of_the_reports_json(demo, told, drawn):
    """Tables and figures are those of the sheet made from `report --json --series`."""
    path = demo / "demo" / "queue_depth" / "r1.jsonl"
    page = shown("log", path)
    assert not page.exception
    (run,) = told("report", path, "--json", "--series")["runs"]
    sections = run_sections(run)
    values = [one.value for one in page.dataframe]
    wanted = list(frames(sections))
    assert len(wanted) >= 8
    assert inside(wanted, values)
    assert len(charts(sections)) >= 5
    assert rounded(drawn) == rounded(charts(sections))


def test_the_comparison_is_that_of_the_command(demo, told):
    """Every arm against the baseline, as `compare --json` has it."""
    page = shown("compare", demo)
    assert not page.exception
    made = told("compare", "--experiment", "demo", "--root", demo, "--json")
    sheet = comparison_sheet(made)
    wanted = list(frames(sheet.sections))
    assert len(wanted) >= 8
    assert inside(wanted, [one.value for one in page.dataframe])
    said = [one.value for one in (*page.error, *page.success)]
    assert any("WORSE" in one for one in said)
    assert any("BETTER" in one for one in said)


def test_another_baseline_is_another_comparison(demo, told):
    """What is chosen is what is compared with."""
    page = shown("compare", demo)
    page.selectbox[1].set_value("queue_depth").run()
    made = told(
        "compare", "--experiment", "demo", "--root", demo, "--json",
        "--baseline", "queue_depth",
    )  # fmt: skip
    values = [one.value for one in page.dataframe]
    assert inside(list(frames(comparison_sheet(made).sections)), values)


def test_the_experiments_are_those_of_the_command(demo, told):
    """Arms, findings and goodput."""
    page = shown("experiments", demo)
    (one,) = told("experiments", demo, "--json")["experiments"]
    (table,) = page.dataframe
    rows = table.value.to_dict("records")
    assert [row["arm"] for row in rows] == [arm["label"] for arm in one["arms"]]
    for row, arm in zip(rows, one["arms"], strict=True):
        assert row["lowest"] == arm["goodput"]["low"]
        assert row["median"] == arm["goodput"]["middle"]
        assert row["highest"] == arm["goodput"]["high"]
        assert row["repeats"] == 3
    assert "SIMULATED" in page.warning[0].value


def test_the_items_are_those_of_the_report(demo, told):
    """A row a run, a column an item, and what the answers of one rest on."""
    page = shown("items", demo)
    runs = told("report", demo, "--json")["runs"]
    rows = page.dataframe[0].value.to_dict("records")
    for row, run in zip(rows, runs, strict=True):
        assert {n: a for n, a in row.items() if n != "run"} == {
            item["name"]: item["answer"] for item in run["items"]
        }
    said = " ".join(one.value for one in page.markdown)
    for item in runs[0]["items"]:
        assert literal(item["says"]) in said


def test_rows_are_found_by_what_is_chosen(demo, told):
    """The count is the report's, and only what matches is shown."""
    path = demo / "demo" / "queue_depth" / "r1.jsonl"
    page = shown("log", path)
    (run,) = told("report", path, "--json")["runs"]
    refused, offered = run["answers"]["deferred"], run["answers"]["offered"]
    assert 0 < refused < offered
    verdict = next(one for one in page.selectbox if one.label == "verdict")
    verdict.set_value("defer").run()
    said = [one.value for one in page.markdown]
    assert any(one.startswith(f"{refused} of {offered} decisions") for one in said)
    assert set(page.dataframe[-1].value["verdict"]) == {"defer"}


def test_the_terms_are_all_there_and_the_surveys_are_tagged():
    """Each is defined once in the list; two pairs stand side by side before it."""
    page = shown("terms", ".")
    said = "\n".join(one.value for one in page.markdown)
    terms = [term for group in GROUPS for term in group.terms]
    for term in terms:
        assert f"**{literal(term.word)}**" in said
    tagged = sum(term.origin == SURVEY for term in terms)
    pairs = ("offered", "admitted", "INERT", "UNKNOWN")
    twice = sum(term.word in pairs and term.origin == SURVEY for term in terms)
    assert said.count("badge[survey wording]") == tagged + twice
    page.text_input[0].set_value("goodput").run()
    assert "**goodput**" in "\n".join(one.value for one in page.markdown)


def test_a_search_without_a_find_says_so():
    """Nothing is shown as if it were all."""
    page = shown("terms", ".")
    page.text_input[0].set_value("no such word anywhere").run()
    assert "No term" in page.info[0].value


def test_the_live_page_is_the_report_on_the_end(demo, told, tmp_path):
    """Of a short log that is all of it."""
    path = tmp_path / "live.jsonl"
    shutil.copy(demo / "demo" / "kv_threshold" / "r1.jsonl", path)
    page = shown("live", path)
    assert not page.exception
    (run,) = told("report", path, "--json", "--series")["runs"]
    values = [one.value for one in page.dataframe]
    assert inside(list(frames(run_sections(run))), values)
    assert "100 % of the file" in page.markdown[0].value


@pytest.mark.parametrize("page", PAGES[:-1])
@pytest.mark.parametrize("what", ["empty", "broken", "gone", "odd"])
def test_what_cannot_be_read_is_a_sentence(page, what, tmp_path):
    """An empty folder, broken files, no folder at all, an experiment of nothing."""
    folder = tmp_path / "logs"
    if what != "gone":
        folder.mkdir()
    if what == "broken":
        (folder / "a.jsonl").write_bytes(b"\x00\xff{]")
        (folder / "b.jsonl.gz").write_bytes(b"\x1f\x8bnothing")
    if what == "odd":
        (folder / "x").mkdir()
        (folder / "x" / "experiment.json").write_text("{}")
    made = shown(page, folder)
    assert not made.exception
    said = [one.value for one in (*made.error, *made.info, *made.warning)]
    assert said
    assert not any("Traceback" in one for one in said)


def test_a_log_that_names_markup_shows_it(demo, tmp_path):
    """What a log says is text: no link, no image, no colour."""
    text = (demo / "demo" / "kv_threshold" / "r1.jsonl").read_text("utf-8")
    evil = "![x](http://127.0.0.1/x) :red[y] <script>z</script> $a$ `b`"
    path = tmp_path / "evil.jsonl"
    path.write_text(text.replace("kv_threshold", json.dumps(evil)[1:-1]), "utf-8")
    page = shown("log", path)
    assert not page.exception
    said = "\n".join(one.value for one in page.markdown)
    assert "![x](" not in said
    assert ":red[y]" not in said
    assert literal(evil) in said or "script" in said


def test_a_benchmark_shows_its_verdicts(tmp_path, told):
    """The page is that of `bench compare`."""
    from tests.bench.design import experiments

    folder = experiments.every(tmp_path / "every").folder
    page = shown("compare", folder)
    assert not page.exception
    sheet = bench_sheet(told("bench", "compare", folder, "--json"))
    wanted = list(frames(sheet.sections))
    assert len(wanted) >= 4
    assert inside(wanted, [one.value for one in page.dataframe])


@pytest.mark.parametrize("given", ["-1", "9" * 30, "9" * 5000, "\u00b2", "x", "", "1"])
def test_any_address_leads_to_a_page(demo, given):
    """What the query says is a place in the list, or the first one is taken."""
    script = f"""
from admitperf.dashboard import items_page
from admitperf.dashboard.reading import Asked
items_page.show_page(Asked({str(demo)!r}))
"""
    page = AppTest.from_string(script, default_timeout=60)
    page.query_params["run"] = given
    page.run()
    assert not page.exception
    assert page.selectbox[0].value == (1 if given == "1" else 0)
