"""What `qlm_inspired` says."""

from tests.policies.verdicts import case

ROOM = {"running": 9, "queue_depth": 0}
FULL = {"running": 8, "queue_depth": 2}

TABLE = [
    case("qlm_inspired", {"running": 0, "queue_depth": 0}, "admit"),
    case("qlm_inspired", ROOM, "admit"),
    case("qlm_inspired", FULL, "defer slots"),
    case("qlm_inspired", {"running": 0, "queue_depth": 10}, "defer slots"),
    case("qlm_inspired", FULL, "admit", max_batch=11),
    case("qlm_inspired", {"running": 1, "queue_depth": 0}, "defer slots", max_batch=1),
    # A deadline that lies ahead is no reason while nothing is measured.
    case("qlm_inspired", ROOM, "admit", {"deadline_s": 0.001}),
    case("qlm_inspired", FULL, "defer slots", {"deadline_s": 0.001}),
    # One that has passed is missed from every place.
    case("qlm_inspired", ROOM, "reject deadline_unmeetable", {"deadline_s": 0.0}),
    case("qlm_inspired", FULL, "reject deadline_unmeetable", {"deadline_s": -1.0}),
]
OTHERWISE = [
    {"max_batch": 1},
    {"solve_s": 5.0},
    {"max_plan_age_s": 0.01, "z": 0.0, "slo_s": 1.0},
]
