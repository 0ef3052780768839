"""Colour is for a terminal, and only a second way to say what a word says."""

import re

import pytest
from tests.reports.example_pages import example
from tests.reports.examples import PAGES

from admitperf.cli import colour
from admitperf.reports.pages import render
from admitperf.reports.pages.checks import check

ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


@pytest.mark.parametrize("name", PAGES)
def test_without_its_escapes_a_painted_page_is_the_page(name):
    """Byte for byte, and each page has a word that is painted."""
    made = example(name)
    page = render.text(made, check(made))
    painted = colour.painted(page)
    assert ESCAPE.sub("", painted) == page
    assert painted != page


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("  finding       LIVE: it refused something.", "LIVE"),
        ("  finding       INERT: never.", "INERT"),
        ("  WORSE         kv_threshold: goodput fell.", "WORSE"),
        ("  not carried   capacity-relative load: Record it.", "not carried"),
        ("  ok                1 the policy fired.", "ok"),
        ("  SIMULATED     the outcomes.", "SIMULATED"),
    ],
)
def test_the_word_of_a_row_is_painted_and_nothing_else(line, word):
    """From the word's first letter to its last."""
    (found,) = re.finditer(r"\x1b\[\d+m(.*?)\x1b\[0m", colour.painted(line + "\n"))
    assert found[1] == word


@pytest.mark.parametrize(
    "line", ["  okay          so", "  LIVELY", "a LIVE one", "  nothing: no such word"]
)
def test_a_word_elsewhere_is_left_alone(line):
    """Neither a longer word nor one within a sentence."""
    assert colour.painted(line + "\n") == line + "\n"


@pytest.mark.parametrize(
    ("environment", "terminal", "wanted"),
    [
        ({"TERM": "xterm"}, True, True),
        ({"TERM": "xterm"}, False, False),
        ({"TERM": "dumb"}, True, False),
        ({}, True, False),
        ({"TERM": "xterm", "NO_COLOR": "1"}, True, False),
        ({"TERM": "xterm", "NO_COLOR": ""}, True, True),
        ({"TERM": "xterm", "CI": "true"}, True, False),
    ],
)
def test_only_who_looks_and_did_not_refuse_sees_it(
    monkeypatch, capsys, environment, terminal, wanted
):
    """A terminal that takes colour; https://no-color.org says that empty is not set."""
    for name in ("TERM", "NO_COLOR", "CI"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(colour, "_looked_at", lambda: terminal)
    assert colour.wanted() is wanted
