"""I1, I2, I3: what a report counts adds up."""

import tempfile
from pathlib import Path

from hypothesis import given, settings
from tests.invariants.histories import histories, play

from admitperf.reports.report import report
from admitperf.testing import FakeClock


def reported(policy_class, history):
    """A history, and what the report on its log says."""
    with tempfile.TemporaryDirectory() as folder:
        log, clock = Path(folder) / "run.jsonl", FakeClock(wall_s=1_700_000_000.0)
        with policy_class(
            clock=clock, log=log, reports_outcomes=True, slo={"ttft_ms": 1500}
        ) as policy:
            policy({}, request_id="first")
            played = play(policy, clock, history)
        (run,) = report([str(log)]).runs
    return played, run


@given(history=histories())
@settings(deadline=None, max_examples=12)
def test_i1_i2_i3_what_a_report_counts_adds_up(policy_class, history):
    """The three promises, on one report for each history: a report takes a while."""
    played, run = reported(policy_class, history)
    i1_every_request_is_admitted_deferred_or_rejected(played, run)
    i2_an_outcome_counts_once(played, run)
    i3_goodput_is_at_most_what_was_let_in(run)


def i1_every_request_is_admitted_deferred_or_rejected(played, run):
    """I1: offered = admitted + deferred + rejected, and offered is all who asked."""
    answers = run.answers
    assert answers.offered == len(played.asked) + 1
    parts = answers.admitted + answers.deferred + answers.rejected
    assert answers.offered == parts == sum(row.n for row in answers.rows)


def i2_an_outcome_counts_once(played, run):
    """I2: however often a host reports an end, it counts once, and only if known."""
    assert run.cost.reported.n == len(set(played.ended))
    assert run.cost.without_decision == 0


def i3_goodput_is_at_most_what_was_let_in(run):
    """I3: goodput <= admitted share <= 1, over all that were offered."""
    let_in, goodput = run.cost.let_in, run.cost.goodput
    assert let_in.of == run.answers.offered
    assert 0 <= let_in.value <= 1
    if goodput is not None:
        assert goodput.of == let_in.of
        assert 0 <= goodput.n <= let_in.n
