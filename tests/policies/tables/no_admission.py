"""What `no_admission` says."""

from tests.policies.verdicts import case

TABLE = [
    case("no_admission", {}, "admit"),
    case("no_admission", {"kv_pressure": 1.0, "queue_depth": 1e6}, "admit"),
]
