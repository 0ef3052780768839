"""What `concur_inspired` says."""

from tests.policies.verdicts import SESSION, case

QUIET = {"kv_pressure": 0.1, "in_flight": 0, "prefix_hit_rate": 0.9}
THRASH = {"kv_pressure": 0.9, "in_flight": 9, "prefix_hit_rate": 0.1}

TABLE = [
    case("concur_inspired", QUIET, "admit", SESSION),
    case("concur_inspired", QUIET, "admit"),
    # The gates move the window; they refuse nobody by themselves.
    case("concur_inspired", THRASH, "admit", SESSION),
    case("concur_inspired", {"kv_pressure": 0.9, "in_flight": 0}, "admit", SESSION),
]
WITH_MEMORY = [("slots", "defer")]
OTHERWISE = [
    {"start": 1, "floor": 1},
    {"context_tokens": 1_000, "u_low": 0.0, "u_high": 0.0, "h_thresh": 1.0},
]
