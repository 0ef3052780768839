"""A policy may watch readings and outcomes, and its mistakes cost nobody."""

import threading

from tests.core.rules import QUIET, reading, rule

from admitperf import Outcome
from admitperf.core.signals import IN_FLIGHT, KV_PRESSURE


def observing(seen, decide=None, **given):
    """A policy that notes what it is shown."""

    def observe(policy, metrics, outcome):
        seen.append((KV_PRESSURE.read(metrics), outcome))

    def admits(policy, metrics):
        return policy.admit()

    return rule(decide or admits, observe=observe, **given)


def test_each_new_reading_is_observed_once(clock):
    """A hundred decisions on a reading are one reading, seen before the first."""
    seen = []

    def decide(policy, metrics):
        assert seen
        return policy.admit()

    policy = observing(seen, decide, clock=clock)
    for pressure in (0.1, 0.2):
        once = reading(clock, {"kv_pressure": pressure})
        assert [policy(once).reason for _ in range(100)] == [None] * 100
    assert seen == [(0.1, None), (0.2, None)]


def test_a_plain_mapping_that_did_not_change_is_no_new_reading(clock):
    """What is handed in again is observed again only when it differs."""
    seen = []
    policy = observing(seen, clock=clock)
    for raw in (QUIET, dict(QUIET), {**QUIET, "kv_pressure": 0.4}, {"x": 1}):
        policy(raw)
    assert [value for value, _ in seen] == [0.2, 0.4, None]


def test_numbers_that_do_not_change_are_observed_again_after_a_while(clock):
    """An idle engine's numbers stand still, and time passes all the same."""
    seen = []
    policy = observing(seen, clock=clock)
    for _ in range(5):
        policy(QUIET)
        policy(QUIET)
        clock.advance(0.5)
    assert len(seen) == 3


def test_an_outcome_is_observed_with_what_was_known_of_its_request(clock):
    """The hook sees the end, the facts it was decided on, and the newest reading."""
    seen = []
    policy = observing(seen, clock=clock, reports_outcomes=True)
    d = policy(reading(clock, QUIET), request_id="r", tenant="acme", input_tokens=9)
    policy.outcome("r", ttft_ms=418, output_tokens=212)
    value, outcome = seen[-1]
    assert value == 0.2
    assert isinstance(outcome, Outcome)
    assert (outcome.request_id, outcome.ok, outcome.ttft_ms) == ("r", True, 418)
    assert (outcome.output_tokens, outcome.seq) == (212, d.seq)
    assert (outcome.request.tenant, outcome.request.input_tokens) == ("acme", 9)
    assert outcome.admitted is True
    assert outcome.max_gap_ms is None


def test_outcomes_are_observed_also_by_a_policy_that_never_saw(clock):
    """Blindness does not hide how requests end."""
    seen = []

    def fails(policy, metrics):
        raise ValueError

    policy = observing(seen, fails, clock=clock)
    policy(reading(clock, {"x": 1}), request_id="r")
    policy.outcome("r")
    assert len([outcome for _, outcome in seen if outcome is not None]) == 1


def test_the_outcome_of_a_refused_request_says_so(clock):
    """A rule that learns from ends can leave those out."""
    seen = []
    policy = observing(seen, lambda p, m: p.reject("slots"), clock=clock)
    policy(QUIET, request_id="r")
    policy.outcome("r")
    assert seen[-1][1].admitted is False


def test_a_second_or_unknown_outcome_is_not_observed(clock):
    """Only what counts is learned from."""
    seen = []
    policy = observing(seen, clock=clock)
    policy(QUIET, request_id="r")
    for request_id in ("r", "r", "nobody"):
        policy.outcome(request_id)
    assert len([outcome for _, outcome in seen if outcome is not None]) == 1


def test_an_outcome_is_observed_after_its_place_is_free(clock):
    """The ledger that the hook sees no longer holds the request."""
    open_then = []

    def observe(policy, metrics, outcome):
        open_then.append(IN_FLIGHT.read(metrics))

    policy = rule(
        lambda p, m: p.admit(), observe=observe, clock=clock, reports_outcomes=True
    )
    policy(QUIET, request_id="r")
    policy(QUIET)
    policy.outcome("r")
    assert open_then == [0.0, 1.0]


def test_the_hook_runs_in_the_order_of_the_log(clock, log):
    """Outcomes are observed in the order of their numbers, under the policy's lock."""
    seen, free, errors = [], [], []

    def observe(policy, metrics, outcome):
        free.append(not policy._lock._is_owned())
        if outcome is not None:
            seen.append(outcome.request_id)

    policy = rule(lambda p, m: p.admit(), observe=observe, clock=clock, log=log)
    ids = [policy(QUIET).request_id for _ in range(400)]

    def report(some):
        try:
            for request_id in some:
                policy.outcome(request_id)
        except Exception as error:  # noqa: BLE001  told below
            errors.append(error)

    threads = [threading.Thread(target=report, args=(ids[n::4],)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert not any(free)
    assert seen == [line["id"] for line in log.outcomes]
    numbers = [line["seq"] for line in log.outcomes]
    assert numbers == sorted(numbers)


def test_an_exception_in_the_hook_is_caught_and_noted_once(clock, log, caplog):
    """It costs no decision and no outcome, and the log says so once."""

    def observe(policy, metrics, outcome):
        raise RuntimeError("no model yet")

    policy = rule(lambda p, m: p.admit(), observe=observe, clock=clock, log=log)
    for n in range(5):
        assert policy({"kv_pressure": n / 10}, request_id=f"r{n}").admitted
        policy.outcome(f"r{n}")
    assert len(log.outcomes) == 5
    failed = [line for line in log.controls if line["event"] == "observe_failed"]
    assert len(failed) == 1
    assert "no model yet" in failed[0]["error"]
    assert len([r for r in caplog.records if "no model yet" in r.getMessage()]) == 1


def test_a_comparison_in_the_hook_is_no_gate_of_a_decision(clock, log):
    """What is learned between requests did not decide any."""

    def observe(policy, metrics, outcome):
        return KV_PRESSURE.read(metrics) > 0.5

    policy = rule(lambda p, m: p.admit(), observe=observe, clock=clock, log=log)
    policy(QUIET, request_id="r")
    policy.outcome("r")
    policy(QUIET)
    assert [line["gates"] for line in log.decisions] == [[], []]


def test_the_hook_may_ask_the_policy_itself(log):
    """A decision made inside the hook is numbered, timed and recorded in order."""
    asked = []

    def observe(policy, metrics, outcome):
        if len(asked) < 3:
            asked.append(None)
            asked.append(policy({"kv_pressure": 0.1 + len(asked) / 10}))

    policy = rule(lambda p, m: p.admit(), observe=observe, log=log)
    outer = policy(QUIET, request_id="outer")
    policy.outcome("outer")
    assert len(log.decisions) > 2
    assert all(d.admitted for d in asked if d is not None)
    assert outer.request_id == "outer"
    numbers = [line["seq"] for line in log.lines]
    times = [line["t_us"] for line in log.lines]
    assert numbers == sorted(numbers)
    assert times == sorted(times)
    assert len(set(numbers)) == len(numbers)


def test_a_hook_that_asks_without_end_is_stopped(log):
    """The interpreter's own limit ends it, and the outer request has its answer."""

    def observe(policy, metrics, outcome):
        policy({"kv_pressure": policy.count()})

    numbers = iter(range(100_000))
    policy = rule(lambda p, m: p.admit(), observe=observe, log=log)
    policy.count = lambda: next(numbers) / 100_000
    assert policy(QUIET, request_id="outer").request_id == "outer"
    assert policy(QUIET).admitted


def test_a_policy_without_the_hook_is_not_slowed_by_it():
    """Nothing is prepared for a hook that is not there."""
    assert rule(lambda p, m: p.admit())._observes is False
    assert observing([])._observes is True
