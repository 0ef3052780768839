"""A report as plain text: ASCII, at most 80 columns, nothing a terminal obeys."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence

from admitperf.reports.answers import Row
from admitperf.reports.cost import Cost, Share
from admitperf.reports.finding import gate_text
from admitperf.reports.gates import Gate
from admitperf.reports.log import Files
from admitperf.reports.quantile import Spread
from admitperf.reports.report import Report, RunReport
from admitperf.reports.slo import FROM_OPTION
from admitperf.reports.wording import (
    NOT_KNOWN,
    counted,
    number,
    percent,
    plural,
    printable,
    share,
)

WIDTH = 80
_CELL = 9
_BLIND_REASONS = ("signal_absent", "signal_stale", "policy_error")


def text(report: Report) -> str:
    """The whole report, with a line end."""
    parts = [line for run in report.runs for line in (*_run(run), "")]
    return "\n".join([*parts, *_files(report.files)]) + "\n"


def _run(run: RunReport) -> Iterator[str]:
    yield from _head(run)
    for title, section in (
        ("1 Could it have fired?", _fired),
        ("2 Which signals moved", _moved),
        ("3 What it did", _did),
        ("4 What it cost", _cost),
        ("5 Faults of the instrument", _faults),
    ):
        yield ""
        yield title
        yield from section(run)


# ------------------------------------------------------------------------- head


def _head(run: RunReport) -> Iterator[str]:
    header = run.header
    policy = printable(str(header.get("policy") or "unknown policy (no run header)"))
    title = f"Run of {policy}"
    yield from _wrapped(title, indent="")
    yield from _wrapped("=" * min(len(title), WIDTH), indent="")
    for name, value in _head_rows(run):
        yield from _row(name, value)


def _head_rows(run: RunReport) -> Iterator[tuple[str, str]]:
    header = run.header
    for name in ("experiment", "name", "notes"):
        if header.get(name):
            yield name, printable(str(header[name]))
    yield "parameters", _parameters(header) or "none"
    yield "written by", _written_by(run)
    yield "decisions", run.when.text
    yield "offered", _offered(run)


def _written_by(run: RunReport) -> str:
    version = run.header.get("version")
    program = printable(f"admitperf {version}, ") if version else ""
    processes = plural(len(run.ids), "process", "processes")
    ids = ", ".join(map(printable, run.ids[:4])) + (", ..." if run.ids[4:] else "")
    return f"{program}{processes}, run id {ids}"


def _parameters(header: Mapping[str, object]) -> str:
    params, origin = header.get("params"), header.get("provenance")
    params = params if isinstance(params, dict) else {}
    origin = origin if isinstance(origin, dict) else {}
    return ", ".join(
        printable(f"{name}={value}")
        + (printable(f" ({_origin(origin[name])})") if name in origin else "")
        for name, value in params.items()
    )


def _origin(word: object) -> str:
    """Where a parameter's value comes from, for who never saw the log's words."""
    return "given, origin not stated" if word == "unstated" else str(word)


def _offered(run: RunReport) -> str:
    said = plural(run.answers.offered, "attempt")
    if run.cost.requests is not None:
        calls = run.cost.requests.offered
        said += f" of {plural(calls, 'logical request')}"
        if run.cost.requests.without_id:
            said += f" ({run.cost.requests.without_id} without a logical id)"
    if run.span_s:
        said += f" in {number(run.span_s)} s ({_rate(run)}/s)"
    if run.cost.requests is None and run.answers.offered:
        said += "; no logical ids, so retries cannot be told from requests"
    return said


def _rate(run: RunReport) -> str:
    """Attempts per second: the first one opens the span and is not in it."""
    gaps = run.answers.offered - 1
    return number(gaps / run.span_s) if run.span_s else NOT_KNOWN


# ------------------------------------------------------------------------ fired


def _fired(run: RunReport) -> Iterator[str]:
    yield from _wrapped(f"{run.finding.word}: {run.finding.says[0]}")
    for sentence in run.finding.says[1:]:
        yield from _wrapped(sentence, indent="    ")
    if not run.gates:
        yield from _wrapped(
            "No comparison was recorded, so there is no table of gates."
        )
        return
    yield ""
    yield _table("gate", ("asked", "held", "skipped", "would", "unknown", "nearest"))
    for gate in run.gates:
        yield from _named(gate_text(gate), _gate_cells(gate))
    if run.together is not None:
        yield from _wrapped(f"All held at once on {_share(run.together)}.")
    yield from _wrapped(
        "asked: compared by the policy, and held; skipped: passed over by and/or, and"
        " would have held, from the line's own signals; unknown: the signal was not"
        " supplied; nearest: distance of the nearest value from the bound, -- when the"
        " gate was both true and false."
    )


def _gate_cells(gate: Gate) -> tuple[str, ...]:
    return (
        str(gate.asked),
        str(gate.held),
        number(gate.completed),
        number(gate.completed_held),
        str(gate.unknown),
        NOT_KNOWN if gate.crossed else number(gate.distance),
    )


# ------------------------------------------------------------------------ moved


def _moved(run: RunReport) -> Iterator[str]:
    yield _table("signal", ("unit", "min", "p50", "p95", "max", "n"))
    for movement in run.signals:
        unit = printable(movement.unit) or NOT_KNOWN
        cells = (unit, *_spread(movement.spread), str(movement.spread.n))
        yield from _named(printable(movement.name), cells)
    yield from _wrapped(
        "-- never supplied. Percentiles by nearest rank; n<20 where p95 would be the"
        f" maximum. n of {plural(run.answers.offered, 'decision')}."
    )
    if run.facts:
        offered = run.answers.offered
        carried = (
            f"{printable(k)} {percent(n, offered)}" for k, n in run.facts.items()
        )
        yield from _wrapped(f"Facts carried, of {offered}: {', '.join(carried)}.")
    else:
        yield from _wrapped("No request carried any fact.")


def _spread(spread: Spread) -> tuple[str, ...]:
    p95 = "n<20" if spread.withheld else number(spread.p95)
    return number(spread.low), number(spread.p50), p95, number(spread.high)


# -------------------------------------------------------------------------- did


def _did(run: RunReport) -> Iterator[str]:
    answers = run.answers
    if not answers.offered:
        yield from _wrapped("Nothing: there is no decision in the log.")
        return
    yield _table(
        "verdict and reason", ("n", "share", "turned", "status", "p50 ms", "max")
    )
    for row in answers.rows:
        yield from _named(_answer(row), _answer_cells(row, answers.offered))
    yield from _wrapped(
        f"offered {answers.offered} = admit {answers.admitted} + defer"
        f" {answers.deferred} + reject {answers.rejected}. turned: callers really"
        f" turned away, {answers.turned_away} in all; p50 ms and max: the waits they"
        " were told."
    )
    if answers.enforced < answers.offered:
        yield from _wrapped(f"Governed: {share(answers.enforced, answers.offered)}.")
    if run.wait_kinds:
        yield from _wrapped(f"Waits by origin: {counted(run.wait_kinds)}.")


def _answer(row: Row) -> str:
    blind = "(blind)" if row.blind and row.reason not in _BLIND_REASONS else ""
    return " ".join(filter(None, (row.verdict, printable(row.reason), blind)))


def _answer_cells(row: Row, offered: int) -> tuple[str, ...]:
    waits = row.retry_after_ms
    return (
        str(row.n),
        percent(row.n, offered),
        str(row.turned_away),
        "/".join(map(str, row.statuses)) or NOT_KNOWN,
        number(waits.p50),
        number(waits.high),
    )


# ------------------------------------------------------------------------- cost


def _cost(run: RunReport) -> Iterator[str]:
    paid = run.cost
    yield from _row("let in", _share(paid.let_in) + " attempts offered")
    if paid.requests is not None:
        let_in = _share(paid.requests.let_in)
        yield from _row("", f"{let_in} logical requests offered")
    if paid.refused_but_served:
        served = paid.refused_but_served
        yield from _row("", f"{served} of them were refused and served all the same")
    if paid.goodput is None:
        yield from _wrapped(
            "No outcome was reported, so TTFT and goodput cannot be answered."
        )
        return
    yield from _row("outcomes", f"{_share(paid.reported)} let in")
    yield from _row("ended well", f"{_share(paid.ok)} with an outcome")
    if paid.errors:
        yield from _row("", f"the others: {counted(paid.errors)}")
    yield from _row("TTFT served", _ttft(paid.ttft_ms))
    yield from _goodput(paid)


def _ttft(spread: Spread) -> str:
    if not spread.n:
        return "no ok outcome carries ttft_ms: it cannot be answered"
    p95 = spread.withheld or f"{number(spread.p95)} ms"
    return (
        f"p50 {number(spread.p50)} ms, p95 {p95}, max {number(spread.high)} ms,"
        f" n {spread.n} ok"
    )


def _goodput(paid: Cost) -> Iterator[str]:
    yield from _row("SLO", _slo(paid))
    at_least = "at least " if paid.at_least else ""
    if paid.goodput is not None:
        yield from _row("goodput", f"{at_least}{_ratio(paid.goodput)} attempts offered")
    if paid.requests is not None and paid.requests.goodput is not None:
        calls = _ratio(paid.requests.goodput)
        yield from _row("", f"{at_least}{calls} logical requests offered")
    if paid.attained is not None:
        yield from _row("", f"({_ratio(paid.attained)} with an outcome)")
    for sentence in _caveats(paid):
        yield from _wrapped(sentence)


def _slo(paid: Cost) -> str:
    if not paid.slo_origin:
        return "none declared: ok alone counts, no deadline is judged"
    said = printable(paid.slo)
    if paid.slo_origin == FROM_OPTION:
        return f"{said}, from {FROM_OPTION}, in place of the run header's"
    return f"{said}, from the {paid.slo_origin}"


def _caveats(paid: Cost) -> Iterator[str]:
    if paid.missed:
        yield f"Missed, by the first bound: {counted(paid.missed)}."
    if paid.unjudged:
        yield f"Counted as not met, for want of a number: {counted(paid.unjudged)}."
    missing = paid.reported.of - paid.reported.n
    if missing:
        yield f"{missing} let in have no outcome and count as not met."
    if paid.slo_origin and paid.ok_alone:
        yield f"{paid.ok_alone} ok of a class without bounds are judged by ok alone."
    if paid.by_e2e:
        yield f"{paid.by_e2e} ok were not streamed: e2e_ms is judged against ttft_ms."


# ----------------------------------------------------------------------- faults


def _faults(run: RunReport) -> Iterator[str]:
    faults = run.faults
    lost = {f"{kind} lines": n for kind, n in faults.lost.items()}
    yield from _row("lost records", counted(lost) or "none")
    if lost:
        decisions = _share(faults.lost_decisions)
        yield from _row("", f"{decisions} decisions, in no number above")
        yield from _row("", f"why: {counted(faults.lost_why)}")
    when = f", {faults.blind_when.text}" if faults.blind_when.text else ""
    yield from _row("blind", f"{_share(faults.blind)} decisions{when}")
    yield from _row("policy errors", str(faults.policy_errors))
    yield from _row("events", counted(faults.events, most=12) or "none")
    for name, value in _odd(run):
        yield from _row(name, value)
    yield from _row("reading age", _timing(faults.age_ms, "ms"))
    yield from _row("decide took", _timing(faults.decide_us, "us"))


def _odd(run: RunReport) -> Iterator[tuple[str, str]]:
    faults = run.faults
    if faults.repeated:
        yield "repeated", f"{counted(faults.repeated)}; each counted once"
    if faults.dangling:
        named = plural(faults.dangling, "decision")
        yield "no reading", f"{named} made on one that is not in the log"
    if faults.without_decision:
        outcomes = plural(faults.without_decision, "outcome")
        yield "no decision", f"{outcomes}, left out above"
    if faults.newer_schema is not None:
        yield "schema", f"{faults.newer_schema} is newer than this reader"
    if faults.signals_left_out:
        values = plural(faults.signals_left_out, "value")
        yield "signals", f"{values} of further names left out"


def _timing(spread: Spread, unit: str) -> str:
    if not spread.n:
        return "not in the log"
    p95 = spread.withheld or number(spread.p95)
    return (
        f"p50 {number(spread.p50)}, p95 {p95}, max {number(spread.high)} {unit},"
        f" n {spread.n}"
    )


def _files(files: Files) -> Iterator[str]:
    yield "Files"
    for path in files.paths:
        yield from _row("read", printable(path))
    for why in files.unread:
        yield from _row("not read", printable(why))
    unusable = sum(files.unusable.values())
    yield from _row("lines", f"{files.lines} read, {unusable} could not be used")
    for why, n in files.unusable.items():
        yield from _row("", f"{n} {printable(why)}")
    for first in files.first:
        yield from _row("at", printable(first))
    for notice in files.notices:
        yield from _row("notice", printable(notice))


# ----------------------------------------------------------------------- layout


def _share(part: Share) -> str:
    return share(part.n, part.of)


def _ratio(part: Share) -> str:
    value = NOT_KNOWN if part.value is None else f"{part.value:.3f}"
    return f"{value} = {part.n} of {part.of}"


def _row(name: str, value: str) -> Iterator[str]:
    """A name in the first column, its value wrapped in the second."""
    hang = " " * 16
    yield from _wrapped(value, indent=f"  {name:<14}"[:16], hang=hang)


def _wrapped(said: str, indent: str = "  ", hang: str | None = None) -> list[str]:
    hang = indent if hang is None else hang
    return textwrap.wrap(
        said,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=hang,
        break_on_hyphens=False,
    )


def _table(name: str, cells: Sequence[str]) -> str:
    """One line of a table, the cells to the right."""
    room = WIDTH - _CELL * len(cells)
    return f"  {name:<{room - 2}}" + "".join(f"{cell:>{_CELL}}" for cell in cells)


def _named(name: str, cells: Sequence[str]) -> Iterator[str]:
    """A table line; a name too long for its column stands on a line of its own."""
    room = WIDTH - _CELL * len(cells) - 3
    clipped = [cell if len(cell) < _CELL else f"{cell[: _CELL - 2]}~" for cell in cells]
    if len(name) <= room:
        yield _table(name, clipped)
    else:
        yield from _wrapped(name)
        yield _table("", clipped)
