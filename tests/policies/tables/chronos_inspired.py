"""What `chronos_inspired` says."""

from tests.policies.verdicts import case

IDLE = {"running": 0}
NAME = "chronos_inspired"

TABLE = [
    case(NAME, IDLE, "admit"),
    case(NAME, {"running": 730}, "admit"),
    case(NAME, {"running": 731}, "defer slots"),
    case(NAME, {"running": 731}, "defer slots", {"input_tokens": 128}),
    case(NAME, {"running": 728}, "defer slots", {"n": 4}),
    case(NAME, {"running": 0}, "admit", {"n": 10_000}),
    case(NAME, {"running": 1}, "admit", {"input_tokens": 11_900}),
    case(NAME, {"running": 1}, "reject deadline_unmeetable", {"input_tokens": 12_000}),
    case(NAME, IDLE, "admit", {"input_tokens": 14_800}),
    case(NAME, IDLE, "reject deadline_unmeetable", {"input_tokens": 15_000}),
    case(NAME, IDLE, "admit", {"input_tokens": 14_000, "deadline_s": 30.0}),
    case(NAME, IDLE, "admit", {"input_tokens": 14_000, "cached_tokens": 10_000}),
    case(NAME, IDLE, "reject deadline_unmeetable", {"input_tokens": 10**9}),
    case(
        NAME,
        IDLE,
        "reject deadline_unmeetable",
        {"input_tokens": 10**9, "deadline_s": 1e5},
    ),
    case(
        NAME,
        IDLE,
        "reject deadline_unmeetable",
        {"input_tokens": 1, "deadline_s": -1.0},
    ),
    case(NAME, IDLE, "admit", {"deadline_s": -1.0}),
    case(
        NAME,
        {"running": 731},
        "reject deadline_unmeetable",
        {"input_tokens": 1, "deadline_s": 0.0},
    ),
    case(NAME, {"running": 151}, "defer slots", tbt_ms=55.0),
    case(NAME, {"running": 150}, "admit", tbt_ms=55.0),
    case(NAME, IDLE, "admit", {"input_tokens": 14_000}, ttft_s=10.0),
]
WITH_MEMORY = [("prefill_backlog", "defer")]
OTHERWISE = [
    {"rate": "mean"},
    {"ttft_s": 0.05, "tbt_ms": 20.0},
    {"window_s": 0.5, "sub_windows": 30, "prefill_share": 0.1},
]
