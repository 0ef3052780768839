"""The page of metrics as vLLM 0.32 writes it.

Names, labels, bounds of buckets and order are those of pages recorded from the real
one. What a real engine counts and the model does not know is left out: tokens and
inference time of a step (`iteration_tokens_total`, `request_inference_time_seconds`)
and the sizes and times of HTTP. What the recorded one shows as 0 is here, as 0.
"""

from admitperf.simulator.engine.page import histograms
from admitperf.simulator.server.exposition import Exposition
from admitperf.simulator.server.paced import PacedEngine
from admitperf.simulator.server.served import Served

CONTENT_TYPE = "text/plain; version=1.0.0; charset=utf-8"

_NEVER = {
    "vllm:estimated_flops_per_gpu_total": "Estimated number of floating point"
    " operations per GPU (for Model Flops Utilization calculations).",
    "vllm:estimated_read_bytes_per_gpu_total": "Estimated number of bytes read from"
    " memory per GPU (for Model Flops Utilization calculations).",
    "vllm:estimated_write_bytes_per_gpu_total": "Estimated number of bytes written to"
    " memory per GPU (for Model Flops Utilization calculations).",
    "vllm:external_prefix_cache_queries_total": "External prefix cache queries from KV"
    " connector cross-instance cache sharing, in terms of number of queried tokens.",
    "vllm:external_prefix_cache_hits_total": "External prefix cache hits from KV"
    " connector cross-instance cache sharing, in terms of number of cached tokens.",
    "vllm:mm_cache_queries_total": "Multi-modal cache queries, in terms of number of"
    " queried items.",
    "vllm:mm_cache_hits_total": "Multi-modal cache hits, in terms of number of cached"
    " items.",
}

_TIMES = {
    "vllm:time_to_first_token_seconds": "time to first token in seconds.",
    "vllm:inter_token_latency_seconds": "inter-token latency in seconds.",
    "vllm:e2e_request_latency_seconds": "e2e request latency in seconds.",
    "vllm:request_queue_time_seconds": "time spent in WAITING phase for request.",
    "vllm:request_prefill_time_seconds": "time spent in PREFILL phase for request.",
    "vllm:request_decode_time_seconds": "time spent in DECODE phase for request.",
}

_FINISHED = ("stop", "length", "abort", "error", "repetition")
_TIERS = ("device", "host", "p2p", "disk", "external_unspecified")


def vllm_page(
    engine: PacedEngine,
    served: Served,
    model: str,
    times_s: tuple[float, float],
    *,
    blank: bool = False,
) -> str:
    """The whole page.

    Args:
        engine: brought up to now.
        served: what the server counted.
        model: the name it is served under.
        times_s: when the server began, and since when it counts, in seconds since the
            Unix epoch.
        blank: gauges read NaN.
    """
    born_s, counted_s = times_s
    labels = {"engine": "0", "model_name": model}
    out = Exposition(labels, counted_s, blank=blank)
    _gauges(out, engine)
    _caches(out, engine)
    _counters(out, engine, served)
    _histograms(out, engine, served)
    config = Exposition({"engine": "0"})
    _config(config, engine)
    bare = Exposition({}, counted_s)
    _process(bare, born_s)
    _refused(bare, engine, model)
    _http(bare, served)
    return out.text() + config.text() + bare.text()


def _gauges(out: Exposition, engine: PacedEngine) -> None:
    out.gauge(
        "vllm:num_requests_running",
        "Number of requests in model execution batches.",
        engine.gauges.running,
    )
    out.gauge(
        "vllm:num_requests_waiting",
        "Number of requests waiting to be processed.",
        engine.gauges.waiting,
    )
    out.gauges(
        "vllm:num_requests_waiting_by_reason",
        "Number of waiting requests by reason.",
        [
            ({"reason": "capacity"}, engine.gauges.waiting),
            ({"reason": "deferred"}, 0.0),
        ],
    )
    states = {"awake": 1.0, "weights_offloaded": 0.0, "discard_all": 0.0}
    out.gauges(
        "vllm:engine_sleep_state",
        "Engine sleep state; awake = 1 means engine is awake.",
        [({"sleep_state": name}, value) for name, value in states.items()],
    )
    out.gauge(
        "vllm:kv_cache_usage_perc",
        "KV-cache usage. 1 means 100 percent usage.",
        engine.gauges.kv_fraction,
    )


def _caches(out: Exposition, engine: PacedEngine) -> None:
    tally = engine.tally
    for name, said in _NEVER.items():
        out.counter(name, said, 0.0)
    out.counter(
        "vllm:prefix_cache_queries_total",
        "Prefix cache queries, in terms of number of queried tokens.",
        tally.queried_tokens,
    )
    out.counter(
        "vllm:prefix_cache_hits_total",
        "Prefix cache hits, in terms of number of cached tokens.",
        tally.cached_tokens,
    )
    hits = [({"source": tier}, 0.0) for tier in _TIERS[1:]]
    out.counters(
        "vllm:prompt_tokens_cached_by_source_total",
        "Prefix-cache hit tokens by the cache tier that supplied them.",
        [({"source": _TIERS[0]}, tally.cached_tokens), *hits],
    )


def _counters(out: Exposition, engine: PacedEngine, served: Served) -> None:
    tally = engine.tally
    out.counter(
        "vllm:num_preemptions_total",
        "Cumulative number of preemption from the engine.",
        tally.preempted,
    )
    said = "Number of prefill tokens processed."
    out.counter("vllm:prompt_tokens_total", said, tally.prompt_tokens)
    sources = {
        "local_compute": max(0, tally.prompt_tokens - tally.cached_tokens),
        "local_cache_hit": min(tally.prompt_tokens, tally.cached_tokens),
        "external_kv_transfer": 0,
    }
    out.counters(
        "vllm:prompt_tokens_by_source_total",
        "Number of prompt tokens by source.",
        [({"source": name}, value) for name, value in sources.items()],
    )
    out.counter(
        "vllm:prompt_tokens_cached_total",
        "Number of cached prompt tokens (local + external).",
        sources["local_cache_hit"],
    )
    out.counter(
        "vllm:generation_tokens_total",
        "Number of generation tokens processed.",
        engine.counted_tokens,
    )
    ends = [({"finished_reason": r}, served.finished.get(r, 0)) for r in _FINISHED]
    said = "Count of successfully processed requests."
    out.counters("vllm:request_success_total", said, ends)


def _histograms(out: Exposition, engine: PacedEngine, served: Served) -> None:
    for name, histogram in histograms(engine):
        out.histogram(name, f"Histogram of {_TIMES[name]}", histogram)
    for name, said, histogram in (
        ("prompt_tokens", "Number of prefill tokens processed.", served.prompt_tokens),
        (
            "generation_tokens",
            "Number of generation tokens processed.",
            served.answer_tokens,
        ),
        (
            "max_num_generation_tokens",
            "Histogram of maximum number of requested generation tokens.",
            served.answer_tokens,
        ),
        ("params_n", "Histogram of the n request parameter.", served.n),
        (
            "params_max_tokens",
            "Histogram of the max_tokens request parameter.",
            served.most_tokens,
        ),
        (
            "time_per_output_token_seconds",
            "Histogram of time_per_output_token_seconds per request.",
            served.token_s,
        ),
        (
            "num_preemptions",
            "Histogram of the number of times a request was preempted.",
            served.again,
        ),
        (
            "prefill_kv_computed_tokens",
            "Histogram of new KV tokens computed during prefill.",
            served.computed_tokens,
        ),
    ):
        out.histogram(f"vllm:request_{name}", said, histogram)


def _config(out: Exposition, engine: PacedEngine) -> None:
    model = engine.model
    out.info(
        "vllm:cache_config_info",
        "Information of the LLMEngine CacheConfig",
        {
            "block_size": str(model.block_size),
            "cache_dtype": "auto",
            "enable_prefix_caching": str(model.prefix_caching),
            "kv_cache_size_tokens": str(model.kv_tokens),
            "num_cpu_blocks": "None",
            "num_gpu_blocks": str(model.kv_blocks),
            "num_gpu_blocks_override": "None",
        },
    )


def _process(out: Exposition, born_s: float) -> None:
    said = "Start time of the process since unix epoch in seconds."
    out.gauge("process_start_time_seconds", said, born_s)


def _refused(out: Exposition, engine: PacedEngine, model: str) -> None:
    refused = engine.tally.refused.items()
    out.counters(
        "vllm:admission_rejections_total",
        "Number of admission attempts rejected by a queue limit, by reason.",
        [({"model_name": model, "reason": name}, n) for name, n in refused],
    )


def _http(out: Exposition, served: Served) -> None:
    series = [
        ({"handler": path, "method": method, "status": status}, count)
        for (path, method, status), count in sorted(served.http.items())
    ]
    said = "Total number of requests by method, status and handler."
    out.counters("http_requests_total", said, series)
