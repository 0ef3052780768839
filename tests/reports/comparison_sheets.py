"""The documents of comparisons on hand-made repeats, and their pages."""

import json

from tests.reports.byhand import jsonl

from admitperf.reports.comparison.comparison import compare_all
from admitperf.reports.comparison.sides import of_experiment
from admitperf.reports.pages.comparison_document import document
from admitperf.reports.report import report
from admitperf.reports.wording import as_written

COMMAND = "admitperf compare --experiment pilot --html page.html"


def compared_on(folder, *lines):
    """The comparisons of every arm in the lines of `pilot`, and the files."""
    path = folder / "all.jsonl"
    path.write_text(jsonl(*lines), encoding="utf-8")
    with as_written():
        made = report([str(path)])
        return compare_all(*of_experiment(made.runs, "pilot", None, ())), made.files


def document_on(folder, *lines, claim=None):
    """Their document, as a reader parses it."""
    made, files = compared_on(folder, *lines)
    return json.loads(json.dumps(document(made, files, claim), allow_nan=False))
