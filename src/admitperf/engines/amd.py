"""AMD's device-metrics-exporter, `:5000`: the GPUs, not the engine."""

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
from admitperf.engines.engine import Engine
from admitperf.engines.gpus import utilisation

_NAME = "amd"
_PERCENT = 0.01
_FIRST_PARTITION = (("gpu_partition_id", ("0",)),)


def _activity(name: str) -> Source:
    formula = utilisation(name, _PERCENT, _FIRST_PARTITION)
    return Source(f"{name} / 100", engine=_NAME, formula=formula)


ACTIVITY = _activity("gpu_gfx_activity")
"""Percent of the time the graphics engine was busy, mean over the engine's GPUs.
With a GPU cut into partitions (CPX) only partition 0 is valid."""

ACTIVITY_PREFIXED = _activity("amd_gpu_gfx_activity")
"""The same with the exporter's optional prefix."""

ENGINE = Engine(
    name=_NAME,
    title="AMD device-metrics-exporter",
    marks=("gpu_gfx_", "gpu_umc_", "gpu_used_vram", "amd_gpu_"),
    freshness="its collection interval",
    sources={GPU_UTIL: (ACTIVITY, ACTIVITY_PREFIXED)},
    lacks={
        KV_PRESSURE: "used VRAM is what the engine took at its start",
        QUEUE_DEPTH: "it sees GPUs, not requests",
        RUNNING: "it sees GPUs, not requests",
        OLDEST_WAIT_S: "it sees GPUs, not requests",
        PREFIX_HIT_RATE: "it sees GPUs, not requests",
        POOL_LOAD: "a busy GPU is not a full one",
        PREEMPTIONS: "it sees GPUs, not requests",
        KV_CAPACITY_TOKENS: "it knows bytes, not tokens",
    },
)
