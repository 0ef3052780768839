"""What may be declared as an objective."""

import pytest
from tests.core.rules import KvWall

from admitperf import ConfigError
from admitperf.core.slo import faults as faults_of

BOTH = {"ttft_ms": 1500, "stall_ms": 500}


@pytest.mark.parametrize(
    "slo", [None, {}, BOTH, {"chat": BOTH, "batch": {"e2e_ms": 60_000}}]
)
def test_an_objective_is_one_set_of_limits_or_one_per_class(slo):
    """Both forms are taken as they are."""
    assert faults_of(slo) == []


@pytest.mark.parametrize(
    ("slo", "faults"),
    [
        ({"ttft": 1500}, 1),
        ({"ttft_ms": -1, "stall_ms": "x", "what": 1}, 3),
        ({"chat": {"ttft_ms": 0}, "batch": {"nope": 1}}, 2),
        ({"ttft_ms": True}, 1),
        ({"ttft_ms": float("nan")}, 1),
        ({"chat": BOTH, "ttft_ms": 1500}, 1),
    ],
)
def test_all_faults_of_an_slo_are_told_at_once(slo, faults):
    """Unknown limits, and limits that are no positive numbers."""
    with pytest.raises(ConfigError) as caught:
        KvWall(slo=slo)
    assert len(caught.value.faults) == faults
