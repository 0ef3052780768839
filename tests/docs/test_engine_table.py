"""The engine's table on the statistics page is what the engine gives, on a few blocks.

That table takes minutes to make; `make ci` asks the same of more blocks.
"""

import importlib.util
import sys

import pytest

FEW = 6


@pytest.fixture(scope="module")
def method(root):
    """The script, as a module."""
    path = root / "benchmarks" / "method_engine.py"
    spec = importlib.util.spec_from_file_location("method_engine_again", path)
    made = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = made  # dataclasses look their module up
    spec.loader.exec_module(made)
    yield made
    del sys.modules[spec.name]


@pytest.fixture(scope="module")
def blocks(method):
    """The first of the population, above capacity."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(method, "LOADS", (1.2, 1.5))
        return method.population(FEW, jobs=1)


@pytest.fixture(scope="module")
def page(root):
    """The page."""
    return (root / "docs" / "statistics.md").read_text(encoding="utf-8")


def test_the_true_gains_are_the_engines(method, blocks, page):
    """Of every arm, within four standard errors."""
    assert [*method.apart(blocks, page)] == []


@pytest.mark.parametrize("arm", ["A/A, one plan", "a queue bound, loose"])
def test_another_gain_on_the_page_is_found(method, blocks, page, arm):
    """One larger by 0.2, and one that is not there."""
    gain, _ = dict(method._shown(page))[arm]
    other = page.replace(f"| {arm} | {gain:+.3f} |", f"| {arm} | {gain + 0.2:+.3f} |")
    assert [said.partition(":")[0] for said in method.apart(blocks, other)] == [arm]
    absent = page.replace(f"| {arm} |", "| something else |")
    assert [said.partition(":")[0] for said in method.apart(blocks, absent)] == [arm]
