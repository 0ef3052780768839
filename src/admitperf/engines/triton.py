"""Triton's `tensorrtllm_backend`, `:8002/metrics`.

One family holds several quantities, told apart by a label, and a key missing in the
backend's JSON shifts the values onto the wrong labels: what cannot be checked against
another number of the page is not believed.
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
from admitperf.engines.formulas import EngineKey, folded, per_engine

_NAME = "triton"
_BLOCKS = "nv_trt_llm_kv_cache_block_metrics"
_REQUESTS = "nv_trt_llm_request_metrics"

FRACTION_TOLERANCE = 0.02
"""Largest difference between the printed fraction and used/max that is still rounding
or two moments of one iteration. Origin: the backend's own README shows 0.4875 beside
1 of 6239 blocks."""


def _blocks(series: Series, kind: str) -> dict[EngineKey, float]:
    where = (("kv_cache_block_type", (kind,)),)
    return per_engine(series, _BLOCKS, where, ("kv_cache_block_type",))


def _requests(series: Series, kind: str) -> dict[EngineKey, float]:
    where = (("request_type", (kind,)),)
    return per_engine(series, _REQUESTS, where, ("request_type",))


def _fractions(series: Series) -> tuple[dict[EngineKey, float], tuple[str, ...]]:
    used, most = _blocks(series, "used"), _blocks(series, "max")
    believed: dict[EngineKey, float] = {}
    notes = []
    for key, fraction in _blocks(series, "fraction").items():
        blocks = used[key] / most[key] if key in used and most.get(key) else None
        if blocks is None or not _agree(fraction, blocks):
            notes.append(f"{_BLOCKS}{{fraction}} = {fraction:g}, used/max = {blocks}")
        else:
            believed[key] = fraction
    return believed, tuple(notes)


def _agree(fraction: float, blocks: float) -> bool:
    # Rounded, so that 0.52 against 0.50 is a difference of 0.02 and not a hair more.
    return round(abs(fraction - blocks), 9) <= FRACTION_TOLERANCE


def _kv_pressure(series: Series, _: Window) -> Found | None:
    fractions, notes = _fractions(series)
    found = folded(fractions, "max") or Found(None)
    return Found(found.value, found.parts, notes)


def _capacity(series: Series, _: Window) -> Found | None:
    each = _blocks(series, "tokens_per")
    most = _blocks(series, "max")
    tokens = {key: most[key] * each[key] for key in most.keys() & each.keys()}
    return folded(tokens, "sum")


def _load(series: Series, _: Window) -> Found | None:
    memory, _notes = _fractions(series)
    active, most = _requests(series, "active"), _requests(series, "max")
    loads = {
        key: max(memory[key], active[key] / most[key])
        for key in memory.keys() & active.keys()
        if most.get(key)
    }
    return folded(loads, "max")


FRACTION = Source(f"{_BLOCKS} fraction", engine=_NAME, formula=_kv_pressure)
"""KV blocks in use, 0 to 1, only where it agrees with used/max."""

WAITING = Source(_REQUESTS, where=(("request_type", ("waiting",)),), engine=_NAME)
"""Requests of the backend's own queue. `nv_inference_pending_request_count` counts pre-
and postprocessing models too and is not added."""

ACTIVE = Source(_REQUESTS, where=(("request_type", ("active",)),), engine=_NAME)
"""Requests the batch manager holds."""

CAPACITY = Source(f"{_BLOCKS} max x tokens_per", engine=_NAME, formula=_capacity)
"""KV room in tokens."""

LOAD = Source(
    f"max({_BLOCKS} fraction, {_REQUESTS} active/max)", engine=_NAME, formula=_load
)
"""The fuller of memory and slots; both must be known."""

GPU = Source("nv_gpu_utilization", engine=_NAME)
"""Triton's own GPU utilisation, already 0 to 1."""

ENGINE = Engine(
    name=_NAME,
    title="Triton (tensorrtllm_backend)",
    marks=("nv_trt_llm_", "nv_inference_"),
    freshness="each iteration of the batch manager",
    sources={
        KV_PRESSURE: (FRACTION,),
        QUEUE_DEPTH: (WAITING,),
        RUNNING: (ACTIVE,),
        POOL_LOAD: (LOAD,),
        GPU_UTIL: (GPU,),
        KV_CAPACITY_TOKENS: (CAPACITY,),
    },
    lacks={
        OLDEST_WAIT_S: "not exported",
        PREFIX_HIT_RATE: "reused blocks without the missed ones",
        PREEMPTIONS: "not exported",
    },
)
