"""Logs written by hand, and the schemas they keep to."""

import json

import pytest
from jsonschema import Draft202012Validator
from tests.reports.byhand import KINDS, jsonl

from admitperf.reports.report import report


@pytest.fixture
def write(tmp_path):
    """Write lines to a log and get its path as text."""

    def _write(*lines, name="run.jsonl"):
        path = tmp_path / name
        path.write_text(jsonl(*lines), encoding="utf-8")
        return str(path)

    return _write


@pytest.fixture
def reported(write):
    """Report on lines as the log of one run."""

    def _reported(*lines, slo=None, **options):
        (run,) = report([write(*lines)], slo, **options).runs
        return run

    return _reported


@pytest.fixture(scope="session")
def schemas(root):
    """A validator per kind of line, from the published schemas."""
    folder = root / "docs" / "reference" / "log"
    return {
        kind: Draft202012Validator(
            json.loads((folder / f"{kind}.schema.json").read_text(encoding="utf-8"))
        )
        for kind in KINDS
    }
