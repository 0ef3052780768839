"""The page of metrics as SGLang 0.5.23 writes it, where the engine model knows it.

Only the names are SGLang's: gauges are as fresh as vLLM's, not once in 40 steps.
"""

from admitperf.simulator.server.exposition import Exposition
from admitperf.simulator.server.paced import PacedEngine
from admitperf.simulator.server.served import Served

CONTENT_TYPE = "text/plain; version=1.0.0; charset=utf-8"

FIRST_TOKEN_S = (
    0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 2.0, 4.0, 6.0, 8.0, 10.0, 20.0, 40.0, 60.0, 80.0,
    100.0, 200.0, 400.0,
)  # fmt: skip
"""Upper bounds of its buckets for first tokens, as its page lists them."""

_SCHEDULER = {"moe_ep_rank": "0", "pp_rank": "0", "priority": "", "tp_rank": "0"}


def sglang_page(
    engine: PacedEngine, served: Served, model: str, *, blank: bool = False
) -> str:
    """The whole page.

    Args:
        engine: brought up to now.
        served: what the server counted.
        model: the name it is served under.
        blank: gauges read NaN.
    """
    labels = {"engine_type": "unified", "model_name": model}
    scheduler = Exposition({**labels, **_SCHEDULER}, blank=blank)
    _gauges(scheduler, engine)
    _steps(scheduler, engine)
    requests = Exposition(labels)
    _requests(requests, engine, served)
    return scheduler.text() + requests.text()


def _gauges(out: Exposition, engine: PacedEngine) -> None:
    model, used = engine.model, round(engine.kv_fraction * engine.model.kv_tokens)
    queried = engine.tally.queried_tokens
    for name, said, value in (
        ("num_running_reqs", "The number of running requests.", engine.running),
        (
            "num_queue_reqs",
            "The number of requests in the waiting queue.",
            engine.waiting,
        ),
        ("num_grammar_queue_reqs", "The number of requests in the grammar queue.", 0),
        ("token_usage", "The token usage.", round(engine.kv_fraction, 2)),
        ("full_token_usage", "The token usage of the full pool.", engine.kv_fraction),
        ("num_used_tokens", "The number of used tokens.", used),
        ("kv_used_tokens", "The number of used KV tokens.", used),
        ("max_total_num_tokens", "Tokens in the KV cache pool.", model.kv_tokens),
        ("page_size", "KV cache page size in tokens.", model.block_size),
        ("num_pages", "Number of KV cache pages.", model.kv_blocks),
        (
            "cache_hit_rate",
            "The prefix cache hit rate.",
            engine.tally.cached_tokens / queried if queried else 0.0,
        ),
    ):
        out.gauge(f"sglang:{name}", said, value)


def _steps(out: Exposition, engine: PacedEngine) -> None:
    tally = engine.tally
    said = "Total number of retracted requests."
    out.counter("sglang:num_retracted_requests_total", said, tally.preempted)
    modes = {
        "input": tally.queried_tokens - tally.cached_tokens,
        "device_hit": tally.cached_tokens,
        "host_hit": 0,
        "storage_hit": 0,
    }
    out.counters(
        "sglang:prefill_effective_tokens_total",
        "Effective prefill tokens with retracted-request re-counts excluded.",
        [({"mode": mode}, value) for mode, value in modes.items()],
    )
    said = "Histogram of queueing time in seconds."
    out.histogram("sglang:queue_time_seconds", said, tally.queue_s)


def _requests(out: Exposition, engine: PacedEngine, served: Served) -> None:
    tally, streaming = engine.tally, {"is_streaming": "True"}
    said = "Number of prefill tokens processed."
    out.counters(
        "sglang:prompt_tokens_total", said, [(streaming, served.prompts_total)]
    )
    said = "Number of generation tokens processed."
    answers = [(streaming, served.answers_total)]
    out.counters("sglang:generation_tokens_total", said, answers)
    sources = [({"cache_source": s}, served.cached_total) for s in ("device", "total")]
    said = "Number of cached prompt tokens by source (device/host/storage)."
    out.counters("sglang:cached_tokens_total", said, sources)
    ended = [({"is_streaming": str(s)}, n) for s, n in served.streamed.items()]
    out.counters("sglang:num_requests_total", "Number of requests processed.", ended)
    said = "Histogram of time to first token in seconds."
    name = "sglang:time_to_first_token_seconds"
    out.histogram(name, said, tally.ttft_s, streaming)
    said = "Histogram of inter-token latency in seconds."
    out.histogram("sglang:inter_token_latency_seconds", said, tally.gap_s)
    said = "Histogram of End-to-end request latency in seconds"
    out.histogram("sglang:e2e_request_latency_seconds", said, tally.e2e_s)
