"""The reports on the examples, each made once for all tests that look at it."""

from contextlib import chdir
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.reports.byhand import jsonl
from tests.reports.examples import PAGES

from admitperf.reports.report import report


@cache
def example(name):
    """The report on one example, read from `<name>.jsonl` in the working folder."""
    with TemporaryDirectory() as folder, chdir(folder):
        path = Path(f"{name}.jsonl")
        path.write_text(jsonl(*PAGES[name]()), encoding="utf-8")
        return report([str(path)])
