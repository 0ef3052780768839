"""GuideLLM, AIPerf and inference-perf, from files that their own code wrote."""

import json

import pytest

from admitperf.bench.interchange.page import text


def ends(run):
    """How many calls ended how."""
    return {name: n for name, n in run.summary.ended.items() if n}


# ----------------------------------------------------------------------- GuideLLM


def test_guidellm_has_a_run_for_each_rate(made, judged):
    """Each with its strategy."""
    runs = judged(made("guidellm-0.8.1.json"))
    assert [run.run.name for run in runs] == [
        "poisson rate 4",
        "constant rate 8",
        "constant rate 16",
    ]


def test_guidellm_counts_what_was_cut_off_as_offered(made, judged):
    """Its own goodput leaves incomplete requests out; ours does not.

    Of 6 answered, after 100 to 350 ms, one was sent 50 ms late.
    """
    run, *_ = judged(made("guidellm-0.8.1.json"), ttft_ms=301)
    assert ends(run) == {"answered": 6, "refused": 1, "unfinished": 1}
    assert (run.summary.good, run.summary.offered) == (5, 8)
    late = run.run.records[3]
    assert late.ttft_ms == pytest.approx(300)
    assert late.last_ttft_ms == pytest.approx(250)
    assert late.late_ms == pytest.approx(50)


def test_guidellm_sees_no_stall(made, judged):
    """A bound on gaps cannot be asked of it, so goodput is at most what is shown."""
    run, *_ = judged(made("guidellm-0.8.1.json"), ttft_ms=301, stall_ms=1)
    assert run.summary.good == 5
    assert "so no stall is counted" in run.at_most[0]


def test_guidellm_a_session_cut_short_was_offered_whole(made, judged):
    """Calls that a refusal kept from being made are in no file."""
    _, run, _ = judged(made("guidellm-0.8.1.json"))
    assert run.summary.sessions["offered"] == 3
    assert any("2 of its sessions" in said for said in run.at_most)


def test_guidellm_a_sample_is_not_what_was_offered(made, judged):
    """It may keep a few requests of many: then only its totals count."""
    *_, run = judged(made("guidellm-0.8.1.json"), ttft_ms=301)
    page = text(run, "x.json")
    assert run.document()["offered"] == 50
    assert run.document()["goodput"] is None
    assert "failed        8 of 50 (16.0 %)" in page
    assert "it kept a sample" in page


# ------------------------------------------------------------------------- AIPerf


def test_aiperf_is_read_line_by_line(made, judged):
    """The warm-up is left out, and each end is what its error says."""
    (run,) = judged(made("aiperf-0.13.0.jsonl"), ttft_ms=301, stall_ms=200)
    assert run.summary.offered == 10
    assert run.run.notes["left_out_warmup"] == 1
    assert ends(run) == {"answered": 7, "cancelled": 1, "failed": 1, "refused": 1}
    assert run.summary.good == 3
    assert [one.place for one in run.run.records if one.session == "a"] == [0, 1]


def test_aiperf_waits_are_the_users(made, judged):
    """What came between its turn and its sending counts."""
    (run,) = judged(made("aiperf-0.13.0.jsonl"))
    assert run.run.records[2].ttft_ms == pytest.approx(205)
    assert run.summary.late_ms["max"] == pytest.approx(5)


def test_aiperf_older_names_are_known(tmp_path, judged):
    """`ttft`, `timestamp_ns` and `credit_phase`, as version 0.2 wrote them."""
    line = {
        "metadata": {
            "x_request_id": "a",
            "timestamp_ns": 1759522419159192408,
            "credit_phase": "profiling",
        },
        "metrics": {"ttft": {"value": 1680.5, "unit": "ms"}},
        "error": None,
    }
    path = tmp_path / "old.jsonl"
    path.write_text(json.dumps(line) + "\n", encoding="utf-8")
    (run,) = judged(path, ttft_ms=1681)
    assert run.summary.good == 1


def test_aiperf_totals_are_its_own(made, judged):
    """Its fraction is over all it made, as ours; the bounds are its own."""
    (run,) = judged(made("aiperf-0.13.0-export.json"), ttft_ms=301)
    assert run.document()["offered"] == 10
    assert "good          0.500 = 5 of 10 offered, by its own rule" in text(run, "x")


# ----------------------------------------------------------------- inference-perf


def test_inference_perf_divides_by_what_was_offered(made, judged):
    """Its goodput_percentage leaves out what failed: 83 % where 5 of 8 were good."""
    (run,) = judged(made("inference-perf-0.7.0-per-request.json"), ttft_ms=301)
    assert ends(run) == {"answered": 6, "failed": 1, "refused": 1}
    assert (run.summary.good, run.summary.offered) == (5, 8)
    (totals,) = judged(made("inference-perf-0.7.0-summary.json"))
    assert totals.run.totals.good == 5
    assert totals.run.totals.offered == 8
    assert totals.run.own == (
        "goodput_percentage 83.33, of those that did not fail only"
    )


def test_inference_perf_stalls_are_seen(made, judged):
    """It keeps the time of each token."""
    (run,) = judged(made("inference-perf-0.7.0-per-request.json"), stall_ms=200)
    assert run.summary.good == 2


def test_answers_that_were_not_streamed_have_no_first_token(made, judged, tmp_path):
    """A bound on it is not asked, where no answer carries what it needs."""
    rows = json.loads(made("inference-perf-0.7.0-per-request.json").read_text("utf-8"))
    for row in rows:
        if row["info"]["response_metrics"]:
            row["info"]["response_metrics"] = {"output_tokens": 3}
    path = tmp_path / "whole.json"
    path.write_text(json.dumps(rows), encoding="utf-8")
    (run,) = judged(path, ttft_ms=301)
    assert run.document()["goodput"] is None
    assert run.cannot == "no answer of the file carries what ttft_ms needs"
    (alone,) = judged(path, e2e_ms=1500)
    assert (alone.summary.good, alone.summary.offered) == (6, 8)
