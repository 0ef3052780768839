"""The figures of a run: a plot, what it shows in words, and its numbers."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeGuard

from admitperf.reports.charts import distributions, over_time
from admitperf.reports.charts.distributions import Range
from admitperf.reports.charts.over_time import Bound
from admitperf.reports.pages import stated
from admitperf.reports.quantile import Spread
from admitperf.reports.report import RunReport
from admitperf.reports.runs.finding import gate_text
from admitperf.reports.runs.gates import Gate
from admitperf.reports.runs.movement import Movement
from admitperf.reports.sheets.sheet import Cell, Column, Figure, Table
from admitperf.reports.wording import number, plural, printable, ratio, share

MOST_FIGURES = 12
"""Plain choice: signals with a plot of their own on one page."""
MOST_ROWS = 60
"""Plain choice: rows of a table of names; the rarer ones are counted together."""
MOST_RANGES = 12
"""Plain choice: ranges one below the other."""
FEWEST_BINS = 3
"""Plain choice: with fewer there is no course of time to see."""
_LONGEST_NAME = 60

Document = Mapping[str, Any]


# ------------------------------------------------------------------------- ranges


def gate_ranges(run: RunReport) -> Figure | None:
    """Each gate's values beside its bound; None when none was evaluated."""
    seen = [gate for gate in run.gates if gate.value_low is not None][:MOST_ROWS]
    if not seen:
        return None
    said = [_near(gate) for gate in seen[:MOST_RANGES]]
    return Figure(
        title="How near the values came to each bound",
        says=" ".join((*said, "The bar is the range, the diamond the nearest value.")),
        chart=distributions.ranges([_gate_range(gate) for gate in seen[:MOST_RANGES]]),
        table=Table(
            "Range of values and bound of each gate",
            (
                Column("gate"),
                *(Column(name, kind="number") for name in _GATE_NUMBERS),
            ),
            tuple(
                (
                    gate_text(gate),
                    gate.value_low,
                    gate.value_high,
                    gate.bound_low,
                    gate.bound_high,
                    gate.nearest,
                )
                for gate in seen
            ),
            _rest(len(seen) - MOST_RANGES, "gate"),
        ),
    )


_GATE_NUMBERS = ("min", "max", "lowest bound", "highest bound", "nearest value")


def _near(gate: Gate) -> str:
    low, high = number(gate.value_low), number(gate.value_high)
    said = f"{gate_text(gate)} saw {low} to {high}"
    if gate.crossed:
        return f"{said}: true on {share(gate.true, gate.evaluated)}."
    if gate.distance is None:
        return f"{said}, and its bound is not finite."
    return f"{said}, and {number(gate.distance)} was the least distance to its bound."


def _gate_range(gate: Gate) -> Range:
    low, high = gate.value_low or 0.0, gate.value_high or 0.0
    near = () if gate.nearest is None else ((gate.nearest, "diamond"),)
    ends = dict.fromkeys((gate.bound_low, gate.bound_high))
    bounds = tuple(
        Bound(at, f"{gate.op} {number(at)}") for at in ends if at is not None
    )
    return Range(_short(gate_text(gate)), low, high, near, bounds)


def signal_ranges(run: RunReport) -> Figure | None:
    """Ranges of the signals that moved; None when none did."""
    moved = [one for one in run.signals if one.spread.moved]
    if not moved:
        return None
    shown = moved[:MOST_RANGES]
    said = " ".join(f"{_ranged(one)}." for one in shown)
    how = "The bar is the range, the circle p50, the square p95."
    return Figure(
        title="Ranges of the signals that moved",
        says=f"{said} {how}",
        chart=distributions.ranges([_signal_range(run, one) for one in shown]),
        table=Table(
            "Spread of the signals that moved",
            (
                Column("signal"),
                Column("unit"),
                *(Column(name, kind="number") for name in ("min", "p50", "p95", "max")),
                Column("n", kind="number"),
            ),
            tuple(
                (printable(one.name), one.unit, *spread(one.spread)) for one in moved
            ),
            _rest(len(moved) - len(shown), "signal"),
        ),
    )


def _ranged(moved: Movement) -> str:
    low, high = number(moved.spread.low), number(moved.spread.high)
    said = f"{printable(moved.name)} ran from {low} to {high}"
    return f"{said}{_unit(moved.unit)}"


def spread(values: Spread) -> tuple[Cell, ...]:
    """Smallest, p50, p95, largest and n, as cells."""
    p95 = "n<20" if values.withheld else values.p95
    return values.low, values.p50, p95, values.high, values.n


def _signal_range(run: RunReport, moved: Movement) -> Range:
    values = moved.spread
    marked = [(values.p50, "circle"), (values.p95, "square")]
    return Range(
        _titled(moved.name, moved.unit),
        values.low or 0.0,
        values.high or 0.0,
        tuple((at, shape) for at, shape in marked if at is not None),
        tuple(_still(run, moved.name)),
    )


def _still(run: RunReport, signal: str) -> Iterator[Bound]:
    """The bounds of a signal's gates that did not move."""
    for gate in run.gates:
        at = gate.bound_low
        if gate.signal == signal and at is not None and at == gate.bound_high:
            yield Bound(at, f"{gate.op} {number(at)}")


# -------------------------------------------------------------------- over time


def signals_over_time(run: RunReport, series: Document | None) -> Iterator[Figure]:
    """A figure for each signal that a gate compares, then for those that moved."""
    if series is None or series["fine"] is None:
        return
    if len(series["fine"]["from_s"]) < FEWEST_BINS:
        return
    for one in series["signals"][:MOST_FIGURES]:
        if any(one["n"]):
            yield _signal_figure(run, series, one)


def _signal_figure(run: RunReport, series: Document, one: Document) -> Figure:
    grid, name = series["fine"], one["name"]
    bounds = list(_still(run, name))
    moving = [bound for bound in series["bounds"] if bound["signal"] == name]
    return Figure(
        title=f"{_short(printable(name))} over time",
        says=" ".join(_course(run, series, one, moving)),
        chart=over_time.signal(
            grid,
            (one["low"], one["mean"], one["high"]),
            _titled(name, one["unit"]),
            bounds,
            [(bound["low"], bound["high"]) for bound in moving],
        ),
        table=_signal_table(grid, one, moving),
    )


def _course(
    run: RunReport, series: Document, one: Document, moving: Sequence[Document]
) -> Iterator[str]:
    name = printable(one["name"])
    low = min(value for value in one["low"] if value is not None)
    high = max(value for value in one["high"] if value is not None)
    said = f"{name} ran from {number(low)} to {number(high)}{_unit(one['unit'])}"
    n = sum(one["n"])
    yield f"{said}, n {n} in {_bins(series['fine'])}."
    for gate in run.gates:
        if gate.signal == one["name"]:
            true = share(gate.true, gate.evaluated)
            yield f"{gate_text(gate)} was true on {true}."
    span = (low, high)
    still = list(_still(run, one["name"]))
    seen = over_time.in_reach(still, span)
    for bound in still:
        if bound not in seen:
            yield f"The bound {bound.label} lies too far off to be drawn."
    if moving:
        yield "The bound moved; its lowest and its highest in each bin are drawn."


def _bins(grid: Document) -> str:
    return f"{plural(len(grid['from_s']), 'bin')} of {number(grid['bin_s'])} s"


def _signal_table(grid: Document, one: Document, moving: Sequence[Document]) -> Table:
    bounds = [(bound["low"], bound["high"]) for bound in moving]
    pairs = [
        Column(f"{name} {printable(bound['op'])}", kind="number")
        for bound in moving
        for name in ("lowest bound", "highest bound")
    ]
    numbers = (Column(name, one["unit"], "number") for name in ("min", "mean", "max"))
    ends = [end for pair in bounds for end in pair]
    columns = (grid["from_s"], one["n"], one["low"], one["mean"], one["high"], *ends)
    return Table(
        f"{_short(printable(one['name']))} in {_bins(grid)}",
        (_FROM, Column("n", kind="number"), *numbers, *pairs),
        tuple(row for row in zip(*columns, strict=True) if row[1]),
        _EMPTY,
    )


_FROM = Column("from", "s", "number")
_EMPTY = "from: where the bin begins. Bins without a value are left out."


def answers_over_time(series: Document | None) -> Figure | None:
    """Decisions by verdict and reason; None when there is too little to show."""
    if not _long_enough(series):
        return None
    grid = series["coarse"]
    names = _distinct([_short(_answer(one)) for one in series["answers"]])
    counted = [
        (name, one["n"]) for name, one in zip(names, series["answers"], strict=True)
    ]
    totals = ", ".join(f"{name} {sum(n)}" for name, n in counted)
    columns = (grid["from_s"], *(n for _, n in counted), series["offered"])
    return Figure(
        title="Decisions over time",
        says=f"{plural(series['decisions'], 'decision')} in {_bins(grid)}: {totals}.",
        chart=over_time.answers(grid, counted),
        table=Table(
            f"Decisions by verdict and reason in {_bins(grid)}",
            (
                _FROM,
                *(Column(name, kind="number") for name, _ in counted),
                Column("offered", kind="number"),
            ),
            tuple(zip(*columns, strict=True)),
            "from: where the bin begins. The last bin may not be full.",
        ),
    )


def _answer(one: Document) -> str:
    said = " ".join(filter(None, (one["verdict"], printable(one["reason"]))))
    return f"{said} (blind)" if one["blind"] else said


def _distinct(names: Sequence[str]) -> list[str]:
    """The names, with a number where two are cut to the same."""
    made: list[str] = []
    for name in names:
        seen = names[: len(made)].count(name)
        made.append(f"{name} [{seen + 1}]" if seen else name)
    return made


def goodput_over_time(run: RunReport, series: Document | None) -> Figure | None:
    """Goodput of the attempts that arrived in each bin; None without outcomes."""
    if not _long_enough(series) or series["good"] is None:
        return None
    grid = series["coarse"]
    known = [value for value in series["goodput"] if value is not None]
    lowest, highest = f"{min(known):.3f}", f"{max(known):.3f}"
    good, offered = sum(series["good"]), series["decisions"]
    columns = (grid["from_s"], series["good"], series["offered"], series["goodput"])
    clock = " Calls, on the user's clock, are in the rows above."
    return Figure(
        title="Goodput over time",
        says=(
            f"By attempt {ratio(good, offered)} offered; in {_bins(grid)} by arrival"
            f" it lay between {lowest} and {highest}."
            + (clock if run.goodput != run.cost.goodput else "")
        ),
        chart=over_time.goodput(grid, series["goodput"]),
        table=Table(
            f"Goodput of attempts in {_bins(grid)}",
            (
                _FROM,
                Column("met the SLO", kind="number"),
                Column("offered", kind="number"),
                Column("goodput", kind="share"),
            ),
            tuple(zip(*columns, strict=True)),
            "from: where the bin of arrivals begins. The last bin may not be full.",
        ),
    )


def _long_enough(series: Document | None) -> TypeGuard[Document]:
    if series is None or series["coarse"] is None:
        return False
    return len(series["coarse"]["from_s"]) >= FEWEST_BINS


# -------------------------------------------------------------------- histograms


def histograms(run: RunReport, cost: Document) -> Iterator[Figure]:
    """TTFT and the longest stall of outcomes that ended well, with the SLO's bounds."""
    for key, name, bound in (
        ("ttft_histogram", "TTFT", "ttft_ms"),
        ("stall_histogram", "longest stall", "stall_ms"),
    ):
        found = cost.get(key)
        if found and found["counts"]:
            yield _histogram(found, name, _slo_bounds(run, bound))


def _histogram(found: Document, name: str, bounds: Sequence[Bound]) -> Figure:
    edges, counts = found["edges"], found["counts"]
    most = max(range(len(counts)), key=counts.__getitem__)
    tallest = f"{number(edges[most])} to {number(edges[most + 1])} ms"
    said = f"{plural(found['n'], 'ok outcome')}; most, {counts[most]}, in {tallest}."
    if found.get("below"):
        said += f" {found['below']} below {number(edges[0])} ms are not drawn."
    slo = ", ".join(one.label for one in bounds)
    return Figure(
        title=f"Distribution of {name}",
        says=f"{said} The SLO's bound: {slo}." if slo else said,
        chart=distributions.histogram(found, f"{name} (ms)", bounds),
        table=Table(
            f"{name} of ok outcomes",
            (_edge("from"), _edge("to"), Column("n", kind="number")),
            tuple(row for row in zip(edges, edges[1:], counts, strict=False) if row[2]),
            "Between them nothing fell where a row is missing.",
        ),
    )


def _edge(name: str) -> Column:
    return Column(name, "ms", "number")


def _slo_bounds(run: RunReport, name: str) -> tuple[Bound, ...]:
    found = {
        bounds[name]: _whose(one)
        for one, bounds in stated.slo(run).sets.items()
        if name in bounds
    }
    return tuple(
        Bound(at, f"{name} {number(at)}{whose}") for at, whose in found.items()
    )[:MOST_BOUNDS]


MOST_BOUNDS = 4
"""Plain choice: classes of an SLO whose bounds are drawn."""


def _whose(name: str | None) -> str:
    return "" if name is None else f" ({_short(printable(name or 'others'))})"


# -------------------------------------------------------------------------- parts


def _titled(name: str, unit: str) -> str:
    said = _short(printable(name))
    return f"{said} ({unit})" if unit else said


def _unit(unit: str) -> str:
    """A unit behind a number; a fraction needs none."""
    return "" if unit in ("", "fraction") else f" {printable(unit)}"


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 3]}..."


def _rest(more: int, noun: str) -> str:
    return f"{plural(more, f'more {noun}')} in the table only." if more > 0 else ""
