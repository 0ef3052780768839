"""An experiment's arms against its baseline, and the verdicts of benchmarks."""

from pathlib import Path

import streamlit as st

from admitperf.bench.pages.sheet import bench_sheet
from admitperf.dashboard import choosing, reading, show
from admitperf.dashboard.reading import Asked
from admitperf.reports.sheets.comparison_sheet import comparison_sheet
from admitperf.reports.sheets.sheet import Sheet


def show_page(asked: Asked) -> None:
    """Chooses an experiment or a benchmark and shows what it comes to."""
    benchmarks = reading.benchmarks(Path(asked.path))
    if benchmarks:
        names = [*(f"benchmark {one.name}" for one in benchmarks), "plain experiments"]
        place = choosing.one_of("What is compared", names, "of")
        if place < len(benchmarks):
            folder = benchmarks[place]
            made = choosing.read("Comparing", lambda: reading.benchmark(folder))
            _sheet(bench_sheet(made))
            return
    _experiment(asked)


def _experiment(asked: Asked) -> None:
    found = choosing.read("Reading the logs", lambda: reading.listed(asked))
    choosing.unread(found["files"])
    able = [one for one in found["experiments"] if one["name"] and one["arms"][1:]]
    if not able:
        st.info(
            "Nothing to compare: it takes two arms whose runs name one experiment,"
            " as with experiment= and run=."
        )
        return
    one = able[choosing.one_of("Experiment", [str(e["name"]) for e in able], "of")]
    labels = [arm["label"] for arm in one["arms"]]
    default = [place for place, arm in enumerate(one["arms"]) if arm["baseline"]]
    baseline = st.selectbox("Baseline", labels, index=default[0] if default else 0)
    made = choosing.read(
        "Comparing", lambda: reading.compared(asked, one["name"], baseline)
    )
    _sheet(comparison_sheet(made))


def _sheet(sheet: Sheet) -> None:
    if sheet.word:
        st.markdown(f"## {show.badge(sheet.word, sheet.mood)}")
    show.blocks(sheet.lead)
    for one in sheet.sections:
        show.section(one)
