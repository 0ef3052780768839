"""What `queue_age` says."""

from tests.policies.verdicts import case

TABLE = [
    case("queue_age", {"oldest_wait_s": 0.0}, "admit"),
    case("queue_age", {"oldest_wait_s": 0.99}, "admit"),
    # A single look does not refuse: one is let in each interval, and none was yet.
    case("queue_age", {"oldest_wait_s": 4.99}, "admit"),
    case("queue_age", {"oldest_wait_s": 500.0}, "admit"),
]
WITH_MEMORY = [("queue_age", "defer")]
OTHERWISE = [
    {"target_s": 0.001, "interval_s": 0.001},
    {"target_s": 3600.0, "interval_s": 3600.0},
]
