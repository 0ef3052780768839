"""What `in_flight_cap` says."""

from tests.policies.verdicts import BOTH, SESSION, TENANT, case

TABLE = [
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
]
OTHERWISE = [
    {"max_in_flight": None, "max_per_tenant": 1},
    {"max_in_flight": None, "max_per_session": 1},
    {"max_in_flight": 3, "max_per_tenant": 2, "max_per_session": 1},
]
