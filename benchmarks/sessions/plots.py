"""The figures of the page: SVG, the same bytes for the same records."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.sessions.arms import METRICS
from benchmarks.sessions.cells import CLIENTS, LOAD, LOADS, Cell
from benchmarks.sessions.evidence import (
    ENGINES,
    MODES,
    SIZES,
    Evidence,
    part,
)
from benchmarks.sessions.judged import ranked

from admitperf.bench.pages.plot import _ALIKE, _COLOURS, _SETTINGS, _matplotlib


class Look(NamedTuple):
    """How an arm is drawn, in every figure alike."""

    colour: str
    line: str
    mark: str


_BLUE, _RED, _GREEN, _PINK, _ORANGE, _SKY = _COLOURS

LOOKS = {
    "none": Look("#777777", ":", "x"),
    "gate_cell": Look("#000000", "--", "s"),
    "gate_one": Look(_ORANGE, "-", "s"),
    "gate_elephant": Look(_PINK, "-", "D"),
    "cap_elephant": Look(_SKY, "-", "v"),
    "thunder": Look(_GREEN, "-", "^"),
    "protect": Look(_BLUE, "-", "o"),
    "shed": Look(_RED, "-", "o"),
}
"""The arms that are drawn; the tables have all."""

SIMULATED = "SIMULATED"


def figures(evidence: Evidence) -> Iterator[tuple[str, Any]]:
    """Each figure, with its name."""
    yield "regret", _regret(evidence)
    for metric in METRICS:
        yield metric, _loads(evidence, metric)
    yield "shift", _shift(evidence)
    yield "length", _length(evidence)


def draw(evidence: Evidence, folder: Path) -> list[str]:
    """Writes every figure as `sessions-NAME.svg`; their names."""
    made = []
    settings, _ = _matplotlib()
    with settings(_SETTINGS):
        for name, figure in figures(evidence):
            path = folder / f"sessions-{name}.svg"
            figure.savefig(path, metadata=_ALIKE[".svg"], format="svg")
            made.append(name)
    return made


def _figure(width: float, height: float) -> Any:  # noqa: ANN401  matplotlib's own
    _, make = _matplotlib()
    return make(figsize=(width, height), layout="constrained")


def _legend(figure: Any, axes: Any) -> None:  # noqa: ANN401  matplotlib's own
    marks, names = axes.get_legend_handles_labels()
    once = dict(zip(names, marks, strict=True))
    figure.legend(
        once.values(),
        once.keys(),
        loc="outside lower center",
        ncols=len(LOOKS) // 2,
        frameon=False,
    )


def _regret(evidence: Evidence) -> Any:  # noqa: ANN401  matplotlib's own
    figure = _figure(9.0, 4.2)
    for axes, metric in zip(figure.subplots(1, 2), METRICS, strict=True):
        _dots(axes, evidence, metric)
    _legend(figure, figure.axes[0])
    return figure


def _dots(axes: Any, evidence: Evidence, metric: str) -> None:  # noqa: ANN401
    other = {"count": ":work", "work": ":count"}[metric]
    found = [
        one
        for one in reversed(ranked(evidence, metric, evidence.grid()))
        if not one.arm.endswith(other)
    ]
    places = range(len(found))
    worst, mean = [one.worst for one in found], [one.mean for one in found]
    axes.hlines(places, mean, worst, color="#bbbbbb", linewidth=1.5, zorder=0)
    axes.plot(mean, places, "o", mfc="white", color=_BLUE, label="mean")
    axes.plot(worst, places, "o", color=_RED, label="worst cell")
    axes.set_yticks(places, [one.arm.partition(":")[0] for one in found])
    axes.set_xlim(left=0)
    axes.set_xlabel(f"regret on {metric}")
    axes.set_title(f"{metric} ({SIMULATED})", loc="left", fontsize=11)


def _loads(evidence: Evidence, metric: str) -> Any:  # noqa: ANN401
    figure = _figure(9.0, 6.0)
    every = figure.subplots(len(CLIENTS), len(ENGINES), sharex=True, sharey=True)
    for client, row in zip(CLIENTS, every, strict=True):
        for engine, axes in zip(ENGINES, row, strict=True):
            cells = [Cell("final", engine, client, load) for load in LOADS]
            _lines(axes, evidence, metric, cells, LOADS)
            axes.set_title(f"{engine}, {client}", loc="left", fontsize=10)
            axes.set_xticks(LOADS, [f"{load:g}x" for load in LOADS])
    _ends(figure, f"good tasks of those offered, by {metric} ({SIMULATED})")
    return figure


def _ends(figure: Any, label: str) -> None:  # noqa: ANN401  matplotlib's own
    figure.supylabel(label, fontsize=10)
    for axes in figure.axes:
        axes.set_ylim(0, 1.03)
    _legend(figure, figure.axes[0])


def _lines(
    axes: Any,  # noqa: ANN401  matplotlib's own
    evidence: Evidence,
    metric: str,
    cells: Sequence[Cell],
    places: Sequence[float],
) -> None:
    for arm, look in LOOKS.items():
        name = evidence.named(arm, metric)
        means = (evidence.mean(name, cell, metric) for cell in cells)
        points = zip(places, means, strict=True)
        known = {place: one for place, one in points if one is not None}
        axes.plot(
            list(known),
            list(known.values()),
            label=arm,
            color=look.colour,
            linestyle=look.line,
            marker=look.mark,
            markersize=4,
            linewidth=2.0 if arm in MODES else 1.2,
        )


def _shift(evidence: Evidence) -> Any:  # noqa: ANN401  matplotlib's own
    """Sizes along a line; WEKA's sessions beside it."""
    mixes = (SIZES[0], "final", *SIZES[1:], "weka")
    names = (SIZES[0], "x1", *SIZES[1:], "WEKA")
    ran = {cell.client for cell in evidence.shift()}
    clients = [one for one in CLIENTS if one in ran] or CLIENTS[:1]
    figure = _figure(9.0, 1.2 + 2.6 * len(clients))
    every = figure.subplots(
        len(clients), len(METRICS), sharex=True, sharey=True, squeeze=False
    )
    for client, row in zip(clients, every, strict=True):
        for metric, axes in zip(METRICS, row, strict=True):
            cells = [Cell(mix, "kv", client, LOAD) for mix in mixes]
            last = len(cells) - 1
            _lines(axes, evidence, metric, cells[:last], range(last))
            _lines(axes, evidence, metric, cells[last:], [last])
            axes.axvline(last - 0.5, color="#bbbbbb", linewidth=1)
            axes.set_title(f"{metric}, {client}", loc="left", fontsize=10)
            axes.set_xticks(range(len(cells)), names)
    _ends(figure, f"goodput at {LOAD:g}x on kv ({SIMULATED})")
    return figure


def _length(evidence: Evidence) -> Any:  # noqa: ANN401  matplotlib's own
    figure = _figure(9.0, 4.0)
    every = figure.subplots(1, len(ENGINES), sharey=True)
    for engine, axes in zip(ENGINES, every, strict=True):
        for key, (fill, label) in LENGTHS.items():
            places, shares = _shares(evidence, key, evidence.chosen(_in(engine)))
            look = {"color": _BLUE, "mfc": fill, "label": label}
            axes.plot(shares, places, "o", **look)
        axes.set_yticks(range(len(LOOKS)), list(LOOKS))
        axes.set_xlim(0, 1.03)
        axes.set_title(f"{engine} ({SIMULATED})", loc="left", fontsize=10)
    every[1].set_xlabel(f"good tasks of those offered, at {LOAD:g}x")
    _legend(figure, figure.axes[0])
    return figure


LENGTHS = {
    "short": ("white", "at most 15 calls"),
    "long": (_BLUE, "more than 15 calls"),
}


def _shares(
    evidence: Evidence, key: str, cells: Sequence[Cell]
) -> tuple[list[int], list[float]]:
    """The arms' places and their goodput; without those that have none."""
    names = [evidence.named(arm, "count") for arm in LOOKS]
    every = [part(evidence.of_arm(name, cells), key) for name in names]
    known = {place: one for place, one in enumerate(every) if one is not None}
    return list(known), list(known.values())


def _in(engine: str) -> Callable[[Cell], bool]:
    """Whether a cell is of an engine, where the controls stand."""
    return lambda cell: (
        cell.mix == "final"
        and cell.engine == engine
        and cell.client in CLIENTS
        and cell.load == LOAD
    )
