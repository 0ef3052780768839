"""What `rate_limit` says."""

from tests.policies.verdicts import TENANT, case

TABLE = [
    case("rate_limit", {}, "admit"),
    case("rate_limit", {"kv_pressure": 1.0, "queue_depth": 1e6}, "admit", TENANT),
]
WITH_MEMORY = [("rate_limit", "reject")]
OTHERWISE = [
    {"rate_per_s": 0.001, "burst": 1},
    {"per": "pool", "burst": 3},
]
