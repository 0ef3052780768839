"""What `tenant_share` says."""

from tests.policies.verdicts import TENANT, case

TABLE = [
    case("tenant_share", {"in_flight": 50}, "admit"),
    case("tenant_share", {"in_flight": 50, "tenant_share": 1.0}, "admit", TENANT),
    case(
        "tenant_share",
        {"in_flight": 50, "tenant_share": 1.0, "queue_depth": 99},
        "admit",
        TENANT,
        contended_at=8,
    ),
]
WITH_MEMORY = [("tenant_share", "reject")]
OTHERWISE = [
    {"weights": "tenant=2,crowd=0.5"},
    {"weights": {"tenant": 3}, "contended_at": 0},
]
