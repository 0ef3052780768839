"""The engine's own page: what a scraper would read, in vLLM's names."""

from collections.abc import Iterator
from itertools import chain

from admitperf.simulator.engine.engine import Engine
from admitperf.simulator.engine.tally import Histogram


def page(*engines: Engine) -> dict[str, float]:
    """Metric key to number, as of the present; without buckets.

    Those of several engines are told apart by the label `engine`, as vLLM's are.

    Like the real one: the KV gauge counts the blocks of running requests only, what the
    prefix cache keeps of others is free; and histograms hold requests that got through.
    """
    if len(engines) == 1:
        return dict(_numbers(engines[0], ""))
    labels = (f'engine="{place}"' for place in range(len(engines)))
    return dict(
        chain.from_iterable(
            _numbers(engine, label)
            for engine, label in zip(engines, labels, strict=True)
        )
    )


def _numbers(engine: Engine, label: str) -> Iterator[tuple[str, float]]:
    tally, model, shown = engine.tally, engine.model, engine.gauges
    config = f'block_size="{model.block_size}",num_gpu_blocks="{model.kv_blocks}"'
    numbers = {
        "vllm:num_requests_running": shown.running,
        "vllm:num_requests_waiting": shown.waiting,
        "vllm:kv_cache_usage_perc": shown.kv_fraction,
        "vllm:num_preemptions_total": tally.preempted,
        "vllm:prefix_cache_queries_total": tally.queried_tokens,
        "vllm:prefix_cache_hits_total": tally.cached_tokens,
        "vllm:prompt_tokens_total": tally.prompt_tokens,
        "vllm:generation_tokens_total": engine.given_tokens,
        "vllm:request_success_total": tally.ended,
    }
    labels = f"{{{label}}}" if label else ""
    for name, number in numbers.items():
        yield name + labels, float(number)
    for name, histogram in histograms(engine):
        yield f"{name}_sum{labels}", histogram.sum
        yield f"{name}_count{labels}", float(histogram.count)
    told = ",".join(filter(None, (label, config)))
    yield f"vllm:cache_config_info{{{told}}}", 1.0


def histograms(engine: Engine) -> Iterator[tuple[str, Histogram]]:
    """The page's histograms by name."""
    tally = engine.tally
    yield "vllm:time_to_first_token_seconds", tally.ttft_s
    yield "vllm:inter_token_latency_seconds", engine.gaps
    yield "vllm:request_queue_time_seconds", tally.queue_s
    yield "vllm:request_prefill_time_seconds", tally.prefill_s
    yield "vllm:request_decode_time_seconds", tally.decode_s
    yield "vllm:e2e_request_latency_seconds", tally.e2e_s
