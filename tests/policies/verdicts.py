"""What each policy says, as a table: the tests and the pages both read it."""

from typing import NamedTuple


class Case(NamedTuple):
    """One row: under these parameters, with this known, the policy says that."""

    policy: str
    parameters: dict
    signals: dict
    facts: dict
    verdict: str
    reason: str | None


def case(policy, signals, says, facts=None, **parameters):
    """A row; `says` is "admit", or "verdict reason"."""
    verdict, _, reason = says.partition(" ")
    return Case(policy, parameters, signals, facts or {}, verdict, reason or None)


TENANT = {"tenant": "t"}
SESSION = {"session": "s"}
BOTH = {**TENANT, **SESSION}

TABLE = [
    case("no_admission", {}, "admit"),
    case("no_admission", {"kv_pressure": 1.0, "queue_depth": 1e6}, "admit"),
    case("kv_threshold", {"kv_pressure": 0.0}, "admit"),
    case("kv_threshold", {"kv_pressure": 0.8999}, "admit"),
    case("kv_threshold", {"kv_pressure": 0.90}, "defer kv_pressure"),
    case("kv_threshold", {"kv_pressure": 1.0}, "defer kv_pressure"),
    case("kv_threshold", {"kv_pressure": 0.95}, "admit", threshold=0.96),
    case("kv_threshold", {"kv_pressure": 1.0}, "defer kv_pressure", threshold=1),
    case("kv_threshold", {"kv_pressure": 0.0}, "defer kv_pressure", threshold=0),
    case("kv_threshold", {"kv_pressure": 0.9}, "reject kv_pressure", action="reject"),
    case("queue_depth", {"queue_depth": 0}, "admit"),
    case("queue_depth", {"queue_depth": 32}, "admit"),
    case("queue_depth", {"queue_depth": 33}, "defer queue_depth"),
    case("queue_depth", {"queue_depth": 1}, "defer queue_depth", max_waiting=0),
    case("queue_depth", {"queue_depth": 0}, "admit", max_waiting=0),
    case("queue_depth", {"queue_depth": 40}, "reject queue_depth", action="reject"),
    case("dual_gate", {"kv_pressure": 0.89, "queue_depth": 0}, "admit"),
    case("dual_gate", {"kv_pressure": 0.95, "queue_depth": 0}, "admit"),
    case("dual_gate", {"kv_pressure": 0.10, "queue_depth": 99}, "admit"),
    case("dual_gate", {"kv_pressure": 0.90, "queue_depth": 1}, "defer kv_pressure"),
    case("dual_gate", {"kv_pressure": 0.9, "queue_depth": 8}, "admit", max_waiting=8),
    case(
        "dual_gate",
        {"kv_pressure": 0.95, "queue_depth": 0},
        "defer kv_pressure",
        match="any",
    ),
    case(
        "dual_gate",
        {"kv_pressure": 0.10, "queue_depth": 1},
        "defer queue_depth",
        match="any",
    ),
    case(
        "dual_gate",
        {"kv_pressure": 0.95, "queue_depth": 9},
        "defer kv_pressure",
        match="any",
    ),
    case("dual_gate", {"kv_pressure": 0.1, "queue_depth": 0}, "admit", match="any"),
    case("in_flight_cap", {"in_flight": 99}, "admit"),
    case("in_flight_cap", {"in_flight": 100}, "defer in_flight_cap"),
    case("in_flight_cap", {"in_flight": 1}, "defer in_flight_cap", max_in_flight=1),
    case(
        "in_flight_cap",
        {"in_flight": 9, "tenant_in_flight": 2},
        "reject caller_in_flight",
        TENANT,
        max_per_tenant=2,
    ),
    case(
        "in_flight_cap",
        {"in_flight": 9, "tenant_in_flight": 1},
        "admit",
        TENANT,
        max_per_tenant=2,
    ),
    case(
        "in_flight_cap",
        {"in_flight": 9, "session_in_flight": 2},
        "defer session_in_flight",
        SESSION,
        max_per_session=2,
    ),
    # The narrowest bound speaks first, the caller's before the session's.
    case(
        "in_flight_cap",
        {"in_flight": 500, "tenant_in_flight": 5, "session_in_flight": 5},
        "reject caller_in_flight",
        BOTH,
        max_per_tenant=5,
        max_per_session=5,
    ),
    case(
        "in_flight_cap",
        {"in_flight": 500, "tenant_in_flight": 4, "session_in_flight": 5},
        "defer session_in_flight",
        BOTH,
        max_per_tenant=5,
        max_per_session=5,
    ),
    case(
        "in_flight_cap",
        {"in_flight": 500, "tenant_in_flight": 4, "session_in_flight": 4},
        "defer in_flight_cap",
        BOTH,
        max_per_tenant=5,
        max_per_session=5,
    ),
    # A bound that is not given is not asked, and no name means no bound of that kind.
    case("in_flight_cap", {"in_flight": 99, "tenant_in_flight": 99}, "admit", TENANT),
    case(
        "in_flight_cap",
        {"in_flight": 500},
        "admit",
        max_in_flight=None,
        max_per_tenant=1,
    ),
    case("rate_limit", {}, "admit"),
    case("rate_limit", {"kv_pressure": 1.0, "queue_depth": 1e6}, "admit", TENANT),
]
