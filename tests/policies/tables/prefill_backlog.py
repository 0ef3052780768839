"""What `prefill_backlog` says."""

from tests.policies.verdicts import case

TABLE = [
    case("prefill_backlog", {"in_flight": 0}, "admit"),
    case("prefill_backlog", {"in_flight": 500}, "admit"),
    # Nothing is ahead of it, so that it passes however long it is.
    case("prefill_backlog", {"in_flight": 0}, "admit", {"input_tokens": 10**6}),
    case(
        "prefill_backlog",
        {"in_flight": 0},
        "admit",
        {"input_tokens": 10**6},
        max_tokens=1,
    ),
]
WITH_MEMORY = [("prefill_backlog", "defer")]
OTHERWISE = [
    {"target_s": None, "max_tokens": 1000},
    {"target_s": 0.001, "max_tokens": 1},
    {"target_s": 3600.0},
]
