"""A run over time, held against loops over its lines."""

import json
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reports.byhand import START_US, decision, header, jsonl, kv, outcome
from tests.reports.example_sheets import document_on, example_document
from tests.reports.examples import ALL

from admitperf.reports.pages.document import document
from admitperf.reports.report import reported
from admitperf.reports.series.series import (
    MOST_FINE,
    MOST_REASONS,
    MOST_SIGNALS,
    series,
)


@pytest.fixture
def over_time(write):
    """The series of the one run that some lines make."""

    def _over_time(*lines, **options):
        (run,) = document_on([write(*lines)], **options)["runs"]
        return run["series"]

    return _over_time


def by_bin(values, width_us):
    """Smallest, mean and largest of (microseconds, value) pairs by bin."""
    binned = {}
    for t_us, value in values:
        if value is not None:
            binned.setdefault(t_us // width_us, []).append(value)
    return {
        place: (len(some), min(some), sum(some) / len(some), max(some))
        for place, some in binned.items()
    }


points = st.lists(
    st.tuples(
        st.integers(0, 10**8),
        st.one_of(st.none(), st.floats(-1e6, 1e6, allow_nan=False)),
    ),
    min_size=1,
    max_size=60,
)


@settings(max_examples=25, deadline=None)
@given(points=points)
def test_every_bin_keeps_its_smallest_and_its_largest_value(points, tmp_path_factory):
    """Against loops over the same lines; so no spike is lost, wherever it falls."""
    path = tmp_path_factory.mktemp("log") / "run.jsonl"
    lines = [
        decision(
            seq,
            t_us=START_US + t_us,
            signals={} if value is None else {"queue_depth": value, "kv_pressure": 0},
        )
        for seq, (t_us, value) in enumerate(points)
    ]
    path.write_text(jsonl(header(), *lines), encoding="utf-8")
    (run,) = document_on([str(path)])["runs"]
    found = [one for one in run["series"]["signals"] if one["name"] == "queue_depth"]
    values = {value for _, value in points if value is not None}
    assert bool(found) == (len(values) > 1), "one that stood still has no course"
    for one in found:
        first = min(t_us for t_us, _ in points)
        width_us = round(run["series"]["fine"]["bin_s"] * 1e6)
        due = by_bin([(t - first, value) for t, value in points], width_us)
        for place in range(len(run["series"]["fine"]["from_s"])):
            n, low, mean, high = due.get(place, (0, None, None, None))
            assert (one["n"][place], one["low"][place], one["high"][place]) == (
                n,
                low,
                high,
            )
            assert one["mean"][place] == (
                None if mean is None else pytest.approx(mean, abs=1e-6)
            )


@pytest.mark.parametrize("name", ALL)
def test_counts_over_time_add_up_to_the_reports(name):
    """Answers, offered, admitted and goodput: nothing is in two bins or in none."""
    (run,) = example_document(name)["runs"]
    made, said = run["series"], run["answers"]
    assert sum(made["offered"]) == made["decisions"] == said["offered"]
    assert sum(made["admitted"]) == said["admitted"]
    assert {
        (one["verdict"], one["reason"], one["blind"]): sum(one["n"])
        for one in made["answers"]
    } == {
        (one["verdict"], one["reason"], one["blind"]): one["n"] for one in said["rows"]
    }
    for place, n in enumerate(made["offered"]):
        assert sum(one["n"][place] for one in made["answers"]) == n
    good = run["cost"]["goodput"]
    assert (made["good"] is None) == (good is None)
    if good is not None:
        assert sum(made["good"]) == good["n"]


@pytest.mark.parametrize("name", ALL)
def test_a_signals_range_over_time_is_the_reports(name):
    """The smallest of the smallest, the largest of the largest, and every value."""
    (run,) = example_document(name)["runs"]
    ranges = {one["name"]: one["spread"] for one in run["signals"]}
    for one in run["series"]["signals"]:
        spread = ranges[one["name"]]
        assert min(v for v in one["low"] if v is not None) == spread["low"]
        assert max(v for v in one["high"] if v is not None) == spread["high"]
        assert sum(one["n"]) == spread["n"]


def test_what_gates_compare_comes_first_then_what_moved(over_time):
    """A signal that stood still and that nobody compared has no course to show."""
    signals = {"kv_pressure": 0.5, "queue_depth": 1, "running": 3}
    lines = [
        decision(seq, signals={**signals, "queue_depth": seq}, gates=[gate])
        for seq in range(1, 31)
        for gate in [["kv_pressure", 0.5, ">=", 0.9, False]]
    ]
    names = [one["name"] for one in over_time(header(), *lines)["signals"]]
    assert names == ["kv_pressure", "queue_depth"]


def test_a_number_that_only_gates_know_is_shown_from_them(over_time):
    """A policy may compare what it derived itself."""
    lines = [
        decision(seq, gates=[["rate", seq * 2.0, ">", 500.0, False]])
        for seq in range(1, 31)
    ]
    (one,) = over_time(header(), *lines)["signals"]
    assert (one["name"], one["derived"], sum(one["n"])) == ("rate", True, 30)
    assert min(v for v in one["low"] if v is not None) == 2
    assert max(v for v in one["high"] if v is not None) == 60


def test_a_bound_that_moves_is_kept_by_bin(over_time):
    """Its lowest and highest in each bin, as the lines have it."""
    bounds = {seq: 0.5 + seq % 13 / 100 for seq in range(1, 400)}
    lines = [
        decision(
            seq,
            t_us=START_US + seq * 1000,
            signals={"kv_pressure": 0.4},
            gates=[["kv_pressure", 0.4, ">=", bound, False]],
        )
        for seq, bound in bounds.items()
    ]
    made = over_time(header(), *lines)
    (one,) = made["bounds"]
    width_us = round(made["fine"]["bin_s"] * 1e6)
    due = by_bin([((seq - 1) * 1000, at) for seq, at in bounds.items()], width_us)
    for place, (_, low, _, high) in due.items():
        assert (one["low"][place], one["high"][place]) == (low, high)
    assert len(due) < len(bounds), "several stand in one bin, or nothing is tested"


def test_a_bound_that_stands_still_has_no_series(over_time):
    """It is one number, in the gate."""
    lines = [kv(seq, seq / 100) for seq in range(1, 91)]
    assert over_time(header(), *lines)["bounds"] == []


def test_rare_reasons_are_one(over_time):
    """Ten thousand reasons are not ten thousand lines in a plot; none is lost."""
    lines = [decision(seq, "reject", f"r{seq % 50}") for seq in range(1, 501)]
    made = over_time(header(), *lines)
    assert len(made["answers"]) == MOST_REASONS
    assert made["answers"][-1]["reason"] == "others"
    assert sum(sum(one["n"]) for one in made["answers"]) == 500


def test_many_signals_are_cut_and_counted(over_time):
    """The first that fit, and how many more moved."""
    names = [f"x{place}" for place in range(60)]
    lines = [decision(seq, signals=dict.fromkeys(names, seq)) for seq in range(1, 11)]
    made = over_time(header(), *lines)
    assert len(made["signals"]) == MOST_SIGNALS
    assert made["signals_left_out"] == 60 - MOST_SIGNALS


def test_decisions_without_a_time_are_counted_and_in_no_bin(over_time):
    """A run that has no times at all has no bins."""
    lines = [
        kv(seq, seq / 100, **({"t_us": 0} if seq % 3 == 0 else {}))
        for seq in range(1, 61)
    ]
    made = over_time(header(), *lines)
    assert (made["decisions"], made["untimed"]) == (40, 20)
    none = over_time(header(), *({**line, "t_us": 0} for line in lines))
    assert (none["fine"], none["coarse"], none["untimed"]) == (None, None, 60)
    assert none["signals"] == none["answers"] == none["offered"] == []


def test_a_log_without_decisions_has_no_bins(over_time):
    """Nothing happened, at no time."""
    assert over_time(header())["fine"] is None


def test_goodput_counts_a_call_where_it_arrived(over_time):
    """However late its outcome came; without outcomes there is none."""
    lines = [decision(seq, t_us=START_US + seq * 1_000_000) for seq in range(30)]
    assert over_time(header(), *lines)["good"] is None
    late = [outcome(0, t_us=START_US + 29_000_000, ttft_ms=400)]
    made = over_time(header(slo={"ttft_ms": 500}), *lines, *late)
    assert made["good"][0] == 1
    assert sum(made["good"]) == 1


def test_runs_of_several_processes_and_policies_stand_apart(write):
    """Each has bins of its own, from its own first decision."""
    early = [kv(seq, seq / 100, run="a") for seq in range(1, 51)]
    late = [
        kv(seq, 0.5 + seq / 100, run="b", t_us=START_US + 10**9 + seq)
        for seq in range(1, 31)
    ]
    path = write(
        header(run="a", name="one"), header(run="b", name="two"), *early, *late
    )
    first, second = (run["series"] for run in document_on([path])["runs"])
    assert (first["decisions"], second["decisions"]) == (50, 30)
    assert second["fine"]["from_s"][0] == 0
    assert second["fine"]["bin_s"] < first["fine"]["bin_s"]


def test_only_the_first_runs_are_asked_when_so_told(write):
    """A page shows six; the others are null in the document."""
    lines = [
        line
        for name in "abc"
        for line in (header(run=name, name=name), kv(1, 0.5, run=name))
    ]
    with reported([write(*lines)]) as (log, made):
        some = series(log, made, 2)
    assert [one is None for one in some] == [False, False, True]
    assert document(made, series=some)["runs"][2]["series"] is None


def test_a_document_without_series_is_as_before(write):
    """No key that nobody asked for."""
    with reported([write(header(), kv(1, 0.5))]) as (_, made):
        assert "series" not in document(made)["runs"][0]


def test_few_decisions_have_few_bins(over_time):
    """Else most would be empty, and a line would be dots."""
    made = over_time(header(), *(kv(seq, seq / 100) for seq in range(1, 31)))
    assert all(made["signals"][0]["n"])


def test_many_decisions_stay_small():
    """The size of a document does not grow with the log: so many bins, no more."""
    made = example_document("live")["runs"][0]["series"]
    lengths = Counter(len(one["low"]) for one in made["signals"])
    assert set(lengths) == {len(made["fine"]["from_s"])}
    assert len(made["fine"]["from_s"]) <= MOST_FINE
    assert json.dumps(made, allow_nan=False)
