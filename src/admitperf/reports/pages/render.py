"""A report as plain text: ASCII, at most 80 columns, nothing a terminal obeys."""

from collections.abc import Iterator, Sequence

from admitperf.reports.pages import run_words, stated
from admitperf.reports.pages.checks import Checked
from admitperf.reports.pages.checks_page import checks
from admitperf.reports.pages.cost_page import cost
from admitperf.reports.pages.headline import headline
from admitperf.reports.pages.items import NOT_CARRIED, items
from admitperf.reports.pages.layout import laid_out, named, row, table, wrapped
from admitperf.reports.pages.repeats import repeated
from admitperf.reports.pages.runs_page import overview, repeats
from admitperf.reports.pages.sketch import bars
from admitperf.reports.quantile import Spread
from admitperf.reports.report import Report, RunReport
from admitperf.reports.runs.answers import Row
from admitperf.reports.runs.finding import gate_text
from admitperf.reports.runs.gates import Gate
from admitperf.reports.wording import NOT_KNOWN, number, percent, plural, printable


def text(report: Report, checked: Checked | None = None) -> str:
    """The whole report, with a line end.

    Args:
        report: what is shown.
        checked: the answers to `--check`; None = they were not asked for.
    """
    lines = list(overview(report.runs)) if report.runs[1:] else []
    lines += [line for run in report.runs for line in (*_run(run, report.runs), "")]
    for experiment, arm in repeated(report.runs):
        lines += [*repeats(experiment, arm), ""]
    lines += ["Files", *laid_out(run_words.files(report.files))]
    if checked is not None:
        lines += ["", *checks(checked)]
    return "\n".join(lines) + "\n"


def _run(run: RunReport, runs: Sequence[RunReport]) -> Iterator[str]:
    yield from headline(run)
    sections = (
        _fired(run),
        _moved(run),
        _did(run),
        (*laid_out(cost(run)), *_distributions(run)),
        laid_out(run_words.faults(run)),
        _items(run, runs),
    )
    for title, section in zip(run_words.SECTIONS, sections, strict=True):
        yield ""
        yield title
        yield from section


# ------------------------------------------------------------------------ fired


def _fired(run: RunReport) -> Iterator[str]:
    for place, sentence in enumerate(run_words.found(run)):
        yield from wrapped(sentence, indent="    " if place else "  ")
    if not run.gates:
        yield from wrapped(run_words.NO_GATES)
        return
    yield ""
    yield table("gate", ("n", "true", "share", "min", "max", "nearest"))
    for gate in run.gates:
        yield from named(gate_text(gate), _gate_cells(gate))
    yield from laid_out(run_words.gates(run))


def _gate_cells(gate: Gate) -> tuple[str, ...]:
    return (
        str(gate.evaluated),
        str(gate.true),
        percent(gate.true, gate.evaluated),
        number(gate.value_low),
        number(gate.value_high),
        NOT_KNOWN if gate.crossed else number(gate.distance),
    )


# ------------------------------------------------------------------------ moved


def _moved(run: RunReport) -> Iterator[str]:
    yield table("signal", ("unit", "min", "p50", "p95", "max", "n"))
    for movement in run.signals:
        unit = printable(movement.unit) or NOT_KNOWN
        cells = (unit, *_spread(movement.spread), str(movement.spread.n))
        yield from named(printable(movement.name), cells)
    yield from laid_out(run_words.signals(run))


def _spread(values: Spread) -> tuple[str, ...]:
    p95 = "n<20" if values.withheld else number(values.p95)
    return number(values.low), number(values.p50), p95, number(values.high)


# -------------------------------------------------------------------------- did


def _did(run: RunReport) -> Iterator[str]:
    answers = run.answers
    if not answers.offered:
        yield from wrapped(run_words.NO_DECISION)
        return
    yield table(
        "verdict and reason", ("n", "share", "turned", "status", "p50 ms", "max")
    )
    for one in answers.rows:
        yield from named(run_words.answer(one), _answer_cells(one, answers.offered))
    yield from laid_out(run_words.answers(run))


def _answer_cells(one: Row, offered: int) -> tuple[str, ...]:
    waits = one.retry_after_ms
    return (
        str(one.n),
        percent(one.n, offered),
        str(one.turned_away),
        "/".join(map(str, one.statuses)) or NOT_KNOWN,
        number(waits.p50),
        number(waits.high),
    )


# ------------------------------------------------------------------------ items


def _items(run: RunReport, runs: Sequence[RunReport]) -> Iterator[str]:
    asked = items(run, runs)
    for item in asked:
        yield from row(item.answer, f"{item.name}: {item.says}")
    if any(item.answer == NOT_CARRIED for item in asked):
        yield from wrapped(run_words.NOT_CARRIED)


# ------------------------------------------------------------------------- cost


def _distributions(run: RunReport) -> Iterator[str]:
    """TTFT and stalls as bars, the SLO's bounds marked."""
    sets = stated.slo(run).sets.items()
    for found, what, bound in (
        (run.cost.ttft_histogram, "TTFT", "ttft_ms"),
        (run.cost.stall_histogram, "Longest stall", "stall_ms"),
    ):
        if found is None:
            continue
        marks = [
            (bounds[bound], f"{printable(name or 'SLO')} {number(bounds[bound])}")
            for name, bounds in sets
            if bound in bounds
        ]
        yield from bars(found, f"{what} in ms, {plural(found.n, 'ok outcome')}", marks)
