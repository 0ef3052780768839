"""The tables of docs/reference/signals.md, made from the constants they describe."""

import math

from admitperf.core.signals import ALL, GPU_UTIL, OLDEST_WAIT_S
from admitperf.core.signals import ENGINE as ENGINE_SIGNALS
from admitperf.engines.catalogue import ENGINES

READINGS = {
    "kv_pressure_mean": "mean over engines, or a router's mean over its pool",
    "kv_pressure_capacity_weighted": "used over all memory of all engines",
    "total_blocks": "KV blocks of all engines (Dynamo)",
    "kv_reserved_frac": "booked over bookable tokens (TGI)",
    "gpu_util_max": "busiest GPU, 0 to 1",
    "gpu_mem_frac": "GPU memory in use, 0 to 1; flat, since engines take it all",
    "prefix_hit_rate_lifetime": "hits over lookups since the start",
    "preemptions_total": "preemptions since the start",
    "preemptions_per_s": "the signal `preemptions` under its unit",
    "engine_rejections_total": "requests the engine itself refused since the start",
    "ttft_p50_s": "median time to first token of the window, in seconds",
    "ttft_p95_s": "95th percentile of it; None above the last bucket's bound",
    "queue_depth_per_pod_max": "longest queue of one endpoint (EPP)",
    "gateway_queue": "requests held by the router's flow control (EPP)",
    "ingress_inflight": "requests in a frontend (Dynamo)",
    "ingress_waiting_first_token": "those of them without a first token (Dynamo)",
    "lora_running": "names of the adapters that run, of the newest line (vLLM)",
    "lora_waiting": "names of the adapters that wait, of the newest line (vLLM)",
}


LISTED = sorted(ENGINES, key=lambda engine: set(engine.sources) == {GPU_UTIL})
"""Engines as they are asked, exporters that only see GPUs last."""


def tables():
    """Each table by the name of its marker."""
    return {
        "signals": signals(),
        "freshness": freshness(),
        "offers": offers(),
        "readings": readings(),
    }


def filled(page):
    """The page with each table between its markers."""
    for name, text in tables().items():
        head, begin, rest = page.partition(f"<!-- {name} -->\n")
        _, end, tail = rest.partition("<!-- end -->")
        page = f"{head}{begin}\n{text}\n{end}{tail}"
    return page


def readings():
    """Every reading that is no signal."""
    rows = ((f"`{name}`", what) for name, what in READINGS.items())
    return table(("reading", "what it is"), rows)


def signals():
    """Every signal: what it means, what it is for, when it says nothing."""
    head = ("signal", "unit", "range", "combined", "from", "serves", "fails when")
    rows = (
        (
            f"`{signal.name}`",
            signal.unit,
            legal(signal),
            signal.combine if signal.origin == "engine" else "",
            signal.origin,
            signal.serves,
            signal.fails_when,
        )
        for signal in ALL
    )
    return table(head, rows)


def freshness():
    """How fast each engine renews its gauges, in words and in seconds."""
    rows = []
    for engine in LISTED:
        every = (s.refresh_s for sources in engine.sources.values() for s in sources)
        rows.append((engine.title, engine.freshness, f"{max(every):g} s"))
    return table(("engine", "a gauge is renewed", "rhythm"), rows)


def offers():
    """One matrix, then each engine's sources and gaps."""
    listed = (*ENGINE_SIGNALS, OLDEST_WAIT_S)
    head = ("engine", *(f"`{signal.name}`" for signal in listed))
    rows = (
        (engine.title, *("yes" if s in engine.sources else "" for s in listed))
        for engine in LISTED
    )
    parts = [table(head, rows), *(one_engine(engine) for engine in LISTED)]
    return "\n".join(parts)


def one_engine(engine):
    """An engine's sources in the order they are asked, then what it lacks and why."""
    rows = [
        (f"`{signal.name}`" if first else "", described(source, signal))
        for signal, sources in engine.sources.items()
        for first, source in zip((True, *[False] * 9), sources, strict=False)
    ]
    lacks = [f"- no `{signal.name}`: {why}" for signal, why in engine.lacks.items()]
    heading = f"### {engine.title}\n\n"
    listed = table(("signal", "sources, first one first"), rows)
    return heading + listed + "\n" + "".join(f"{line}\n" for line in lacks)


def described(source, signal):
    """A source in one cell."""
    text = f"`{source.name}`"
    if source.formula is None:
        text += f", {source.combine or signal.combine}"
    if source.scale != 1.0:
        text += f", x {source.scale:g}"
    for label, allowed in source.where:
        text += ", only " + " or ".join(f'`{label}="{value}"`' for value in allowed)
    for label in source.unless:
        text += f", not with `{label}`"
    return text


def legal(signal):
    """A signal's range in words."""
    if math.isinf(signal.high):
        return "any" if math.isinf(signal.low) else f"{signal.low:g} or more"
    return f"{signal.low:g} to {signal.high:g}"


def table(head, rows):
    """A Markdown table."""
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)
