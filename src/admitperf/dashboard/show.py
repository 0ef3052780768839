"""The blocks of a sheet as Streamlit's widgets. Nothing is computed here.

What a log says may hold anything, so it is shown as text and never as markup.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from admitperf.reports.sheets.sheet import (
    Answers,
    Block,
    Cell,
    Column,
    Figure,
    Mood,
    Rows,
    Section,
    Source,
    Table,
    Words,
)
from admitperf.reports.wording import NOT_KNOWN

_MARKS = re.compile(r"([!-/:-@\[-`{-~])")
_COLOURS = {"good": "green", "bad": "red", "unsure": "orange", "plain": "gray"}


def section(one: Section) -> None:
    """A section with its heading."""
    (st.header if one.level == 1 else st.subheader)(literal(one.title))
    blocks(one.blocks)


def blocks(some: Iterable[Block]) -> None:
    """Blocks in their order."""
    for one in some:
        block(one)


def block(one: Block) -> None:
    """One block of any kind."""
    match one:
        case Words():
            _words(one)
        case Rows():
            _rows(one)
        case Table():
            table(one)
        case Figure():
            _figure(one)
        case Answers():
            _answers(one)
        case Source():
            st.code(one.text, language=None, wrap_lines=True)


def literal(text: str) -> str:
    """Text as Markdown that shows it letter by letter."""
    return _MARKS.sub(r"\\\1", " ".join(text.split()))


def badge(word: str, mood: Mood) -> str:
    """A word in a coloured frame, as Markdown."""
    return f":{_COLOURS[mood]}-badge[{literal(word)}]"


def table(one: Table) -> None:
    """A table that can be sorted and searched."""
    st.caption(literal(one.caption))
    st.dataframe(
        frame(one),
        hide_index=True,
        column_config=_settings(one.columns),
        placeholder=NOT_KNOWN,
        alt=one.caption,
    )
    if one.note:
        st.caption(literal(one.note))


def frame(one: Table) -> pd.DataFrame:
    """The values of a table, numbers as numbers."""
    names = _titles(one.columns)
    values: dict[str, list[Cell]] = {
        name: [row[place] for row in one.rows] for place, name in enumerate(names)
    }
    return pd.DataFrame(values, columns=names)


def _settings(columns: Sequence[Column]) -> dict[str, Any]:
    return {
        name: _SETTINGS[column.kind]()
        for name, column in zip(_titles(columns), columns, strict=True)
    }


_SETTINGS: dict[str, Callable[[], Any]] = {
    "text": st.column_config.TextColumn,
    "number": st.column_config.NumberColumn,
    "share": partial(st.column_config.NumberColumn, format="percent"),
}


def _titles(columns: Iterable[Column]) -> list[str]:
    """The headings; one that stands there twice is told apart."""
    titles: list[str] = []
    for column in columns:
        title = column.title
        while title in titles:
            title += " "
        titles.append(title)
    return titles


def _words(one: Words) -> None:
    if one.label:
        _BOXES[one.mood](f"**{literal(one.label)}** {literal(one.text)}")
    else:
        st.markdown(literal(one.text))


_BOXES: dict[Mood, Callable[[str], Any]] = {
    "good": st.success,
    "bad": st.error,
    "unsure": st.warning,
    "plain": st.info,
}


def _rows(one: Rows) -> None:
    st.markdown(
        "\n".join(f"- **{literal(name)}** {literal(said)}" for name, said in one.pairs)
    )


def _figure(one: Figure) -> None:
    st.markdown(f"**{literal(one.title)}** {literal(one.says)}")
    chart(one.chart)
    with st.expander(f"The numbers: {literal(one.table.caption)}"):
        table(one.table)


def chart(spec: dict[str, Any]) -> None:
    """A plot as wide as the page and as high as it is on paper."""
    fits = {"autosize": {"type": "fit-x", "contains": "padding"}}
    st.vega_lite_chart(spec=spec | fits, width="stretch")


def _answers(one: Answers) -> None:
    st.markdown(
        "\n".join(
            f"- {badge(answer.answer, answer.mood)} **{literal(answer.name)}**"
            f" {literal(' '.join(answer.says))}"
            for answer in one.answers
        )
    )
