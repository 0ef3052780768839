"""What is known about one engine's metrics."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from admitperf.core.series import Where
from admitperf.core.signal import Signal
from admitperf.core.source import Source


@dataclass(frozen=True, slots=True)
class Counter:
    """A counter, or the part of one that a label picks out.

    Attributes:
        name: Metric name; read with and without `_total`.
        where: (label, allowed values); a series counts when it lacks the label.
    """

    name: str
    where: Where = ()


@dataclass(frozen=True, slots=True)
class HitCounters:
    """Counters whose ratio is a prefix-cache hit rate.

    Attributes:
        hits: Summed for the numerator.
        lookups: Summed for the denominator. Same unit as the hits (tokens or blocks);
            the unit itself does not matter to the ratio.
    """

    hits: tuple[Counter, ...]
    lookups: tuple[Counter, ...]


@dataclass(frozen=True, slots=True)
class Engine:
    """One engine, router or exporter.

    Attributes:
        name: Short name, also the `engine` of its sources.
        title: Name as its makers write it.
        marks: How its metric names begin, in canonical spelling.
        freshness: How often it renews its gauges.
        sources: Per signal, the best source first.
        lacks: Per signal it does not supply, why not, or what looks like it but is
            something else.
        hit_counters: The best pair first.
        preemptions: Counters of requests thrown out of KV memory.
        rejections: Counters of requests the engine itself refused.
        ttft: Histograms of time to first token, in seconds, without `_bucket`.
    """

    name: str
    title: str
    marks: tuple[str, ...]
    freshness: str
    sources: Mapping[Signal, tuple[Source, ...]]
    lacks: Mapping[Signal, str] = field(default_factory=dict)
    hit_counters: tuple[HitCounters, ...] = ()
    preemptions: tuple[Counter, ...] = ()
    rejections: tuple[Counter, ...] = ()
    ttft: tuple[Counter, ...] = ()
