"""The tables on the workloads page are what `benchmarks/measure_traces.py` finds."""

import importlib.util
import re

import pytest

from admitperf.bench.workloads import workload


@pytest.fixture(scope="module")
def script(root):
    """The script, as a module."""
    path = root / "benchmarks" / "measure_traces.py"
    spec = importlib.util.spec_from_file_location("measure_traces", path)
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


@pytest.fixture(scope="module")
def page(root):
    """The page."""
    return (root / "docs" / "reference" / "workloads.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def shown(script, page):
    """The rows of both tables, by their first cell."""
    table = page.split(script.BEGIN)[1].split(script.END)[0]
    found = re.findall(r"^\| (.*) \|$", table, re.MULTILINE)
    rows = [row.split(" | ") for row in found]
    return {row[0]: row for row in rows}


def test_the_heads_are_the_scripts(script, shown):
    """And nothing is missing below them."""
    for head in (script.REQUESTS, script.SESSIONS):
        assert shown[head[0]] == [*head]
    assert len(shown) == 2 + 1 + 7 + 4  # heads, the rule that both share, rows


@pytest.mark.parametrize("name", ["agent-sessions", "tool-tight"])
def test_generated_sessions_are_as_shown(script, shown, name):
    """Made again from the kept parameters."""
    told = f"{name}, generated"
    assert script._sessions_row(told, workload(name).pool()) == shown[told]


def test_generated_requests_are_as_shown(script, shown):
    """Six blocks of clients."""
    told = "tenants, generated"
    assert script._generated("tenants", 5.0, 1_200.0) == shown[told]


def test_recorded_rows_are_as_shown(script, shown, shared, monkeypatch):
    """Measured again, of the traces that are read in a second or two."""
    monkeypatch.setattr(script, "TRACES", shared / "traces")
    for name in ("conv", "code"):
        begun = script._azure(name)[0].begun
        rate = len(begun) / begun[-1][0]
        told = {"conv": "chat-steady", "code": "code-burst"}[name]
        row = script._traffic(f"{told}, recorded", rate, [begun])
        assert row == shown[f"{told}, recorded"]
        made = script._generated(told, rate, begun[-1][0])
        assert made == shown[f"{told}, generated"]
    calls = script.miniswe.read(script.TRACES / "lmcache_miniswe_calls.jsonl")
    capped = script.capped(calls.pool, script.LONGEST_GAP_S)
    told = "tool-tight, recorded"
    assert script._sessions_row(told, capped) == shown[told]


def test_what_a_load_does_to_clients_is_said(page):
    """Gaps between a client's requests do shorten; nobody else's do."""
    load = page.split("## How load is made")[1].split("\n## ")[0]
    assert "gaps stay as uneven as they" in workload("tenants").scaling()
    ever = load[load.index("is ever scaled") :]
    assert "`tenants`" in ever.split("\n")[0]
    for name in ("agent-sessions", "tool-tight", "code-burst", "chat-steady"):
        assert "gaps stay as uneven" not in workload(name).scaling(), name
