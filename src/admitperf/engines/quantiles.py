"""Quantiles from histogram buckets."""

import math
from collections.abc import Mapping

from admitperf.core.series import Identity, Series
from admitperf.core.window import Window
from admitperf.engines.engine import Counter


def quantile(buckets: Mapping[float, float], rank: float) -> float | None:
    """A quantile, linear inside its bucket.

    Args:
        buckets: Upper bound to how many observations lie at or below it.
        rank: 0 to 1.

    Returns:
        In the unit of the bounds; None when nothing was observed, when the counts do
        not rise with the bounds, or when the rank lies above the last finite bound:
        all one knows then is that it is larger than that.
    """
    bounds = sorted(buckets)
    counts = [buckets[bound] for bound in bounds]
    if not counts or counts[-1] <= 0.0 or counts != sorted(counts):
        return None
    wanted = rank * counts[-1]
    at = next(i for i, count in enumerate(counts) if count >= wanted)
    if not math.isfinite(bounds[at]):
        return None
    low, below = (bounds[at - 1], counts[at - 1]) if at else (0.0, 0.0)
    inside = counts[at] - below
    return low + (bounds[at] - low) * (wanted - below) / inside if inside else low


def rises(histogram: Counter, page: Series, window: Window) -> dict[float, float]:
    """What each bucket of a histogram gained over the window, all engines summed.

    A bucket may have passed its old count again since a restart; `_count` tells, being
    the largest of them, and settles it for every bucket of its series.

    Returns:
        By upper bound, cumulative; empty when the window does not know.
    """
    counts = window.increase(f"{histogram.name}_count", histogram.where) or {}
    gained = window.increase(f"{histogram.name}_bucket", histogram.where) or {}
    now_count = _by_labels(page, f"{histogram.name}_count")
    now = _by_labels(page, f"{histogram.name}_bucket")
    summed: dict[float, float] = {}
    for key, gain in gained.items():
        bound = _bound(key)
        whole = tuple(pair for pair in key if pair[0] != "le")
        if bound is None or whole not in counts:
            continue
        restarted = counts[whole] == now_count.get(whole)
        value = now.get(key, gain) if restarted else gain
        summed[bound] = summed.get(bound, 0.0) + value
    return summed


def _by_labels(page: Series, name: str) -> dict[Identity, float]:
    return {identity: value for identity, _, value in page.identified(name)}


def _bound(key: Identity) -> float | None:
    try:
        bound = float(dict(key)["le"])
    except (KeyError, ValueError):
        return None
    return None if math.isnan(bound) else bound
