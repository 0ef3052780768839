"""What `front_door` says."""

from tests.policies.verdicts import BOTH, SESSION, TENANT, case

OFF = {"high_water": None, "target_wait_s": None}
QUIET = {"kv_pressure": 0.5, "oldest_wait_s": 0.5}
QUEUED = {**QUIET, "queue_depth": 1}
ROOM = {"kv_pressure": 0.5, "kv_capacity_tokens": 10_000}
CACHED = {"input_tokens": 1000, "cached_tokens": 900}
EVERYTHING = {
    "max_projected_kv": 0.95,
    "max_share": 0.5,
    "max_per_session": 2,
    "min_slack_s": 1.0,
    "cheap_tokens": 200,
    "full_queue": 8,
    "full_load": 1.0,
}
FULL = {
    "kv_pressure": 1.0,
    "kv_capacity_tokens": 10_000,
    "oldest_wait_s": 60.0,
    "queue_depth": 99,
    "pool_load": 1.5,
    "in_flight": 99,
    "tenant_share": 0.9,
    "session_in_flight": 9,
}
FEW = {"tenant_share": 0.5, "session_in_flight": 1}
NOT_EVERYWHERE = {"queue_depth": 7, "pool_load": 0.9}
WELL = {
    "kv_pressure": 0.5,
    "kv_capacity_tokens": 10_000,
    "oldest_wait_s": 0.5,
    "queue_depth": 0,
    "pool_load": 0.5,
    "in_flight": 9,
    "tenant_share": 0.4,
    "session_in_flight": 1,
}
FACTS = {**BOTH, **CACHED, "max_output_tokens": 64, "deadline_s": 30.0}


def rule(signals, says, facts=None, **bounds):
    """A row in which only the given bounds are on."""
    return case("front_door", signals, says, facts, **{**OFF, **bounds})


TABLE = [
    # As it comes: memory and the oldest wait.
    case("front_door", QUIET, "admit"),
    case("front_door", {**QUIET, "kv_pressure": 0.8999}, "admit"),
    case("front_door", {**QUIET, "kv_pressure": 0.90}, "defer kv_pressure"),
    case("front_door", {**QUIET, "oldest_wait_s": 1.0}, "admit"),
    case("front_door", {**QUIET, "oldest_wait_s": 1.01}, "defer queue_age"),
    case("front_door", {**QUEUED, "oldest_wait_s": 1.01}, "defer queue_age"),
    case("front_door", {**QUIET, "queue_depth": 0, "oldest_wait_s": 10.0}, "admit"),
    case(
        "front_door",
        {**QUIET, "queue_depth": 0, "oldest_wait_s": 10.01},
        "defer queue_age",
    ),
    case("front_door", {**QUIET, "queue_depth": 1e6, "pool_load": 9.0}, "admit"),
    case("front_door", {**FULL, **QUIET}, "admit", {**FACTS, "deadline_s": -1.0}),
    # Input over KV headroom.
    rule(ROOM, "admit", {"input_tokens": 4500}, max_projected_kv=0.95),
    rule(ROOM, "defer kv_headroom", {"input_tokens": 4501}, max_projected_kv=0.95),
    rule(
        ROOM,
        "defer kv_headroom",
        {"input_tokens": 4400, "max_output_tokens": 101},
        max_projected_kv=0.95,
    ),
    rule(
        ROOM,
        "defer kv_headroom",
        {"input_tokens": 4300, "max_output_tokens": 101, "n": 2},
        max_projected_kv=0.95,
    ),
    rule(ROOM, "admit", {}, max_projected_kv=0.95),
    rule(ROOM, "reject too_large", {"input_tokens": 10_001}, max_projected_kv=0.95),
    rule(ROOM, "defer kv_headroom", {"input_tokens": 10_000}, max_projected_kv=0.95),
    rule(
        {**ROOM, "kv_pressure": 0.05},
        "admit",
        {"input_tokens": 10_000, "max_output_tokens": 1_000_000},
        max_projected_kv=0.95,
    ),
    # Tenant over its share, while somebody else wants the pool.
    rule(
        {"in_flight": 9, "tenant_share": 0.6, "queue_depth": 1},
        "reject tenant_share",
        TENANT,
        max_share=0.5,
    ),
    rule(
        {"in_flight": 9, "tenant_share": 0.5, "queue_depth": 1},
        "admit",
        TENANT,
        max_share=0.5,
    ),
    rule(
        {"in_flight": 9, "tenant_share": 0.6, "queue_depth": 0},
        "admit",
        TENANT,
        max_share=0.5,
    ),
    rule(
        {"in_flight": 9, "tenant_share": 1.0, "queue_depth": 5},
        "admit",
        TENANT,
        max_share=0.5,
    ),
    rule(
        {"in_flight": 9, "tenant_share": 0.6},
        "reject tenant_share",
        TENANT,
        max_share=0.5,
    ),
    case(
        "front_door",
        {**QUIET, "kv_pressure": 0.9, "in_flight": 9, "tenant_share": 0.6},
        "reject tenant_share",
        TENANT,
        max_share=0.5,
    ),
    case(
        "front_door",
        {**QUIET, "in_flight": 9, "tenant_share": 0.6},
        "admit",
        TENANT,
        max_share=0.5,
    ),
    rule({"in_flight": 9, "queue_depth": 1}, "admit", max_share=0.5),
    # Session calls in flight.
    rule({"session_in_flight": 1}, "admit", SESSION, max_per_session=2),
    rule(
        {"session_in_flight": 2},
        "defer session_in_flight",
        SESSION,
        max_per_session=2,
    ),
    rule({"in_flight": 50}, "admit", max_per_session=1),
    # Deadline: one that has passed needs no forecast; without one nothing is said.
    rule({}, "reject deadline_unmeetable", {"deadline_s": 0.0}, min_slack_s=0.0),
    rule({}, "admit", {"deadline_s": 0.001}, min_slack_s=0.0),
    rule({}, "admit", min_slack_s=0.0),
    # KV under the mark lets through to the rules that are left, not past them.
    case("front_door", {**QUIET, "oldest_wait_s": 11.0}, "defer queue_age"),
    case(
        "front_door",
        {**QUIET, "queue_depth": 8},
        "reject pool_saturated",
        full_queue=8,
    ),
    # Cheap: past the mark, up to the hard bound, and past no other rule.
    case(
        "front_door", {**QUIET, "kv_pressure": 0.96}, "admit", CACHED, cheap_tokens=100
    ),
    case(
        "front_door",
        {**QUIET, "kv_pressure": 0.96},
        "defer kv_pressure",
        CACHED,
        cheap_tokens=99,
    ),
    case(
        "front_door",
        {**QUIET, "kv_pressure": 0.96},
        "defer kv_pressure",
        {"input_tokens": 50, "cached_tokens": 0},
        cheap_tokens=100,
    ),
    case(
        "front_door",
        {**QUIET, "kv_pressure": 0.96},
        "defer kv_pressure",
        {"input_tokens": 50},
        cheap_tokens=100,
    ),
    case(
        "front_door",
        {**QUIET, "kv_pressure": 0.97},
        "defer kv_pressure",
        CACHED,
        cheap_tokens=100,
    ),
    case(
        "front_door",
        {"kv_pressure": 0.95, "oldest_wait_s": 11.0},
        "defer queue_age",
        CACHED,
        cheap_tokens=100,
    ),
    case(
        "front_door",
        {**QUIET, "kv_pressure": 0.95, "queue_depth": 8},
        "reject pool_saturated",
        CACHED,
        cheap_tokens=100,
        full_queue=8,
    ),
    # Nor does its cached prefix have to fit: to the hard bound it adds what is left.
    case(
        "front_door",
        {**ROOM, "oldest_wait_s": 0.5, "kv_pressure": 0.95},
        "admit",
        {"input_tokens": 4000, "cached_tokens": 3900},
        cheap_tokens=100,
        max_projected_kv=0.95,
    ),
    case(
        "front_door",
        {**ROOM, "oldest_wait_s": 0.5, "kv_pressure": 0.965},
        "defer kv_headroom",
        {"input_tokens": 4000, "cached_tokens": 3900},
        cheap_tokens=100,
        max_projected_kv=0.95,
    ),
    # Every replica full; of one engine, it alone.
    rule({"queue_depth": 7}, "admit", full_queue=8),
    rule({"queue_depth": 8}, "reject pool_saturated", full_queue=8),
    rule({"pool_load": 0.99}, "admit", full_load=1.0),
    rule({"pool_load": 1.0}, "reject pool_saturated", full_load=1.0),
    rule(
        {"queue_depth": 0, "pool_load": 1.0},
        "reject pool_saturated",
        full_queue=8,
        full_load=1.0,
    ),
    # Which one answers: the request's own, a pool that is full, what has no room.
    case("front_door", WELL, "admit", FACTS, **EVERYTHING),
    case("front_door", WELL, "admit", **EVERYTHING),
    case("front_door", FULL, "reject tenant_share", FACTS, **EVERYTHING),
    case(
        "front_door",
        {**FULL, "tenant_share": 0.5},
        "defer session_in_flight",
        {**FACTS, "deadline_s": 0.0},
        **EVERYTHING,
    ),
    case(
        "front_door",
        {**FULL, **FEW},
        "reject deadline_unmeetable",
        {**FACTS, "deadline_s": 0.0},
        **EVERYTHING,
    ),
    case(
        "front_door",
        {**FULL, **FEW},
        "reject too_large",
        {**FACTS, "input_tokens": 10_001, "deadline_s": 0.0},
        **EVERYTHING,
    ),
    case("front_door", {**FULL, **FEW}, "reject pool_saturated", FACTS, **EVERYTHING),
    case(
        "front_door",
        {**FULL, **FEW, **NOT_EVERYWHERE},
        "defer kv_headroom",
        FACTS,
        **EVERYTHING,
    ),
    case(
        "front_door",
        {**FULL, **FEW, **NOT_EVERYWHERE},
        "defer kv_pressure",
        **EVERYTHING,
    ),
    case(
        "front_door",
        {**FULL, **FEW, **NOT_EVERYWHERE, "kv_pressure": 0.5},
        "defer queue_age",
        FACTS,
        **EVERYTHING,
    ),
]
WITH_MEMORY = [("queue_depth", "defer"), ("slots", "defer")]
OTHERWISE = [
    EVERYTHING,
    dict.fromkeys(EVERYTHING),
    dict.fromkeys(EVERYTHING) | {"high_water": None},
    dict.fromkeys(EVERYTHING) | {"target_wait_s": None},
    *(
        {**dict.fromkeys(EVERYTHING), **OFF, name: bound}
        for name, bound in EVERYTHING.items()
        if name != "cheap_tokens"
    ),
    {"cheap_tokens": 1, "hard_kv": 0.9},
]
NEEDED = {name: bound for name, bound in EVERYTHING.items() if name[:7] != "max_per"}
"""Not needed: so that the kit and the page see the rules at once. A page's test gives
the bounds per caller itself."""
