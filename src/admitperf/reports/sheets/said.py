"""Rows and sentences of a text page as blocks of a sheet."""

from collections.abc import Iterable

from admitperf.reports.pages.layout import Said
from admitperf.reports.sheets.sheet import Block, Rows, Words


def blocks(lines: Iterable[Said]) -> tuple[Block, ...]:
    """The same in the same order: rows that follow one another are together."""
    made: list[Block] = []
    pairs: list[tuple[str, str]] = []
    for one in lines:
        if isinstance(one, str):
            made += [*_rows(pairs), Words(one)]
            pairs = []
        elif one[0] or not pairs:
            pairs.append(one)
        else:
            name, said = pairs[-1]
            pairs[-1] = (name, f"{said}; {one[1]}")
    return (*made, *_rows(pairs))


def _rows(pairs: list[tuple[str, str]]) -> list[Block]:
    return [Rows(tuple(pairs))] if pairs else []
