"""What a page supplies, and why it does not supply the rest."""

import json

import pytest
from tests.engines.pages import cases, load, same

from admitperf.core.series import Series
from admitperf.core.signals import ALL, ENGINE, KV_PRESSURE
from admitperf.engines.exposition import parse
from admitperf.scrape.fault import ScrapeError
from admitperf.scrape.survey import BETWEEN_S, survey, survey_all
from admitperf.scrape.target import Sample

VLLM = (
    b'vllm:kv_cache_usage_perc{engine="0"} 0.91\n'
    b'vllm:kv_cache_usage_perc{engine="1"} 0.34\n'
    b"vllm:num_requests_running 3\nvllm:num_requests_waiting 0\n"
    b"vllm:prefix_cache_queries_total 100\nvllm:prefix_cache_hits_total 10\n"
)
LATER = VLLM.replace(b"queries_total 100", b"queries_total 200").replace(
    b"hits_total 10", b"hits_total 85"
)


def sample(body, asked_s=None, **facts):
    """A page as a target gives it; with `asked_s`, as an endpoint does."""
    live = {"asked_ns": int(asked_s * 1e9), "took_s": 0.02} if asked_s else {}
    known = {"asked_ns": None, "took_s": None, "wall_s": 1e9, "drains": False, "cut": 0}
    return Sample(parse(body), **{**known, **live, **facts})


class Target:
    """Gives samples, or raises faults, one after the other."""

    def __init__(self, *answers, again=True):
        self.answers = list(answers)
        self.again = again
        self.shown = "there"

    def read(self):
        """The next answer."""
        answer = self.answers.pop(0)
        if isinstance(answer, ScrapeError):
            raise answer
        return answer


def lines(found):
    """The lines of a survey by signal."""
    return {line.signal.name: line for line in found.lines}


def fault():
    """Some fault of a target."""
    return ScrapeError("refused", "there", "nobody listens")


def test_every_signal_has_a_line():
    """None is left out, supplied or not, and each either has a value or a why."""
    found = survey("there", sample(VLLM))
    assert [line.signal for line in found.lines] == list(ALL)
    assert all((line.value is None) is (line.why is not None) for line in found.lines)


def test_a_supplied_signal_says_from_what():
    """Value, source and rule of combination, and each engine's own value."""
    line = lines(survey("there", sample(VLLM, asked_s=5)))["kv_pressure"]
    assert line.value == 0.91
    assert line.source == "vllm_kv_cache_usage_perc max"
    assert line.parts == {"engine=0": 0.91, "engine=1": 0.34}
    assert line.age_s == 0.02


def test_a_file_does_not_say_how_old_it_is():
    """An age that is not known is not 0."""
    assert lines(survey("there", sample(VLLM)))["kv_pressure"].age_s is None


def test_a_sample_with_its_own_time_is_dated_by_it():
    """What a federating proxy kept for a minute is a minute old, and said to be."""
    body = b"vllm:kv_cache_usage_perc 0.5 1000000000000\nvllm:num_requests_running 1\n"
    found = survey("there", sample(body, asked_s=5, wall_s=1_000_000_060.0))
    assert lines(found)["kv_pressure"].age_s == 60.0
    assert lines(found)["running"].age_s == 0.02
    (warning,) = found.warnings
    assert "kv_pressure: 60.0 s old" in warning


def test_what_is_counted_over_time_needs_two_readings():
    """One page does not make a rate, and the counters are named, not mapped."""
    line = lines(survey("there", sample(VLLM)))["prefix_hit_rate"]
    assert line.value is None
    assert line.why == (
        "needs two readings: vllm_prefix_cache_hits_total / queries_total"
    )
    assert line.add_source is None


def test_two_readings_supply_what_is_counted_over_time():
    """75 of 100 lookups between the two, not 85 of 200 since the start."""
    found = survey("there", sample(VLLM, asked_s=5), sample(LATER, asked_s=6))
    assert lines(found)["prefix_hit_rate"].value == 0.75
    assert found.window_s == 1.0


def test_nothing_counted_is_not_a_rate_of_zero():
    """An idle second has no hit rate."""
    found = survey("there", sample(VLLM, asked_s=5), sample(VLLM, asked_s=6))
    line = lines(found)["prefix_hit_rate"]
    assert line.value is None
    assert "nothing counted in 1.0 s" in line.why


def test_a_missing_signal_names_what_comes_nearest():
    """Gauges on the page, no counters or parts of histograms, and the line for one."""
    body = b"vllm:num_requests_running 1\nacme_kv_cache_used 0.3\n"
    body += b'acme_kv_cache_seconds_bucket{le="1"} 4\nacme_kv_cache_created 1e9\n'
    body += b"acme_kv_cache_total 4\nacme_kv_cache_sum 4\nacme_kv_cache_count 4\n"
    line = lines(survey("there", sample(body)))["kv_pressure"]
    assert line.nearest == ("acme_kv_cache_used",)
    assert line.add_source == 'KV_PRESSURE.add_source("acme_kv_cache_used")'


def test_the_line_to_map_one_works():
    """Pasted into Python it supplies the signal."""
    page = parse(b"acme_kv_cache_used 0.3\nvllm:num_requests_running 1\n")
    line = lines(survey("there", sample(b"acme_kv_cache_used 0.3\n")))["kv_pressure"]
    before = KV_PRESSURE.sources
    try:
        eval(line.add_source, {"KV_PRESSURE": KV_PRESSURE})
        assert KV_PRESSURE.find(Series(page))[1].value == 0.3
    finally:
        KV_PRESSURE.sources = before


def test_what_an_engine_lacks_is_said_in_its_own_words():
    """The table of the engine knows why, and who else would."""
    line = lines(survey("there", sample(VLLM)))["gpu_util"]
    assert line.why == "vLLM: read the DCGM or AMD exporter"


@pytest.mark.parametrize("name", ["attempt", "in_flight", "deadline_slack_s"])
def test_what_no_engine_knows_comes_from_the_host(name):
    """Signals of requests and of the ledger are not missing from the page."""
    line = lines(survey("there", sample(VLLM)))[name]
    assert "host" in line.why or "policy" in line.why


@pytest.mark.parametrize("name", ["attempt", "in_flight", "deadline_slack_s"])
def test_no_name_is_offered_for_what_no_engine_knows(name):
    """A page that has such a name is still not the one to ask."""
    page = sample(VLLM + b"attempt_now 1\nin_flight_now 2\ndeadline_slack_s_now 3\n")
    line = lines(survey("there", page))[name]
    assert (line.nearest, line.add_source) == ((), None)


def test_one_line_that_cannot_be_read_is_one():
    """`1 line`, and `2 lines`."""
    for count, said in ((1, "1 line of the page"), (2, "2 lines of the page")):
        (warning,) = survey("there", sample(VLLM + b"no sample\n" * count)).warnings
        assert warning == f"{said} cannot be read"


def test_a_value_out_of_range_is_skipped_and_said():
    """43 is no fraction: not clamped, not supplied, and named with its range."""
    body = VLLM.replace(b"0.91", b"43").replace(b"0.34", b"NaN")
    found = survey("there", sample(body))
    line = lines(found)["kv_pressure"]
    assert line.value is None
    assert line.why == "on the page, but not usable"
    assert [w for w in found.warnings if "(0..1): skipped" in w and "= 43" in w]


def test_one_engine_out_of_range_leaves_the_others():
    """What is usable counts, and what was left out is said."""
    found = survey("there", sample(VLLM.replace(b"0.91", b"1.7")))
    assert lines(found)["kv_pressure"].value == 0.34
    assert any("= 1.7" in warning for warning in found.warnings)


def test_a_page_of_no_known_engine_is_a_failed_scrape():
    """Numbers of something else are no idle engine; the nearest names still help."""
    found = survey("there", sample(b"python_info 1\nacme_queue_depth_now 3\n"))
    assert found.error.kind == "no_known_series"
    assert "acme_queue_depth_now" in lines(found)["queue_depth"].nearest


def test_a_page_cut_short_is_shown_and_is_an_error():
    """What is there may lack an engine, so nobody should build on it."""
    found = survey("there", sample(VLLM, cut=True))
    assert found.error.kind == "cut"
    assert lines(found)["kv_pressure"].value == 0.91


def test_an_endpoint_is_read_twice_with_one_pause_for_all():
    """Two engines take one second together."""
    pauses = []
    targets = [
        Target(sample(VLLM, asked_s=n), sample(LATER, asked_s=n + 1)) for n in (5, 7)
    ]
    found = survey_all(targets, pauses.append)
    assert pauses == [BETWEEN_S]
    assert [lines(one)["prefix_hit_rate"].value for one in found] == [0.75, 0.75]


@pytest.mark.parametrize(
    "target",
    [
        Target(sample(VLLM), again=False),
        Target(sample(b'[{"numQueuedRequests": 3}]', asked_s=5, drains=True)),
        Target(fault()),
    ],
    ids=["file", "drains", "failed"],
)
def test_what_gives_nothing_new_is_read_once(target):
    """A file, a page that reading empties, an engine that is not there: no pause."""
    pauses = []
    survey_all([target], pauses.append)
    assert pauses == []
    assert target.answers == []


def test_once_is_once():
    """Whoever wants no second reading waits for none."""
    pauses = []
    (found,) = survey_all([Target(sample(VLLM, asked_s=5))], pauses.append, once=True)
    assert pauses == []
    assert found.window_s is None


def test_draining_is_warned_of():
    """Looking took the numbers from whoever else reads that endpoint."""
    body = b'[{"numQueuedRequests": 3}]'
    found = survey("there", sample(body, asked_s=5, drains=True))
    assert lines(found)["queue_depth"].value == 3
    assert "hands each iteration's numbers out once" in found.warnings[0]


def test_a_second_reading_that_fails_leaves_the_first():
    """The engine that went away is shown as it was, and is an error."""
    found = survey("there", sample(VLLM, asked_s=5), fault())
    assert found.error.kind == "refused"
    assert lines(found)["kv_pressure"].value == 0.91


def test_one_target_that_fails_does_not_hide_the_others():
    """Each has a survey of its own, in the order given."""
    targets = [Target(fault()), Target(sample(VLLM), again=False)]
    first, second = survey_all(targets, lambda _: None)
    assert (first.error.kind, first.lines) == ("refused", ())
    assert second.error is None


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_every_fixture_is_surveyed_to_the_values_that_are_right_for_it(case):
    """What a person is shown is what a policy would read, and is strict JSON."""
    samples = [Sample(case.page(), None, None, 0.0, drains=False, cut=False)]
    if "window" in case.facts:
        ends_s = (1, 1 + case.facts["window"]["seconds"])
        pages = zip(map(load, case.files()), ends_s, strict=True)
        samples = [
            Sample(page, int(s * 1e9), 0.1, 0.0, drains=False, cut=False)
            for page, s in pages
        ]
    found = survey("there", *samples)
    right = case.facts["signals"]
    for name in {signal.name for signal in ENGINE} & right.keys():
        assert same(lines(found)[name].value, right[name]["value"]), name
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))
