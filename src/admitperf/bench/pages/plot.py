"""The metric against load, one line an arm, with 95 % intervals: SVG or PNG.

The same verdicts give the same bytes in SVG: no date, no random ids, text as text.
"""

from importlib import import_module
from pathlib import Path
from typing import Any

from admitperf.bench.design.comparison import Curve, Verdicts
from admitperf.core.errors import AdmitPerfError, MissingExtra

SUFFIXES = (".svg", ".png")

_SIZE_IN = (7.2, 4.2)
_DPI = 144
_COLUMNS = 3  # of the legend: names of arms and their verdicts fit the width
_SPREAD = 0.008  # arms beside each other, in multiples of capacity: bars stay apart
# Okabe and Ito 2008: told apart by every kind of colour vision.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_BASELINE = "#555555"
_MARKS = "osD^vP"
_SETTINGS = {
    "svg.hashsalt": "admitperf",
    "svg.fonttype": "none",
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
_ALIKE = {".svg": {"Date": None, "Creator": "admitperf"}, ".png": {"Software": None}}


class PlotError(AdmitPerfError, ValueError):
    """A plot cannot be written where it was asked for."""


def plot(made: Verdicts, path: Path) -> None:
    """Writes the plot.

    Args:
        made: what is shown.
        path: ends in .svg or .png.

    Raises:
        PlotError: another ending, or it cannot be written.
        MissingExtra: matplotlib is not installed.
    """
    kind = path.suffix.lower()
    if kind not in SUFFIXES:
        raise PlotError(f"{path}: a plot ends in {' or '.join(SUFFIXES)}")
    rc_context, make = _matplotlib()
    with rc_context(_SETTINGS):
        figure = make(figsize=_SIZE_IN, layout="constrained")
        _drawn(figure.subplots(), made)
        figure.legend(loc="outside lower center", ncols=_COLUMNS, frameon=False)
        try:
            figure.savefig(path, dpi=_DPI, metadata=_ALIKE[kind], format=kind[1:])
        except OSError as error:
            why = (error.strerror or type(error).__name__).lower()
            raise PlotError(f"{path}: {why}") from None


def _matplotlib() -> tuple[Any, Any]:
    """How settings are set, and what makes a figure: no window, nothing global."""
    try:
        matplotlib = import_module("matplotlib")
        figure = import_module("matplotlib.figure")
    except ImportError:
        said = "a plot needs matplotlib, of the extra admitperf[bench]"
        raise MissingExtra(f"{said}: pip install matplotlib") from None
    return matplotlib.rc_context, figure.Figure


def _drawn(axes: Any, made: Verdicts) -> None:  # noqa: ANN401  matplotlib's own
    axes.axvline(1.0, color="#bbbbbb", linewidth=1, linestyle=":", zorder=0)
    middle = (len(made.curves) - 1) / 2
    for place, curve in enumerate(made.curves):
        _line(axes, curve, place, made, _SPREAD * (place - middle))
    axes.set_xlabel("load, as a multiple of capacity without a policy")
    axes.set_ylabel(made.metric.replace("_", " "))
    loads = sorted({point.load for curve in made.curves for point in curve.points})
    axes.set_xticks(loads, [f"{load:g}x" for load in loads])
    axes.set_ylim(bottom=0)
    stamp = " (SIMULATED)" if made.simulated else ""
    stamp += " (EXPLORATORY)" if made.exploratory else ""
    axes.set_title(f"{made.experiment}{stamp}", loc="left", fontsize=11)


def _line(
    axes: Any,  # noqa: ANN401  matplotlib's own
    curve: Curve,
    place: int,
    made: Verdicts,
    beside: float,
) -> None:
    base = curve.arm == made.design.baseline
    reach = [
        (
            point.mean - (point.interval.low if point.interval else point.mean),
            (point.interval.high if point.interval else point.mean) - point.mean,
        )
        for point in curve.points
    ]
    axes.errorbar(
        [point.load + beside for point in curve.points],
        [point.mean for point in curve.points],
        yerr=list(zip(*reach, strict=True)) if reach else None,
        label=_label(curve.arm, made),
        color=_BASELINE if base else _COLOURS[place % len(_COLOURS)],
        linestyle="--" if base else "-",
        marker=_MARKS[place % len(_MARKS)],
        markersize=4,
        linewidth=1.5,
        capsize=3,
    )


def _label(arm: str, made: Verdicts) -> str:
    verdicts = {one.arm: one.verdict for one in made.arms}
    return f"{arm}: {verdicts[arm]}" if arm in verdicts else f"{arm} (baseline)"
