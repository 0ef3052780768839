"""Values that no single series holds: ratios, products, rates.

All of them answer None when a part is missing, and never divide by nothing.
"""

import math
from collections.abc import Callable, Iterable, Mapping

from admitperf.core.found import Found
from admitperf.core.series import REPEAT_LABELS, Series, Where
from admitperf.core.source import Formula
from admitperf.core.window import Window
from admitperf.engines.engine import Counter, HitCounters

EngineKey = tuple[tuple[str, str], ...]
"""The labels that tell one engine's series from another's, sorted."""

Count = Callable[[Counter], float | None]
"""How much a counter counted, None when it is not there."""


def per_engine(
    series: Series, name: str, where: Where = (), without: Iterable[str] = ()
) -> dict[EngineKey, float]:
    """A metric's value for each engine on the page.

    Args:
        series: The page.
        name: Metric name.
        where: (label, allowed values); a series counts when it lacks the label.
        without: Labels that do not tell engines apart, besides the repeat labels.

    Returns:
        The largest value over repeat labels (`tp_rank`, `pid`, ...) by the remaining
        labels. NaN, infinities and negative values are left out.
    """
    dropped = REPEAT_LABELS.union(without)
    values: dict[EngineKey, float] = {}
    for labels, value in series.samples(name):
        if 0.0 <= value < math.inf and allowed(labels, where):
            key = _key(labels.items(), dropped)
            values[key] = max(value, values.get(key, value))
    return values


def allowed(labels: Mapping[str, str], where: Where) -> bool:
    """Whether a series counts: each label of `where` is absent or allowed."""
    return all(label not in labels or labels[label] in ok for label, ok in where)


def folded(values: Mapping[EngineKey, float], how: str) -> Found | None:
    """One value out of one for each engine, keeping the parts.

    Args:
        values: By engine, as `per_engine` gives them.
        how: "sum", "max" or "mean".

    Returns:
        None when there are no values.
    """
    if not values:
        return None
    listed = list(values.values())
    value = max(listed) if how == "max" else summed(listed)
    if how == "mean":
        value /= len(listed)
    return Found(value, _parts(values) if len(listed) > 1 else {})


def share(used: str, capacity: str, how: str = "max", where: Where = ()) -> Formula:
    """Formula: used / capacity of each engine, folded over engines.

    An engine without capacity, or with a capacity of 0, is left out.
    """

    def formula(series: Series, _: Window) -> Found | None:
        capacities = per_engine(series, capacity, where)
        shares = {
            key: value / capacities[key]
            for key, value in per_engine(series, used, where).items()
            if capacities.get(key)
        }
        return folded(shares, how)

    return formula


def product(name: str, factor: str, where: Where = ()) -> Formula:
    """Formula: name x factor of each engine, summed over engines."""

    def formula(series: Series, _: Window) -> Found | None:
        factors = per_engine(series, factor, where)
        products = {
            key: value * factors[key]
            for key, value in per_engine(series, name, where).items()
            if key in factors
        }
        return folded(products, "sum")

    return formula


def total(series: Series) -> Count:
    """Counts since the engine started: the values as they stand on the page."""

    def count(counter: Counter) -> float | None:
        values = per_engine(series, counter.name, counter.where)
        return summed(values.values()) if values else None

    return count


def rise(window: Window) -> Count:
    """Counts within a window: per series, restarts included, then summed."""

    def count(counter: Counter) -> float | None:
        rises = window.increase(counter.name, counter.where)
        if rises is None:
            return None
        by_engine: dict[EngineKey, float] = {}
        for labels, value in rises.items():
            key = _key(labels, REPEAT_LABELS)
            by_engine[key] = max(value, by_engine.get(key, value))
        return summed(by_engine.values())

    return count


def hit_rate(counters: HitCounters, count: Count) -> float | None:
    """Hits over lookups, each summed first: a mean of ratios is another number.

    Returns:
        A fraction; None when a counter is missing or nothing was looked up.
    """
    hits = _counted(counters.hits, count)
    lookups = _counted(counters.lookups, count)
    return None if hits is None or not lookups else hits / lookups


def windowed_hit_rate(counters: HitCounters) -> Formula:
    """Formula: the hit rate of the window; None on one page alone."""

    def formula(_: Series, window: Window) -> float | None:
        return hit_rate(counters, rise(window))

    return formula


def gauge_unless_counted(name: str, counted: tuple[HitCounters, ...]) -> Formula:
    """Formula: a hit-rate gauge, believed only where the counters cannot say.

    Once a window of the counters is there, they are the better answer, also when it
    is "no lookups": a gauge of the last batch would fill the gap with old news.
    Several engines give their mean, since the gauge does not tell their sizes.
    """

    def formula(series: Series, window: Window) -> Found | None:
        count = rise(window)
        if any(_counted(pair.lookups, count) is not None for pair in counted):
            return None
        return series.combine(name, "mean", low=0.0, high=1.0)

    return formula


def per_second(counter: Counter) -> Formula:
    """Formula: how often per second a counter rose over the window."""

    def formula(_: Series, window: Window) -> float | None:
        rises = rise(window)(counter)
        if rises is None or window.seconds <= 0.0:
            return None
        return rises / window.seconds

    return formula


def summed(values: Iterable[float]) -> float:
    """Their sum; infinite, which no signal accepts, when a float cannot hold it."""
    try:
        return math.fsum(values)
    except OverflowError:
        return math.inf


def _counted(counters: tuple[Counter, ...], count: Count) -> float | None:
    counts = [count(counter) for counter in counters]
    known = [one for one in counts if one is not None]
    return summed(known) if len(known) == len(counts) else None


def _key(labels: Iterable[tuple[str, str]], dropped: frozenset[str]) -> EngineKey:
    return tuple(sorted(pair for pair in labels if pair[0] not in dropped))


def _parts(values: Mapping[EngineKey, float]) -> dict[str, float]:
    shared = set.intersection(*(set(key) for key in values))
    return {
        ",".join(
            f"{label}={text}" for label, text in key if (label, text) not in shared
        ): value
        for key, value in values.items()
    }
