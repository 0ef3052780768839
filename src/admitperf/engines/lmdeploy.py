"""LMDeploy, with `--enable-metrics`.

Each data-parallel rank is its own server and port: a page is one rank.
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
    gauge_unless_counted,
    per_engine,
    windowed_hit_rate,
)

_NAME = "lmdeploy"

REFRESH_S = 10.0
"""A timer renews the scheduler's gauges (`log_interval = 10.` in its source)."""

KV_USAGE = Source("lmdeploy_gpu_cache_usage_perc", refresh_s=REFRESH_S, engine=_NAME)
"""KV blocks in use, 0 to 1. TurboMind counts live cached prefixes too and can read high
when idle."""


def _waiting(series: Series, _: Window) -> Found | None:
    waiting = per_engine(series, "lmdeploy_num_requests_waiting")
    in_front = per_engine(series, "lmdeploy_num_api_requests_waiting")
    return folded(
        {key: waiting[key] + in_front.get(key, 0.0) for key in waiting}, "sum"
    )


WAITING = Source(
    "lmdeploy_num_requests_waiting + num_api_requests_waiting",
    refresh_s=REFRESH_S,
    engine=_NAME,
    formula=_waiting,
)
"""Requests the engine holds back, plus those in front of it where that is exported
(2026); up to 0.12 only the former."""

BATCHED = Source("lmdeploy_num_requests_running", refresh_s=REFRESH_S, engine=_NAME)
"""Requests in the batch; from 0.9.2."""

LOOKUPS = HitCounters(
    (Counter("lmdeploy_cached_tokens_total"),),
    (Counter("lmdeploy_prompt_tokens_total"),),
)
"""Prompt tokens and the cached ones among them; 2026."""

HIT_RATE_GAUGE = Source(
    "lmdeploy_prefix_cache_hit_rate",
    refresh_s=REFRESH_S,
    engine=_NAME,
    formula=gauge_unless_counted("lmdeploy_prefix_cache_hit_rate", (LOOKUPS,)),
)
"""The engine's own rate, 0 to 1; 2026."""

TTFT = Counter("lmdeploy_time_to_first_token_seconds")
"""Histogram; from 0.9.2."""

ENGINE = Engine(
    name=_NAME,
    title="LMDeploy",
    marks=("lmdeploy_",),
    freshness="every 10 s, by a timer",
    sources={
        KV_PRESSURE: (KV_USAGE,),
        QUEUE_DEPTH: (WAITING,),
        RUNNING: (BATCHED,),
        PREFIX_HIT_RATE: (
            Source(
                "lmdeploy_cached_tokens_total / prompt_tokens_total",
                engine=_NAME,
                formula=windowed_hit_rate(LOOKUPS),
            ),
            HIT_RATE_GAUGE,
        ),
    },
    lacks={
        OLDEST_WAIT_S: "not exported",
        POOL_LOAD: "the largest batch is not exported",
        PREEMPTIONS: "not exported",
        GPU_UTIL: "read the DCGM exporter",
        KV_CAPACITY_TOKENS: "the number of blocks is not exported",
    },
    hit_counters=(LOOKUPS,),
    ttft=(TTFT,),
)
