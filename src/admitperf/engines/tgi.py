"""Text Generation Inference (v3.3.7, in maintenance).

Counters do not end in `_total`, histograms name no unit (seconds), and nothing carries
labels but `method` and `err`. A vLLM fork prints two of these names as well.
"""

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
from admitperf.engines.engine import Counter, Engine

_NAME = "tgi"

WAITING = Source("tgi_queue_size", engine=_NAME)
"""Requests in the router's queue: raised when one joins, set with the next batch."""

BATCHED = Source("tgi_batch_current_size", engine=_NAME)
"""Requests in the current batch."""

BUDGET = Source("tgi_batch_max_total_tokens", engine=_NAME)
"""Token budget of a batch: what the router may book, not what memory holds."""

REFUSED = Counter("tgi_request_failure", (("err", ("overloaded",)),))
"""The router's own refusals."""

ENGINE = Engine(
    name=_NAME,
    title="TGI",
    marks=("tgi_",),
    freshness="at each event",
    sources={
        QUEUE_DEPTH: (WAITING,),
        RUNNING: (BATCHED,),
        KV_CAPACITY_TOKENS: (BUDGET,),
    },
    lacks={
        KV_PRESSURE: (
            "it books worst-case output: current/max total tokens reaches 1 long "
            "before memory is full (reading `kv_reserved_frac`)"
        ),
        OLDEST_WAIT_S: "not exported",
        PREFIX_HIT_RATE: "not exported",
        POOL_LOAD: "not exported",
        PREEMPTIONS: "it has none: what is booked fits",
        GPU_UTIL: "read the DCGM or AMD exporter",
    },
    rejections=(REFUSED,),
)
