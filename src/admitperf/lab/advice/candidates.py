"""The policies that fit each shape, by name, in the order to try them.

The order is a starting point: how each fared in the regime it is for is in
docs/results/policies.md, and before your engine only running them says.
What a policy needs and what its defaults are is read off its class; here is only why
it is tried.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Candidate:
    """A policy to try.

    Attributes:
        name: as it is installed.
        why: one sentence.
        rests_on: the fact without which its rule applies to no request; "" = none.
    """

    name: str
    why: str
    rests_on: str = ""


Candidates = tuple[Candidate, ...]

FRONT_DOOR = Candidate(
    "front_door",
    "has the usual rules in one, each with a switch; where to start when in doubt.",
)

DEADLINE: Candidates = (
    Candidate(
        "deadline_slack",
        "refuses at once what would miss its own deadline by waiting.",
        "deadline_s",
    ),
    Candidate(
        "qlm_inspired",
        "orders what waits by its deadline, and refuses what no order serves in time.",
    ),
    Candidate("front_door", "has that rule too, once min_slack_s is given."),
    Candidate(
        "chronos_inspired",
        "bounds from above how late the first token can come, and pays for it: it keeps"
        " utilisation under one half, so it refuses much that would have been in time.",
    ),
)

MEMORY: Candidates = (
    Candidate(
        "kv_threshold",
        "bounds memory alone; refuses also what a well-used cache could serve.",
    ),
    Candidate(
        "kv_headroom",
        "asks whether this request fits into the memory that is left.",
    ),
    FRONT_DOOR,
    Candidate(
        "fluid_wait_inspired",
        "caps each class of requests by the memory that their answers grow to.",
    ),
    Candidate(
        "dual_gate",
        "refuses only while the cache is full and requests wait: for a cache that is"
        " full of what is used again.",
    ),
)

REUSE: Candidates = (
    Candidate(
        "dual_gate",
        "refuses only while the cache is full and requests wait: full alone is a"
        " well-used cache here.",
    ),
    *MEMORY[1:4],
    MEMORY[0],
)
"""Where a full cache alone is no trouble."""

THRESHOLD: Candidates = (
    Candidate(
        "kv_threshold",
        "bounds memory; nothing in this log says whether requests wait for it.",
    ),
    MEMORY[1],
    FRONT_DOOR,
)

QUEUE: Candidates = (
    Candidate(
        "queue_depth", "bounds how many wait in the engine, whatever they wait for."
    ),
    Candidate(
        "queue_age",
        "bounds how long they wait, which means the same on a slower engine.",
    ),
    FRONT_DOOR,
    Candidate("in_flight_cap", "bounds what is open, where no engine can be read."),
    Candidate("aimd", "finds its bound itself while load and engine change."),
    Candidate("gradient", "does so from how latency grows with what is open."),
)

HOST_QUEUE: Candidates = (QUEUE[1], *QUEUE[2:])
"""The queue stands where `queue_depth` does not see it."""

PREFILL: Candidates = (
    Candidate(
        "prefill_backlog",
        "bounds the prompt tokens that wait, since long prompts hold up the rest.",
    ),
    *QUEUE,
)

TENANT: Candidates = (
    Candidate(
        "tenant_share",
        "gives each tenant its share and refuses what is over.",
        "tenant",
    ),
    Candidate("rate_limit", "bounds each tenant's rate, whether there is room or not."),
    Candidate("front_door", "bounds a tenant's part of the work, given max_share."),
)

SESSION: Candidates = (
    Candidate(
        "session_ledger",
        "lets a task begin when the memory, the slots and the prefill that it will need"
        " fit beside what all others will.",
    ),
    Candidate(
        "thunder_inspired",
        "lets sessions in by the memory that they hold, also between their calls.",
    ),
    Candidate(
        "concur_inspired",
        "bounds how many sessions are active, and lets those go on that have begun.",
    ),
    Candidate(
        "front_door",
        "bounds the open requests of one session, given max_per_session.",
    ),
)

PRIORITY: Candidates = (
    Candidate("priority_shed", "sheds what matters least first."),
    Candidate("front_door", "knows no priority: for what every request has to pass."),
)

JOINED: Candidates = (
    Candidate("first_of", "asks several policies in order, the narrowest first."),
    FRONT_DOOR,
)

COMMON: Candidates = (
    Candidate("kv_threshold", "bounds memory."),
    Candidate("queue_depth", "bounds the engine's queue."),
    Candidate("dual_gate", "bounds both at once."),
    Candidate("in_flight_cap", "bounds what is open."),
    Candidate("rate_limit", "bounds what comes in a second."),
    FRONT_DOOR,
    DEADLINE[0],
    TENANT[0],
)
"""What most teams try first: tried on every log, whether it follows or not."""
