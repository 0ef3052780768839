"""The engine's table on the statistics page, and the script that makes it."""

import importlib.util
import re
import sys

import pytest

from admitperf.bench.design.claims import Cell


@pytest.fixture(scope="module")
def method(root):
    """The script, as a module."""
    path = root / "benchmarks" / "method_engine.py"
    spec = importlib.util.spec_from_file_location("method_engine", path)
    made = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = made  # dataclasses look their module up
    spec.loader.exec_module(made)
    yield made
    del sys.modules[spec.name]


@pytest.fixture(scope="module")
def page(root):
    """The page."""
    return (root / "docs" / "statistics.md").read_text(encoding="utf-8")


def rows(page, method):
    """The rows of both tables, without heads."""
    table = page.split(method.BEGIN)[1].split(method.END)[0]
    found = re.findall(r"^\|(.*)\|$", table, re.MULTILINE)
    made = [[cell.strip() for cell in row.split("|")] for row in found]
    return [row for row in made if re.fullmatch(r"[\d.]+", row[-1])]


def test_the_page_has_every_arm_and_size(method, page):
    """A row each, and one for each size of the family."""
    found = rows(page, method)
    arms = [row for row in found if len(row) > 3]
    expected = [
        (said, str(size))
        for said in method.SAID.values()
        for size in method.EXPERIMENTS
    ]
    assert [(row[0], row[4]) for row in arms] == expected
    assert len(found) - len(arms) == len(method.EXPERIMENTS)


def test_the_page_keeps_the_promises_it_states(method, page):
    """Coverage, false alarms, power and the verdict of a policy that harms."""
    for row in rows(page, method):
        if len(row) == 3:
            assert float(row[2]) <= 0.05, row
            continue
        covered, gain, harmless, better, worse, _ = map(float, row[6:])
        assert 0.9 < covered < 0.99, row
        assert better <= min(gain, harmless), row
        if row[0].startswith("A/A"):
            assert gain + worse <= 0.06, row
            assert better <= 0.03, row
        if row[0].startswith("a queue bound") and row[4] == "8":
            assert gain > 0.9, row
        if row[0].startswith("a cap too tight"):
            assert (harmless, better) == (0.0, 0.0), row


def test_the_script_replaces_its_table_and_nothing_else(method, page):
    """The toy cluster's table stays."""
    made = method.written(page, "| new |")
    assert made.split(method.BEGIN)[0] == page.split(method.BEGIN)[0]
    assert made.split(method.END)[1] == page.split(method.END)[1]
    assert "| new |" in made


def test_a_block_repeats_and_arms_of_one_plan_share_it(method):
    """One run at a load that few calls make, twice; another machine's differs."""
    slo = method.Slo(classes={"": {"ttft_ms": 365.0, "stall_ms": 500.0}})
    base, again, own, *_ = method.ARMS
    found = [method.goodput(arm, 24.0, 1, slo) for arm in (base, base, again, own)]
    assert found[0] == found[1]
    assert 0 < found[0] < 1
    assert found[2] != found[0]
    assert abs(found[2] - found[0]) < abs(found[3] - found[0])


def test_an_arm_without_a_difference_claims_no_gain(method, monkeypatch):
    """Judging alone, on blocks made by hand: 44 of them, the truth 0.05 and 0."""
    monkeypatch.setattr(method, "EXPERIMENTS", (20,))

    def blocks(name, gain):
        return [
            [
                Cell(name, load, n, 0.5 + gain + 0.01 * (-1) ** n, 0.5)
                for load in method.LOADS
            ]
            for n in range(1, 45)
        ]

    both = [
        [cell for name in method.SAID for cell in _of(name, n, blocks)]
        for n in range(44)
    ]
    found = {(row.arm, row.blocks): row for row in method.rows(both, draws=20)}
    gains = found["a queue bound, tight", 20]
    assert gains.gain == pytest.approx(0.05)
    assert gains.rises == gains.better == 1.0
    none = found["A/A, one plan", 20]
    assert none.gain == pytest.approx(0.0)
    assert none.rises < 0.1


def _of(name, n, blocks):
    return blocks(name, 0.05 if name in ("bound", "loose bound") else 0.0)[n]
