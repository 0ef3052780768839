"""What `dual_gate` says."""

from tests.policies.verdicts import case

TABLE = [
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
]
OTHERWISE = [
    {"match": "any"},
]
