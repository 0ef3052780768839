"""Endpoint pickers: Gateway API Inference Extension and llm-d's router.

They poll the engines (50 ms, stale after 2 s; of several ranks behind one endpoint they
take the first) and print means over the pool. llm-d's router (2026) prints
`llm_d_epp_*` beside the old names: the same numbers, never added.
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
from admitperf.core.source import Formula, Source
from admitperf.core.window import Window
from admitperf.engines.engine import Counter, Engine
from admitperf.engines.formulas import folded, per_engine, product

_NAME = "epp"

REFRESH_S = 2.0
"""It polls each 50 ms and uses what it has for 2 s."""

_EFFECTIVE = (("stage", ("effective",)),)


def _whole(mean: str, ready: str) -> Source:
    return Source(
        f"{mean} x {ready}",
        refresh_s=REFRESH_S,
        engine=_NAME,
        formula=product(mean, ready),
    )


WAITING = _whole("llm_d_epp_average_queue_size", "llm_d_epp_ready_endpoints")
"""Mean queue of a pool x its ready endpoints, summed over pools."""

WAITING_OLD = _whole("inference_pool_average_queue_size", "inference_pool_ready_pods")
"""The same under GIE's names."""

WAITING_EACH = Source(
    "llm_d_epp_per_endpoint_queue_size", refresh_s=REFRESH_S, engine=_NAME
)
"""Queue of each endpoint, summed."""

WAITING_EACH_OLD = Source(
    "inference_pool_per_pod_queue_size", refresh_s=REFRESH_S, engine=_NAME
)
"""The same under GIE's names."""

BATCHED = _whole("llm_d_epp_average_running_requests", "llm_d_epp_ready_endpoints")
"""Mean running requests of a pool x its ready endpoints."""

BATCHED_OLD = _whole(
    "inference_pool_average_running_requests", "inference_pool_ready_pods"
)
"""The same under GIE's names."""


def _saturation(name: str) -> Formula:
    def formula(series: Series, _: Window) -> Found | None:
        effective = per_engine(series, name, _EFFECTIVE)
        return folded(effective or per_engine(series, name), "max")

    return formula


def _load(name: str) -> Source:
    return Source(name, refresh_s=REFRESH_S, engine=_NAME, formula=_saturation(name))


SATURATION = _load("llm_d_epp_flow_control_pool_saturation")
"""The router's own load of a pool: 1 = full, and it goes above 1. Where it tells stages
apart, `effective` is the one it acts on, else the worst counts."""

SATURATION_OLD = _load("inference_extension_flow_control_pool_saturation")
"""The same under GIE's name."""

TTFT = Counter("llm_d_epp_request_ttft_seconds", (("streaming", ("true", "True")),))
"""Histogram at the router; without streaming it is the whole answer's time."""

TTFT_OLD = Counter("inference_objective_request_ttft_seconds")
"""The same under GIE's name."""

ENGINE = Engine(
    name=_NAME,
    title="Endpoint picker (GIE, llm-d)",
    marks=("inference_pool_", "inference_extension_", "inference_objective_", "llm_d_"),
    freshness="polls each 50 ms, stale after 2 s",
    sources={
        QUEUE_DEPTH: (WAITING, WAITING_OLD, WAITING_EACH, WAITING_EACH_OLD),
        RUNNING: (BATCHED, BATCHED_OLD),
        POOL_LOAD: (SATURATION, SATURATION_OLD),
    },
    lacks={
        KV_PRESSURE: (
            "a mean over the pool hides the one full replica (reading "
            "`kv_pressure_mean`)"
        ),
        OLDEST_WAIT_S: "a histogram, after the wait is over",
        PREFIX_HIT_RATE: "its histogram is the router's guess",
        PREEMPTIONS: "not exported",
        GPU_UTIL: "not exported",
        KV_CAPACITY_TOKENS: "not exported",
    },
    ttft=(TTFT, TTFT_OLD),
)
