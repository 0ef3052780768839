"""A report out of its document."""

import json

import pytest
from tests.reports.byhand import header, kv
from tests.reports.example_pages import example
from tests.reports.example_sheets import example_document
from tests.reports.examples import ALL

from admitperf.reports.pages.document import document
from admitperf.reports.pages.revived import read_files, run_report
from admitperf.reports.report import report


@pytest.mark.parametrize("name", ALL)
def test_a_document_gives_back_the_report(name):
    """What the sentences are made from is the same, down to the last number."""
    made = example(name)
    parsed = json.loads(json.dumps(document(made)))
    assert run_report(parsed["runs"][0]) == made.runs[0]
    assert read_files(parsed["files"]) == made.files


def test_what_a_document_adds_is_left_out():
    """Items, the headline and the series are no fields of a report."""
    (run,) = example_document("live")["runs"]
    assert {"items", "goodput", "series"} <= run.keys()
    assert run_report(run) == example("live").runs[0]


def test_options_are_given_back_too(write):
    """A warm-up stands in no report that was not asked for one."""
    lines = [header(), *(kv(seq, seq / 100) for seq in range(1, 41))]
    made = report([write(*lines)], warmup="10")
    assert run_report(document(made)["runs"][0]) == made.runs[0]
    assert made.runs[0].warmup is not None
