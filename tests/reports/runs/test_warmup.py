"""The beginning of a run, left out of its numbers."""

import pytest
from tests.reports.byhand import START_US, header, jsonl, kv, outcome

from admitperf.core.errors import ConfigError
from admitperf.reports.report import report


def run_of(n, **changes):
    """Lines of `n` requests a second apart, each served."""
    for seq in range(1, n + 1):
        moment = {"t_us": START_US + seq * 1_000_000}
        yield kv(seq, 0.9 + seq / 1000, **moment, **changes)
        yield outcome(seq, ttft_ms=1000 * seq, admitted=False, **changes)


def test_the_first_requests_are_in_no_number(reported):
    """Neither their decisions nor their outcomes; how many is said."""
    run = reported(header(), *run_of(30), warmup="10")
    assert (run.warmup.asked, run.warmup.left_out, run.warmup.kept) == ("10", 10, 20)
    assert run.answers.offered == run.cost.reported.n == 20
    assert run.cost.without_decision == 0
    assert (run.cost.ttft_ms.low, run.cost.ttft_ms.n) == (11_000, 20)
    assert run.load.attempts == 20
    assert run.span_s == 19
    spread = next(one.spread for one in run.signals if one.name == "kv_pressure")
    assert (spread.n, spread.low) == (20, 0.911)
    assert run.gates[0].asked == 20


def test_first_is_by_arrival_and_not_by_line(reported):
    """Threads write side by side."""
    lines = list(run_of(5))
    run = reported(header(), *reversed(lines), warmup="2")
    assert run.cost.ttft_ms.low == 3000


def test_the_first_seconds_begin_with_the_first_arrival(reported):
    """Requests 1 to 3 arrive before 3 s have passed since request 1."""
    run = reported(header(), *run_of(10), warmup="3s")
    assert (run.warmup.left_out, run.answers.offered) == (3, 7)


def test_each_run_has_a_beginning_of_its_own(write):
    """Every arm is cut alike."""
    path = write(
        header(),
        *run_of(6),
        header(run="b", policy="other"),
        *run_of(4, run="b"),
    )
    runs = report([path], warmup="3").runs
    assert sorted((run.warmup.left_out, run.warmup.kept) for run in runs) == [
        (3, 1),
        (3, 3),
    ]


def test_more_than_there_is_leaves_nothing(reported):
    """And that is said, not hidden."""
    run = reported(header(), *run_of(3), warmup="10")
    assert (run.warmup.left_out, run.warmup.kept) == (3, 0)
    assert run.finding.word == "UNKNOWN"


def test_nothing_asked_is_nothing_said(reported):
    """None, and not a cut of 0."""
    assert reported(header(), *run_of(3)).warmup is None
    assert reported(header(), warmup="5").warmup.left_out == 0


@pytest.mark.parametrize("text", ["", "s", "-1", "1.5", "10m", "ten", "1e3"])
def test_what_is_no_warm_up_is_refused(tmp_path, text):
    """Before anything is read."""
    path = tmp_path / "x.jsonl"
    path.write_text(jsonl(header()), encoding="utf-8")
    with pytest.raises(ConfigError, match="warm-up"):
        report([str(path)], warmup=text)


def test_a_warm_up_of_absurd_length_is_taken(reported):
    """Fifteen digits of seconds overflow nothing."""
    run = reported(header(), *run_of(3), warmup="999999999999999s")
    assert run.warmup.kept == 0


def test_a_call_is_left_out_as_a_whole(reported):
    """A retry of a call that began in the warm-up has no clock of its own."""
    lines = []
    for call in range(1, 31):
        facts = {"logical_id": f"c{call}"}
        first = {"t_us": START_US + call * 1000, "facts": {**facts, "attempt": 0}}
        again = {"t_us": START_US + 10**7 + call * 1000}
        lines.append(kv(call, 0.95, **first))
        lines.append(kv(100 + call, 0.5, facts={**facts, "attempt": 1}, **again))
        lines.append(outcome(100 + call, ttft_ms=100))
    run = reported(header(slo={"ttft_ms": 1500}), *lines, warmup="10")
    assert (run.warmup.left_out, run.warmup.kept) == (20, 40)
    calls = run.cost.requests
    assert (calls.offered, calls.goodput.n, calls.ttft_user_ms.low) == (20, 0, 10_100)


def test_a_warm_up_that_leaves_nothing_says_so(reported):
    """It is the option that took all, not a policy that never ran."""
    run = reported(header(), *run_of(3), warmup="30s")
    assert run.finding.word == "UNKNOWN"
    assert run.finding.says == (
        "The warm-up left nothing: 3 requests came, and all are left out.",
    )
