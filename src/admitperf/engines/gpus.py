"""GPU exporters print a whole machine; an engine owns some of its GPUs."""

import math

from admitperf.core.found import Found
from admitperf.core.series import Labels, Series, Where
from admitperf.core.source import Formula
from admitperf.core.window import Window
from admitperf.engines.formulas import EngineKey, allowed, folded

_OWNER_LABELS = ("pod", "exported_pod")
"""Which container runtime object holds the GPU; `exported_` after a Prometheus
federation has taken the plain name for the exporter's own pod."""

_GPU_LABELS = frozenset({"hostname", "Hostname", "gpu", "gpu_id", "GPU_I_ID"})
"""What names a GPU, or a slice of one (`GPU_I_ID`), across the machines of a page."""

_BLANK_FROM = 2147483632.0
"""DCGM's smallest "no value" number (0x7ffffff0, the int32 family; the int64 family
starts at 2^63 - 16). No utilisation and no memory in MiB comes near it."""


def utilisation(name: str, scale: float, where: Where = ()) -> Formula:
    """Formula: mean over the GPUs of the one engine the page describes.

    Args:
        name: Metric name, one series per GPU or GPU slice.
        scale: Factor to a fraction.
        where: (label, allowed values); a series counts when it lacks the label.

    Returns:
        A formula. It supplies nothing when the page lists GPUs of several pods, since
        their mean describes none of the engines.
    """

    def formula(series: Series, _: Window) -> Found | None:
        samples = [one for one in series.samples(name) if allowed(one[0], where)]
        owners = {owner(labels) for labels, _ in samples} - {""}
        if len(owners) > 1:
            pods = ", ".join(sorted(owners))
            return Found(None, {}, (f"{name} of several pods ({pods})",))
        own = [one for one in samples if not owners or owner(one[0]) in owners]
        return _mean(name, own, scale)

    return formula


def usable(value: float) -> bool:
    """Whether a number is one, not a "no value" in disguise."""
    return 0.0 <= value < _BLANK_FROM


def owner(labels: Labels) -> str:
    """The pod that holds a GPU; empty when the exporter does not say."""
    return next((labels[name] for name in _OWNER_LABELS if labels.get(name)), "")


def _mean(name: str, samples: list[tuple[Labels, float]], scale: float) -> Found | None:
    if not samples:
        return None
    values: dict[EngineKey, float] = {}
    skipped = []
    for labels, value in samples:
        scaled = value * scale
        if math.isfinite(scaled) and 0.0 <= scaled <= 1.0:
            values[_gpu(labels)] = scaled
        else:
            skipped.append(f"{name}{{gpu={labels.get('gpu', '')}}} = {value:g}")
    found = folded(values, "mean") or Found(None)
    return Found(found.value, found.parts, tuple(skipped))


def _gpu(labels: Labels) -> EngineKey:
    return tuple(sorted(pair for pair in labels.items() if pair[0] in _GPU_LABELS))
