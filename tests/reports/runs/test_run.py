"""Many files and processes, one run; each record once."""

import gzip
import itertools
import json

import pytest
from tests.reports.byhand import (
    control,
    decision,
    header,
    kv,
    lost,
    outcome,
    reading,
)
from tests.reports.cases import log_of

from admitperf.reports.report import report


def numbers(paths):
    """A report's numbers on its runs, without the files they came from."""
    made = report(paths).to_dict()["runs"]
    return [{**run, "paths": len(run["paths"])} for run in made]


def test_an_outcome_is_joined_by_number_never_by_id(reported):
    """Two requests share an id: the outcome belongs to the one it names."""
    run = reported(
        header(),
        kv(1, 0.95, id="same"),
        kv(2, 0.5, id="same"),
        outcome(2, id="same"),
        outcome(99, id="same"),
    )
    assert run.cost.reported.n == 1
    assert run.cost.refused_but_served == 0
    assert run.faults.without_decision == 1


def test_the_order_of_lines_does_not_matter(write):
    """Threads write side by side: outcomes before decisions give the same report."""
    head, *rest = [
        header(),
        kv(1, 0.5),
        kv(2, 0.95),
        kv(3, 0.4),
        outcome(1),
        outcome(3, ok=False),
    ]
    reports = [
        numbers([write(head, *lines, name=f"{n}.jsonl")])
        for n, lines in enumerate(itertools.permutations(rest))
    ]
    assert all(one == reports[0] for one in reports)


def test_s_lg_05_a_rotated_set_is_one_run_in_any_order(data, tmp_path):
    """Three files, one gzipped, 100 rows, none twice, however they are named."""
    paths = []
    for name in ("decisions.jsonl", "decisions.jsonl.1", "decisions.jsonl.2.gz"):
        raw = (data / "cases" / "s-lg-05" / name).read_bytes()
        packed = name.endswith(".gz")
        made = log_of(gzip.decompress(raw) if packed else raw)
        path = tmp_path / name
        path.write_bytes(gzip.compress(made) if packed else made)
        paths.append(str(path))
    reports = [numbers(list(order)) for order in itertools.permutations(paths)]
    assert all(one == reports[0] for one in reports)
    (run,) = reports[0]
    assert run["answers"]["offered"] == 100
    assert run["faults"]["repeated"] == {}


def test_s_lg_06_the_span_is_monotonic(data, tmp_path):
    """The wall clock fell an hour; t_us did not, and no duration is negative."""
    path = tmp_path / "back.jsonl"
    path.write_bytes(log_of((data / "cases/s-lg-06/clock_back.jsonl").read_bytes()))
    (run,) = report([str(path)]).runs
    assert run.span_s == 99
    assert run.answers.offered == 100


def test_a_file_named_twice_is_read_once(write, tmp_path):
    """By its real path, with a notice."""
    path = write(header(), kv(1, 0.5))
    link = tmp_path / "link.jsonl"
    link.symlink_to(path)
    for paths in ([path, str(link), path], [str(link), path, path]):
        made = report(paths)
        assert made.runs[0].answers.offered == 1
        assert made.files.lines == 2
        assert len(made.files.notices) == 2


def test_a_copied_file_counts_each_record_once(write):
    """What stands in the log twice is told by its number, and said."""
    lines = (header(), kv(1, 0.95), kv(2, 0.5), outcome(2))
    (run,) = report([write(*lines), write(*lines, name="copy.jsonl")]).runs
    assert (run.answers.offered, run.cost.reported.n) == (2, 1)
    assert run.faults.repeated == {"decision": 1 + 1, "outcome": 1}


def test_processes_of_one_run_are_added_up(write):
    """Two processes on one path, the same header but for id and pid: one run."""
    other = {"run": "other", "t_us": 1_790_000_500_000_000}
    path = write(
        header(),
        kv(1, 0.95, facts={"slo_class": "chat"}),
        header(pid=7, **other),
        kv(1, 0.4, **other),
        kv(2, 0.5, signals={"queue_depth": 9}, facts={"slo_class": "batch"}, **other),
        outcome(2, run="other"),
        lost(decision=1, run="other"),
        control("blind", run="other"),
    )
    (run,) = report([path]).runs
    assert run.ids == ("k3f9x2ab", "other")
    assert run.answers.offered == 3
    assert run.cost.reported.n == 1
    assert run.cost.refused_but_served == 0
    spreads = {movement.name: movement.spread for movement in run.signals}
    assert (spreads["kv_pressure"].n, spreads["queue_depth"].n) == (3, 1)
    assert spreads["kv_pressure"].high == 0.95
    assert run.gates[0].asked == 3
    assert run.faults.lost == {"decision": 1}
    assert run.faults.events == {"blind": 1}
    assert run.when.text == "from 2026-09-21 14:13:20Z to 14:21:40Z"


@pytest.mark.parametrize(
    "changes",
    [
        {"policy": "queue_depth"},
        {"config": "ffff"},
        {"params": {"threshold": 0.8}},
        {"experiment": "e2"},
        {"name": "second"},
    ],
)
def test_runs_that_differ_are_not_added_up(write, changes):
    """Policy, configuration, experiment and name make a run."""
    path = write(
        header(), kv(1, 0.5), header(run="other", **changes), kv(1, 0.5, run="other")
    )
    assert [run.answers.offered for run in report([path]).runs] == [1, 1]


def test_the_newest_header_counts(reported):
    """A header is repeated; what changed since the first is believed."""
    first = header()
    run = reported(
        header(notes="late", t_us=first["t_us"] + 60_000_000), first, kv(1, 0.5)
    )
    assert run.header["notes"] == "late"


def test_a_reference_to_a_reading_that_is_not_there_is_counted(reported):
    """It costs no record, and is said."""
    run = reported(
        header(),
        reading(4, {"a": 1}),
        kv(1, 0.5, reading=4),
        kv(2, 0.5, reading=5),
        kv(3, 0.5, reading=None),
        kv(4, 0.5, reading=6),
    )
    assert run.faults.dangling == 2
    assert run.answers.offered == 4


def test_a_reading_of_another_process_is_another(reported):
    """Each process numbers its own."""
    lines = [
        header(),
        header(run="other"),
        reading(4, {"a": 1}, run="other"),
        kv(1, 0.5, reading=4),
    ]
    assert reported(*lines).faults.dangling == 1


def test_a_decision_that_does_not_say_so_was_governed(reported):
    """Absent and null are what the writer leaves out: the usual case."""
    lines = [kv(1, 0.95), kv(2, 0.95, enforced=None), kv(3, 0.95, enforced=False)]
    del lines[0]["enforced"]
    answers = reported(header(), *lines).answers
    assert (answers.enforced, answers.refused_enforced, answers.offered) == (2, 2, 3)


def test_losses_are_added_up(reported):
    """Each lost line counts since the one before it."""
    run = reported(header(), kv(1, 0.5), lost(decision=3), lost(decision=2, reading=1))
    assert run.faults.lost == {"decision": 5, "reading": 1}
    assert (run.faults.lost_decisions.n, run.faults.lost_decisions.of) == (5, 6)


def test_a_newer_schema_is_read_and_said(reported):
    """What it has in common is read; the number is in the faults."""
    run = reported(header(schema=2), kv(1, 0.5))
    assert run.faults.newer_schema == 2
    assert run.answers.offered == 1
    assert reported(header(), kv(1, 0.5)).faults.newer_schema is None


def test_signals_without_end_are_cut_and_counted(reported):
    """A log that invents a signal per line cannot fill the memory."""
    lines = [decision(seq, signals={f"s{seq}": seq}) for seq in range(1, 301)]
    run = reported(header(requires=[]), *lines)
    assert run.faults.signals_left_out == 300 - 256


def test_unknown_is_never_zero_in_a_column(reported):
    """A signal on two of five lines has n 2, and its minimum is its own."""
    lines = [kv(1, 0.5), kv(2, 0.5), kv(3, 0.5), kv(4, 0.5), kv(5, 0.5)]
    lines[1]["signals"]["running"] = 7
    lines[3]["signals"]["running"] = 9
    run = reported(header(), *lines)
    spread = {movement.name: movement.spread for movement in run.signals}["running"]
    assert (spread.n, spread.low, spread.high) == (2, 7, 9)


def test_the_json_report_is_strict_and_has_the_same_numbers(write):
    """Plain types all the way down."""
    path = write(header(), kv(1, 0.95), kv(2, 0.5), outcome(2))
    made = report([path])
    again = json.loads(json.dumps(made.to_dict(), allow_nan=False))
    assert again["runs"][0]["answers"]["offered"] == made.runs[0].answers.offered
    (run,) = again["runs"]
    assert run["finding"]["word"] == "LIVE"
    assert run["when"] == {
        "first_utc": "2026-09-21T14:13:20.100000Z",
        "last_utc": "2026-09-21T14:13:20.200000Z",
    }
    assert run["faults"]["blind_when"] == {"first_utc": None, "last_utc": None}


def test_runs_come_in_the_order_they_began(write):
    """Whatever order the files were named in."""
    early = write(header(run="a", policy="p1"), kv(1, 0.5, run="a"), name="a.jsonl")
    late = write(header(run="b", policy="p2"), kv(5, 0.5, run="b"), name="b.jsonl")
    runs = report([late, early]).runs
    assert [run.ids for run in runs] == [("a",), ("b",)]


ALIKE = ("trace_0581~2/102", "trace_0281~2/105")
"""Two names to which DuckDB's `hash` gives one number."""


def test_names_that_are_built_alike_are_two_requests(write):
    """As ids and as calls: a hash of theirs must not make one of them."""
    lines = [
        decision(seq, id=name, facts={"logical_id": name})
        for seq, name in enumerate(ALIKE, 1)
    ]
    (run,) = report([write(header(), *lines)]).runs
    assert not any("more than one decision" in said for said in run.notices)
    assert run.cost.requests.offered == 2
