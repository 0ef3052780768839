"""What `any_of` says, of the two parts of its page."""

from tests.policies.verdicts import case

PARTS = "queue_depth:max_waiting=8; in_flight_cap:max_in_flight=4"
NEEDED = {"policies": PARTS}
TABLE = [
    case("any_of", {"queue_depth": 99, "in_flight": 3}, "admit", policies=PARTS),
    case("any_of", {"queue_depth": 8, "in_flight": 99}, "admit", policies=PARTS),
    case(
        "any_of",
        {"queue_depth": 9, "in_flight": 4},
        "defer queue_depth",
        policies=PARTS,
    ),
    case(
        "any_of",
        {"queue_depth": 9, "in_flight": 4},
        "defer in_flight_cap",
        policies="in_flight_cap:max_in_flight=4; queue_depth:max_waiting=8",
    ),
]
OTHERWISE = [
    {"policies": "no_admission"},
    {"policies": "tenant_share; rate_limit:per=pool; kv_threshold:action=reject"},
    {"policies": [("all_of", {"policies": "kv_threshold; queue_depth"}), "rate_limit"]},
]
