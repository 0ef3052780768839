"""The engine's own page: what a scraper would read, in vLLM's names."""

from admitperf.simulator.engine import Engine


def page(engine: Engine) -> dict[str, float]:
    """Metric key to number, as of the engine's present.

    Like the real one: the KV gauge counts the memory of running requests only, and
    histograms hold requests that got through.
    """
    capacity = engine.model.kv_tokens
    started, ended = float(engine.started), float(engine.ended)
    return {
        "vllm:num_requests_running": float(engine.running),
        "vllm:num_requests_waiting": float(engine.waiting),
        "vllm:kv_cache_usage_perc": min(1.0, max(0.0, engine.kv_tokens / capacity)),
        "vllm:num_preemptions_total": float(engine.preempted),
        "vllm:prefix_cache_queries_total": float(engine.prompt_tokens),
        "vllm:prefix_cache_hits_total": float(engine.cached_tokens),
        "vllm:prompt_tokens_total": float(engine.prompt_tokens),
        "vllm:generation_tokens_total": float(engine.given_tokens),
        "vllm:request_success_total": ended,
        "vllm:time_to_first_token_seconds_sum": engine.ttft_s,
        "vllm:time_to_first_token_seconds_count": started,
        "vllm:request_queue_time_seconds_sum": engine.queue_s,
        "vllm:request_queue_time_seconds_count": started,
        "vllm:e2e_request_latency_seconds_sum": engine.e2e_s,
        "vllm:e2e_request_latency_seconds_count": ended,
        f'vllm:cache_config_info{{kv_cache_size_tokens="{capacity}"}}': 1.0,
    }
