"""The signals everyone shares.

Where an engine says them is in `admitperf.engines`; what they mean is here.
"""

from math import inf

from admitperf.core.signal import Signal

KV_PRESSURE = Signal(
    "kv_pressure",
    unit="fraction",
    low=0.0,
    high=1.0,
    combine="max",
    origin="engine",
    serves="below the high-water mark: admit",
    fails_when="the cache never fills: slots or prefill bind first",
)
QUEUE_DEPTH = Signal(
    "queue_depth",
    unit="requests",
    low=0.0,
    high=inf,
    combine="sum",
    origin="engine",
    serves="over the bound: wait or go",
    fails_when="the queue stands in front of the engine, where it cannot see it",
)
RUNNING = Signal(
    "running",
    unit="requests",
    low=0.0,
    high=inf,
    combine="sum",
    origin="engine",
    serves="slots taken; with a queue it tells memory from slots",
    fails_when="requests differ in size by orders of magnitude",
)
OLDEST_WAIT_S = Signal(
    "oldest_wait_s",
    unit="s",
    low=0.0,
    high=inf,
    combine="max",
    origin="ledger",
    serves="over the target: wait or go",
    fails_when="others send to the same engine: it sees only this host's requests",
)
PREFIX_HIT_RATE = Signal(
    "prefix_hit_rate",
    unit="fraction",
    low=0.0,
    high=1.0,
    combine="mean",
    origin="engine",
    serves="mostly cached: admit first, it is cheap",
    fails_when="no lookups in the window; says nothing about this request",
)
POOL_LOAD = Signal(
    "pool_load",
    unit="load",
    low=0.0,
    high=inf,
    combine="max",
    origin="engine",
    serves="every replica past its bound: refuse with 529",
    fails_when="a mean hides the one full replica",
)
PREEMPTIONS = Signal(
    "preemptions",
    unit="per_s",
    low=0.0,
    high=inf,
    combine="sum",
    origin="engine",
    serves="memory really ran out",
    fails_when="it is late: the damage is done when it rises",
)
GPU_UTIL = Signal(
    "gpu_util",
    unit="fraction",
    low=0.0,
    high=1.0,
    combine="mean",
    origin="engine",
    serves="context for a report; a poor gate",
    fails_when="a tiny batch already shows 1.0",
)
KV_CAPACITY_TOKENS = Signal(
    "kv_capacity_tokens",
    unit="tokens",
    low=1.0,
    high=inf,
    combine="sum",
    origin="engine",
    serves="turns a fraction into tokens of headroom",
    fails_when="the engine does not export it",
)
INPUT_TOKENS = Signal(
    "input_tokens",
    unit="tokens",
    low=0.0,
    high=inf,
    combine="max",
    origin="request",
    serves="too big for the KV headroom: wait",
    fails_when="the host does not count tokens",
)
UNCACHED_TOKENS = Signal(
    "uncached_tokens",
    unit="tokens",
    low=0.0,
    high=inf,
    combine="max",
    origin="request",
    serves="what prefill really costs",
    fails_when="the host does not know what is cached",
)
MAX_OUTPUT_TOKENS = Signal(
    "max_output_tokens",
    unit="tokens",
    low=0.0,
    high=inf,
    combine="max",
    origin="request",
    serves="worst-case memory of the answer",
    fails_when="callers leave it at the model's maximum",
)
TENANT_SHARE = Signal(
    "tenant_share",
    unit="fraction",
    low=0.0,
    high=1.0,
    combine="max",
    origin="ledger",
    serves="over its share: refuse with 429",
    fails_when="requests carry no tenant, or outcomes are not reported",
)
SESSION_IN_FLIGHT = Signal(
    "session_in_flight",
    unit="requests",
    low=0.0,
    high=inf,
    combine="max",
    origin="ledger",
    serves="a session with too many calls at once: wait",
    fails_when="requests carry no session, or outcomes are not reported",
)
IN_FLIGHT = Signal(
    "in_flight",
    unit="requests",
    low=0.0,
    high=inf,
    combine="sum",
    origin="ledger",
    serves="a fixed number of requests at once",
    fails_when="counting is not costing; outcomes are not reported",
)
TENANT_IN_FLIGHT = Signal(
    "tenant_in_flight",
    unit="requests",
    low=0.0,
    high=inf,
    combine="max",
    origin="ledger",
    serves="a fixed number of requests at once for each caller",
    fails_when="requests carry no tenant, or outcomes are not reported",
)
DEADLINE_SLACK_S = Signal(
    "deadline_slack_s",
    unit="s",
    low=-inf,
    high=inf,
    combine="min",
    origin="request",
    serves="waiting would miss it anyway: refuse",
    fails_when="callers send no deadline",
)
ATTEMPT = Signal(
    "attempt",
    unit="attempts",
    low=0.0,
    high=inf,
    combine="max",
    origin="request",
    serves="tells a retry from new demand",
    fails_when="clients do not say which try it is",
)

ALL: tuple[Signal, ...] = (
    KV_PRESSURE,
    QUEUE_DEPTH,
    RUNNING,
    OLDEST_WAIT_S,
    PREFIX_HIT_RATE,
    POOL_LOAD,
    PREEMPTIONS,
    GPU_UTIL,
    KV_CAPACITY_TOKENS,
    INPUT_TOKENS,
    UNCACHED_TOKENS,
    MAX_OUTPUT_TOKENS,
    DEADLINE_SLACK_S,
    ATTEMPT,
    TENANT_SHARE,
    TENANT_IN_FLIGHT,
    SESSION_IN_FLIGHT,
    IN_FLIGHT,
)
ENGINE: tuple[Signal, ...] = tuple(
    signal for signal in ALL if signal.origin == "engine"
)
