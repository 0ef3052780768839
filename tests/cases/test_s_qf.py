"""Field cases about quotas, limits and fairness, at the level of a policy."""

import json
from functools import partial

import pytest
from tests.cases.sharing import arrivals, held, jain, p95, retrying

from admitperf.core.signals import IN_FLIGHT
from admitperf.policies import load
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


RATE = "rate_limit:per=pool,burst=2,rate_per_s=0.0333"
CAP = "in_flight_cap:max_in_flight=1"


@pytest.mark.parametrize("parts", [f"{RATE}; {CAP}", f"{CAP}; {RATE}"])
@pytest.mark.parametrize("name", ["first_of", "all_of"])
def test_s_qf_03_whichever_limit_is_asked_first(name, parts):
    """The same of the two policies together, also when B is asked about often."""
    clock = FakeClock()
    policy = load(name)(policies=parts, clock=clock, reports_outcomes=True)
    a = policy({}, request_id="A")
    b = policy.ask({}, request_id="B")
    for _ in range(20):
        b = policy.ask({}, request_id="B")
    b = policy.answer(b)
    policy.outcome("A", ttft_ms=5.0)
    clock.advance(5.0)
    c = policy({}, request_id="C")
    policy.outcome("C", ttft_ms=5.0)
    d = policy({}, request_id="D")
    assert [x.admitted for x in (a, b, c, d)] == [True, False, True, False]
    assert (b.reason, d.reason) == ("in_flight_cap", "rate_limit")


BUCKET = "rate_limit:burst=2,rate_per_s=0.0333"


@pytest.mark.parametrize(
    "parts",
    [BUCKET, f"{BUCKET}; {BUCKET}", f"{BUCKET}; first_of:policies=({BUCKET}; {CAP}0)"],
)
@pytest.mark.parametrize("name", ["first_of", "all_of", "any_of"])
def test_s_qf_04_one_limit_on_two_paths_is_charged_once(name, parts):
    """Two of three get in, whether the limit stands there once or twice."""
    policy = load(name)(policies=parts, clock=FakeClock(), reports_outcomes=True)
    answers = [policy({}, tenant="acme") for _ in range(3)]
    assert [d.admitted for d in answers] == [True, True, False]
    error = answers[2].body()["error"]
    assert (error["code"], error["limit"], error["used"]) == ("rate_limit", 2, 2)
    assert "limit 2, used 2" in error["message"]


def shared(clock, share="tenant_share"):
    """Shares before four slots."""
    parts = f"{share}; in_flight_cap:max_in_flight=4"
    return load("first_of")(policies=parts, clock=clock, reports_outcomes=True)


@pytest.mark.parametrize(
    ("how", "busy"), [(retrying, 0.85), (held, 1.0)], ids=["retrying", "held"]
)
def test_s_qf_06_a_light_tenant_is_not_starved_by_a_heavy_one(data, how, busy):
    """B waits at most 12 s, A has all slots while B is absent, in tokens.

    Once with callers that come back when they were told to, once in the holding queue
    of the gateway.
    """
    bench = how(shared, arrivals(data), until_s=150)
    assert len(bench.waits["b"]) == 60
    assert p95(bench.waits["b"]) <= 12
    assert bench.busy("a", 100, 140) >= 0.99 * 4 * 40
    assert bench.busy(None, 0, 60) >= busy * 4 * 60


def test_s_qf_06_first_come_first_served_starves_it(data):
    """Without shares the same callers wait much longer: the test could fail."""
    cap = partial(load("in_flight_cap"), max_in_flight=4, reports_outcomes=True)
    bench = retrying(lambda clock: cap(clock=clock), arrivals(data), until_s=150)
    assert len(bench.waits["b"]) < 30
    assert p95(bench.waits["b"]) > 60


@pytest.mark.parametrize("how", [retrying, held], ids=["retrying", "held"])
def test_s_qf_06_both_in_want_get_equal_work(how):
    """Of tokens, not of requests: Jain's index of what each was served is near 1."""
    heavy = {"t": 0.0, "tenant": "a", "prompt_tokens": 8000, "max_tokens": 500}
    light = {"t": 0.0, "tenant": "b", "prompt_tokens": 200, "max_tokens": 50}
    bench = how(shared, [heavy] * 20 + [light] * 300, until_s=80)
    served = [bench.served(tenant, 20, 80) for tenant in "ab"]
    assert jain(*served) > 0.98
    count = [sum(one[0] == tenant for one in bench.spans) for tenant in "ab"]
    assert count[1] > 10 * count[0]


def test_s_qf_06_weights_are_kept_to():
    """Twice the weight, twice the work."""
    heavy = {"t": 0.0, "tenant": "a", "prompt_tokens": 8000, "max_tokens": 500}
    light = {"t": 0.0, "tenant": "b", "prompt_tokens": 200, "max_tokens": 50}
    policy_of = partial(shared, share="tenant_share:weights=(b=2)")
    bench = retrying(policy_of, [heavy] * 20 + [light] * 300, until_s=80)
    a, b = (bench.served(tenant, 20, 80) for tenant in "ab")
    assert jain(a, b / 2) > 0.98


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
