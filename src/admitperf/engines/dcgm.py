"""NVIDIA's DCGM exporter, `:9400`: the GPUs, not the engine.

Utilisation is 0 to 100, in the profiling fields 0 to 1. Framebuffer memory is flat,
because engines take it all at the start: it is never KV pressure.
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
from admitperf.engines.engine import Engine
from admitperf.engines.gpus import utilisation

_NAME = "dcgm"
_DEVICE = "DCGM_FI_DEV_GPU_UTIL"
_PROFILED = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"

REFRESH_S = 30.0
"""Its default collection interval: good for a trend, not for one request."""

BUSY_FRACTION = 0.5
"""Above this, 0 in the other field is a fault, not another definition. Origin: the
profiling field stood at 0 for weeks while GPU_UTIL said 99 (dcgm-exporter 662)."""

_device = utilisation(_DEVICE, 0.01)
_profiled = utilisation(_PROFILED, 1.0)


def _believed(mine: Found | None, other: Found | None, note: str) -> Found | None:
    """`mine`, unless it is 0 while the other field shows a busy GPU."""
    if mine is None or mine.value is None or other is None or other.value is None:
        return mine
    low, high = sorted((mine.value, other.value))
    if low > 0.0 or high <= BUSY_FRACTION:
        return mine
    value = mine.value if mine.value == high else None
    return Found(value, mine.parts if value else {}, (*mine.skipped, note))


def _device_util(series: Series, window: Window) -> Found | None:
    mine, other = _both(series, window)
    return _believed(mine, other, f"{_DEVICE} and {_PROFILED} disagree")


def _engine_active(series: Series, window: Window) -> Found | None:
    other, mine = _both(series, window)
    return _believed(mine, other, f"{_PROFILED} and {_DEVICE} disagree")


def _both(series: Series, window: Window) -> tuple[Found | None, Found | None]:
    device, profiled = _device(series, window), _profiled(series, window)
    return (
        device if isinstance(device, Found) else None,
        profiled if isinstance(profiled, Found) else None,
    )


DEVICE_UTIL = Source(
    f"{_DEVICE} / 100", refresh_s=REFRESH_S, engine=_NAME, formula=_device_util
)
"""Percent of the time a kernel was resident (1 for a tiny batch too), mean over the
engine's GPUs. "No value" under MIG. Where it and the profiling field contradict each
other (one 0, one above 0.5) the larger counts."""

ENGINE_ACTIVE = Source(
    _PROFILED, refresh_s=REFRESH_S, engine=_NAME, formula=_engine_active
)
"""The same from the profiling counters, 0 to 1; from Volta on. Under MIG it is printed
for each slice, and slices of different size count alike in the mean."""

ENGINE = Engine(
    name=_NAME,
    title="DCGM exporter",
    marks=("DCGM_FI_",),
    freshness="its collection interval, 30 s by default",
    sources={GPU_UTIL: (DEVICE_UTIL, ENGINE_ACTIVE)},
    lacks={
        KV_PRESSURE: "FB_USED is what the engine took at its start",
        QUEUE_DEPTH: "it sees GPUs, not requests",
        RUNNING: "it sees GPUs, not requests",
        OLDEST_WAIT_S: "it sees GPUs, not requests",
        PREFIX_HIT_RATE: "it sees GPUs, not requests",
        POOL_LOAD: "a busy GPU is not a full one",
        PREEMPTIONS: "it sees GPUs, not requests",
        KV_CAPACITY_TOKENS: "it knows bytes, not tokens",
    },
)
