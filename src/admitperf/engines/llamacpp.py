"""llama.cpp's server, with `--metrics`.

No labels. Numbers have six significant digits: after a million tokens a counter moves
in steps of ten. A scrape waits behind the running decode, so a slow scrape is itself a
sign of load, and it resets the window of `*_tokens_seconds`.
"""

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
from admitperf.engines.engine import Counter, Engine, HitCounters
from admitperf.engines.formulas import windowed_hit_rate

_NAME = "llamacpp"

KV_USAGE = Source("llamacpp_kv_cache_usage_ratio", engine=_NAME)
"""KV cells in use, 0 to 1, cached prompts of idle slots included; removed in May 2025
(PR 13660)."""

WAITING = Source("llamacpp_requests_deferred", engine=_NAME)
"""Requests without a slot; all releases."""

PROCESSING = Source("llamacpp_requests_processing", engine=_NAME)
"""Slots at work; all releases."""

LOOKUPS = HitCounters(
    (Counter("llamacpp_prompt_tokens_cached_total"),),
    (
        Counter("llamacpp_prompt_tokens_cached_total"),
        Counter("llamacpp_prompt_tokens_total"),
    ),
)
"""Prompt tokens taken from a slot's cache; in b10434, not in the builds of 2025.
`prompt_tokens_total` does not count them."""

ENGINE = Engine(
    name=_NAME,
    title="llama.cpp",
    marks=("llamacpp_",),
    freshness="at the scrape, which waits for the running decode",
    sources={
        KV_PRESSURE: (KV_USAGE,),
        QUEUE_DEPTH: (WAITING,),
        RUNNING: (PROCESSING,),
        PREFIX_HIT_RATE: (
            Source(
                "llamacpp_prompt_tokens_cached_total / (cached + prompt_tokens_total)",
                engine=_NAME,
                formula=windowed_hit_rate(LOOKUPS),
            ),
        ),
    },
    lacks={
        OLDEST_WAIT_S: "not exported",
        POOL_LOAD: "the number of slots is only in `/props`",
        PREEMPTIONS: "it has none",
        GPU_UTIL: "read the DCGM or AMD exporter",
        KV_CAPACITY_TOKENS: "only in `/props` (`n_ctx`)",
    },
    hit_counters=(LOOKUPS,),
)
