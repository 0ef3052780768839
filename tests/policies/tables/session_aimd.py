"""What `session_aimd` says."""

from tests.policies.verdicts import SESSION, case

QUIET = {"in_flight": 0}
BUSY = {"in_flight": 9, "oldest_wait_s": 1.0, "preemptions": 0.0}
QUEUE = {"in_flight": 9, "oldest_wait_s": 15.1}
LATE = {**SESSION, "deadline_s": 0.0}

TABLE = [
    case("session_aimd", QUIET, "admit", SESSION),
    case("session_aimd", QUIET, "admit"),
    case("session_aimd", BUSY, "admit", SESSION),
    case("session_aimd", BUSY, "admit"),
    # The signs move the window; they refuse no session by themselves.
    case("session_aimd", QUEUE, "admit", SESSION),
    case("session_aimd", {"in_flight": 9, "preemptions": 3.0}, "admit", SESSION),
    # Who names no session has no window, and is held by the queue alone.
    case("session_aimd", QUEUE, "defer queue_age"),
    case("session_aimd", QUEUE, "admit", ttft_ms=31_000.0),
    case("session_aimd", QUIET, "reject deadline_unmeetable", LATE),
    case("session_aimd", QUIET, "admit", {**SESSION, "deadline_s": 0.1}),
]
WITH_MEMORY = [
    ("slots", "defer"),
    ("session_in_flight", "defer"),
    ("session_quota", "reject"),
]
OTHERWISE = [
    {"mode": "shed", "quantum": 1, "elephant_share": 0.0, "start": 1, "floor": 1},
    {"in_flight": 1, "ttft_ms": 1.0, "stall_ms": 1.0, "period_s": 0.1},
]
