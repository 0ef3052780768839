"""`report --check`: does the log support a claim?"""

import gzip
import re

import pytest
from tests.reports.byhand import decision, header, jsonl, kv, lost, outcome
from tests.reports.example_pages import example
from tests.reports.examples import ALL, PAGES, wave

from admitperf.reports.pages.checks import check
from admitperf.reports.report import report


@pytest.fixture
def checked(write):
    """The checks of some lines' log."""

    def _checked(*lines):
        return check(report([write(*lines)]))

    return _checked


@pytest.fixture
def asked(checked):
    """The checks of the only run of some lines, by name."""

    def _asked(*lines):
        (run,) = checked(*lines).runs
        return {one.name: (one.answer, one.says) for one in run.checks}

    return _asked


def sound(n=100, **changes):
    """A KV threshold that fired, with an outcome for all it let in."""
    yield header(**changes)
    for seq in range(1, n + 1):
        line = kv(seq, wave(seq, 0.4, 0.96))
        yield line
        if line["admitted"]:
            yield outcome(seq)


def failed(checked):
    """The names of the checks that say no."""
    asked = [one for run in checked.runs for one in run.checks]
    return {one.name for one in (*asked, checked.lines) if one.answer == "no"}


@pytest.mark.parametrize("name", PAGES)
def test_every_check_is_answered_in_a_sentence(name):
    """On every kind of log; the verdict is what the answers say."""
    made = check(example(name))
    for run in made.runs:
        assert len(run.checks) == 7
        for one in run.checks:
            assert one.answer in ("ok", "no", "cannot be asked")
            assert re.fullmatch(r"\S[ -~]+\.", one.says), one.says
        assert run.passed == all(one.answer != "no" for one in run.checks)
    assert made.passed == (not failed(made))


def test_a_sound_log_passes(checked):
    """And without outcomes it says nothing of latency, and passes all the same."""
    assert checked(*sound()).passed
    without = [line for line in sound() if line["k"] != "outcome"]
    made = checked(*without)
    assert made.passed
    answers = {one.name: one.answer for one in made.runs[0].checks}
    assert answers["outcomes reported"] == "cannot be asked"
    assert answers["enough for a p95"] == "cannot be asked"


def test_a_baseline_passes():
    """It is no policy that failed to fire."""
    assert check(example("baseline")).passed


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("inert", "It could not have fired"),
        ("unknown", "It decided blind on 100 of 100"),
        ("shadow", "Nothing was enforced"),
        ("samples", "no policy governed"),
    ],
)
def test_a_run_that_shows_nothing_fails_and_says_which_nothing(name, part):
    """INERT and UNKNOWN are two failures with two messages."""
    fired = check(example(name)).runs[0].checks[0]
    assert (fired.name, fired.answer) == ("fired, or a baseline", "no")
    assert part in fired.says


def test_s_bm_11_inert_names_range_and_bound():
    """How far away it stayed, in the check itself."""
    says = check(example("inert")).runs[0].checks[0].says
    assert says.startswith("INERT: ")
    assert "(0.07 to 0.44, n 200)" in says
    assert "0.46 from the bound" in says


def test_refusals_that_nobody_enforced_support_no_claim(asked):
    """Half of the traffic was governed, and none of the refusals fell into it."""
    free = {"enforced": False, "admitted": True, "status": 200}
    lines = (header(enforce=0.5), kv(1, 0.5), {**kv(2, 0.95), **free})
    answer, says = asked(*lines)["fired, or a baseline"]
    assert answer == "no"
    assert says.endswith("None of its refusals was enforced.")


@pytest.mark.parametrize(
    ("counts", "answer"),
    [
        ({}, "ok"),
        ({"decision": 1}, "ok"),
        ({"decision": 2}, "no"),
        ({"outcome": 2}, "no"),
    ],
)
def test_at_most_one_record_in_a_thousand_may_be_lost(asked, counts, answer):
    """Of whatever kind."""
    lines = [*sound(1000), *([lost(**counts)] if counts else [])]
    assert asked(*lines)["records lost"][0] == answer


@pytest.mark.parametrize(("n", "answer"), [(1, "ok"), (2, "no")])
def test_at_most_one_decision_in_a_hundred_may_be_blind(asked, n, answer):
    """The bound above which a run is UNKNOWN."""
    blind = {"reason": "signal_stale", "blind": "signal_stale", "why": "old"}
    lines = [*sound(98), *(decision(98 + seq, **blind) for seq in (1, 2)[:n])]
    if n == 1:
        lines.append(kv(100, 0.5))
        lines.append(outcome(100))
    assert asked(*lines)["decided blind"][0] == answer


@pytest.mark.parametrize(("missing", "answer"), [(0, "ok"), (1, "ok"), (2, "no")])
def test_ninety_nine_of_a_hundred_need_an_outcome(asked, missing, answer):
    """What is missing could be anything."""
    lines = [header(), kv(101, 0.95)]
    lines += [kv(seq, 0.5) for seq in range(1, 101)]
    lines += [outcome(seq) for seq in range(1, 101 - missing)]
    assert asked(*lines)["outcomes reported"][0] == answer


@pytest.mark.parametrize(("n", "answer"), [(19, "no"), (20, "ok")])
def test_s_bm_05_too_few_samples_carry_no_p95(asked, n, answer):
    """Below 20 it would be the maximum under another name."""
    lines = [header(), kv(99, 0.95), *(kv(seq, 0.5) for seq in range(1, n + 1))]
    lines += [outcome(seq) for seq in range(1, n + 1)]
    assert asked(*lines)["enough for a p95"][0] == answer


def test_a_record_that_stands_there_twice_fails(asked):
    """Two logs were glued, or one was read twice."""
    lines = list(sound())
    answer, says = asked(*lines, lines[1])["no record twice"]
    assert answer == "no"
    assert "decision 1" in says


def _short(pressure):
    """A run whose answers end long before what was asked for."""
    yield header()
    for seq in range(1, 31):
        line = kv(seq, pressure if seq > 5 else 0.5)
        yield {**line, "facts": {"max_output_tokens": 512}}
        if line["admitted"]:
            yield outcome(seq, output_tokens=41)


def test_s_bm_10_short_outputs_void_a_run_that_never_fired(asked):
    """The load stayed below plan; where the policy fired all the same, it did not."""
    answer, says = asked(*_short(0.5))["outputs as long as asked"]
    assert answer == "no"
    assert "1230 of 15360 (8.0 %) of the tokens asked for came (n 30)" in says
    answer, says = asked(*_short(0.95))["outputs as long as asked"]
    assert answer == "ok"
    assert "fired all the same" in says


TORN = '{"k":"decision","seq":2'


@pytest.mark.parametrize(
    ("n", "torn", "answer"),
    [(9, 0, "ok"), (9, 1, "ok"), (9, 2, "no"), (300, 3, "ok"), (300, 9, "no")],
)
def test_s_lg_01_a_torn_end_is_mentioned_and_does_not_fail(checked, n, torn, answer):
    """One line for each file, or one in a hundred; more is a log that lacks records."""
    made = checked(*sound(n), *[TORN] * torn)
    assert made.lines.answer == answer
    assert made.passed == (answer == "ok" and n > 9)
    assert ("could not be used" in made.lines.says) == bool(torn)
    if torn:
        assert re.search(r"run\.jsonl:\d+ not JSON", made.lines.says)


def test_one_run_of_several_that_fails_fails_the_report(checked):
    """Each is named with its own answers."""
    other = [{**line, "run": "b"} for line in ALL["inert"]()]
    other[0] |= {"config": "b", "experiment": "e", "name": "r2"}
    made = checked(*sound(), *other)
    assert not made.passed
    assert {run.passed for run in made.runs} == {True, False}
    assert [run.name for run in made.runs if not run.passed] == ["r2"]


def test_a_file_that_ends_early_supports_no_claim(tmp_path):
    """Half a packed log looks whole to who counts only the lines that are there."""
    path = tmp_path / "half.jsonl.gz"
    whole = gzip.compress(jsonl(*PAGES["live"]()).encode())
    path.write_bytes(whole[: len(whole) * 3 // 4])
    made = report([str(path)])
    assert check(made).lines.answer == "no"
    assert "ends early" in check(made).lines.says
    assert any("ends early" in one for one in made.runs[0].notices)
    assert made.runs[0].faults.ends_early == (str(path),)
