"""NVIDIA Dynamo: its workers (`DYN_SYSTEM_PORT`) and its frontend.

A worker also passes its engine's own metrics through, with labels added: those are read
by that engine's sources. The frontend counts requests up to their first token, running
prefills included, which is no engine's queue: it supplies readings
(`ingress_inflight`, `ingress_waiting_first_token`), not signals. In a prefill/decode
split only decode workers print KV. `DYN_METRICS_PREFIX` may rename everything.
"""

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
from admitperf.engines import sglang, trtllm, vllm
from admitperf.engines.engine import Counter, Engine
from admitperf.engines.formulas import gauge_unless_counted, per_engine, total

_NAME = "dynamo"

KV_USAGE = Source("dynamo_component_gpu_cache_usage_percent", engine=_NAME)
"""KV blocks in use, 0 to 1 in spite of `_percent`, by `dp_rank`; from 0.8."""

KV_USAGE_OLD = Source("dynamo_component_kvstats_gpu_cache_usage_percent", engine=_NAME)
"""Its old name, up to 0.7."""

_PASSED_THROUGH = (
    *vllm.ENGINE.hit_counters,
    *sglang.ENGINE.hit_counters,
    *trtllm.ENGINE.hit_counters,
)


def _hit_rate(name: str) -> Source:
    formula = gauge_unless_counted(name, _PASSED_THROUGH)
    return Source(name, engine=_NAME, formula=formula)


HIT_RATE = _hit_rate("dynamo_component_kv_cache_hit_rate")
"""The engine's rate as a gauge, 0 to 1; the engine's own counters, passed through, are
asked before."""

HIT_RATE_OLD = _hit_rate("dynamo_component_kvstats_gpu_prefix_cache_hit_rate")
"""Its old name, up to 0.7."""

INFLIGHT = Source("dynamo_component_inflight_requests", engine=_NAME)
"""Requests a worker has taken and not finished: its engine's queue is counted in, so it
stands behind the engine's own number."""


def _capacity(series: Series, _: Window) -> float | None:
    count = total(series)
    blocks = count(Counter("dynamo_component_total_blocks"))
    sizes = per_engine(series, "dynamo_frontend_model_kv_cache_block_size")
    if blocks is None or len(sizes) != 1:
        return None
    return blocks * next(iter(sizes.values()))


CAPACITY = Source(
    "dynamo_component_total_blocks x model_kv_cache_block_size",
    engine=_NAME,
    formula=_capacity,
)
"""KV room in tokens. Workers print the blocks, the frontend their size: only a page
that holds both, for one model, says it."""

TTFT = Counter("dynamo_frontend_time_to_first_token_seconds")
"""Histogram of the frontend."""

ENGINE = Engine(
    name=_NAME,
    title="Dynamo",
    marks=("dynamo_",),
    freshness="as the engine behind it",
    sources={
        KV_PRESSURE: (KV_USAGE, KV_USAGE_OLD),
        RUNNING: (INFLIGHT,),
        PREFIX_HIT_RATE: (HIT_RATE, HIT_RATE_OLD),
        KV_CAPACITY_TOKENS: (CAPACITY,),
    },
    lacks={
        QUEUE_DEPTH: "the engine's own, passed through; the frontend's is no queue",
        OLDEST_WAIT_S: "not exported",
        POOL_LOAD: "not exported",
        PREEMPTIONS: "the engine's own, passed through",
        GPU_UTIL: "read the DCGM exporter",
    },
    ttft=(TTFT,),
)
