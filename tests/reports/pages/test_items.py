"""The seven reporting items: each pass, fail or not carried, liveness first."""

import re

import pytest
from tests.reports.byhand import START_US, decision, header, jsonl, kv, outcome
from tests.reports.example_pages import example
from tests.reports.examples import NOTES, PAGES, SLO

from admitperf.reports.pages import terminology
from admitperf.reports.pages.items import items
from admitperf.reports.report import report
from admitperf.reports.runs.slo import Slo

NAMES = (
    "signal liveness",
    "capacity-relative load",
    "calibrated deadlines",
    "repeats and spread",
    "parameter provenance",
    "metric definition",
    "full configuration",
)


@pytest.fixture
def item(write):
    """One item of the first run of some lines."""

    def _item(name, *lines, slo=None):
        made = report([write(*lines)], slo)
        found = {one.name: one for one in items(made.runs[0], made.runs)}
        return found[name].answer, found[name].says

    return _item


def of_page(page, name):
    """One item of an example's first run."""
    made = example(page)
    found = {one.name: one for one in items(made.runs[0], made.runs)}
    return found[name].answer, found[name].says


@pytest.mark.parametrize("name", PAGES)
def test_all_seven_are_answered_liveness_first(name):
    """On every kind of log, each in one sentence of printable ASCII."""
    made = example(name)
    for run in made.runs:
        asked = items(run, made.runs)
        assert tuple(one.name for one in asked) == NAMES
        for one in asked:
            assert one.answer in ("pass", "fail", "not carried")
            assert re.fullmatch(r"\S[ -~]+\.", one.says), one.says


@pytest.mark.parametrize(
    ("name", "answer", "part"),
    [
        ("live", "pass", "It fired on 55 of 200 (27.5 %); kv_pressure >= 0.9 saw 0.5"),
        ("live", "pass", "all at once on 55 of 200 (27.5 %)"),
        ("inert", "fail", "never fired on 200; kv_pressure >= 0.9 saw 0.07 to 0.44"),
        ("shadow", "pass", "It would have fired on 9 of 50"),
        ("baseline", "pass", "It refuses nothing by design"),
        ("unknown", "not carried", "It decided blind on 100 of 100"),
        ("samples", "pass", "It would have fired on 11 of 60"),
    ],
)
def test_liveness_is_the_range_and_how_often_it_fired(name, answer, part):
    """What the policy reads, where it went, and whether that was enough."""
    said = of_page(name, "signal liveness")
    assert said[0] == answer
    assert part in said[1]


def test_liveness_without_comparisons_says_how_to_record_them(item):
    """A policy whose rule leaves no trace cannot be told from one that never could."""
    answer, says = item("signal liveness", header(requires=[]), decision(1))
    assert answer == "not carried"
    assert "SIGNAL.read(metrics)" in says
    refused = decision(2, "defer", "kv_pressure")
    answer, says = item("signal liveness", header(requires=[]), decision(1), refused)
    assert answer == "pass"
    assert says.startswith("It fired on 1 of 2 (50.0 %); it recorded no comparison")


def _paced(n, gap_us, **notes):
    """A run whose requests come at one pace."""
    yield header(notes=notes)
    for seq in range(1, n + 1):
        yield kv(seq, 0.5, t_us=START_US + seq * gap_us)


@pytest.mark.parametrize(
    ("notes", "answer", "part"),
    [
        ({}, "not carried", 'notes={"capacity_per_s": 12.5}'),
        ({"load": 1.5}, "pass", "1.5 times capacity is stated and cannot be checked"),
        ({"capacity_per_s": 8}, "pass", "10/s (n 401) is 1.25 times the capacity"),
        ({"capacity_per_s": 8, "load": 1.3}, "pass", "1.25 times"),
        ({"capacity_per_s": 8, "load": 2}, "fail", "but 2 times is stated"),
        ({"capacity_per_s": 20}, "pass", "0.50 times the capacity of 20/s: not past"),
        ({"capacity_per_s": 20, "peak_load": 2}, "pass", "2 times is stated at its"),
        ({"capacity_per_s": "8"}, "not carried", "Record"),
        ({"capacity_per_s": True, "load": -1}, "not carried", "Record"),
    ],
)
def test_load_is_a_multiple_of_capacity(item, notes, answer, part):
    """Measured over stated capacity, and held against the multiple that was planned."""
    said = item("capacity-relative load", *_paced(401, 100_000, **notes))
    assert said[0] == answer
    assert part in said[1]


def test_few_random_arrivals_may_miss_the_planned_load(item):
    """Two standard errors of 25 arrivals are 40 %, more than the 5 % of long runs."""
    notes = {"capacity_per_s": 8, "load": 1.6}
    said = item("capacity-relative load", *_paced(25, 100_000, **notes))
    assert said[0] == "pass"
    said = item("capacity-relative load", *_paced(2500, 100_000, **notes))
    assert said[0] == "fail"


@pytest.mark.parametrize(
    ("changes", "slo", "answer", "part"),
    [
        ({}, None, "not carried", "No SLO is declared"),
        ({"slo": SLO}, None, "not carried", 'notes={"slo_from": "5x unloaded TTFT"}'),
        ({"slo": SLO, "notes": NOTES}, None, "pass", "set from: 5x unloaded TTFT"),
        ({"slo": SLO, "notes": NOTES}, "ttft_ms=9", "not carried", "from --slo"),
        ({"slo": {"agent": SLO}}, None, "fail", "1 of 1 ok are of a class without"),
    ],
)
def test_deadlines_say_how_they_were_set(item, changes, slo, answer, part):
    """A bound nobody derived is a number like any other."""
    slo = slo and Slo.parsed(slo)
    lines = (header(**changes), kv(1, 0.5), outcome(1))
    said = item("calibrated deadlines", *lines, slo=slo)
    assert said[0] == answer
    assert part in said[1]


def test_repeats_are_counted_by_what_the_headers_declare():
    """Three is the least; the spread stands beside the count."""
    answer, says = of_page("repeats", "repeats and spread")
    assert answer == "pass"
    assert "3 runs" in says
    assert "goodput median 0.775, 0.7 to 0.775." in says
    answer, says = of_page("live", "repeats and spread")
    assert (answer, says[:6]) == ("fail", "1 run ")
    answer, says = of_page("few", "repeats and spread")
    assert answer == "not carried"
    assert 'experiment="pilot", run="r1"' in says


def test_another_configuration_is_no_repeat(item):
    """Two runs of one name of policy are one arm only with one configuration."""
    lines = []
    for n, config in enumerate(("a", "a", "b"), start=1):
        run = f"r{n}"
        lines.append(header(run=run, name=run, experiment="e", config=config))
        lines.append(kv(1, 0.95, run=run))
    answer, says = item("repeats and spread", *lines)
    assert (answer, says[:6]) == ("fail", "2 runs")


@pytest.mark.parametrize(
    ("changes", "answer", "part"),
    [
        ({}, "pass", "1 of 1 say where from: threshold default"),
        ({"params": {}}, "pass", "no parameters"),
        ({"provenance": {}}, "fail", 'provenance={"threshold": "fitted"}'),
        ({"provenance": {"threshold": "unstated"}}, "fail", "1 of 1 do not say"),
        ({"provenance": {"threshold": "swept"}}, "pass", "threshold swept"),
        ({"params": None}, "not carried", "no parameters"),
    ],
)
def test_each_parameter_says_where_it_comes_from(item, changes, answer, part):
    """Given without an origin is the one thing that fails."""
    said = item("parameter provenance", header(**changes), kv(1, 0.5))
    assert said[0] == answer
    assert part in said[1]


@pytest.mark.parametrize(
    ("lines", "answer", "part"),
    [
        ((kv(1, 0.5), kv(2, 0.5)), "not carried", "call policy.outcome("),
        ((kv(1, 0.5), kv(2, 0.5), outcome(1)), "fail", "only 1 of 2 (50.0 %)"),
        ((kv(1, 0.5), kv(2, 0.95), outcome(1)), "pass", "goodput 1 of 2 is attempts"),
    ],
)
def test_the_metric_says_what_it_divides_by(item, lines, answer, part):
    """Offered, refused ones too; a number with outcomes missing is only a bound."""
    said = item("metric definition", header(slo=SLO), *lines)
    assert said[0] == answer
    assert part in said[1]


def test_the_metric_of_samples_is_none():
    """Nothing was asked for, so nothing was met."""
    answer, says = of_page("samples", "metric definition")
    assert answer == "not carried"
    assert "No request stood behind a sample" in says


def test_the_configuration_names_what_is_missing(item):
    """Seven facts; each missing one by the name under which to record it."""
    facts = (kv(1, 0.95), outcome(1))
    answer, says = item("full configuration", header(), *facts)
    assert (answer, says[:6]) == ("not carried", "0 of 7")
    answer, says = item("full configuration", header(slo=SLO, notes=NOTES), *facts)
    assert answer == "fail"
    assert "6 of 7 are stated: record baseline" in says
    whole = NOTES | {"baseline": "no_admission"}
    answer, says = item("full configuration", header(slo=SLO, notes=whole), *facts)
    assert answer == "pass"
    assert "hardware 1x A100-40GB" in says
    less = {name: value for name, value in whole.items() if name != "hardware"}
    lines = (header(slo=SLO, notes=less | {"simulated": True}), *facts)
    answer, says = item("full configuration", *lines)
    assert answer == "pass"
    assert "hardware a simulated engine" in says


def test_notes_in_free_text_carry_no_fact_that_could_be_asked_for(item):
    """They may say everything, and nothing can be read from them by name."""
    lines = (header(notes="A100, Qwen, vllm"), kv(1, 0.5))
    assert item("full configuration", *lines)[0] == "not carried"


def test_the_baseline_may_be_another_run_of_the_same_experiment(write):
    """It was really run: its log is there."""
    lines = [header(slo=SLO, notes=NOTES, experiment="e", name="r1"), kv(1, 0.95)]
    free = {"run": "b", "policy": "no_admission", "taxonomy": {"baseline": True}}
    other = jsonl(header(experiment="e", name="r1", **free), decision(1, run="b"))
    paths = [write(*lines, name="a"), write(other.rstrip("\n"), name="b")]
    made = report(paths)
    (run,) = (run for run in made.runs if run.ids != ("b",))
    answered = items(run, made.runs)[-1]
    assert answered.answer == "pass"
    assert "baseline no_admission" in answered.says
    assert items(run, (run,))[-1].answer == "fail"


def test_every_item_is_a_term_of_the_survey():
    """Its notion is not ours, and the page of terms says so."""
    marked = [terminology.term(name).origin for name in NAMES]
    assert set(marked) == {terminology.SURVEY}


@pytest.mark.parametrize(("above", "answer"), [(0.95, "pass"), (0.5, "fail")])
def test_below_capacity_a_policy_need_not_fire(write, above, answer):
    """Where it fired above capacity, in the same experiment, it was alive."""
    paths = []
    for name, load, pressure in (("low", 0.5, 0.5), ("high", 1.5, above)):
        head = header(run=name, name=name, experiment="e", notes={"load": load})
        lines = [{**kv(n, pressure), "run": name} for n in range(1, 4)]
        paths.append(write(head, *lines, name=f"{name}.jsonl"))
    made = report(paths).runs
    low = next(run for run in made if run.header["name"] == "low")
    liveness, *_ = items(low, made)
    assert liveness.answer == answer
    assert ("fired in 1 of 1 run above it" in liveness.says) == (answer == "pass")
    assert items(low)[0].answer == "fail"
