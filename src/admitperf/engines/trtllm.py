"""TensorRT-LLM's own server, `trtllm-serve`.

`/metrics` is JSON: the statistics of each iteration since somebody last asked. Asking
drains it, so two readers steal from each other, and `[]` says nothing: idle, switched
off (`enable_iter_perf_stats`) and "someone else read it" look alike.
`/prometheus/metrics` (`return_perf_metrics: true`) has no prefix up to about 1.1,
`trtllm_` from 1.2, and queue and blocks only from 2026. What feeds it drains the same
list and wakes when a request completes: in a stall its gauges stand still.
"""

from admitperf.core.found import Found
from admitperf.core.series import Series
from admitperf.core.signals import (
    GPU_UTIL,
    KV_CAPACITY_TOKENS,
    KV_PRESSURE,
    OLDEST_WAIT_S,
    POOL_LOAD,
    PREEMPTIONS,
    PREFIX_HIT_RATE,
    QUEUE_DEPTH,
    RUNNING,
)
from admitperf.core.source import Source
from admitperf.core.window import Window
from admitperf.engines.engine import Counter, Engine, HitCounters
from admitperf.engines.formulas import (
    folded,
    per_engine,
    product,
    share,
    windowed_hit_rate,
)

_NAME = "trtllm"

BLOCKS_JSON = Source(
    "kvCacheStats.usedNumBlocks / maxNumBlocks",
    engine=_NAME,
    formula=share("kvCacheStats.usedNumBlocks", "kvCacheStats.maxNumBlocks"),
)
"""KV blocks in use, of the newest iteration."""

BLOCKS = Source(
    "trtllm_kv_cache_used_blocks / max_blocks",
    engine=_NAME,
    formula=share("trtllm_kv_cache_used_blocks", "trtllm_kv_cache_max_blocks"),
)
"""The same on the Prometheus page; main of 2026."""

UTILIZATION = Source("trtllm_kv_cache_utilization", engine=_NAME)
"""The same as a gauge, 0 to 1; from 1.2."""

WAITING_JSON = Source("numQueuedRequests", engine=_NAME)
"""Requests not yet admitted to the batch. Some back ends leave it out."""

WAITING = Source("trtllm_num_requests_waiting", engine=_NAME)
"""The same on the Prometheus page; main of 2026."""

ACTIVE_JSON = Source("numActiveRequests", engine=_NAME)
"""Requests in flight in the executor; some back ends may count queued ones in."""

ACTIVE = Source("trtllm_num_requests_running", engine=_NAME)
"""The same on the Prometheus page; main of 2026."""

CAPACITY_JSON = Source(
    "kvCacheStats.maxNumBlocks x tokensPerBlock",
    engine=_NAME,
    formula=product("kvCacheStats.maxNumBlocks", "kvCacheStats.tokensPerBlock"),
)
"""KV room in tokens."""

CAPACITY = Source(
    "trtllm_kv_cache_max_blocks x tokens_per_block",
    engine=_NAME,
    formula=product("trtllm_kv_cache_max_blocks", "trtllm_kv_cache_tokens_per_block"),
)
"""The same on the Prometheus page; main of 2026."""

LOOKUPS_JSON = HitCounters(
    (Counter("kvCacheStats.reusedBlocks"),),
    (Counter("kvCacheStats.reusedBlocks"), Counter("kvCacheStats.missedBlocks")),
)
"""Blocks found and not found since the start; `cacheHitRate` is their ratio."""

LOOKUPS = HitCounters(
    (Counter("trtllm_kv_cache_reused_blocks_total"),),
    (
        Counter("trtllm_kv_cache_reused_blocks_total"),
        Counter("trtllm_kv_cache_missed_blocks_total"),
    ),
)
"""The same on the Prometheus page, from 1.2. `trtllm_kv_cache_hit_rate` is their
lifetime ratio and no source: it hardly moves."""


def _load(series: Series, _: Window) -> Found | None:
    active = per_engine(series, "trtllm_num_requests_running")
    most = per_engine(series, "trtllm_max_num_active_requests")
    memory = per_engine(series, "trtllm_kv_cache_utilization")
    return folded(
        {
            key: max(active[key] / most[key], memory[key])
            for key in active.keys() & memory.keys()
            if most.get(key)
        },
        "max",
    )


def _load_json(series: Series, window: Window) -> float | None:
    memory = share("kvCacheStats.usedNumBlocks", "kvCacheStats.maxNumBlocks")
    slots = share("numActiveRequests", "maxNumActiveRequests")
    loads = [formula(series, window) for formula in (memory, slots)]
    values = [
        load.value
        for load in loads
        if isinstance(load, Found) and load.value is not None
    ]
    return max(values) if len(values) == len(loads) else None


LOAD_JSON = Source(
    "max(used/max blocks, numActiveRequests/maxNumActiveRequests)",
    engine=_NAME,
    formula=_load_json,
)
"""The fuller of memory and slots; both must be known."""

LOAD = Source(
    "max(trtllm_kv_cache_utilization, running / max_num_active_requests)",
    engine=_NAME,
    formula=_load,
)
"""The same on the Prometheus page; main of 2026."""

TTFT = Counter("trtllm_time_to_first_token_seconds")
"""Histogram; from 1.2."""

ENGINE = Engine(
    name=_NAME,
    title="TensorRT-LLM",
    marks=("trtllm_", "kvCacheStats_", "numActiveRequests", "inflightBatchingStats_"),
    freshness="JSON: each iteration, one reader; Prometheus: when a request completes",
    sources={
        KV_PRESSURE: (BLOCKS_JSON, BLOCKS, UTILIZATION),
        QUEUE_DEPTH: (WAITING_JSON, WAITING),
        RUNNING: (ACTIVE_JSON, ACTIVE),
        PREFIX_HIT_RATE: (
            Source(
                "kvCacheStats.reusedBlocks / (reused + missed)",
                engine=_NAME,
                formula=windowed_hit_rate(LOOKUPS_JSON),
            ),
            Source(
                "trtllm_kv_cache_reused_blocks_total / (reused + missed)",
                engine=_NAME,
                formula=windowed_hit_rate(LOOKUPS),
            ),
        ),
        POOL_LOAD: (LOAD_JSON, LOAD),
        KV_CAPACITY_TOKENS: (CAPACITY_JSON, CAPACITY),
    },
    lacks={
        OLDEST_WAIT_S: "not exported",
        PREEMPTIONS: "paused requests are a gauge, not a rate",
        GPU_UTIL: "read the DCGM exporter",
    },
    hit_counters=(LOOKUPS_JSON, LOOKUPS),
    ttft=(TTFT,),
)
