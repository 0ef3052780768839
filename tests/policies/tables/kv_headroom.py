"""What `kv_headroom` says."""

from tests.policies.verdicts import case


def engine(used, capacity=10_000, in_flight=4):
    """What the engine shows, and that requests are counted."""
    return {
        "kv_pressure": used,
        "kv_capacity_tokens": capacity,
        "in_flight": in_flight,
    }


PROMPT = {"input_tokens": 1000}
CALL = {**PROMPT, "max_output_tokens": 500}

TABLE = [
    case("kv_headroom", engine(0.0), "admit"),
    case("kv_headroom", engine(0.9), "admit"),
    case("kv_headroom", engine(0.91), "defer kv_headroom"),
    # The newcomer's prompt, and then its answer, as far as nothing else is known.
    case("kv_headroom", engine(0.80), "admit", PROMPT),
    case("kv_headroom", engine(0.81), "defer kv_headroom", PROMPT),
    case("kv_headroom", engine(0.75), "admit", CALL),
    case("kv_headroom", engine(0.76), "defer kv_headroom", CALL),
    # Cached or not: blocks that nobody held count as used with it.
    case("kv_headroom", engine(0.80), "admit", {**PROMPT, "cached_tokens": 900}),
    case(
        "kv_headroom",
        engine(0.81),
        "defer kv_headroom",
        {**PROMPT, "cached_tokens": 900},
    ),
    case("kv_headroom", engine(0.76), "admit", CALL, high_water=1.0),
    # With nothing in use it passes, as long as the cache can hold it.
    case("kv_headroom", engine(0.0), "admit", {"input_tokens": 9500}),
    case("kv_headroom", engine(0.1), "defer kv_headroom", {"input_tokens": 9500}),
    case("kv_headroom", engine(0.0), "admit", {"input_tokens": 10_000}),
    case("kv_headroom", engine(0.0), "reject too_large", {"input_tokens": 10_001}),
    case(
        "kv_headroom",
        engine(0.0),
        "reject too_large",
        {**PROMPT, "max_output_tokens": 3001, "n": 3},
    ),
    case(
        "kv_headroom",
        engine(0.0),
        "admit",
        {**PROMPT, "max_output_tokens": 3000, "n": 3},
    ),
    case(
        "kv_headroom",
        engine(0.99),
        "reject too_large",
        {"input_tokens": 10_001, "cached_tokens": 10_000},
    ),
]
OTHERWISE = [
    {"high_water": 0.01, "quantile": 1.0, "to_come": 1.0},
    {"to_come": 0.0, "quantile": 0.01},
]
