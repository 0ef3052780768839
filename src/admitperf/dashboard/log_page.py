"""One run: its report, and its decisions row by row."""

from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st

from admitperf.dashboard import choosing, reading, show
from admitperf.dashboard.reading import Asked
from admitperf.reports.runs import browse
from admitperf.reports.sheets.report_sheet import run_lead, run_sections
from admitperf.reports.sheets.sheet import mood_of
from admitperf.reports.wording import NOT_KNOWN

_FIRST = ("verdict", "reason", "tenant", "session", "logical_id", "request_id")


def show_run(run: dict[str, Any]) -> None:
    """The report on a run, a tab for each of its parts."""
    word = run["finding"]["word"]
    st.markdown(f"## {show.badge(word, mood_of(word))}")
    show.blocks(run_lead(run))
    sections = run_sections(run)
    for tab, one in zip(
        st.tabs([one.title for one in sections]), sections, strict=True
    ):
        with tab:
            show.blocks(one.blocks)


def show_page(asked: Asked) -> None:
    """Chooses a run and shows it."""
    every = choosing.read("Reading the logs", lambda: reading.overview(asked))
    choosing.unread(every["files"])
    runs = every["runs"]
    place = choosing.one_of("Run", [choosing.titled(asked, run) for run in runs], "run")
    paths = runs[place]["paths"]
    read = choosing.read("Reading the run", lambda: reading.whole(asked, paths))
    number, run = _same(read.made["runs"], runs[place]["ids"])
    show_run(run)
    st.header("Decisions")
    if read.rows is None:
        st.info("Rows cannot be browsed: the cache's folder takes no file.")
    else:
        with choosing.or_a_sentence():
            _rows(read.rows, number, run)


def _same(runs: list[dict[str, Any]], ids: list[str]) -> tuple[int, dict[str, Any]]:
    """The run with these ids among those that share its files, with its number."""
    found = [(n, run) for n, run in enumerate(runs) if run["ids"] == ids]
    return found[0] if found else (0, runs[0])


def _rows(path: Path, number: int, run: dict[str, Any]) -> None:
    chosen: dict[str, str] = {}
    for column, name in zip(st.columns(len(_FIRST)), _FIRST, strict=True):
        said = column.selectbox(
            name,
            browse.values(path, number, name),
            index=None,
            placeholder="any",
            accept_new_options=True,
            key=f"{number} {name}",
        )
        if said is not None:
            chosen[name] = said
    found = browse.find(path, number, chosen, _between(run["span_s"]))
    st.markdown(
        f"{found.n} of {found.of} decisions match"
        + (
            f"; the first {len(found.rows)} are shown."
            if len(found.rows) < found.n
            else "."
        )
    )
    st.dataframe(
        pd.DataFrame(found.rows, columns=list(found.columns)),
        hide_index=True,
        placeholder=NOT_KNOWN,
        alt="decisions",
    )


def _between(span_s: float | None) -> tuple[float, float] | None:
    """The seconds that are chosen; None = all of them, and what has no time."""
    if not span_s:
        return None
    first, last = st.slider(
        "seconds since the first decision", 0.0, span_s, (0.0, span_s)
    )
    return None if (first, last) == (0.0, span_s) else (first, last)
