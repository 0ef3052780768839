"""The documents with series on the examples, and their pages, each made once."""

import json
from contextlib import chdir
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.reports.byhand import jsonl
from tests.reports.examples import PAGES

from admitperf.reports.pages.checks import check
from admitperf.reports.pages.document import document
from admitperf.reports.report import reported
from admitperf.reports.series.series import series
from admitperf.reports.sheets.report_sheet import report_sheet
from admitperf.reports.sheets.sheet import Figure, Table

COMMAND = "admitperf report run.jsonl --html run.html"


def document_on(paths, *, slo=None, checked=True):
    """The document with series on some logs, as a reader parses it."""
    with reported(paths, slo) as (log, made):
        over_time = series(log, made)
    plain = document(made, check(made) if checked else None, over_time)
    return json.loads(json.dumps(plain, allow_nan=False))


@cache
def example_document(name):
    """The document on one example, read from `<name>.jsonl` in the working folder."""
    with TemporaryDirectory() as folder, chdir(folder):
        path = Path(f"{name}.jsonl")
        path.write_text(jsonl(*PAGES[name]()), encoding="utf-8")
        return document_on([str(path)])


@cache
def example_sheet(name):
    """The page on one example."""
    return report_sheet(example_document(name), COMMAND)


def blocks(sheet):
    """Every block of a page, in order."""
    yield from sheet.lead
    for section in sheet.sections:
        yield from section.blocks


def figures(sheet):
    """Its figures, in order."""
    return [block for block in blocks(sheet) if isinstance(block, Figure)]


def tables(sheet):
    """Its tables, those behind figures too."""
    shown = (one.table if isinstance(one, Figure) else one for one in blocks(sheet))
    return [one for one in shown if isinstance(one, Table)]


def numbers(value):
    """Every number in a document, or in any part of one."""
    if isinstance(value, dict):
        return set().union(*map(numbers, value.values()))
    if isinstance(value, list | tuple):
        return set().union(*map(numbers, value))
    return {value} if isinstance(value, int | float) else set()
