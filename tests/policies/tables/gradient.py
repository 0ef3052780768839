"""What `gradient` says."""

from tests.policies.verdicts import case

FULL = {"in_flight": 8, "oldest_wait_s": 0.0}

TABLE = [
    case("gradient", {"in_flight": 7, "oldest_wait_s": 0.0}, "admit"),
    case("gradient", FULL, "defer in_flight_cap"),
    case("gradient", FULL, "admit", start=9),
    # The floor and the ceiling hold from the start.
    case("gradient", FULL, "admit", floor=9),
    case(
        "gradient",
        {"in_flight": 2, "oldest_wait_s": 0.0},
        "defer in_flight_cap",
        ceiling=2,
    ),
    # A long wait alone refuses nobody: it moves the limit, with the next period.
    case("gradient", {"in_flight": 7, "oldest_wait_s": 60.0}, "admit"),
]
OTHERWISE = [
    {"start": 1, "ceiling": 1},
    {"floor": 64, "ceiling": 64},
    {"period_s": 0.01, "min_samples": 1},
]
