"""One policy, many threads or tasks: no bound is passed, nothing is lost."""

import asyncio
import sys
import threading

import pytest
from tests.core.rules import QUIET, admits, reading, rule

from admitperf.core.clock import pause
from admitperf.core.signals import IN_FLIGHT, KV_PRESSURE, SESSION_IN_FLIGHT

THREADS = 8
CALLS = 250


@pytest.fixture(autouse=True)
def _eager():
    """Threads take turns as often as they can."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


def together(work):
    """Runs work(n) in eight threads at once; what any of them raised is raised."""
    start, errors = threading.Barrier(THREADS), []

    def run(n):
        try:
            start.wait()
            work(n)
        except BaseException as error:  # noqa: BLE001  raised again below
            errors.append(error)

    threads = [threading.Thread(target=run, args=(n,)) for n in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


class Gauge:
    """How many are inside, and how many were at most."""

    def __init__(self):
        self.lock = threading.Lock()
        self.inside = self.most = 0

    def enter(self):
        """One more."""
        with self.lock:
            self.inside += 1
            self.most = max(self.most, self.inside)

    def leave(self):
        """One less."""
        with self.lock:
            self.inside -= 1


def capped(cap, **given):
    """A policy that lets so many in at once, and lets others run before it answers."""

    def decide(policy, metrics):
        full = metrics.at_least(IN_FLIGHT, cap)
        pause()
        return policy.defer("in_flight_cap") if full else policy.admit()

    return rule(decide, reports_outcomes=True, **given)


def test_an_in_flight_cap_is_never_passed(log):
    """Eight threads never hold more than five, and use all five."""
    policy, gauge = capped(5, log=log), Gauge()

    def work(n):
        for call in range(CALLS):
            d = policy(QUIET, request_id=f"{n}-{call}")
            if d.admitted:
                gauge.enter()
                policy.first_token(d.request_id)
                pause()
                gauge.leave()
                policy.outcome(d.request_id)

    together(work)
    assert 1 <= gauge.most <= 5
    assert policy.ledger.in_flight == 0
    admitted = sum(line["admitted"] for line in log.decisions)
    assert len(log.outcomes) == admitted


def test_no_line_is_lost_and_numbers_have_no_gaps(log):
    """Decisions, outcomes and notices share one gapless sequence, in order of time."""
    policy = rule(admits, log=log)

    def work(n):
        for call in range(CALLS):
            d = policy(QUIET, tenant=f"t{n}", bad_fact=call if call % 9 == 0 else None)
            policy.outcome(d.request_id)
            policy.outcome("nobody")

    together(work)
    lines = log.lines
    assert [line["seq"] for line in lines] == list(range(1, len(lines) + 1))
    assert len(log.decisions) == len(log.outcomes) == THREADS * CALLS
    times = [line["t_us"] for line in lines]
    assert times == sorted(times)


def test_every_thread_gets_its_own_id_and_answer():
    """No two requests share an id, and facts do not mix."""
    mixed, ids = [], []

    def decide(policy, metrics):
        tenant, session = metrics.request.tenant, metrics.request.session
        if tenant != session:
            mixed.append((tenant, session))
        return policy.reject("slots") if tenant == "0" else policy.admit()

    policy = rule(decide)

    def work(n):
        for _ in range(CALLS):
            d = policy(QUIET, tenant=str(n), session=str(n))
            assert d.admitted is (n != 0)
            ids.append(d.request_id)

    together(work)
    assert mixed == []
    assert len(set(ids)) == THREADS * CALLS


def test_one_id_from_many_threads_opens_once_under_that_name():
    """The others get names of their own, and every one of them can end."""
    policy = rule(admits, reports_outcomes=True)
    ids = []

    def work(n):
        ids.extend(policy(QUIET, request_id="same").request_id for _ in range(50))

    together(work)
    assert len(set(ids)) == THREADS * 50
    assert ids.count("same") == 1
    for request_id in ids:
        policy.outcome(request_id)
    assert policy.ledger.in_flight == 0


def test_one_end_reported_by_many_threads_counts_once(log):
    """Whoever is first, the rest are repetitions."""
    policy = rule(admits, log=log)
    ids = [policy(QUIET).request_id for _ in range(100)]
    together(lambda n: [policy.outcome(request_id) for request_id in ids])
    assert len(log.outcomes) == 100
    events = [line["event"] for line in log.controls]
    assert events == ["outcome_repeated"] * 100 * (THREADS - 1)


def test_gates_of_two_threads_do_not_mix(log, clock):
    """Each line holds the comparisons of its own request, on one shared reading."""

    def decide(policy, metrics):
        n = int(metrics.request.tenant)
        for bound in range(n):
            metrics.above(KV_PRESSURE, bound + n / 100)
        return policy.admit()

    policy = rule(decide, log=log, clock=clock)
    once = reading(clock, QUIET)
    together(lambda n: [policy(once, tenant=str(n)) for _ in range(100)])
    for line in log.decisions:
        n = int(line["facts"]["tenant"])
        assert [gate[3] for gate in line["gates"]] == [b + n / 100 for b in range(n)]


def test_readings_may_change_while_others_decide():
    """A scraper's new reading is taken up between decisions, never within one."""
    torn = []

    def decide(policy, metrics):
        one, two = KV_PRESSURE.read(metrics), metrics.raw["copy"]
        if one != two or KV_PRESSURE.read(metrics) != one:
            torn.append((one, two))
        return policy.admit()

    policy = rule(decide)

    def work(n):
        for call in range(CALLS):
            value = ((n * CALLS + call) % 100) / 100
            policy({"kv_pressure": value, "copy": value})

    together(work)
    assert torn == []


def test_many_tasks_of_one_loop_use_one_policy(log):
    """In asyncio a decision is one step: nothing awaits inside it."""
    policy, gauge = capped(3, log=log), Gauge()

    async def request(n, turn):
        """One request; whether it was served."""
        d = policy(QUIET, request_id=f"r{n}", session=f"s{n % 4}")
        if not d.admitted:
            return False
        gauge.enter()
        await turn.wait()
        gauge.leave()
        policy.outcome(d.request_id)
        return True

    async def main():
        """Fifty at once."""
        turn = asyncio.Event()
        tasks = [asyncio.create_task(request(n, turn)) for n in range(50)]
        asyncio.get_running_loop().call_soon(turn.set)
        return await asyncio.gather(*tasks)

    served = asyncio.run(main())
    assert sum(served) == len(log.outcomes)
    assert gauge.most == 3
    assert policy.ledger.in_flight == 0


def test_two_policies_share_a_reading_without_sharing_anything_else(clock):
    """A gateway with a policy per pool hands all of them one reading."""
    seen = {"a": [], "b": []}

    def decide(policy, metrics):
        seen[policy.name].append(metrics.at_least(KV_PRESSURE, policy.threshold))
        return policy.admit()

    policies = [
        rule(decide, name=name, threshold=bound, clock=clock)
        for name, bound in (("a", 0.1), ("b", 0.9))
    ]
    once = reading(clock, QUIET)
    together(lambda n: [policies[n % 2](once) for _ in range(100)])
    assert set(seen["a"]) == {True}
    assert set(seen["b"]) == {False}


def test_a_session_bound_holds_under_threads():
    """Never two calls of one session at once where one is allowed."""

    def decide(policy, metrics):
        full = metrics.at_least(SESSION_IN_FLIGHT, 1)
        pause()
        return policy.defer("session_in_flight") if full else policy.admit()

    policy = rule(decide, reports_outcomes=True)
    gauges = [Gauge() for _ in range(3)]

    def work(n):
        for call in range(CALLS):
            which = (n + call) % 3
            d = policy(QUIET, session=f"s{which}")
            if d.admitted:
                gauges[which].enter()
                pause()
                gauges[which].leave()
                policy.outcome(d.request_id)

    together(work)
    assert [gauge.most for gauge in gauges] == [1, 1, 1]
