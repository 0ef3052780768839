"""What `kv_threshold` says."""

from tests.policies.verdicts import case

TABLE = [
    case("kv_threshold", {"kv_pressure": 0.0}, "admit"),
    case("kv_threshold", {"kv_pressure": 0.8999}, "admit"),
    case("kv_threshold", {"kv_pressure": 0.90}, "defer kv_pressure"),
    case("kv_threshold", {"kv_pressure": 1.0}, "defer kv_pressure"),
    case("kv_threshold", {"kv_pressure": 0.95}, "admit", threshold=0.96),
    case("kv_threshold", {"kv_pressure": 1.0}, "defer kv_pressure", threshold=1),
    case("kv_threshold", {"kv_pressure": 0.0}, "defer kv_pressure", threshold=0),
    case("kv_threshold", {"kv_pressure": 0.9}, "reject kv_pressure", action="reject"),
]
OTHERWISE = [
    {"threshold": 0.0, "action": "reject"},
]
