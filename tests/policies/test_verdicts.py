"""Each rule, one snapshot at a time."""

import pytest
from tests.policies.verdicts import all_rows

from admitperf.core.reasons import DEFAULT
from admitperf.policies import load
from admitperf.testing import snapshot

TABLE = all_rows()


def described(case):
    """A row, as its test's name."""
    return f"{case.policy} {case.parameters} {case.signals} {case.facts}"


@pytest.mark.parametrize("case", TABLE, ids=described)
def test_the_rule_says_what_the_table_says(case):
    """The verdict follows from snapshot and parameters, and from nothing else."""
    policy = load(case.policy)(**case.parameters)
    d = policy.decide(snapshot(case.signals, **case.facts))
    assert (str(d.verdict), d.reason) == (case.verdict, case.reason)


@pytest.mark.parametrize("case", TABLE, ids=described)
def test_the_same_snapshot_of_two_instances_gets_the_same_answer(case):
    """No rule draws lots or looks at a clock of its own."""
    answers = [
        load(case.policy)(**case.parameters).decide(
            snapshot(case.signals, now_s=5.0, **case.facts)
        )
        for _ in range(2)
    ]
    assert len({(d.verdict, d.reason, d.estimate_ms) for d in answers}) == 1


def test_the_table_reaches_only_reasons_that_exist():
    """A reason nobody defined has no status."""
    reasons = {case.reason for case in TABLE if case.reason}
    assert reasons >= {"kv_pressure", "queue_depth", "in_flight_cap"}
    assert reasons <= set(DEFAULT)
