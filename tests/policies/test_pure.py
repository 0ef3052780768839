"""`decide` leaves no trace: it may be asked many times for one request."""

from collections import deque

import pytest

from admitperf.core.reading import Reading
from admitperf.core.snapshot import Snapshot
from admitperf.policies.aimd import Aimd
from admitperf.policies.chronos_inspired import ChronosInspired
from admitperf.policies.concur_inspired import ConcurInspired
from admitperf.policies.deadline_slack import DeadlineSlack
from admitperf.policies.fluid_wait_inspired import FluidWaitInspired
from admitperf.policies.front_door import FrontDoor
from admitperf.policies.gradient import Gradient
from admitperf.policies.in_flight_cap import InFlightCap
from admitperf.policies.kv_headroom import KvHeadroom
from admitperf.policies.priority_shed import PriorityShed
from admitperf.policies.rate_limit import RateLimit
from admitperf.policies.session_aimd import SessionAimd
from admitperf.policies.session_ledger import SessionLedger
from admitperf.policies.tenant_share import TenantShare
from admitperf.policies.thunder_inspired import ThunderInspired
from admitperf.testing import FakeClock

ENGINE = {
    "kv_pressure": 0.85,
    "kv_capacity_tokens": 10_000.0,
    "queue_depth": 6.0,
    "running": 4.0,
    "pool_load": 0.5,
}
FACTS = {
    "tenant": "t",
    "session": "s",
    "input_tokens": 3000,
    "cached_tokens": 2990,
    "max_output_tokens": 100,
    "deadline_s": 3.0,
    "priority": 1,
}
POLICIES = [
    (Aimd, {}),
    (ChronosInspired, {}),
    (ConcurInspired, {}),
    (DeadlineSlack, {}),
    (FluidWaitInspired, {}),
    (FrontDoor, {"full_queue": 8, "max_projected_kv": 0.9, "cheap_tokens": 50}),
    (Gradient, {}),
    (InFlightCap, {"max_in_flight": 3}),
    (KvHeadroom, {}),
    (PriorityShed, {}),
    (RateLimit, {"rate_per_s": 0.5, "burst": 2}),
    (SessionAimd, {}),
    (SessionLedger, {"mode": "shed", "quantum": 1, "slots": 2}),
    (TenantShare, {"contended_at": 1}),
    (ThunderInspired, {}),
]


def state(thing):
    """What something holds, down to its numbers and texts."""
    if isinstance(thing, dict):
        return [(state(key), state(value)) for key, value in thing.items()]
    if isinstance(thing, (list, tuple, deque)):
        return [state(one) for one in thing]
    if not type(thing).__module__.startswith("admitperf.policies"):
        return repr(thing)
    held = dict(getattr(thing, "__dict__", {}))
    for owner in type(thing).__mro__:
        for name in getattr(owner, "__slots__", ()):
            held.setdefault(name, getattr(thing, name, None))
    return state({k: v for k, v in held.items() if k != "_gates"})


def of(policy):
    """What a policy holds of its own: a plain one's machinery is the core's."""
    core = vars(InFlightCap(max_in_flight=1)).keys() - {"max_in_flight"}
    return state({name: v for name, v in vars(policy).items() if name not in core})


@pytest.mark.parametrize(("cls", "given"), POLICIES)
@pytest.mark.parametrize("later_s", [0.0, 1.5, 40.0])
def test_asking_leaves_the_policy_as_it_was(cls, given, later_s):
    """On its first reading, with a history, long after it, and on a new replica."""
    clock = FakeClock(start_s=1000.0)
    policy = cls(clock=clock, reports_outcomes=True, **given)
    for number in range(12):
        own = {"logical_id": f"c{number}", "session": f"s{number}"}
        facts = {**FACTS, **own, "tenant": "tu"[number % 2]}
        policy(ENGINE, request_id=f"r{number}", **facts)
        clock.advance(0.3)
        if number % 3:
            policy.first_token(f"r{number}")
            policy.outcome(f"r{number}", ttft_ms=90.0, e2e_ms=300.0, output_tokens=20)
    clock.advance(later_s)
    for replica in (None, "new"):
        at_ns = clock.monotonic_ns()
        view = policy._resolver.view(
            Reading(ENGINE, replica=replica, taken_ns=at_ns), timed=True
        )
        request = policy._look(ENGINE, FACTS).request
        before = of(policy)
        for _ in range(3):
            policy.decide(Snapshot(view, request, policy.ledger, at_ns, policy._gates))
        assert of(policy) == before
