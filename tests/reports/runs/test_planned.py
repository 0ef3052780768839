"""What a plan offered is the denominator, whatever was asked of it."""

import json

import pytest
from tests.reports.byhand import call, decision, header, jsonl, outcome

from admitperf.reports.pages import render
from admitperf.reports.pages.items import items
from admitperf.reports.report import Report, report
from admitperf.reports.runs.log import Files
from admitperf.reports.runs.slo import Slo

_NO_FILES = Files()

SLO = {"new<=512": {"ttft_ms": 500, "stall_ms": 100}}


def asked(number, **changes):
    """A call that was asked once and answered: its three lines."""
    facts = {"logical_id": f"s{number}/0"}
    return [
        decision(number, facts=facts),
        outcome(number),
        call(number, **changes),
    ]


def plan_of(reported, *lines, slo=SLO, **options):
    """What the report says of a plan."""
    return reported(header(slo=slo), *lines, **options).planned


def share(part):
    """A share as (n, of)."""
    return part.n, part.of


def test_what_was_never_asked_is_offered_and_missed(reported):
    """A session that a refusal ended has calls the log has no decision for."""
    run = reported(
        header(slo=SLO),
        *asked(1),
        call(2, "refused", status=503),
        *(call(2, "never_sent", id=f"s2/{place}", place=place) for place in (1, 2)),
    )
    assert share(run.planned.goodput) == (1, 4)
    assert share(run.planned.never_asked) == (2, 4)
    assert share(run.planned.sessions) == (1, 2)
    assert run.planned.ended == {"never_sent": 2, "answered": 1, "refused": 1}
    assert run.goodput == run.planned.goodput
    assert share(run.cost.requests.goodput) == (1, 1)
    (said,) = [said for said in run.notices if "never asked" in said]
    assert "offered 4 calls; 2 of 4 (50.0 %)" in said


@pytest.mark.parametrize(
    ("changes", "good"),
    [
        ({}, True),
        ({"ttft_ms": 500}, True),
        ({"ttft_ms": 501}, False),
        ({"ttft_ms": None}, False),
        ({"max_gap_ms": 101}, False),
        ({"max_gap_ms": None}, True),
        ({"slo_class": "unheard of"}, True),
        ({"ended": "cancelled"}, True),
        ({"ended": "cancelled", "ttft_ms": None}, False),
        ({"ended": "unfinished"}, False),
        ({"ended": "failed"}, False),
        ({"ended": "refused"}, False),
    ],
)
def test_a_call_is_good_on_its_callers_clock(reported, changes, good):
    """In time, no stall, and not for one that its caller left before it began."""
    assert plan_of(reported, *asked(1, **changes)).goodput.n == good


def test_the_rule_is_that_of_the_benchmark(reported):
    """Report and summary count the same calls as good."""
    from admitperf.bench.callers.records import record
    from admitperf.bench.callers.slo import Slo as Objective

    lines = [
        call(n, ended, ttft_ms=ttft, max_gap_ms=gap, kind="", tenant=None)
        for n, (ended, ttft, gap) in enumerate(
            (ended, ttft, gap)
            for ended in ("answered", "cancelled", "refused", "unfinished")
            for ttft in (None, 500, 501)
            for gap in (None, 100, 101)
        )
    ]
    plain = [{k: v for k, v in line.items() if v is not None} for line in lines]
    objective = Objective(classes=SLO)
    good = sum(objective.good(record(line)) for line in plain)
    assert 0 < good < len(lines)
    assert plan_of(reported, *plain).goodput.n == good


def test_bounds_of_no_class_are_for_all_others(reported):
    """A class that is not named is held to those of "" where there are any."""
    slo = {**SLO, "": {"ttft_ms": 1}}
    lines = [*asked(1), *asked(2, slo_class="other")]
    assert plan_of(reported, *lines, slo=slo).goodput.n == 1
    assert plan_of(reported, *lines).goodput.n == 2
    everyone = Slo.parsed("ttft_ms=1")
    run = reported(header(slo=SLO), *lines, slo=everyone)
    assert run.planned.goodput.n == 0


def test_only_the_scored_window_counts(reported):
    """What began before or after made load, and is not judged."""
    plan = plan_of(reported, *asked(1), *asked(2, scored=False))
    assert (plan.calls, plan.offered, share(plan.goodput)) == (2, 1, (1, 1))


def test_a_call_counts_once(reported):
    """A file that was copied holds every line twice."""
    plan = plan_of(reported, *asked(1), call(1))
    assert (plan.calls, plan.goodput.n) == (1, 1)


def test_lines_belong_to_the_run_of_their_file(write):
    """Two files, two plans, and neither is mixed up with the other."""
    paths = []
    for run, calls in (("a", 1), ("b", 3)):
        lines = [line for n in range(calls) for line in asked(n + 1)]
        log = [header(run=run, name=run), *lines]
        log = [line if line["k"] == "call" else {**line, "run": run} for line in log]
        paths.append(write(*log, name=f"{run}.jsonl"))
    made = report(paths)
    assert sorted(run.planned.calls for run in made.runs) == [1, 3]


def test_in_a_file_of_several_runs_a_line_must_name_its_own(write):
    """It is counted where it says, and told of where it does not say."""
    log = [
        header(run="a", name="a"), decision(1, run="a"), call(1, run="a"),
        header(run="b", name="b"), decision(1, run="b"), call(2, run="b"), call(3),
    ]  # fmt: skip
    made = report([write(*log)])
    assert [run.planned.calls for run in made.runs] == [1, 1]
    assert made.files.notices == [
        (
            "1 call line name no run, and their file holds none or several: they are"
            " in no number"
        )
    ]


def test_a_warm_up_does_not_touch_the_plan(reported):
    """The plan has its own, and it is said."""
    run = reported(header(slo=SLO), *asked(1), *asked(2), warmup="1")
    assert (run.cost.offered, run.planned.offered) == (1, 2)
    assert any("--warmup 1 left out decisions" in said for said in run.notices)


def test_without_call_lines_there_is_no_plan(reported):
    """And goodput is of calls, as before."""
    run = reported(header(slo=SLO), *asked(1)[:2])
    assert run.planned is None
    assert run.goodput == run.cost.requests.goodput


def test_the_page_says_whose_goodput_it_is(reported):
    """The headline and the section name planned calls; nothing is `at least`."""
    lines = [*asked(1), decision(9, facts={"logical_id": "s9/0"}), call(9, "failed")]
    run = reported(header(slo=SLO), *lines)
    page = render.text(Report((run,), files=_NO_FILES))
    assert "goodput       0.500 = 1 of 2 planned calls offered" in page
    assert "never asked   0 of 2 (0.0 %) planned calls" in page
    metric = next(one for one in items(run) if one.name == "metric definition")
    assert metric.answer == "pass"
    assert "1 of 2 is planned calls" in metric.says


@pytest.mark.parametrize(("reached", "answer"), [(1.18, "pass"), (1.5, "fail")])
def test_the_load_of_a_plan_is_what_it_reached(reported, reached, answer):
    """The rate of what was asked depends on the answers; the plan's does not."""
    notes = {"load": 1.2, "load_reached": reached, "capacity_per_s": 4.0}
    lines = [line for n in range(1, 401) for line in asked(n)]
    run = reported(header(slo=SLO, notes=notes), *lines)
    load = next(one for one in items(run) if one.name == "capacity-relative load")
    assert load.answer == answer
    assert f"The plan (n 400) offers {reached} times" in load.says


def test_a_manifest_alone_says_what_was_offered(tmp_path):
    """Where the lines of the calls were left out, their number is not."""
    folder = tmp_path / "x1.2-b1"
    folder.mkdir()
    log = jsonl(header(slo=SLO), *asked(1)[:2])
    (folder / "decisions.jsonl").write_text(log, encoding="utf-8")
    manifest = {"calls_offered": 9, "order": 3, "notes": {"model": "m"}}
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    (run,) = report([str(folder)]).runs
    assert run.planned is None
    assert run.header["notes"] == {"model": "m", "calls_offered": 9}
    assert any("The plan offered 9 calls" in said for said in run.notices)
