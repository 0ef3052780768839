"""The policies that fit each shape, by name, in the order to try them.

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

DEADLINE: Candidates = (
    Candidate(
        "deadline_slack",
        "refuses at once what would miss its own deadline by waiting.",
        "deadline_s",
    ),
    Candidate(
        "chronos_inspired",
        "bounds from above how late the first token can come.",
    ),
    Candidate(
        "qlm_inspired",
        "orders what waits by its deadline, and refuses what no order serves in time.",
    ),
)

DUAL: Candidates = (
    Candidate(
        "dual_gate",
        "refuses only while the cache is full and requests wait: full alone may be a"
        " well-used cache.",
    ),
    Candidate(
        "kv_headroom",
        "asks whether this request fits into the memory that is left.",
    ),
    Candidate(
        "fluid_wait_inspired",
        "caps each class of requests by the memory that their answers grow to.",
    ),
    Candidate(
        "kv_threshold",
        "bounds memory alone; refuses also what a well-used cache could serve.",
    ),
)

THRESHOLD: Candidates = (
    Candidate(
        "kv_threshold",
        "bounds memory; nothing in this log says whether requests wait for it.",
    ),
    Candidate(
        "kv_headroom",
        "asks whether this request fits into the memory that is left.",
    ),
)

QUEUE: Candidates = (
    Candidate(
        "queue_depth", "bounds how many wait in the engine, whatever they wait for."
    ),
    Candidate(
        "queue_age",
        "bounds how long they wait, which means the same on a slower engine.",
    ),
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
)

SESSION: Candidates = (
    Candidate(
        "concur_inspired",
        "bounds how many sessions are active, and lets those go on that have begun.",
    ),
    Candidate(
        "thunder_inspired",
        "lets sessions in by the memory that they hold, also between their calls.",
    ),
)

PRIORITY: Candidates = (Candidate("priority_shed", "sheds what matters least first."),)

JOINED: Candidates = (
    Candidate("first_of", "asks several policies in order, the narrowest first."),
    Candidate("front_door", "has the eight usual rules in one, each with a switch."),
)

COMMON: Candidates = (
    Candidate("kv_threshold", "bounds memory."),
    Candidate("queue_depth", "bounds the engine's queue."),
    Candidate("dual_gate", "bounds both at once."),
    Candidate("in_flight_cap", "bounds what is open."),
    Candidate("rate_limit", "bounds what comes in a second."),
    DEADLINE[0],
    TENANT[0],
)
"""What most teams try first: tried on every log, whether it follows or not."""
