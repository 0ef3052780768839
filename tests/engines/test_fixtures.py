"""Every value of every expected.json holds; the folder is read as it is."""

import hashlib

import pytest
from tests.engines.pages import FIXTURES, cases, expectations, load, same

from admitperf.engines.catalogue import engine_of
from admitperf.engines.readings import read

FILE_KEYS = {
    "fixture", "kind", "engine", "version", "source", "sha256", "traps",
    "signals", "reader", "cases",
}  # fmt: skip
CASE_KEYS = {"signals", "window", "now", "max_age_s"}
READER_KEYS = {"eof", "errors", "truncated"}
VALUE_KEYS = {"value", "how"}
WINDOW_KEYS = {"files", "seconds"}

EXPECTATIONS = expectations()
CASES = cases()
every_file = pytest.mark.parametrize(
    ("name", "expected"), EXPECTATIONS, ids=[name for name, _ in EXPECTATIONS]
)
every_value = pytest.mark.parametrize(
    ("case", "name"),
    [(case, name) for case in CASES for name in case.facts["signals"]],
    ids=[f"{case.name}-{name}" for case in CASES for name in case.facts["signals"]],
)
every_reader_fact = pytest.mark.parametrize(
    ("expected", "fact"),
    [(it, fact) for _, it in EXPECTATIONS for fact in it.get("reader", {})],
    ids=[f"{n}-{fact}" for n, it in EXPECTATIONS for fact in it.get("reader", {})],
)


@every_value
def test_a_value_is_read_as_it_should_be(case, name):
    """A signal or reading has the right value, None where it is not known."""
    known = read(case.page(), case.window())
    assert name in known, f"nothing reads {name}"
    right = case.facts["signals"][name]["value"]
    assert same(known[name], right), f"{name}: {known[name]!r}, right is {right!r}"


@every_reader_fact
def test_the_reader_says_what_became_of_a_page(expected, fact):
    """Lines not understood, a cut page and `# EOF` are known, not guessed."""
    page = load(expected["fixture"])
    assert getattr(page, fact) == expected["reader"][fact]


@pytest.mark.parametrize(
    "expected",
    [it for _, it in EXPECTATIONS if "sha256" in it],
    ids=[name for name, it in EXPECTATIONS if "sha256" in it],
)
def test_a_page_is_the_one_its_values_were_read_from(expected):
    """A re-captured page is noticed by its hash."""
    body = (FIXTURES / expected["fixture"]).read_bytes()
    assert hashlib.sha256(body).hexdigest() == expected["sha256"]


@every_file
def test_a_file_asserts_something_and_nothing_unknown(name, expected):
    """A key this test does not read would be a promise nobody checks."""
    several = expected.get("cases", [expected])
    assert set(expected) <= FILE_KEYS
    assert set(expected.get("reader", {})) <= READER_KEYS
    assert several
    # Only values taken from several pages carry no hash of one.
    assert "sha256" in expected or all("window" in case for case in several)
    for case in several:
        assert case is expected or set(case) <= CASE_KEYS
        assert set(case.get("window", {})) <= WINDOW_KEYS
        assert case["signals"]
        for value in case["signals"].values():
            assert "value" in value
            assert set(value) <= VALUE_KEYS


@every_file
def test_a_page_is_known_by_its_names(name, expected):
    """The engine is guessed right, and not at all when the page has no samples."""
    page = load(expected["fixture"])
    assert engine_of(page) == (expected["engine"] if page else None)


def test_there_are_fixtures():
    """An empty folder would make every test above pass on nothing."""
    assert EXPECTATIONS


def test_the_shared_fixtures_are_the_ones_read(shared):
    """Published pages are not in the checkout: only the shared folder has them."""
    assert shared / "fixtures" == FIXTURES
    assert [name for name, _ in EXPECTATIONS if name.startswith("published_")]
