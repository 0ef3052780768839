"""What `priority_shed` says."""

from tests.policies.verdicts import case

TOP = {"priority": 2}

TABLE = [
    case("priority_shed", {"kv_pressure": 0.5, "queue_depth": 0}, "admit"),
    # At the bound the cut-off rises with the next reading; until then all pass.
    case("priority_shed", {"kv_pressure": 0.95, "queue_depth": 6}, "admit"),
    # The hard bound holds for everybody.
    case("priority_shed", {"kv_pressure": 0.5, "queue_depth": 9}, "admit", TOP),
    case(
        "priority_shed",
        {"kv_pressure": 0.5, "queue_depth": 10},
        "defer queue_depth",
        TOP,
    ),
    case(
        "priority_shed",
        {"kv_pressure": 0.96, "queue_depth": 1},
        "defer kv_pressure",
        TOP,
        hard=1.05,
    ),
    case(
        "priority_shed",
        {"kv_pressure": 0.5, "queue_depth": 0, "oldest_wait_s": 9.0},
        "defer queue_age",
        max_wait_s=3.0,
    ),
    # A bound that is not given is not asked.
    case("priority_shed", {"kv_pressure": 1.0}, "admit", max_waiting=None),
    case("priority_shed", {"queue_depth": 4}, "admit", max_kv=None),
]
OTHERWISE = [
    {"max_kv": None, "max_waiting": None, "max_wait_s": 1.0},
    {"levels": "0", "hard": 1.0},
    {"levels": "-5,0,100", "rise_s": 0.0, "fall_s": 0.0},
]
