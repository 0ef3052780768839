"""Field cases about benchmarks: numbers that flatter are not printed."""

import re

import pytest
from tests.cases.mapping import EPOCH_S, requests, rows_of

from admitperf.policies import load
from admitperf.testing import FakeClock

BASELINE = {"policy": "no_admission", "taxonomy": {"baseline": True}}
BOUND = {"policy": "queue_depth", "params": {"max_waiting": 8}}
WALL = {"threshold": 0.90}
STATE_EVERY_S = 1.0
EIGHT_PERCENT = re.compile(r"\b8(\.1)? %")


@pytest.fixture
def rows(case):
    """Read a file of the case."""
    return lambda name="requests.jsonl": rows_of(case / name)


@pytest.fixture
def arm(write):
    """Write one arm: a folder with a run for each list of rows."""

    def _arm(name, *repeats, **changes):
        for n, rows in enumerate(repeats, 1):
            lines = requests(
                rows, run=f"{name}{n}", name=f"r{n}", experiment="case", **changes
            )
            write(lines, f"{name}/r{n}.jsonl")
        return f"{name}/"

    return _arm


def flat(shown):
    """What was printed, without its line breaks."""
    return " ".join(shown.output.split())


def share(told):
    """A share of a report as (n, of)."""
    return told["n"], told["of"]


def failed(report):
    """The checks of a report that were answered with no, by name, with their reason."""
    asked = [one for run in report["checks"]["runs"] for one in run["checks"]]
    return {one["name"]: one["says"] for one in asked if one["answer"] == "no"}


# ------------------------------------------------------------------------- goodput


def test_s_bm_01_goodput_divides_by_what_was_offered(rows, write, run_of):
    """0.05 of offered, next to 1.00 of the 50 served; 5 % were let in."""
    cost = run_of(write(requests(rows(), slo={"ttft_ms": 500})))["cost"]
    assert cost["offered"] == 1000
    assert share(cost["goodput"]) == (50, 1000)
    assert cost["goodput"]["value"] == pytest.approx(0.05)
    assert share(cost["let_in"]) == (50, 1000)
    assert share(cost["attained"]) == (50, 50)


def test_s_bm_01_attainment_never_stands_alone(rows, write, admitperf):
    """100 % is printed with its denominator, and goodput before it."""
    shown = admitperf("report", write(requests(rows(), slo={"ttft_ms": 500})))
    text = flat(shown)
    assert shown.exit_code == 0
    assert "50 of 1000" in text
    assert "50 of 50" in text
    assert text.index("50 of 1000") < text.index("50 of 50")


def test_s_bm_02_streams_that_fail_are_not_fast(rows, write, run_of):
    """20 failed; latency is that of the other 80; goodput 0.40 of offered."""
    cost = run_of(write(requests(rows(), slo={"ttft_ms": 500})))["cost"]
    assert share(cost["failed"]) == (20, 100)
    assert share(cost["ok"]) == (80, 100)
    ttft = cost["ttft_ms"]
    assert (ttft["n"], ttft["p50"], ttft["p95"]) == (80, 490, 590)
    assert ttft["low"] == 410
    assert cost["ttft_mean_ms"] == 500
    assert share(cost["goodput"]) == (40, 100)
    assert cost["errors"] == {"InternalServerError": 20}


def test_s_bm_02_failures_are_shown(rows, write, admitperf):
    """Whoever reads the latency reads how many it leaves out."""
    text = flat(admitperf("report", write(requests(rows(), slo={"ttft_ms": 500}))))
    assert "mean 500 ms, p50 490 ms" in text
    assert "20 of 100" in text
    assert "InternalServerError" in text


def test_s_bm_03_failures_without_times_have_no_latency(rows, write, run_of):
    """Four refused connections are offered and failed, and that is all they are."""
    run = run_of(write(requests(rows())))
    assert run["answers"]["offered"] == 24
    assert share(run["cost"]["failed"]) == (4, 24)
    assert share(run["cost"]["ok"]) == (20, 24)
    assert run["cost"]["ttft_ms"]["n"] == 0
    assert run["cost"]["errors"] == {"connect refused": 4}


def test_s_bm_03_failures_without_times_stretch_nothing(rows, write, run_of):
    """A line that is older than its own run line has no time to go by.

    Arrivals are spread over 9.5 s; the last answer ends at 10.5 s, by which what was
    completed is divided.
    """
    run = run_of(write(requests(rows())))
    assert run["span_s"] == run["load"]["span_s"] == 9.5
    assert 2.0 <= run["load"]["rate_per_s"] <= 24 / 9.5
    assert run["cost"]["completed_s"] == 10.5
    assert run["cost"]["completed_per_s"] == pytest.approx(20 / 10.5)


def test_s_bm_03_the_completed_rate_is_printed(rows, write, admitperf):
    """With what it is divided by."""
    text = flat(admitperf("report", write(requests(rows()))))
    assert "20 ok in 10.5 s (1.905/s)" in text


# ---------------------------------------------------------------------- percentiles


def test_s_bm_04_percentiles_are_by_nearest_rank(rows, write, run_of):
    """50, 95 and 99 of 1 to 100; 10 and 19 of 1 to 20."""
    spread = run_of(write(requests(rows("ttft_100.jsonl"))))["cost"]["ttft_ms"]
    assert (spread["p50"], spread["p95"], spread["p99"]) == (50, 95, 99)
    spread = run_of(write(requests(rows("ttft_20.jsonl"))))["cost"]["ttft_ms"]
    assert (spread["p50"], spread["p95"], spread["p99"]) == (10, 19, None)


def test_s_bm_04_the_definition_is_stated(rows, write, admitperf):
    """The page says which of the two definitions it uses."""
    text = flat(admitperf("report", write(requests(rows("ttft_100.jsonl")))))
    assert "nearest rank" in text or "nearest-rank" in text


def test_s_bm_05_six_samples_have_no_p95(rows, write, run_of):
    """Null with a reason; the highest and n are there."""
    spread = run_of(write(requests(rows("ttft_6.jsonl"))))["cost"]["ttft_ms"]
    assert (spread["n"], spread["high"]) == (6, 900)
    assert spread["p95"] is None
    assert spread["p99"] is None
    assert spread["withheld"] == "too few samples (6)"
    assert spread["withheld_p99"] == "too few samples (6)"


def test_s_bm_05_no_check_takes_a_p95_from_them(rows, write, admitperf, told):
    """The text shows 900 and n = 6, and `--check` fails for that alone."""
    path = write(requests(rows("ttft_6.jsonl"), slo={"ttft_ms": 500}, **BASELINE))
    shown = admitperf("report", "--check", path)
    assert shown.exit_code == 1
    text = flat(shown)
    assert "too few samples (6)" in text
    assert "900" in text
    report, code = told("report", "--check", path)
    assert (list(failed(report)), code) == (["enough for a p95"], 1)


def test_s_bm_06_percentiles_are_pooled_and_never_averaged(
    rows, arm, run_of, admitperf
):
    """Two processes of one run: 195 over 1,010, not the 1547 between 194 and 2900."""
    one = arm("a", rows("run1.jsonl"), **BOUND)
    other = arm("b", rows("run2.jsonl"), **BOUND)
    spread = run_of(one, other)["cost"]["ttft_ms"]
    assert (spread["n"], spread["p95"]) == (1010, 195)
    text = flat(admitperf("report", one, other))
    assert "195" in text
    assert "1547" not in text


def test_s_bm_06_repeats_are_a_median_and_a_range(rows, arm, admitperf):
    """As two repeats: each with its n, and a warning that the sizes differ."""
    sizes = rows("run1.jsonl"), rows("run2.jsonl")
    bound, base = arm("b", *sizes, **BOUND), arm("a", *sizes, **BASELINE)
    shown = admitperf("compare", bound, base)
    text = flat(shown)
    assert "Traceback" not in text
    assert "1547" not in text
    assert "median" in text
    assert "1000" in text.replace(",", "")
    assert re.search(r"\b10\b", text)
    assert "size" in text


# -------------------------------------------------------------------------- load


def test_s_bm_07_latency_counts_from_the_due_time(rows, write, run_of):
    """A stall that kept the client from sending is in every request it delayed."""
    run = run_of(write(requests(rows("closed_loop.jsonl"))))
    due = run["cost"]["ttft_due_ms"]
    assert due["n"] == 200
    assert due["p50"] == pytest.approx(50, abs=0.01)
    assert due["p95"] == pytest.approx(1500, abs=0.01)
    assert due["p99"] == pytest.approx(1900, abs=0.01)
    sent = run["cost"]["ttft_ms"]
    assert (sent["p50"], sent["p95"]) == (pytest.approx(50), pytest.approx(50))
    assert share(run["load"]["late"]) == (38, 200)


def test_s_bm_07_late_requests_are_flagged(rows, write, admitperf):
    """38 of 200 were sent late, and the page says what that means."""
    text = flat(admitperf("report", write(requests(rows("closed_loop.jsonl")))))
    assert "38 of 200" in text
    assert "coordinated omission" in text
    assert "1500" in text


@pytest.fixture
def compared(told, arm, rows):
    """Compare a bound's rows with the baseline's, in three repeats of either."""

    def _compared(rows_of_bound, *, against):
        bound = arm("b", *[rows_of_bound] * 3, **BOUND)
        base = arm("a", *[against] * 3, **BASELINE)
        made, code = told("compare", bound, base, "--check")
        (one,) = made["comparisons"]
        return one, code

    return _compared


def load_check(comparison):
    """What the comparison says about the load of both arms."""
    (check,) = [one for one in comparison["checks"] if "load" in one["name"]]
    return check["answer"], " ".join(check["says"])


def test_s_bm_08_unequal_load_makes_no_claim(rows, compared):
    """14.0 against 9.1 requests a second is 35 % apart: void, and the check fails."""
    one, code = compared(rows("b.jsonl"), against=rows("a.jsonl"))
    answer, said = load_check(one)
    assert (answer, one["verdict"], code) == ("no", "void", 1)
    assert "35 %" in said
    assert "14.0" in said
    assert "9.1" in said


def test_s_bm_08_the_page_claims_nothing(rows, arm, admitperf):
    """The text says 35 %, and neither that b is better nor that it is worse."""
    base = arm("a", rows("a.jsonl"), **BASELINE)
    shown = admitperf("compare", arm("b", rows("b.jsonl"), **BOUND), base, "--check")
    text = flat(shown)
    assert shown.exit_code == 1
    assert "35 %" in text
    assert "void" in text.lower()


def test_s_bm_08_a_small_difference_passes(rows, compared):
    """3 % is within the tolerance of 5 %."""
    fewer = [row for n, row in enumerate(rows("a.jsonl")) if n % 30]
    one, _ = compared(fewer, against=rows("a.jsonl"))
    answer, said = load_check(one)
    assert answer == "ok"
    assert "3 %" in said


# -------------------------------------------------------------- what was measured


def test_s_bm_09_a_cold_start_is_noticed(rows, write, run_of):
    """The ten slowest all arrived at once, first; p95 is theirs."""
    run = run_of(write(requests(rows())))
    ttft = run["cost"]["ttft_ms"]
    assert (ttft["n"], ttft["p95"]) == (100, 47860)
    assert ttft["p50"] == pytest.approx(1030, abs=15)
    (cold,) = [said for said in run["notices"] if "cold" in said.lower()]
    assert "10" in cold


def test_s_bm_09_a_warm_up_is_left_out_and_said(rows, write, run_of):
    """p50 985 and p95 1344 of the other 90."""
    run = run_of(write(requests(rows())), "--warmup", "10")
    ttft = run["cost"]["ttft_ms"]
    assert (ttft["n"], ttft["p50"], ttft["p95"]) == (90, 985, 1344)
    assert run["warmup"] == {"asked": "10", "left_out": 10, "kept": 90}
    assert run["answers"]["offered"] == 90
    assert not [said for said in run["notices"] if "cold" in said.lower()]


def test_s_bm_09_the_text_says_what_was_left_out(rows, write, admitperf):
    """A number that leaves something out says so."""
    shown = admitperf("report", write(requests(rows())), "--warmup", "10")
    assert "10 of 100" in flat(shown)


def test_s_bm_09_both_arms_are_cut_alike(rows, arm, told):
    """A comparison leaves the first ten of either arm out, and says so."""
    arms = arm("b", rows(), **BOUND), arm("a", rows(), **BASELINE)
    made, _ = told("compare", *arms, "--warmup", "10")
    (one,) = made["comparisons"]
    for side in ("arm", "baseline"):
        (repeat,) = one[side]["repeats"]
        assert (repeat["ttft_ms"]["n"], repeat["ttft_ms"]["p95"]) == (90, 1344)
    (check,) = [c for c in one["checks"] if "warm-up" in c["name"]]
    assert check["answer"] == "ok"
    assert "first 10 of each run" in " ".join(check["says"])


def test_s_bm_10_short_outputs_are_warned_of(rows, write, run_of):
    """8 % of what was asked for: the load cannot have built up."""
    run = run_of(write(requests(rows())))
    output = run["cost"]["output"]
    assert (output["n"], output["asked_tokens"]) == (150, 150 * 512)
    assert output["got_tokens"] / output["n"] == pytest.approx(41.5, abs=0.1)
    assert output["share"] == pytest.approx(0.081, abs=0.001)
    (short,) = [said for said in run["notices"] if EIGHT_PERCENT.search(said)]
    assert "plan" in short


def test_s_bm_10_short_outputs_are_no_pass(rows, write, admitperf, told):
    """The text warns, and `--check` fails for that alone."""
    path = write(requests(rows(), **BASELINE))
    shown = admitperf("report", path, "--check")
    assert shown.exit_code == 1
    assert EIGHT_PERCENT.search(flat(shown))
    report, code = told("report", "--check", path)
    assert (list(failed(report)), code) == (["outputs as long as asked"], 1)


# ------------------------------------------------------------- could it have fired


@pytest.fixture
def watched(rows, tmp_path):
    """The log of a KV threshold at 0.90 over the case's states."""

    def _watched(without=()):
        clock = FakeClock(wall_s=EPOCH_S)
        path = tmp_path / f"states-without-{len(without)}.jsonl"
        wall = load("kv_threshold")(log=path, clock=clock, **WALL)
        with wall as policy:
            for row in rows("states.jsonl"):
                left_out = ("t", *without)
                policy({name: v for name, v in row.items() if name not in left_out})
                clock.advance(STATE_EVERY_S)
        return path

    return _watched


def test_s_bm_11_a_bound_out_of_reach_is_inert(watched, run_of):
    """KV went from 0.07 to 0.44 under a bound of 0.90; the queue reached 60."""
    run = run_of(watched())
    assert run["finding"]["word"] == "INERT"
    (gate,) = run["gates"]
    assert (gate["bound_low"], gate["bound_high"]) == (0.9, 0.9)
    assert (gate["value_low"], gate["value_high"]) == (0.07, 0.44)
    assert gate["held"] == 0
    moved = {one["name"]: one["spread"] for one in run["signals"]}
    assert moved["queue_depth"]["high"] == 60


def test_s_bm_11_a_signal_that_never_came_is_unknown(watched, run_of):
    """Without the column nobody can say."""
    run = run_of(watched(without=["kv_pressure"]))
    assert run["finding"]["word"] == "UNKNOWN"
    moved = {one["name"]: one["spread"] for one in run["signals"]}
    assert moved["kv_pressure"]["n"] == 0
    assert "kv_pressure was never supplied" in " ".join(run["finding"]["says"])


def test_s_bm_11_the_page_of_an_inert_run_says_why(watched, admitperf):
    """It could not have fired: the range stands beside the bound, and what moved."""
    shown = admitperf("report", "--check", watched())
    text = flat(shown)
    assert shown.exit_code == 1
    assert "INERT" in text
    assert "could not have fired" in text.lower()
    for number in ("0.9", "0.07", "0.44", "60"):
        assert number in text, number


def test_s_bm_11_the_check_fails_for_either_with_its_own_words(watched, told):
    """Inert says how far it was from firing; unknown says what was never supplied."""
    inert, inert_code = told("report", "--check", watched())
    blind, blind_code = told("report", "--check", watched(without=["kv_pressure"]))
    assert (inert_code, blind_code) == (1, 1)
    name = "fired, or a baseline"
    said = failed(inert)[name], failed(blind)[name]
    assert said[0].startswith("INERT")
    assert "0.44" in said[0]
    assert said[1].startswith("UNKNOWN")
    assert "could not have fired" not in said[1].lower()
