"""A report as plain text: ASCII, at most 80 columns, nothing a terminal obeys."""

from collections.abc import Iterator, Sequence

from admitperf.reports.pages.checks import Checked
from admitperf.reports.pages.checks_page import checks
from admitperf.reports.pages.cost_page import cost
from admitperf.reports.pages.headline import headline
from admitperf.reports.pages.items import NOT_CARRIED, items
from admitperf.reports.pages.layout import named, row, table, wrapped
from admitperf.reports.pages.repeats import repeated
from admitperf.reports.pages.runs_page import overview, repeats
from admitperf.reports.quantile import Spread
from admitperf.reports.ratio import Share
from admitperf.reports.report import Report, RunReport
from admitperf.reports.runs.answers import Answers, Row
from admitperf.reports.runs.finding import gate_text
from admitperf.reports.runs.gates import Gate
from admitperf.reports.runs.log import Files
from admitperf.reports.wording import (
    NOT_KNOWN,
    counted,
    number,
    percent,
    plural,
    printable,
    share,
    spread,
)

_BLIND_REASONS = ("signal_absent", "signal_stale", "policy_error")


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
    lines += _files(report.files)
    if checked is not None:
        lines += ["", *checks(checked)]
    return "\n".join(lines) + "\n"


def _run(run: RunReport, runs: Sequence[RunReport]) -> Iterator[str]:
    yield from headline(run)
    for title, section in (
        ("1 Could it have fired?", _fired(run)),
        ("2 Which signals moved", _moved(run)),
        ("3 What it did", _did(run)),
        ("4 What it cost", cost(run)),
        ("5 Faults of the instrument", _faults(run)),
        ("6 The seven reporting items", _items(run, runs)),
    ):
        yield ""
        yield title
        yield from section


# ------------------------------------------------------------------------ fired


def _fired(run: RunReport) -> Iterator[str]:
    yield from wrapped(f"{run.finding.word}: {run.finding.says[0]}")
    for sentence in run.finding.says[1:]:
        yield from wrapped(sentence, indent="    ")
    if not run.gates:
        yield from wrapped("No comparison was recorded, so there is no table of gates.")
        return
    yield ""
    yield table("gate", ("n", "true", "share", "min", "max", "nearest"))
    for gate in run.gates:
        yield from named(gate_text(gate), _gate_cells(gate))
    for sentence in (*_last_asked(run), *_together(run), *_completed(run)):
        yield from wrapped(sentence)
    yield from wrapped(
        "nearest: distance of the nearest value from the bound, -- when the gate was"
        " both true and false."
    )


def _gate_cells(gate: Gate) -> tuple[str, ...]:
    return (
        str(gate.evaluated),
        str(gate.true),
        percent(gate.true, gate.evaluated),
        number(gate.value_low),
        number(gate.value_high),
        NOT_KNOWN if gate.crossed else number(gate.distance),
    )


def _last_asked(run: RunReport) -> Iterator[str]:
    """A held request has one line, and no gate is true on one that was let in."""
    if run.answers.held.n:
        yield (
            f"Of {plural(run.answers.held.n, 'held request')} the gates and the"
            " signals are those of the last time the policy was asked, not of when it"
            " deferred them."
        )


def _together(run: RunReport) -> Iterator[str]:
    if run.together is not None:
        yield f"All were true at once on {_share(run.together)}."
    joint = run.joint
    if joint is not None and joint.distance > 0:
        at = ", ".join(f"{printable(k)} {number(v)}" for k, v in joint.values.items())
        yield (
            f"At the nearest joint approach ({at}) the gate farthest off was short by"
            f" {number(joint.distance)} of its bound."
        )


def _completed(run: RunReport) -> Iterator[str]:
    """What of the table was not asked by the policy, and what could not be."""
    for gate in run.gates:
        if gate.completed:
            skipped = share(gate.completed, gate.evaluated)
            yield (
                f"{gate_text(gate)}: and/or passed over it on {skipped}; there it is"
                " completed from the line's own signals."
            )
        if gate.unknown:
            yield f"{gate_text(gate)}: on {gate.unknown} its signal was not supplied."


# ------------------------------------------------------------------------ moved


def _moved(run: RunReport) -> Iterator[str]:
    yield table("signal", ("unit", "min", "p50", "p95", "max", "n"))
    for movement in run.signals:
        unit = printable(movement.unit) or NOT_KNOWN
        cells = (unit, *_spread(movement.spread), str(movement.spread.n))
        yield from named(printable(movement.name), cells)
    what = "sample" if run.basis == "samples" else "decision"
    yield from wrapped(
        "-- never supplied. Percentiles by nearest rank; n<20 where p95 would be the"
        f" maximum. n of {plural(run.answers.offered, what)}."
    )
    if run.facts:
        offered = run.answers.offered
        carried = (
            f"{printable(k)} {percent(n, offered)}" for k, n in run.facts.items()
        )
        yield from wrapped(f"Facts carried, of {offered}: {', '.join(carried)}.")
    elif run.basis != "samples":
        yield from wrapped("No request carried any fact.")


def _spread(values: Spread) -> tuple[str, ...]:
    p95 = "n<20" if values.withheld else number(values.p95)
    return number(values.low), number(values.p50), p95, number(values.high)


# -------------------------------------------------------------------------- did


def _did(run: RunReport) -> Iterator[str]:
    answers = run.answers
    if not answers.offered:
        yield from wrapped("Nothing: there is no decision in the log.")
        return
    yield table(
        "verdict and reason", ("n", "share", "turned", "status", "p50 ms", "max")
    )
    for one in answers.rows:
        yield from named(_answer(one), _answer_cells(one, answers.offered))
    asked = "samples" if run.basis == "samples" else "offered"
    yield from wrapped(
        f"{asked} {answers.offered} = admit {answers.admitted} + defer"
        f" {answers.deferred} + reject {answers.rejected}. turned: callers really"
        f" turned away, {answers.turned_away} in all; p50 ms and max: the waits they"
        " were told."
    )
    if answers.held.n:
        yield from wrapped(_held(answers))
    if answers.enforced < answers.offered:
        yield from wrapped(f"Governed: {share(answers.enforced, answers.offered)}.")
    if run.wait_kinds:
        yield from wrapped(f"Waits by origin: {counted(run.wait_kinds)}.")


def _held(answers: Answers) -> str:
    held = answers.held
    return (
        f"Deferred at first and held: {share(held.n, answers.offered)} = let in"
        f" {held.let_in} + turned away {held.refused} + left while held {held.left};"
        f" {spread(held.held_ms, 'ms')}."
    )


def _answer(one: Row) -> str:
    blind = "(blind)" if one.blind and one.reason not in _BLIND_REASONS else ""
    return " ".join(filter(None, (one.verdict, printable(one.reason), blind)))


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


# ----------------------------------------------------------------------- faults


def _faults(run: RunReport) -> Iterator[str]:
    faults = run.faults
    lost = {f"{kind} lines": n for kind, n in faults.lost.items()}
    yield from row("lost records", counted(lost) or "none")
    if lost:
        decisions = _share(faults.lost_decisions)
        yield from row("", f"{decisions} decisions, in no number above")
        yield from row("", f"why: {counted(faults.lost_why)}")
    when = f", {faults.blind_when.text}" if faults.blind_when.text else ""
    yield from row("blind", f"{_share(faults.blind)} decisions{when}")
    yield from row("policy errors", str(faults.policy_errors))
    yield from row("events", counted(faults.events, most=12) or "none")
    for name, value in _odd(run):
        yield from row(name, value)
    yield from row("reading age", _timing(faults.age_ms, "ms"))
    took = _timing(faults.decide_us, "us")
    if faults.decide_us.high == 0:
        took = "not measured: the clock stood still while it decided"
    yield from row("decide took", took)


def _odd(run: RunReport) -> Iterator[tuple[str, str]]:
    faults = run.faults
    if faults.repeated:
        yield "repeated", f"{counted(faults.repeated)}; each counted once"
    if faults.dangling:
        decisions = plural(faults.dangling, "decision")
        yield "no reading", f"{decisions} made on one that is not in the log"
    if faults.without_decision:
        outcomes = plural(faults.without_decision, "outcome")
        yield "no decision", f"{outcomes}, left out above"
    if faults.newer_schema is not None:
        yield "schema", f"{faults.newer_schema} is newer than this reader"
    if faults.signals_left_out:
        values = plural(faults.signals_left_out, "value")
        yield "signals", f"{values} of further names left out"


def _timing(values: Spread, unit: str) -> str:
    return spread(values, unit) if values.n else "not in the log"


# ------------------------------------------------------------------------ items


def _items(run: RunReport, runs: Sequence[RunReport]) -> Iterator[str]:
    asked = items(run, runs)
    for item in asked:
        yield from row(item.answer, f"{item.name}: {item.says}")
    if any(item.answer == NOT_CARRIED for item in asked):
        yield from wrapped("not carried: this log does not carry the fact.")


# ------------------------------------------------------------------------ files


def _files(files: Files) -> Iterator[str]:
    yield "Files"
    for path in files.paths:
        yield from row("read", printable(path))
    for why in files.unread:
        yield from row("not read", printable(why))
    unusable = sum(files.unusable.values())
    yield from row("lines", f"{files.lines} read, {unusable} could not be used")
    for why, n in files.unusable.items():
        yield from row("", f"{n} {printable(why)}")
    for first in files.first:
        yield from row("at", printable(first))
    for notice in files.notices:
        yield from row("notice", printable(notice))


def _share(part: Share) -> str:
    return share(part.n, part.of)
