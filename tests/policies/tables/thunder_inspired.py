"""What `thunder_inspired` says."""

from tests.policies.verdicts import SESSION, case

ROOM = {"kv_pressure": 0.0, "kv_capacity_tokens": 1_000, "in_flight": 0}

TABLE = [
    case("thunder_inspired", ROOM, "admit", {**SESSION, "input_tokens": 900}),
    case(
        "thunder_inspired",
        ROOM,
        "defer kv_headroom",
        {**SESSION, "input_tokens": 901},
    ),
    case(
        "thunder_inspired",
        ROOM,
        "admit",
        {**SESSION, "input_tokens": 900},
        watermark=0.5,
    ),
    case(
        "thunder_inspired",
        ROOM,
        "defer kv_headroom",
        {**SESSION, "input_tokens": 901},
        watermark=0.5,
    ),
    case(
        "thunder_inspired",
        ROOM,
        "admit",
        {**SESSION, "input_tokens": 1_000},
        buffer_tokens=0,
    ),
    # It reads what sessions will come back with, not what is in the cache now.
    case(
        "thunder_inspired",
        {**ROOM, "kv_pressure": 1.0},
        "admit",
        {**SESSION, "input_tokens": 10},
    ),
    # What a request does not say refuses it nothing.
    case("thunder_inspired", ROOM, "admit", SESSION),
    case("thunder_inspired", ROOM, "admit", {"input_tokens": 5_000}),
]
OTHERWISE = [
    {"half_life_s": 1.0, "shared": "measured"},
    {"tick_s": 0.05, "force_after_s": 0.1, "lease_s": 1.0},
]
