"""What `queue_depth` says."""

from tests.policies.verdicts import case

TABLE = [
    case("queue_depth", {"queue_depth": 0}, "admit"),
    case("queue_depth", {"queue_depth": 32}, "admit"),
    case("queue_depth", {"queue_depth": 33}, "defer queue_depth"),
    case("queue_depth", {"queue_depth": 1}, "defer queue_depth", max_waiting=0),
    case("queue_depth", {"queue_depth": 0}, "admit", max_waiting=0),
    case("queue_depth", {"queue_depth": 40}, "reject queue_depth", action="reject"),
]
OTHERWISE = [
    {"max_waiting": 0, "action": "reject"},
]
