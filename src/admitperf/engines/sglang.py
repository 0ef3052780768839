"""SGLang, with `--enable-metrics`.

Every page is merged from several processes (`prometheus_client` multiprocess mode), so
there is no process start time and no `_created`. With
`--enable-metrics-for-all-schedulers` each tensor, pipeline and expert rank repeats the
numbers of its data-parallel rank; with priority scheduling (from 0.5.10) the series of
`priority=""` is the total and the numbered ones are its parts.
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
    EngineKey,
    folded,
    gauge_unless_counted,
    per_engine,
    per_second,
    product,
    windowed_hit_rate,
)

_NAME = "sglang"
_TOTAL = (("priority", ("",)),)

REFRESH_S = 2.0
"""Gauges are set with each prefill batch and every 40 decode steps: once per 1.2 s of
pure decoding at 30 ms a step, 1 to 2 s in practice (30 s only when idle)."""

TOKEN_USAGE = Source(
    "sglang_token_usage",
    where=_TOTAL,
    refresh_s=REFRESH_S,
    engine=_NAME,
    running_only=True,
)
"""KV tokens in use, 0 to 1; all releases. Radix-cached tokens that could be evicted
count as free. From 0.5.12 the largest of the full, sliding-window and Mamba pools,
rounded to two decimals."""


def _full_pool(series: Series, _: Window) -> Found | None:
    used, free, evictable = (
        per_engine(series, f"sglang_kv_{kind}_tokens", _TOTAL)
        for kind in ("used", "available", "evictable")
    )
    shares: dict[EngineKey, float] = {}
    for key in used.keys() & free.keys() & evictable.keys():
        tokens = used[key] + free[key] + evictable[key]
        if tokens:
            shares[key] = used[key] / tokens
    return folded(shares, "max")


FULL_POOL_USAGE = Source(
    "sglang_kv_used_tokens / (used + available + evictable)",
    refresh_s=REFRESH_S,
    engine=_NAME,
    running_only=True,
    formula=_full_pool,
)
"""The full-attention pool alone, not rounded; from 0.5.12. On sliding-window or Mamba
models another pool may be fuller."""

WAITING = Source(
    "sglang_num_queue_reqs", where=_TOTAL, refresh_s=REFRESH_S, engine=_NAME
)
"""Requests waiting for the scheduler; all releases. Without the grammar queue, and in a
prefill/decode split without that split's own queues."""

BATCHED = Source(
    "sglang_num_running_reqs", where=_TOTAL, refresh_s=REFRESH_S, engine=_NAME
)
"""Requests in the running batch; all releases."""

_PREFILL_HITS = (("mode", ("device_hit", "host_hit", "storage_hit")),)
_PREFILL_CACHE = (("mode", ("prefill_cache",)),)
_PREFILL_ALL = (("mode", ("prefill_cache", "prefill_compute")),)

PREFILL_TOKENS = HitCounters(
    (Counter("sglang_prefill_effective_tokens_total", _PREFILL_HITS),),
    (Counter("sglang_prefill_effective_tokens_total"),),
)
"""Tokens of each prefill by where they came from; from 0.5.18. Its own HELP gives this
ratio."""

REALTIME_TOKENS = HitCounters(
    (Counter("sglang_realtime_tokens_total", _PREFILL_CACHE),),
    (Counter("sglang_realtime_tokens_total", _PREFILL_ALL),),
)
"""Tokens as they are worked on; from 0.5.7."""

FINISHED_TOKENS = HitCounters(
    (Counter("sglang_cached_tokens_total", (("cache_source", ("total",)),)),),
    (Counter("sglang_prompt_tokens_total"),),
)
"""Prompt tokens, added when a request finishes; from 0.4.5. From 0.5.9 the cached ones
carry `cache_source`, of which `total` holds the others."""

_CACHE_PARTS = (("cache_source", ("device", "host", "storage")),)

FINISHED_TOKENS_BY_CACHE = HitCounters(
    (Counter("sglang_cached_tokens_total", _CACHE_PARTS),),
    (Counter("sglang_prompt_tokens_total"),),
)
"""The same where no `total` is printed: never both."""

_LOOKUPS = (
    PREFILL_TOKENS,
    REALTIME_TOKENS,
    FINISHED_TOKENS,
    FINISHED_TOKENS_BY_CACHE,
)

HIT_RATE_GAUGE = Source(
    "sglang_cache_hit_rate",
    refresh_s=REFRESH_S,
    engine=_NAME,
    formula=gauge_unless_counted("sglang_cache_hit_rate", _LOOKUPS),
)
"""Hit rate of the last prefill batch; 0.3.x printed percent, which is out of range.
Up to 0.5.18 each decode tick set it to 0.0: believed only while there is no window of
the counters."""

RETRACTED = Counter("sglang_num_retracted_requests_total")
"""Requests thrown out of KV memory; from 0.5.7. (`num_retracted_reqs` is a gauge.)"""

CAPACITY = Source(
    "sglang_max_total_num_tokens", where=_TOTAL, refresh_s=REFRESH_S, engine=_NAME
)
"""KV room in tokens; 0.3.x, again from 0.5.6."""

CAPACITY_PAGES = Source(
    "sglang_num_pages x page_size",
    refresh_s=REFRESH_S,
    engine=_NAME,
    formula=product("sglang_num_pages", "sglang_page_size", _TOTAL),
)
"""The same from its pages; from 0.5.12."""


def _config_tokens(series: Series, _: Window) -> Found | None:
    tokens: dict[EngineKey, float] = {}
    for labels, _value in series.samples("sglang_cache_config_info"):
        size, pages = labels.get("page_size", ""), labels.get("num_pages", "")
        if size.isdecimal() and pages.isdecimal():
            rank = labels.get("dp_rank")
            key = () if rank is None else (("dp_rank", rank),)
            tokens[key] = float(size) * float(pages)
    return folded(tokens, "sum")


CAPACITY_LABELS = Source(
    "sglang_cache_config_info", engine=_NAME, formula=_config_tokens
)
"""The same from labels; only 0.5.9 and 0.5.10."""

TTFT = Counter("sglang_time_to_first_token_seconds", (("is_streaming", ("True",)),))
"""Histogram; from 0.4.0. From 0.5.18 `is_streaming="False"` counts whole answers."""

ENGINE = Engine(
    name=_NAME,
    title="SGLang",
    marks=("sglang_",),
    freshness="each prefill, every 40 decode steps, 30 s when idle",
    sources={
        KV_PRESSURE: (TOKEN_USAGE, FULL_POOL_USAGE),
        QUEUE_DEPTH: (WAITING,),
        RUNNING: (BATCHED,),
        PREFIX_HIT_RATE: (
            Source(
                "sglang_prefill_effective_tokens_total hits / all",
                engine=_NAME,
                formula=windowed_hit_rate(PREFILL_TOKENS),
            ),
            Source(
                "sglang_realtime_tokens_total cache / prefill",
                engine=_NAME,
                formula=windowed_hit_rate(REALTIME_TOKENS),
            ),
            Source(
                "sglang_cached_tokens_total / prompt_tokens_total",
                engine=_NAME,
                formula=windowed_hit_rate(FINISHED_TOKENS),
            ),
            Source(
                "sglang_cached_tokens_total by cache / prompt_tokens_total",
                engine=_NAME,
                formula=windowed_hit_rate(FINISHED_TOKENS_BY_CACHE),
            ),
            HIT_RATE_GAUGE,
        ),
        PREEMPTIONS: (
            Source(
                "sglang_num_retracted_requests_total per second",
                engine=_NAME,
                formula=per_second(RETRACTED),
            ),
        ),
        KV_CAPACITY_TOKENS: (CAPACITY, CAPACITY_PAGES, CAPACITY_LABELS),
    },
    lacks={
        OLDEST_WAIT_S: "queue times are observed when a request is scheduled",
        POOL_LOAD: "the largest number of running requests is not exported",
        GPU_UTIL: "`sglang:utilization` and `fwd_occupancy` are something else",
    },
    hit_counters=_LOOKUPS,
    preemptions=(RETRACTED,),
    ttft=(TTFT,),
)
