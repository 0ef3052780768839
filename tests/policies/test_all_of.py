"""All parts must agree, and the longest wait is told."""

import pytest

from admitperf import Policy
from admitperf.policies.all_of import AllOf
from admitperf.testing import FakeClock


class Saying(Policy):
    """Says what it was made to say."""

    name = "saying"
    wait_ms: float | None = None
    reason: str = "slots"

    def decide(self, metrics):
        """Refuse for so long."""
        metrics.gate("saying", 1.0, 1.0)
        never = self.reason in ("too_large", "deadline_unmeetable")
        make = self.reject if never else self.defer
        return make(self.reason, estimate_ms=self.wait_ms)


def composed(parts, **given):
    """A composition on a clock of its own."""
    told = {"clock": FakeClock(start_s=10.0), "reports_outcomes": True, **given}
    return AllOf(policies=parts, **told)


def test_one_no_is_enough_and_everybody_is_asked():
    """The gates of all parts are on the record, also after the first no."""
    policy = composed("queue_depth:max_waiting=1; kv_threshold:threshold=0.5")
    d = policy({"queue_depth": 5.0, "kv_pressure": 0.4})
    assert d.reason == "queue_depth"
    assert [(g.name, g.held) for g in d.gates] == [
        ("queue_depth", True),
        ("all_of: 1 queue_depth", True),
        ("kv_pressure", False),
        ("all_of: 2 kv_threshold", False),
    ]
    assert policy({"queue_depth": 1.0, "kv_pressure": 0.4}).admitted


@pytest.mark.parametrize("order", [(2000, 9000, 500), (9000, 500, 2000)])
def test_the_longest_wait_is_told(order):
    """Who would be back sooner would be refused again."""
    reasons = {2000: "kv_pressure", 9000: "queue_depth", 500: "slots"}
    parts = [Saying(wait_ms=float(ms), reason=reasons[ms]) for ms in order]
    d = composed(parts)({})
    assert (d.reason, d.estimate_ms) == ("queue_depth", 9000)


def test_never_is_longer_than_any_wait():
    """What can never be served is told so."""
    parts = [Saying(wait_ms=50_000.0), Saying(reason="too_large")]
    d = composed(parts)({})
    assert (d.reason, d.status, d.should_retry) == ("too_large", 413, False)
    late = Saying(reason="deadline_unmeetable", wait_ms=10.0)
    d = composed([Saying(wait_ms=50_000.0), late])({})
    assert (d.reason, d.should_retry) == ("deadline_unmeetable", False)


def test_of_equal_waits_the_first_part_speaks():
    """The order settles what the waits do not."""
    parts = [Saying(reason="kv_pressure"), Saying(reason="slots")]
    assert composed(parts)({}).reason == "kv_pressure"


def test_a_measured_wait_counts_as_much_as_one_that_a_part_says():
    """Each is what the part alone would have answered, nested ones too."""
    for parts in (
        ["kv_threshold:threshold=0.5", Saying(wait_ms=2000.0)],
        ["first_of:policies=(kv_threshold:threshold=0.5)", Saying(wait_ms=2000.0)],
    ):
        clock = FakeClock(start_s=10.0)
        policy, told = composed(parts, clock=clock), []
        for pressure in (0.95, 0.94, 0.93, 0.92, 0.60, 0.51):
            told.append(policy({"kv_pressure": pressure}))
            clock.advance(1.0)
        assert (told[3].reason, told[3].wait) == ("kv_pressure", "measured")
        assert told[3].estimate_ms > 2000
        assert (told[5].reason, told[5].wait) == ("slots", "policy")


LOW, HIGH = "kv_threshold:threshold=0.5", "kv_threshold:threshold=0.9"


@pytest.mark.parametrize("form", ["{}", "first_of:policies=(all_of:policies=({}))"])
def test_two_gates_of_one_signal_wait_for_the_lower(form):
    """The wait told is that of the part that speaks, whichever stands first."""
    waits = []
    for parts in (f"{LOW}; {HIGH}", f"{HIGH}; {LOW}"):
        clock = FakeClock(start_s=10.0)
        policy = composed(form.format(parts), clock=clock)
        for pressure in (0.99, 0.97, 0.95, 0.93):
            d = policy({"kv_pressure": pressure})
            clock.advance(1.0)
        waits.append(d.estimate_ms)
    assert waits[0] == waits[1] == pytest.approx(0.43 / 0.02 * 1000, rel=0.4)
