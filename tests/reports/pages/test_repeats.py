"""Runs of one arm, side by side."""

from tests.reports.byhand import header, kv
from tests.reports.example_pages import example

from admitperf.reports.pages import render
from admitperf.reports.pages.repeats import middle_and_range, repeated, repeats
from admitperf.reports.report import report


def test_s_bm_06_repeats_are_shown_and_never_averaged():
    """Median and range with each n, and that the sizes differ."""
    text = render.text(example("repeats"))
    rows = text.split("Repeats of kv_threshold in pilot\n")[1].split("Files")[0]
    assert "r3                             30        9    0.700" in rows
    assert "p95 of TTFT, ms: median 1171, 873 to 1172, of 3 runs." in rows
    assert "differ in size: 30 to 40 decisions." in " ".join(text.split())
    mean = round((1171 + 1172 + 873) / 3)
    assert str(mean) not in text


def test_a_run_without_an_experiment_stands_alone(write):
    """Grouping is declared, never inferred."""
    lines = []
    for run in ("a", "b"):
        lines += [header(run=run, name=run), kv(1, 0.95, run=run)]
    made = report([write(*lines)])
    assert repeated(made.runs) == ()
    assert repeats(made.runs[0], made.runs) == (made.runs[0],)


def test_the_middle_is_a_value_that_was_seen():
    """Nearest rank, as everywhere."""
    assert middle_and_range([0.3, 0.1]) == "median 0.1, 0.1 to 0.3"
    assert middle_and_range([3, 1, 2]) == "median 2, 1 to 3"


def test_many_runs_have_a_line_each_on_top():
    """Who reads a folder sees all findings before the first page."""
    text = render.text(example("repeats"))
    top = text.split("\n\n")[0].splitlines()
    assert top[0] == "3 runs"
    assert len(top) == 5
    assert top[2].split() == ["kv_threshold,", "r1", "LIVE", "9", "40", "0.775"]
    assert render.text(example("inert")).startswith("Run of kv_threshold\n")
