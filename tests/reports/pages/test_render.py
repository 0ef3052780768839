"""The report as text: golden pages, and what holds on each of them."""

import re
import subprocess
import sys
from dataclasses import replace

import pytest
from tests.reports.byhand import decision, header, jsonl, kv, outcome
from tests.reports.example_pages import example
from tests.reports.examples import ALL, DUAL, PAGES

from admitperf.reports import wording
from admitperf.reports.pages import render
from admitperf.reports.pages.checks import check
from admitperf.reports.pages.layout import wrapped
from admitperf.reports.report import Report, report

SECTIONS = (
    "1 Could it have fired?",
    "2 Which signals moved",
    "3 What it did",
    "4 What it cost",
    "5 Faults of the instrument",
    "6 The seven reporting items",
)


@pytest.fixture
def page():
    """The text report on an example."""
    return lambda name: render.text(example(name))


def number(pattern, page):
    """The one whole number a pattern finds on a page."""
    (found,) = re.findall(pattern, page)
    return int(found)


@pytest.mark.parametrize("name", PAGES)
def test_the_page_is_as_agreed(golden, page, name):
    """Each finding's page, letter by letter."""
    golden(f"report_{name}.txt", page(name))


@pytest.mark.parametrize("name", PAGES)
def test_the_page_fits_any_terminal(name):
    """ASCII, at most 80 columns, no control characters, no trailing space."""
    made = example(name)
    for line in render.text(made, check(made)).splitlines():
        assert len(line) <= 80
        assert re.fullmatch(r"[ -~]*", line)
        assert line == line.rstrip()


@pytest.mark.parametrize("name", ALL)
def test_the_questions_are_asked_in_order(page, name):
    """Whether or not they can be answered."""
    lines = page(name).splitlines()
    places = [lines.index(title) for title in SECTIONS]
    assert places == sorted(places)


@pytest.mark.parametrize("name", ALL)
def test_i1_on_the_page(page, name):
    """Offered = admit + defer + reject, and the rows add up to it."""
    text = page(name)
    (equation,) = re.findall(
        r"(?:offered|samples) (\d+) = admit (\d+) \+ defer (\d+)\s+\+ reject (\d+)",
        text,
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
    cost = text.split("4 What it cost\n")[1]
    goodput = number(rf"= (\d+) of {offered} attempts offered", cost)
    assert goodput <= let_in <= offered


@pytest.mark.parametrize("name", ALL)
def test_every_share_has_its_denominator(page, name):
    """No percentage stands without `n of m`, except in tables that name their own."""
    section = page(name).split("4 What it cost")[1].split("5 Faults")[0]
    assert "%" in section or name == "samples"
    for line in section.splitlines():
        if "%" in line:
            assert re.search(r"\d+ of \d+", line), line


def test_the_same_log_gives_the_same_bytes(tmp_path):
    """Under any seed of Python's hash."""
    path = tmp_path / "live.jsonl"
    path.write_text(jsonl(*ALL["live"]()), encoding="utf-8")
    script = (
        "import sys; from admitperf.reports.pages import render;"
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
    assert text.count("at least 0.500 = 1 of 2 attempts offered") == 2
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


@pytest.mark.parametrize("name", ALL)
def test_the_first_ten_lines_are_enough_at_night(page, name):
    """Finding, refused of offered, goodput: each on top, each with its denominator."""
    top = "\n".join(page(name).splitlines()[2:10])
    assert re.search(r"^  finding       [A-Z]+: ", top)
    assert re.search(r"^  (refused|would \w+) .*\d+ of \d+ \(", top, re.MULTILINE)
    assert re.search(r"^  goodput .*(\d+ of \d+|cannot be answered)", top, re.MULTILINE)


def test_notices_stand_on_top(write):
    """What would change the reading of a number comes before the number."""
    (run,) = report([write(header(), kv(1, 0.5))]).runs
    files = report([write(header(), kv(1, 0.5))]).files
    odd = replace(run, notices=("10 outcomes came late.", "\x1b[31m stepped."))
    top = render.text(Report((odd,), files)).splitlines()[:10]
    assert "  notice        10 outcomes came late." in top
    assert "  notice        ?[31m stepped." in top


def test_notes_by_name_are_shown_as_they_were_given(write):
    """Text, numbers and flags; null is not known."""
    notes = {"model": "m", "load": 1.5, "ignore_eos": True, "seed": None}
    text = render.text(report([write(header(notes=notes), kv(1, 0.5))]))
    assert "notes         model=m, load=1.5, ignore_eos=true, seed=--" in text


def test_calls_and_attempts_stand_apart(page):
    """Both clocks, and how many attempts a call took."""
    section = page("calls").split("4 What it cost\n")[1].split("5 Faults")[0]
    by_attempt, by_call = section.split("  By call:\n")
    assert "let in        110 of 167 (65.9 %) attempts offered" in by_attempt
    assert "let in        110 of 110 (100.0 %) calls offered" in by_call
    assert "57 of 167 (34.1 %) attempts; 1.518 attempts a call" in by_call
    (user,) = re.findall(r"TTFT, user    p50 .*? p95 (\d+) ms", by_call)
    (last,) = re.findall(r"TTFT, last    p50 .*? p95 (\d+) ms", by_call)
    assert int(user) > 2000 > int(last)
    assert re.search(r"goodput       0\.4\d\d = \d+ of 110 calls offered, on", by_call)
    assert "on the last attempt's clock" in by_call


def test_lateness_sizes_and_outputs_are_shown_with_their_n(page):
    """What a generator knows, and nobody else."""
    text = page("calls")
    assert "sent late     11 of 167 (6.6 %) over 10 ms; lag p50 0.5" in text
    assert re.search(r"input tokens  p50 \d+, p95 \d+, max \d+ tokens, n 167", text)
    assert "output asked  p50 256, p95 256, max 256 tokens, n 167" in text
    assert re.search(r"TTFT, due     p50 [\d.]+ ms.* n\s+110 ok", text)
    assert "20900 of 28160 (74.2 %) of the tokens asked for came, n 110 ok" in text
    assert "plan          8f2c" in text
    assert re.search(r"in 12.85 s \([\d.]+ calls/s\)", text)


def test_a_warm_up_says_what_it_left_out(write):
    """Of every number, as the words say."""
    made = report([write(*ALL["baseline"]())], warmup="10")
    text = render.text(made)
    assert "warm-up       10 of 30 (33.3 %) attempts left out of every number" in text
    assert "offered 20 = admit 20" in text
    assert "n 20 ok" in text


def test_samples_claim_no_request(page):
    """Nobody asked, nobody was let in, nothing was met."""
    text = page("samples")
    assert "would fire    on 11 of 60 (18.3 %) samples" in text
    assert "offered       nothing: no request stood behind a sample" in text
    assert "samples 60 = admit 49 + defer 11 + reject 0" in text
    assert "no policy governed" in text.split("2 Which")[0]
    assert "attempts" not in text.split("6 The seven")[0].replace("  attempts  ", "")
    cost = text.split("4 What it cost\n")[1].split("5 Faults")[0]
    assert cost == "  It cannot be answered: no request stood behind a sample.\n\n"


def test_gates_that_were_never_true_together_say_how_near_they_came(write):
    """A conjunction is inert when its parts hold at different times."""
    lines = [header(**DUAL)]
    for seq in range(1, 41):
        pressure, waiting = (0.95, 8) if seq % 2 else (0.4, 60)
        gates = [["kv_pressure", pressure, ">=", 0.9, pressure >= 0.9]]
        if pressure >= 0.9:
            gates.append(["queue_depth", waiting, ">", 32, False])
        signals = {"kv_pressure": pressure, "queue_depth": waiting}
        lines.append(decision(seq, signals=signals, gates=gates))
    text = " ".join(render.text(report([write(*lines)])).split())
    assert "All were true at once on 0 of 40 (0.0 %)." in text
    assert (
        "At the nearest joint approach (kv_pressure 0.4, queue_depth 60) the gate"
        " farthest off was short by 0.5556 of its bound." in text
    )


def test_a_gate_that_was_passed_over_is_completed_and_said_to_be(page):
    """n counts both, and a line tells them apart."""
    text = " ".join(page("live").split())
    assert "queue_depth > 32 200 95 47.5 % 0 60 --" in text
    assert "queue_depth > 32: and/or passed over it on 145 of 200 (72.5 %)" in text


def test_the_checks_are_the_last_thing_on_the_page():
    """Where a pipeline's log ends, the verdict stands."""
    made = example("inert")
    text = render.text(made, check(made))
    last = text.split("\nCheck\n")[1]
    assert last.startswith("  Run of kv_threshold\n")
    assert "  no              fired, or a baseline: INERT: It ran" in last
    assert text.endswith("does not support a claim: fired, or a baseline.\n")
    assert "\nCheck\n" not in render.text(made)


def test_a_percentage_never_breaks_from_its_sign():
    """`27.5` at the end of a line and `%` on the next is read as 27.5 of something."""
    for room in range(60, 80):
        lines = wrapped("x" * room + " 27.5 % of all")
        assert "27.5 %" in "\n".join(lines)
        assert all(len(line) <= 80 for line in lines)


def test_two_percentiles_withheld_for_one_reason_say_it_once(write):
    """And the largest value stands there with its n."""
    lines = [header(), *(kv(seq, 0.5) for seq in range(1, 6))]
    lines += [outcome(seq, ttft_ms=100 * seq) for seq in range(1, 6)]
    text = " ".join(render.text(report([write(*lines)])).split())
    assert "p50 300 ms, p95 and p99 too few samples (5), max 500 ms, n 5 ok" in text
