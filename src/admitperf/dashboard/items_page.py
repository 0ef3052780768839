"""The seven reporting items of every run, side by side."""

from typing import Any

import pandas as pd
import streamlit as st

from admitperf.dashboard import choosing, reading, show
from admitperf.dashboard.reading import Asked
from admitperf.reports.pages import stated
from admitperf.reports.pages.revived import run_report
from admitperf.reports.sheets.sheet import Answer, Answers, mood_of


def show_page(asked: Asked) -> None:
    """A table of runs by items, then what each answer of one run rests on."""
    found = choosing.read("Reading the logs", lambda: reading.overview(asked))
    choosing.unread(found["files"])
    runs = found["runs"]
    made = [run_report(run) for run in runs]
    choosing.stamped(
        simulated=any(map(stated.simulated, made)),
        oracle=any(map(stated.oracle, made)),
    )
    st.dataframe(
        pd.DataFrame([_row(asked, run) for run in runs]),
        hide_index=True,
        alt="items of every run",
    )
    st.caption("pass and fail: the log carries the item; not carried: it does not.")
    place = choosing.one_of("Run", [choosing.titled(asked, run) for run in runs], "run")
    show.block(
        Answers(
            tuple(
                Answer(
                    one["answer"], one["name"], (one["says"],), mood_of(one["answer"])
                )
                for one in runs[place]["items"]
            )
        )
    )


def _row(asked: Asked, run: dict[str, Any]) -> dict[str, str]:
    return {
        "run": choosing.titled(asked, run),
        **{one["name"]: one["answer"] for one in run["items"]},
    }
