"""What every page does first: read, and say in a sentence why it cannot."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import streamlit as st

from admitperf.core.errors import AdmitPerfError
from admitperf.dashboard.reading import Asked
from admitperf.dashboard.show import literal
from admitperf.reports.pages.headline import stamps

_Made = TypeVar("_Made")
Run = dict[str, Any]


@contextmanager
def or_a_sentence() -> Iterator[None]:
    """Ends the page with what went wrong, in a sentence a file, instead of a trace."""
    try:
        yield
    except (AdmitPerfError, OSError) as error:
        for why in error.args if isinstance(error, AdmitPerfError) else (error,):
            st.error(literal(str(why)))
        st.stop()


def read(what: str, asked: Callable[[], _Made]) -> _Made:
    """What a reader of logs returns, with a word on the screen while it works."""
    with or_a_sentence(), st.spinner(what):
        return asked()


def unread(files: dict[str, Any]) -> None:
    """Says which files could not be read, and what was odd about the others."""
    for why in files["unread"]:
        st.warning(literal(f"Not read: {why}"))
    for notice in files["notices"]:
        st.info(literal(notice))


def one_of(label: str, names: Sequence[str], key: str) -> int:
    """Which of some names is chosen; kept in the page's address.

    Args:
        label: what is chosen.
        names: not empty; the same one may stand there twice.
        key: the name in the address.
    """
    given = st.query_params.get(key, "0")
    places = [str(place) for place in range(len(names))]
    first = places.index(given) if given in places else 0
    chosen = st.selectbox(
        label,
        range(len(names)),
        index=first,
        format_func=lambda place: f"{place + 1}. {names[place]}",
    )
    place = 0 if chosen is None else int(chosen)
    st.query_params[key] = str(place)
    return place


def titled(asked: Asked, run: Run) -> str:
    """A run as a person names it: policy, name, and its file below what was asked."""
    header = run["header"]
    parts = [str(header.get("policy") or "unknown policy")]
    parts += [str(header["name"])] if header.get("name") else []
    return ", ".join([*parts, *(below(asked, path) for path in run["paths"][:1])])


def below(asked: Asked, path: str) -> str:
    """A file's path from the folder that was asked on; of the only file its name."""
    return path.removeprefix(asked.path).lstrip("/") or Path(path).name


def stamped(*, simulated: bool, oracle: bool) -> None:
    """What has to be said wherever a run's numbers are."""
    for word, said in stamps(simulated=simulated, oracle=oracle):
        st.warning(f"**{word}** {literal(said)}")
