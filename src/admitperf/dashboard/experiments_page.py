"""Which experiments there are: arms, findings, goodput, and what is missing."""

from typing import Any

import pandas as pd
import streamlit as st

from admitperf.dashboard import choosing, reading, show
from admitperf.dashboard.reading import Asked
from admitperf.reports.charts.comparison import Estimate, forest
from admitperf.reports.wording import NOT_KNOWN

_UNNAMED = "runs that name no experiment"


def show_page(asked: Asked) -> None:
    """Every experiment below the path."""
    found = choosing.read("Reading the logs", lambda: reading.listed(asked))
    choosing.unread(found["files"])
    for one in found["experiments"]:
        _experiment(one)


def _experiment(one: dict[str, Any]) -> None:
    st.header(show.literal(one["name"] or _UNNAMED))
    choosing.stamped(simulated=one["simulated"], oracle=one["oracle"])
    if one["arms"]:
        st.dataframe(
            pd.DataFrame([_arm(arm) for arm in one["arms"]]),
            hide_index=True,
            placeholder=NOT_KNOWN,
            alt="arms",
        )
        st.caption("Goodput of offered, by repeat: lowest, median and highest.")
        show.chart(_ranges(one["arms"]))
    if one["loads"][1:]:
        loads = ", ".join(f"{load:g}x" for load in one["loads"])
        st.markdown(f"Loads: {loads} of capacity in every arm.")
    for said in one["missing"]:
        st.markdown(f"- missing: {show.literal(said)}")


def _ranges(arms: list[dict[str, Any]]) -> dict[str, Any]:
    """The same as lines from the lowest to the highest, the median marked."""
    rows = [
        Estimate(arm["label"], spread["middle"], spread["low"], spread["high"])
        for arm in arms
        if (spread := arm["goodput"])
    ]
    return forest(rows, "goodput of offered")


def _arm(arm: dict[str, Any]) -> dict[str, Any]:
    spread = arm["goodput"] or dict.fromkeys(("low", "middle", "high"))
    return {
        "arm": arm["label"],
        "baseline": "yes" if arm["baseline"] else "no",
        "repeats": len(arm["repeats"]),
        "finding": ", ".join(f"{word} {n}" for word, n in arm["findings"].items()),
        "lowest": spread["low"],
        "median": spread["middle"],
        "highest": spread["high"],
    }
