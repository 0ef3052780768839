"""What `fluid_wait_inspired` says before it has measured anything."""

from tests.policies.verdicts import case

NAME = "fluid_wait_inspired"
EMPTY = {"kv_pressure": 0.0, "kv_capacity_tokens": 10_000, "in_flight": 0}
HALF = {**EMPTY, "kv_pressure": 0.5}
FULL = {**EMPTY, "kv_pressure": 1.0}

TABLE = [
    case(NAME, EMPTY, "admit"),
    case(NAME, HALF, "admit", {"input_tokens": 4_000}),
    case(NAME, HALF, "defer kv_headroom", {"input_tokens": 4_001}),
    case(NAME, HALF, "admit", {"input_tokens": 4_000, "max_output_tokens": 99_999}),
    case(NAME, HALF, "admit", {"input_tokens": 5_000}, buffer=0.0),
    case(NAME, FULL, "defer kv_headroom"),
    case(NAME, EMPTY, "admit", {"input_tokens": 10_000}),
    case(NAME, {**EMPTY, "kv_pressure": 0.1}, "admit", {"input_tokens": 9_999}),
    case(
        NAME,
        {**EMPTY, "kv_pressure": 0.11},
        "defer kv_headroom",
        {"input_tokens": 9_999},
    ),
    case(NAME, EMPTY, "reject too_large", {"input_tokens": 10_001}),
    case(NAME, FULL, "reject too_large", {"input_tokens": 10_001}),
]
WITH_MEMORY = [("in_flight_cap", "defer")]
OTHERWISE = [
    {"thresholds": "least"},
    {"buffer": 0.0, "window_s": 0.01},
    {"buffer": 0.9, "kv_share": 0.01},
]
