"""What `rate_limit` says."""

from tests.policies.verdicts import TENANT, case

TOKENS = {"cost": "tokens", "rate_per_s": 100.0, "burst": 1000}
TABLE = [
    case("rate_limit", {}, "admit"),
    case("rate_limit", {"kv_pressure": 1.0, "queue_depth": 1e6}, "admit", TENANT),
    case("rate_limit", {}, "admit", {**TENANT, "input_tokens": 1000}, **TOKENS),
    # A prompt larger than the burst waits for a full bucket too, and goes into debt.
    case("rate_limit", {}, "admit", {**TENANT, "input_tokens": 10**5}, **TOKENS),
    # An answer is a guess: it makes a request wait for a full bucket, never for ever.
    case("rate_limit", {}, "admit", {**TENANT, "max_output_tokens": 10**6}, **TOKENS),
]
WITH_MEMORY = [("rate_limit", "reject")]
OTHERWISE = [
    {"rate_per_s": 0.001, "burst": 1},
    {"per": "pool", "burst": 3},
    TOKENS,
    {**TOKENS, "per": "pool", "output_weight": 0.0},
]
