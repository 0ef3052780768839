"""The report as text: golden pages, and what holds on each of them."""

import re
import subprocess
import sys

import pytest
from tests.reports.byhand import decision, header, jsonl, kv, outcome
from tests.reports.examples import ALL

from admitperf.reports import render, wording
from admitperf.reports.report import report

SECTIONS = (
    "1 Could it have fired?",
    "2 Which signals moved",
    "3 What it did",
    "4 What it cost",
    "5 Faults of the instrument",
)


@pytest.fixture
def page(tmp_path, monkeypatch):
    """The text report on an example, from a folder of its own."""
    monkeypatch.chdir(tmp_path)

    def _page(name):
        (tmp_path / f"{name}.jsonl").write_text(jsonl(*ALL[name]()), encoding="utf-8")
        return render.text(report([f"{name}.jsonl"]))

    return _page


def number(pattern, page):
    """The one whole number a pattern finds on a page."""
    (found,) = re.findall(pattern, page)
    return int(found)


@pytest.mark.parametrize("name", ALL)
def test_the_page_is_as_agreed(golden, page, name):
    """Each finding's page, letter by letter."""
    golden(f"report_{name}.txt", page(name))


@pytest.mark.parametrize("name", ALL)
def test_the_page_fits_any_terminal(page, name):
    """ASCII, at most 80 columns, no control characters, no trailing space."""
    for line in page(name).splitlines():
        assert len(line) <= 80
        assert re.fullmatch(r"[ -~]*", line)
        assert line == line.rstrip()


@pytest.mark.parametrize("name", ALL)
def test_the_five_questions_are_asked_in_order(page, name):
    """Whether or not they can be answered."""
    lines = page(name).splitlines()
    places = [lines.index(title) for title in SECTIONS]
    assert places == sorted(places)


@pytest.mark.parametrize("name", ALL)
def test_i1_on_the_page(page, name):
    """Offered = admit + defer + reject, and the rows add up to it."""
    text = page(name)
    (equation,) = re.findall(
        r"offered (\d+) = admit (\d+) \+ defer (\d+)\s+\+ reject (\d+)", text
    )
    offered, *parts = map(int, equation)
    assert offered == sum(parts)
    section = text.split("3 What it did\n")[1].split("4 What it cost")[0]
    row = re.compile(r"(?m)^  (?:admit|defer|reject)\b[^%]*?\s(\d+) +[<>]?[\d.]+ %")
    rows = row.findall(section)
    assert sum(map(int, rows)) == offered


@pytest.mark.parametrize("name", ["live", "baseline", "shadow"])
def test_i3_on_the_page(page, name):
    """Goodput <= let-in share <= 1, all of offered."""
    text = page(name)
    offered = number(r"offered (\d+) =", text)
    let_in = number(rf"let in +(\d+) of {offered} ", text)
    goodput = number(rf"= (\d+) of {offered} attempts offered", text)
    assert goodput <= let_in <= offered


@pytest.mark.parametrize("name", ALL)
def test_every_share_has_its_denominator(page, name):
    """No percentage stands without `n of m`, except in tables that name their own."""
    section = page(name).split("4 What it cost")[1].split("5 Faults")[0]
    for line in section.splitlines():
        if "%" in line:
            assert re.search(r"\d+ of \d+", line), line


def test_the_same_log_gives_the_same_bytes(tmp_path):
    """Under any seed of Python's hash."""
    path = tmp_path / "live.jsonl"
    path.write_text(jsonl(*ALL["live"]()), encoding="utf-8")
    script = (
        "import sys; from admitperf.reports import render;"
        " from admitperf.reports.report import report;"
        " print(render.text(report(sys.argv[1:])))"
    )
    pages = {
        subprocess.run(
            [sys.executable, "-c", script, path],
            env={"PYTHONHASHSEED": seed}, capture_output=True, check=True,
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(pages) == 1


def test_long_names_and_large_numbers_keep_the_table(write):
    """A name too long for its column gets a line of its own."""
    name = "acme_" * 20
    lines = [
        kv(1, 0.5, signals={name: 123456789012345, "tiny": 0.000012345}),
        kv(2, 0.5, gates=[[name, 1e300, ">=", 1.5e300, False]]),
    ]
    text = render.text(report([write(header(notes="x" * 500), *lines)]))
    assert max(map(len, text.splitlines())) <= 80
    assert "1.23e-05" in text
    assert "1.23e+14" in text


def test_few_samples_are_said_not_shown(page):
    """Below 20 samples there is no p95, in the table nor in a sentence."""
    text = page("few")
    assert "n<20" in text
    assert "too few samples (5)" in text


def test_a_damaged_line_is_named_by_file_and_number(page):
    """The reader can go and look."""
    assert "few.jsonl:7 not JSON" in page("few")


def test_goodput_that_could_be_higher_says_at_least(write):
    """An outcome that never came is not a proof that it was bad."""
    lines = (header(), kv(1, 0.5), kv(2, 0.5), outcome(1))
    text = render.text(report([write(*lines)]))
    assert "at least 0.500 = 1 of 2 attempts offered" in text
    assert "1 let in have no outcome and count as not met." in text
    assert "at least" not in render.text(report([write(*lines, outcome(2))]))


def test_a_version_is_the_programs_and_not_the_policys(write):
    """The title names the policy alone; who wrote the log has a line of its own."""
    lines = (header(policy="ops_gate", version="9.8.7"), kv(1, 0.5))
    title, _, *rest = render.text(report([write(*lines)])).splitlines()
    assert title == "Run of ops_gate"
    assert "  written by    admitperf 9.8.7, 1 process, run id k3f9x2ab" in rest
    text = render.text(report([write(header(version=None), kv(1, 0.5))]))
    assert "  written by    1 process, run id k3f9x2ab" in text


def test_a_run_says_when_it_was(write):
    """Days and clock times, in UTC, of the first decision and the last."""
    text = render.text(report([write(header(), kv(1, 0.5), kv(30, 0.5))]))
    assert "  decisions     from 2026-09-21 14:13:20Z to 14:13:23Z\n" in text
    assert "\n  decisions " not in render.text(report([write(header())]))


def test_where_a_parameter_comes_from_is_said_in_words(write):
    """The log's `unstated` means nothing to who reads only the report."""
    text = render.text(
        report(
            [
                write(
                    header(
                        params={"a": 4, "b": 1, "c": 2},
                        provenance={"a": "unstated", "b": "default", "c": "fitted"},
                    ),
                    kv(1, 0.5),
                )
            ]
        )
    )
    assert "a=4 (given, origin not stated), b=1 (default), c=2 (fitted)" in text


@pytest.mark.parametrize("name", ALL)
def test_away_has_one_meaning(page, name):
    """Distances are not called what callers are told."""
    found = re.findall(r"(\S+)\s+away\b", page(name))
    assert set(found) == {"turned"}


def test_a_blind_run_says_in_its_faults_when_it_was(write):
    """The times of the blind decisions alone."""
    blind = {"reason": "signal_stale", "blind": "signal_stale", "why": "old"}
    lines = (header(), kv(1, 0.5), decision(20, **blind), kv(30, 0.5))
    text = render.text(report([write(*lines)]))
    assert "blind         1 of 3 (33.3 %) decisions, at 2026-09-21 14:13:22Z" in text


def test_one_is_one(write):
    """`1 decision`, not `1 decisions`."""
    signals = {f"s{n}": n for n in range(257)}
    lines = (header(), decision(1, signals=signals, reading=9), outcome(5))
    text = render.text(report([write(*lines)]))
    assert "1 decision made on one that is not in the log" in text
    assert "1 outcome, left out above" in text
    assert "1 value of further names left out" in text


@pytest.mark.parametrize(
    ("n", "of", "shown"),
    [
        (0, 9, "0.0 %"),
        (1, 9999, "<0.1 %"),
        (9998, 9999, ">99.9 %"),
        (9, 9, "100.0 %"),
        (0, 0, "--"),
    ],
)
def test_only_none_is_zero_and_only_all_is_a_hundred(n, of, shown):
    """One of ten thousand is not rounded away."""
    assert wording.percent(n, of) == shown
