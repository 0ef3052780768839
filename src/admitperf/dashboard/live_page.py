"""The end of a log that is still being written."""

from datetime import UTC, datetime, timedelta
from typing import Any

import streamlit as st

from admitperf.core.clock import SYSTEM
from admitperf.core.errors import AdmitPerfError
from admitperf.dashboard import choosing, reading
from admitperf.dashboard.log_page import show_run
from admitperf.dashboard.reading import Asked
from admitperf.dashboard.show import literal
from admitperf.reports.wording import plural

_EVERY_S = 2
"""Plain choice: signals move within seconds, and a look costs half a second."""


def show_page(asked: Asked) -> None:
    """Chooses a log; what follows is made again every two seconds."""
    paths = choosing.read("Looking for logs", lambda: reading.growing(asked))
    if not paths:
        st.info("There is no plain log here: packed ones do not grow.")
        return
    place = choosing.one_of(
        "Log, the newest first", [choosing.below(asked, one) for one in paths], "log"
    )
    st.fragment(_look, run_every=_EVERY_S)(asked, paths[place])


def _look(asked: Asked, path: str) -> None:
    try:
        made, shown, size = reading.end_of(asked, path)
    except (AdmitPerfError, OSError) as error:
        st.info(literal(f"Nothing to show now: {error}"))
        return
    now = datetime.fromtimestamp(SYSTEM.wall_ns() / 1e9, UTC)
    run = made["runs"][-1]
    st.markdown(
        f"Looked at {now:%H:%M:%S} UTC, every {_EVERY_S} s. The last"
        f" {plural(run['answers']['offered'], 'decision')},"
        f" {100 * shown / size:.3g} % of the file{_age(run, now)}."
    )
    show_run(run)


def _age(run: dict[str, Any], now: datetime) -> str:
    last = run["when"]["last_utc"]
    if not last:
        return ""
    then = datetime.fromisoformat(last)
    age = timedelta(seconds=round((now - then).total_seconds()))
    return f"; the newest is {age} old"
