"""vLLM: V0 and V1 engines, the Rust front end, and both through Ray Serve.

Endpoint `/metrics` on the API port, always on. Series carry `engine` (data-parallel
rank) from 0.8.3 and `model_name`, the first served name: LoRA adapters never appear
there. The Rust front end (`VLLM_USE_RUST_FRONTEND=1`, from 0.22) always answers
OpenMetrics and has no `cache_config_info` and no `admission_rejections`. Ray prints the
same names after `ray_vllm:` (`ray_vllm_` from 0.11.0), each counter a second time as a
gauge without `_total`.
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
    per_second,
    windowed_hit_rate,
)

_NAME = "vllm"

KV_USAGE = Source(
    "vllm_kv_cache_usage_perc", unless=("pid",), engine=_NAME, running_only=True
)
"""KV blocks held by running requests, 0 to 1 in spite of `_perc`; from 0.9.2.

1 - free / (blocks - 1), measured on 0.32.0: 0.8936 = 42/47 with 48 blocks. Cached
blocks nobody uses count as free. Refused here when it carries `pid`."""

KV_USAGE_OLD = Source("vllm_gpu_cache_usage_perc", engine=_NAME, running_only=True)
"""The same quantity's old name: 0.2.7 to 0.10.2, hidden from 0.11.0, gone in 0.12.0.

With several API servers (0.9.2 to 0.11.0) it is the newest writer's value, while the
new name has one series per process."""


def _kv_usage_by_pid(series: Series, _: Window) -> Found | None:
    samples = series.samples("vllm_kv_cache_usage_perc")
    if not any("pid" in labels for labels, _value in samples):
        return None
    found = series.combine("vllm_kv_cache_usage_perc", "max", low=0.0, high=1.0)
    if found is None or found.value is None:
        return found
    note = "vllm_kv_cache_usage_perc{pid}: other API servers' values may be stale"
    return Found(found.value, found.parts, (*found.skipped, note))


KV_USAGE_BY_PID = Source(
    "vllm_kv_cache_usage_perc by pid",
    engine=_NAME,
    running_only=True,
    formula=_kv_usage_by_pid,
)
"""The new name with one series per API server (0.9.2 to 0.11.0, `--api-server-count`
above 1): one process is right, the others never heard or are stale. The largest is at
worst too careful."""

WAITING = Source("vllm_num_requests_waiting", engine=_NAME)
"""Requests not yet in a batch; all releases. Before 0.20 without those the scheduler
skipped (LoRA budget, remote KV, grammar); `_by_reason` are parts of it, never added."""

BATCHED = Source("vllm_num_requests_running", engine=_NAME)
"""Requests in execution batches; all releases. V0's `num_requests_swapped` is neither
running nor waiting."""

LOOKUPS = HitCounters(
    (Counter("vllm_prefix_cache_hits_total"),),
    (Counter("vllm_prefix_cache_queries_total"),),
)
"""Prefix-cache lookups in tokens; from 0.9.2, from 0.11.1 without the repeated lookups
of preempted requests."""

LOOKUPS_OLD = HitCounters(
    (Counter("vllm_gpu_prefix_cache_hits_total"),),
    (Counter("vllm_gpu_prefix_cache_queries_total"),),
)
"""Their old name, V1 0.7.3 to 0.11.2: blocks up to 0.8.5, tokens from 0.9.0."""

HIT_RATE_V0 = Source(
    "vllm_gpu_prefix_cache_hit_rate",
    engine=_NAME,
    formula=gauge_unless_counted(
        "vllm_gpu_prefix_cache_hit_rate", (LOOKUPS, LOOKUPS_OLD)
    ),
)
"""V0's gauge, 0.5.5 to 0.9.0: block hit rate since the start; -1 = caching is off."""

PREEMPTED = Counter("vllm_num_preemptions_total")
"""Requests thrown out of KV memory; from 0.4.3. The strongest sign that it ran out."""

REFUSED = Counter("vllm_admission_rejections_total")
"""The engine's own 503s (`--max-num-queued-reqs`, `-tokens`); from 0.32.0."""

TTFT = Counter("vllm_time_to_first_token_seconds")
"""Histogram; from 0.3.3. V0's last bucket is 10 s, V1's 2560 s."""


def _capacity_tokens(series: Series, _: Window) -> Found | None:
    tokens: dict[EngineKey, float] = {}
    skipped = []
    for labels, _value in series.samples("vllm_cache_config_info"):
        key = (("engine", labels["engine"]),) if "engine" in labels else ()
        size = _tokens(labels)
        if size is None:
            skipped.append("vllm_cache_config_info without a size")
        else:
            tokens[key] = max(size, tokens.get(key, size))
    found = folded(tokens, "sum") or Found(None)
    return Found(found.value, found.parts, tuple(skipped))


def _tokens(labels: dict[str, str]) -> float | None:
    size = _number(labels, "kv_cache_size_tokens")
    if size is not None:
        return size
    block, blocks = _number(labels, "block_size"), _number(labels, "num_gpu_blocks")
    return None if block is None or blocks is None else block * blocks


def _number(labels: dict[str, str], name: str) -> float | None:
    text = labels.get(name, "")
    return float(text) if text.isdecimal() else None


CAPACITY = Source("vllm_cache_config_info", engine=_NAME, formula=_capacity_tokens)
"""KV room in tokens, from labels: `kv_cache_size_tokens` (from 0.24), else `block_size`
x `num_gpu_blocks` (from 0.3.3; too high on hybrid models: 884,736 where the engine says
825,088). Labels are text and may be "None"."""

ENGINE = Engine(
    name=_NAME,
    title="vLLM",
    marks=("vllm_",),
    freshness="every engine step; frozen while it does not step",
    sources={
        KV_PRESSURE: (KV_USAGE, KV_USAGE_OLD, KV_USAGE_BY_PID),
        QUEUE_DEPTH: (WAITING,),
        RUNNING: (BATCHED,),
        PREFIX_HIT_RATE: (
            Source(
                "vllm_prefix_cache_hits_total / queries_total",
                engine=_NAME,
                formula=windowed_hit_rate(LOOKUPS),
            ),
            Source(
                "vllm_gpu_prefix_cache_hits_total / queries_total",
                engine=_NAME,
                formula=windowed_hit_rate(LOOKUPS_OLD),
            ),
            HIT_RATE_V0,
        ),
        PREEMPTIONS: (
            Source(
                "vllm_num_preemptions_total per second",
                engine=_NAME,
                formula=per_second(PREEMPTED),
            ),
        ),
        KV_CAPACITY_TOKENS: (CAPACITY,),
    },
    lacks={
        OLDEST_WAIT_S: "queue-time histograms hold only requests that got through",
        POOL_LOAD: "`max_num_seqs` is not exported",
        GPU_UTIL: "read the DCGM or AMD exporter",
    },
    hit_counters=(LOOKUPS, LOOKUPS_OLD),
    preemptions=(PREEMPTED,),
    rejections=(REFUSED,),
    ttft=(TTFT,),
)
