"""What `session_ledger` says."""

from tests.policies.verdicts import SESSION, case

ROOM = {"kv_capacity_tokens": 10_000, "in_flight": 0}
FULL = {**ROOM, "kv_pressure": 1.0, "in_flight": 99, "running": 99, "queue_depth": 9}

TABLE = [
    case("session_ledger", ROOM, "admit", {**SESSION, "input_tokens": 500}),
    case("session_ledger", ROOM, "admit", SESSION),
    case("session_ledger", ROOM, "admit"),
    # What is measured refuses nobody by itself: a task is held against other tasks.
    case("session_ledger", FULL, "admit", {**SESSION, "input_tokens": 500}),
    case("session_ledger", FULL, "admit", {"input_tokens": 500}),
    case("session_ledger", FULL, "admit", {**SESSION, "deadline_s": 0.1}),
]
WITH_MEMORY = [
    ("kv_headroom", "defer"),
    ("slots", "defer"),
    ("prefill_backlog", "defer"),
    ("session_in_flight", "defer"),
    ("session_quota", "reject"),
    ("tenant_share", "reject"),
    ("deadline_unmeetable", "reject"),
    ("too_large", "reject"),
]
OTHERWISE = [
    {"mode": "shed", "quantum": 1, "elephant_share": 0.0, "margin": 0.0},
    {"slots": 1, "kv_share": 0.1, "slot_share": 0.1, "prefill_share": 0.1},
    {"patience": 0.0, "in_flight": 1, "weights": "tenant=2,b=1", "lease_s": 1.0},
]
