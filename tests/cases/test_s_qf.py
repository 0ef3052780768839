"""Field cases about quotas, limits and fairness, at the level of a policy."""

import json

import pytest

from admitperf.core.signals import IN_FLIGHT
from admitperf.policies.rate_limit import RateLimit
from admitperf.testing import FakeClock, MemoryLog


def rows_of(path):
    """The clock readings of the case."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def driven(rows, wall_s=None):
    """One request per row, at the row's times; decisions and what they recorded."""
    clock, log = FakeClock(start_s=rows[0]["mono_s"]), MemoryLog()
    policy = RateLimit(rate_per_s=0.5, burst=5, clock=clock, log=log)
    decisions = []
    for row in rows:
        clock.advance(row["mono_s"] - clock.monotonic_ns() / 1e9)
        clock.set_wall(row["wall_s"] if wall_s is None else wall_s)
        decisions.append(policy({}, request_id=f"row-{len(decisions)}"))
    return decisions, log


def test_s_qf_03_refused_work_uses_nothing():
    """Requests per minute 2, in flight 1: B, refused for concurrency, costs nothing."""

    class Limits(RateLimit):
        name = "limits"
        requires = (IN_FLIGHT,)

        def decide(self, metrics):
            if metrics.at_least(IN_FLIGHT, 1):
                return self.defer("in_flight_cap")
            return super().decide(metrics)

    clock = FakeClock()
    policy = Limits(
        rate_per_s=2 / 60, burst=2, per="pool", clock=clock, reports_outcomes=True
    )
    a = policy({}, request_id="A")
    b = policy({}, request_id="B")
    policy.outcome("A")
    clock.advance(5.0)
    c = policy({}, request_id="C")
    policy.outcome("C")
    d = policy({}, request_id="D")
    assert [a.admitted, b.admitted, c.admitted, d.admitted] == [
        True,
        False,
        True,
        False,
    ]
    assert (b.reason, d.reason) == ("in_flight_cap", "rate_limit")


@pytest.mark.parametrize("wall_s", [None, 1000.0])
def test_s_qf_07_a_stepped_wall_clock_changes_nothing(data, wall_s):
    """Five of seven pass, whether the wall steps by 11 s or stands still."""
    rows = rows_of(data / "cases/s-qf-07/clock.jsonl")
    decisions, log = driven(rows, wall_s)
    assert [d.admitted for d in decisions] == [True] * 5 + [False] * 2
    for d in decisions[5:]:
        assert (d.reason, d.status) == ("rate_limit", 429)
        assert 1 <= int(d.headers()["Retry-After"]) <= 10
    assert min(line["gates"][0][1] for line in log.decisions) >= 0


def test_s_qf_07_the_answers_are_the_same_to_the_byte(data):
    """Nothing a caller is told depends on the wall clock."""
    rows = rows_of(data / "cases/s-qf-07/clock.jsonl")
    stepped, still = driven(rows)[0], driven(rows, wall_s=1000.0)[0]
    assert [d.headers() for d in stepped] == [d.headers() for d in still]
    assert [d.body() for d in stepped] == [d.body() for d in still]
