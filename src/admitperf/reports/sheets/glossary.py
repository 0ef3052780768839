"""Which of the terms a sheet uses, so that it can define them itself."""

import re
from collections.abc import Iterator
from functools import cache

from admitperf.reports.pages.terminology import GROUPS, Term
from admitperf.reports.sheets.sheet import (
    Answers,
    Block,
    Figure,
    Rows,
    Sheet,
    Source,
    Table,
    Words,
)

_COMMON = frozenset(
    {"n", "no", "ok", "min", "max", "mean", "median", "--", "default", "value"}
    | {"from", "to", "read", "at", "low", "high"}
)
"""Words that stand in every other sentence: defined where a table heads with them."""


def used(sheet: Sheet) -> tuple[Term, ...]:
    """The terms on a sheet, in the order of the terminology."""
    said = " \n ".join(words(sheet)).lower()
    headings = {heading.lower() for heading in _headings(sheet)}
    return tuple(
        term
        for group in GROUPS
        for term in group.terms
        if any(_stands(form, said, headings) for form in (term.word, *term.also))
    )


def words(sheet: Sheet) -> Iterator[str]:
    """All that is written on a sheet, but for the numbers and the configuration."""
    yield from (sheet.title, sheet.word)
    for block in _blocks(sheet):
        yield from _said(block)
    for section in sheet.sections:
        yield section.title


def _blocks(sheet: Sheet) -> Iterator[Block]:
    yield from sheet.lead
    for section in sheet.sections:
        yield from section.blocks


def _said(block: Block) -> Iterator[str]:
    match block:
        case Words():
            yield from (block.label, block.text)
        case Rows():
            yield from (part for pair in block.pairs for part in pair)
        case Answers():
            for one in block.answers:
                yield from (one.answer, one.name, *one.says)
        case Figure():
            yield from (block.title, block.says)
            yield from _said(block.table)
        case Table():
            yield from (block.caption, block.note, *(one.name for one in block.columns))
        case Source():
            return


def _headings(sheet: Sheet) -> Iterator[str]:
    for block in _blocks(sheet):
        table = block.table if isinstance(block, Figure) else block
        if isinstance(table, Table):
            yield from (column.name for column in table.columns)
        if isinstance(block, Answers):
            yield from (one.answer for one in block.answers)


def _stands(form: str, said: str, headings: set[str]) -> bool:
    lowered = form.lower()
    if lowered in _COMMON:
        return lowered in headings
    return _pattern(lowered).search(said) is not None


@cache
def _pattern(form: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![a-z0-9_]){re.escape(form)}(?![a-z0-9_])")
