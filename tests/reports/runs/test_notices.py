"""What a reader should know before believing a run's numbers."""

import pytest
from tests.reports.byhand import START_US, header, kv, outcome

from admitperf.reports.report import report


def served(n, ttft_ms, **changes):
    """Lines of `n` requests a tenth of a second apart, with a time each."""
    for seq in range(1, n + 1):
        yield kv(seq, 0.5, **changes)
        yield outcome(seq, ttft_ms=ttft_ms(seq))


def test_a_calm_run_has_no_notices(reported):
    """Nothing odd, nothing said."""
    run = reported(header(), *served(100, lambda seq: 100 + seq))
    assert run.notices == ()


def test_s_bm_09_a_cold_start_is_noticed(reported):
    """The slowest ten of a hundred all arrived first."""
    run = reported(
        header(), *served(100, lambda seq: 40_000 + seq if seq <= 10 else 600 + seq)
    )
    (notice,) = run.notices
    assert "The slowest 10 of 100 all arrived first" in notice
    assert "--warmup 10" in notice


@pytest.mark.parametrize(
    "ttft_ms",
    [
        lambda seq: 40_000 if seq > 90 else 600,  # the last: a queue, not the cold
        lambda seq: 40_000 if seq in range(2, 12) else 600,  # not the first of all
        lambda seq: 2900 if seq <= 10 else 600,  # not so slow
    ],
)
def test_what_is_no_cold_start_is_not_noticed(reported, ttft_ms):
    """Slow later, or not far slower."""
    assert reported(header(), *served(100, ttft_ms)).notices == ()


def test_fewer_than_ten_outcomes_show_no_cold_start(reported):
    """The slowest five need five others."""
    cold = reported(header(), *served(9, lambda seq: 9000 if seq <= 5 else 1))
    assert cold.notices == ()
    shown = reported(header(), *served(10, lambda seq: 9000 if seq <= 5 else 1))
    assert len(shown.notices) == 1


@pytest.mark.parametrize(("step_s", "noticed"), [(-3600, True), (0.9, False)])
def test_a_step_of_the_wall_clock_is_noticed(reported, step_s, noticed):
    """By how far, and that durations do not follow it."""
    later = START_US + 60_000_000
    run = reported(
        header(),
        kv(1, 0.5),
        header(t_us=later, wall_us=later + int(step_s * 1e6)),
    )
    assert any("stepped by -3600 s" in one for one in run.notices) is noticed


def test_clocks_of_two_processes_are_not_a_step(reported):
    """Each started from its own."""
    run = reported(header(), kv(1, 0.5), header(run="b", wall_us=START_US + 9_000_000))
    assert run.notices == ()


def test_ids_that_recur_are_noticed(reported):
    """Within a process; what has no id recurs not."""
    run = reported(header(), *(kv(seq, 0.5, id="same") for seq in (1, 2)), kv(3, 0.5))
    assert any("1 request id stands on more than one" in one for one in run.notices)
    run = reported(header(), *(kv(seq, 0.5, id=None) for seq in (1, 2)))
    assert run.notices == ()


def test_s_bm_10_short_outputs_are_noticed(reported):
    """8 % of what was asked for is another load."""
    lines = []
    for seq in range(1, 41):
        lines.append(kv(seq, 0.5, facts={"max_output_tokens": 500}))
        lines.append(outcome(seq, output_tokens=40))
    run = reported(header(), *lines)
    assert (run.cost.output.n, run.cost.output.share) == (40, 0.08)
    assert any("8.0 %" in one and "below plan" in one for one in run.notices)


def test_s_bm_07_requests_sent_late_are_noticed(reported):
    """38 of 200, and to judge from the due time."""
    lines = [
        kv(seq, 0.5, facts={"late_ms": 500.0 if seq <= 38 else 10.0})
        for seq in range(1, 201)
    ]
    run = reported(header(), *lines)
    assert (run.load.late.n, run.load.late.of) == (38, 200)
    assert any("38 of 200 (19.0 %)" in one and "due" in one for one in run.notices)


def test_repeats_of_other_sizes_are_noticed(write):
    """A mean of their percentiles would be none."""
    path = write(
        *(
            line
            for name, n in (("r1", 40), ("r2", 10))
            for line in (
                header(run=name, name=name, experiment="e"),
                *(kv(seq, 0.5, run=name) for seq in range(1, n + 1)),
            )
        )
    )
    runs = report([path]).runs
    assert all("10 to 40 decisions" in run.notices[-1] for run in runs)
    assert len(runs) == 2


def test_a_request_without_a_time_stretches_no_run(reported):
    """A 0 is none, unless the run's own clock starts there."""
    lines = [kv(seq, 0.5) for seq in range(1, 21)]
    run = reported(header(), *lines, kv(21, 0.5, t_us=0))
    assert (run.answers.offered, run.span_s) == (21, 1.9)
    assert run.load.rate_per_s == 10.0
    early = reported(header(), *lines, kv(21, 0.5, t_us=START_US - 3_600_000_000))
    assert early.span_s == 3602
    fake = reported(header(t_us=0), kv(1, 0.5, t_us=0), kv(2, 0.5, t_us=2_000_000))
    assert fake.span_s == 2
