"""The script that Streamlit runs for each look at the dashboard.

Started by `start.run`, which hands over what to look at as arguments.
"""

import sys
from functools import partial

import streamlit as st

from admitperf.dashboard import (
    compare_page,
    experiments_page,
    items_page,
    live_page,
    log_page,
    terms_page,
)
from admitperf.dashboard.reading import Asked

_PAGES = (
    ("Experiments", experiments_page.show_page),
    ("Log", log_page.show_page),
    ("Compare", compare_page.show_page),
    ("Live", live_page.show_page),
    ("Seven items", items_page.show_page),
    ("Terminology", terms_page.show_page),
)


def main() -> None:
    """The page that the address names."""
    asked = Asked(*sys.argv[1:4])
    st.set_page_config(page_title="AdmitPerf", layout="wide")
    chosen = st.navigation(
        [
            st.Page(
                partial(show, asked),
                title=title,
                url_path=title.lower().replace(" ", "-"),
                default=place == 0,
            )
            for place, (title, show) in enumerate(_PAGES)
        ]
    )
    st.title(chosen.title)
    st.caption(f"`{asked.path.replace('`', '?')}`")
    chosen.run()


main()
