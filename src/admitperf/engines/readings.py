"""Everything a page says: the signals, and numbers that are good for a report only.

A reading is no signal: it has no sources to add to and no policy reads it. Several are
what a signal must not be taken from (`kv_pressure_mean`, `kv_reserved_frac`), under a
name that says so.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from admitperf.core.found import Found
from admitperf.core.series import Series
from admitperf.core.signals import (
    ALL,
    GPU_UTIL,
    KV_CAPACITY_TOKENS,
    KV_PRESSURE,
    PREEMPTIONS,
)
from admitperf.core.source import Source
from admitperf.core.window import Window
from admitperf.engines.catalogue import ENGINES
from admitperf.engines.engine import Counter
from admitperf.engines.formulas import (
    EngineKey,
    hit_rate,
    per_engine,
    share,
    summed,
    total,
)
from admitperf.engines.gpus import usable
from admitperf.engines.quantiles import quantile, rises

Read = float | list[str] | None
K = TypeVar("K")

_GAUGES: dict[str, tuple[Source, ...]] = {
    "total_blocks": (
        Source("dynamo_component_total_blocks", "sum"),
        Source("dynamo_component_kvstats_total_blocks", "sum"),
    ),
    "kv_reserved_frac": (
        Source(
            "tgi_batch_current_max_tokens / max_total_tokens",
            formula=share("tgi_batch_current_max_tokens", "tgi_batch_max_total_tokens"),
        ),
    ),
    "ingress_inflight": (Source("dynamo_frontend_inflight_requests", "sum"),),
    "ingress_waiting_first_token": (Source("dynamo_frontend_queued_requests", "sum"),),
    "queue_depth_per_pod_max": (
        Source("llm_d_epp_per_endpoint_queue_size", "max"),
        Source("inference_pool_per_pod_queue_size", "max"),
    ),
    "gateway_queue": (
        Source("llm_d_epp_flow_control_queue_size", "sum"),
        Source("inference_extension_flow_control_queue_size", "sum"),
    ),
}

_POOL_MEAN_KV = (
    Source("llm_d_epp_average_kv_cache_utilization", "max"),
    Source("inference_pool_average_kv_cache_utilization", "max"),
)

_DYNAMO_USAGE = "dynamo_component_gpu_cache_usage_percent"
_DYNAMO_BLOCKS = "dynamo_component_total_blocks"


def read(page: Mapping[str, object], window: Window = Window.EMPTY) -> dict[str, Read]:
    """Reads a page.

    Args:
        page: Metric key to number, a `Page` or any mapping.
        window: The seconds that led up to this page; without it nothing that needs two
            pages is known.

    Returns:
        Every signal by name, and the readings of this module. None means not known,
        never zero. `lora_running` and `lora_waiting` are lists of adapter names.
    """
    series = Series(page)
    found = {signal.name: signal.find(series, window)[1] for signal in ALL}
    result: dict[str, Read] = {name: _value(one) for name, one in found.items()}
    result["preemptions_per_s"] = result[PREEMPTIONS.name]
    result["gpu_util_max"] = _largest(found[GPU_UTIL.name])
    result["kv_pressure_mean"] = _kv_mean(found[KV_PRESSURE.name], series)
    result["kv_pressure_capacity_weighted"] = _kv_weighted(
        found[KV_PRESSURE.name], found[KV_CAPACITY_TOKENS.name], series
    )
    for name, sources in _GAUGES.items():
        result[name] = _first(sources, series)
    result["gpu_mem_frac"] = _gpu_memory(series)
    result.update(_counted(series))
    result.update(_ttft(series, window))
    result["lora_running"], result["lora_waiting"] = _lora(series)
    return {name: _finite(value) for name, value in result.items()}


def _finite(value: Read) -> Read:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _value(found: Found | None) -> float | None:
    return None if found is None else found.value


def _largest(found: Found | None) -> float | None:
    return max(found.parts.values()) if found and found.parts else _value(found)


def _first(sources: Iterable[Source], series: Series) -> float | None:
    for source in sources:
        value = _value(source.read(series, Window.EMPTY, "sum", 0.0, math.inf))
        if value is not None:
            return value
    return None


def _kv_mean(found: Found | None, series: Series) -> float | None:
    if found is None or found.value is None:
        return _first(_POOL_MEAN_KV, series)
    parts = found.parts.values() or (found.value,)
    return summed(parts) / len(parts)


def _kv_weighted(
    kv: Found | None, capacity: Found | None, series: Series
) -> float | None:
    """Used over all, all ranks together; None when a rank's size is not known."""
    used = per_engine(series, _DYNAMO_USAGE)
    room = per_engine(series, _DYNAMO_BLOCKS)
    if used and used.keys() == room.keys():
        return _weighted(used, room)
    if kv is None or capacity is None or kv.parts.keys() != capacity.parts.keys():
        return None
    return _weighted(kv.parts, capacity.parts) if kv.parts else kv.value


def _weighted(values: Mapping[K, float], weights: Mapping[K, float]) -> float | None:
    whole = summed(weights.values())
    products = summed(values[key] * weights[key] for key in values)
    return products / whole if whole else None


def _gpu_memory(series: Series) -> float | None:
    """Memory in use over all of it, all GPUs of the page together."""
    used = _usable(series, "DCGM_FI_DEV_FB_USED")
    free = _usable(series, "DCGM_FI_DEV_FB_FREE")
    reserved = _usable(series, "DCGM_FI_DEV_FB_RESERVED")
    known = used.keys() & free.keys()
    whole = {key: used[key] + free[key] + reserved.get(key, 0.0) for key in known}
    if known:
        return _ratio(used, whole)
    for mine, all_of_it in (
        ("gpu_used_vram", "gpu_total_vram"),
        ("amd_gpu_used_vram", "amd_gpu_total_vram"),
        ("nv_gpu_memory_used_bytes", "nv_gpu_memory_total_bytes"),
    ):
        ratio = _ratio(per_engine(series, mine), per_engine(series, all_of_it))
        if ratio is not None:
            return ratio
    return None


def _usable(series: Series, name: str) -> dict[EngineKey, float]:
    values = per_engine(series, name)
    return {key: value for key, value in values.items() if usable(value)}


def _ratio(
    part: Mapping[EngineKey, float], whole: Mapping[EngineKey, float]
) -> float | None:
    known = part.keys() & whole.keys()
    below = summed(whole[key] for key in known)
    return summed(part[key] for key in known) / below if below else None


def _counted(series: Series) -> dict[str, Read]:
    count = total(series)
    rates = (
        hit_rate(pair, count) for engine in ENGINES for pair in engine.hit_counters
    )
    return {
        "prefix_hit_rate_lifetime": next((r for r in rates if r is not None), None),
        "preemptions_total": _first_count(
            (one for engine in ENGINES for one in engine.preemptions), count
        ),
        "engine_rejections_total": _first_count(
            (one for engine in ENGINES for one in engine.rejections), count
        ),
    }


def _first_count(
    counters: Iterable[Counter], count: Callable[[Counter], float | None]
) -> float | None:
    return next((n for n in map(count, counters) if n is not None), None)


def _ttft(series: Series, window: Window) -> dict[str, Read]:
    for histogram in (one for engine in ENGINES for one in engine.ttft):
        buckets = rises(histogram, series, window)
        if buckets:
            return {
                "ttft_p50_s": quantile(buckets, 0.5),
                "ttft_p95_s": quantile(buckets, 0.95),
            }
    return {"ttft_p50_s": None, "ttft_p95_s": None}


def _lora(series: Series) -> tuple[list[str] | None, list[str] | None]:
    """The adapters of the newest line: the value is when it was written.

    Old label sets stay on the page. Of several data-parallel ranks only the one that
    wrote last is seen.
    """
    samples = series.samples("vllm_lora_requests_info")
    known = [(value, labels) for labels, value in samples if math.isfinite(value)]
    if not known:
        return None, None
    _, labels = max(known, key=lambda one: one[0])
    return (
        _adapters(labels, "running_lora_adapters"),
        _adapters(labels, "waiting_lora_adapters"),
    )


def _adapters(labels: Mapping[str, str], name: str) -> list[str]:
    return [adapter for adapter in labels.get(name, "").split(",") if adapter]
