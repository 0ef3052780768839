"""The numbers beside the metric: the middle run above capacity, computed nowhere."""

import math
from dataclasses import replace

import pytest

from admitperf.bench.pages import middles, page

WHOLE = {
    "ttft_offered_ms": {"n": 60, "p50": 90.0, "p95": 4000.0, "infinite": False},
    "ttft_served_ms": {"n": 50, "p50": 80.0, "p95": 1200.0, "p99": None},
    "refusal_ms": {"n": 10, "p50": 1.25, "p95": None, "p99": None},
    "late_ms": {"n": 60, "p50": 0.5, "p99": 2.5, "max": 3.0},
    "decide_us": {"n": 60, "p50": 287.3, "p99": 801.8},
    "attempts_per_call": 1.5,
    "wasted_share": 0.25,
    "session_goodput": 0.625,
    "work_goodput": 0.75,
    "jain": 0.875,
    "cost_per_good": 0.0125,
}
NEVER = {"n": 60, "p50": 90.0, "p95": None, "infinite": True}


@pytest.fixture(scope="module")
def some(runs):
    """Three runs of one arm."""
    return [run for run in runs if run.arm == "bounded"][:3]


def told(runs, *summaries):
    """The runs with these summaries."""
    return [replace(run, summary=one) for run, one in zip(runs, summaries, strict=True)]


def shown(runs):
    """The page's lines for the arm of these runs, as words."""
    lines = middles.table(["bounded"], runs)
    return [line.split() for line in lines if line.startswith("  bounded")]


def test_every_number_is_a_summarys(some):
    """In the order of the heads; three runs alike, so the middle is each."""
    first, second = shown(told(some, WHOLE, WHOLE, WHOLE))
    assert first == ["bounded", "4000", "1200", "1.25", "2.5", "287", "802"]
    assert second == [
        "bounded", "1.500", "0.250", "0.625", "0.750", "0.875", "0.0125",
    ]  # fmt: skip


@pytest.mark.parametrize("name", WHOLE)
def test_every_number_is_the_middle_of_the_runs(some, name):
    """One that is 1 or 100 times as large moves none; two move it."""

    def times(by):
        one = WHOLE[name]
        if not isinstance(one, dict):
            return WHOLE | {name: one * by}
        return WHOLE | {
            name: {
                key: value * by if isinstance(value, float) else value
                for key, value in one.items()
            }
        }

    alike = shown(told(some, WHOLE, WHOLE, WHOLE))
    assert shown(told(some, times(0.5), WHOLE, times(1.25))) == alike
    assert shown(told(some, WHOLE, times(1.25), times(1.25))) != alike


def test_a_tail_that_never_came_is_a_word(some):
    """Where the middle run's is infinite, and not where one of three is."""
    never = WHOLE | {"ttft_offered_ms": NEVER}
    assert middles.offered_p95(told(some, WHOLE, never, never)) == math.inf
    assert middles.offered_p95(told(some, WHOLE, WHOLE, never)) == 4000.0
    first, _ = shown(told(some, never, never, never))
    assert first[:3] == ["bounded", "infinite", "1200"]


def test_a_tail_of_too_few_is_not_known(some):
    """Nor infinite: the summary says that it is not."""
    few = WHOLE | {"ttft_offered_ms": NEVER | {"infinite": False}}
    first, _ = shown(told(some, few, few, few))
    assert first[:3] == ["bounded", "--", "1200"]


def test_what_no_arm_has_is_no_column(some):
    """But for the tails, which stand together or not at all."""
    bare = {"attempts_per_call": 1.0, "jain": None}
    lines = [*middles.table(["bounded"], told(some, bare, bare, bare))]
    assert "Jain" not in " ".join(lines)
    assert "cost" not in " ".join(lines)
    assert shown(told(some, bare, bare, bare)) == [
        ["bounded", "--", "--"],
        ["bounded", "1.000"],
    ]


def test_the_page_has_each_arm_and_the_baseline_above_capacity(verdicts, runs):
    """Runs below are left out; without runs there is no such table."""
    text = page.text(verdicts, runs)
    section = text.split("Beside it: ")[1].split("\n\n")[0]
    assert section.startswith("the middle run of 6 blocks at 1.2x, 1.5x\n")
    for curve in verdicts.curves:
        own = [run for run in runs if run.arm == curve.arm and run.load > 1]
        p95 = middles.served_p95(own)
        row = next(
            line.split()
            for line in section.splitlines()
            if line.split()[0] == curve.arm
        )
        assert row[2] == f"{p95:.0f}", row
    assert "Beside it" not in page.text(verdicts)
    below = [run for run in runs if run.load < 1]
    assert "Beside it" not in page.text(verdicts, below)


def test_it_keeps_to_80_columns(verdicts, runs):
    """With every column, and a long name."""
    long = "a_policy_with_a_name_that_is_very_long_indeed"
    every = [replace(run, arm=long, summary=WHOLE) for run in runs]
    lines = [*middles.table([long], every)]
    assert max(map(len, lines)) <= 80
    assert all(line.isascii() for line in lines)
