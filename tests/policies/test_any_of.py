"""One part that agrees is enough, and the shortest wait is told."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from admitperf import Policy
from admitperf.policies.any_of import AnyOf
from admitperf.policies.dual_gate import DualGate
from admitperf.testing import FakeClock


class Saying(Policy):
    """Says what it was made to say."""

    name = "saying"
    wait_ms: float | None = None
    reason: str = "slots"

    def decide(self, metrics):
        """Refuse for so long."""
        metrics.gate("saying", 1.0, 1.0)
        make = self.reject if self.reason == "too_large" else self.defer
        return make(self.reason, estimate_ms=self.wait_ms)


def composed(parts, **given_):
    """A composition on a clock of its own."""
    told = {"clock": FakeClock(start_s=10.0), "reports_outcomes": True, **given_}
    return AnyOf(policies=parts, **told)


def test_one_yes_is_enough_and_everybody_is_asked():
    """The gates of all parts are on the record, also after the first yes."""
    policy = composed("queue_depth:max_waiting=1; kv_threshold:threshold=0.5")
    d = policy({"queue_depth": 0.0, "kv_pressure": 0.9})
    assert d.admitted
    assert [(g.name, g.held) for g in d.gates] == [
        ("queue_depth", False),
        ("any_of: 1 queue_depth", False),
        ("kv_pressure", True),
        ("any_of: 2 kv_threshold", True),
    ]
    assert not policy({"queue_depth": 2.0, "kv_pressure": 0.9}).admitted


@pytest.mark.parametrize("order", [(2000, 9000, 500), (9000, 500, 2000)])
def test_the_shortest_wait_is_told(order):
    """One part that has room again is enough."""
    reasons = {2000: "kv_pressure", 9000: "queue_depth", 500: "slots"}
    parts = [Saying(wait_ms=float(ms), reason=reasons[ms]) for ms in order]
    d = composed(parts)({})
    assert (d.reason, d.estimate_ms) == ("slots", 500)


def test_never_is_told_only_when_no_part_will_ever_agree():
    """A part that comes round is a reason to come back."""
    d = composed([Saying(reason="too_large"), Saying(wait_ms=50_000.0)])({})
    assert (d.reason, d.should_retry) == ("slots", True)
    d = composed([Saying(reason="too_large"), Saying(reason="too_large")])({})
    assert (d.reason, d.should_retry) == ("too_large", False)


@settings(deadline=None, max_examples=100)
@given(kv=st.floats(0, 1), queue=st.integers(0, 20), bound=st.integers(0, 10))
def test_dual_gate_is_one_of_them(kv, queue, bound):
    """Full, and it hurts: the same requests get the same answer."""
    raw = {"kv_pressure": kv, "queue_depth": float(queue)}
    told = f"kv_threshold:threshold=0.9; queue_depth:max_waiting={bound}"
    ours = composed(told)(raw)
    dual = DualGate(threshold=0.9, max_waiting=bound)(raw)
    assert (ours.admitted, ours.status) == (dual.admitted, dual.status)
    assert ours.reason == dual.reason
