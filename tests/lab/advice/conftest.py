"""Advice on logs by hand."""

import pytest
from tests.reports.byhand import jsonl

from admitperf.core.errors import PolicyNotFound
from admitperf.lab.advice import advice
from admitperf.policies import load

STEADY = ("no_admission", "kv_threshold", "queue_depth", "dual_gate", "in_flight_cap")


@pytest.fixture
def write(tmp_path):
    """Write lines to a log and get its path as text."""

    def _write(lines, name="run.jsonl"):
        path = tmp_path / name
        path.write_text(jsonl(*lines), encoding="utf-8")
        return str(path)

    return _write


@pytest.fixture
def advised(write):
    """Advice on lines as the log of one run."""

    def _advised(lines, slo=None):
        (run,) = advice.advise([write(lines)], slo).runs
        return run

    return _advised


@pytest.fixture
def few_installed(monkeypatch):
    """Only these policies are installed: what is printed stays the same."""

    def _load(name):
        if name not in STEADY:
            raise PolicyNotFound(f"no policy {name!r}")
        return load(name)

    monkeypatch.setattr(advice, "load", _load)
