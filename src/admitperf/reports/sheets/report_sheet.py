"""The page of a report as a sheet: the words of the text page, with figures.

Order and wording are those of `render`; every number is one of the document.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from admitperf.reports.pages import headline, run_words, runs_page, stated
from admitperf.reports.pages.checks_page import claim, whose
from admitperf.reports.pages.cost_page import cost
from admitperf.reports.pages.repeats import repeated
from admitperf.reports.pages.revived import read_files, run_report
from admitperf.reports.report import RunReport
from admitperf.reports.runs.answers import Row
from admitperf.reports.runs.finding import gate_text
from admitperf.reports.runs.gates import Gate
from admitperf.reports.sheets import run_figures
from admitperf.reports.sheets.plain import plain, visible
from admitperf.reports.sheets.run_figures import MOST_ROWS
from admitperf.reports.sheets.said import blocks
from admitperf.reports.sheets.sheet import (
    Answer,
    Answers,
    Block,
    Cell,
    Column,
    Rows,
    Section,
    Sheet,
    Source,
    Table,
    Words,
    mood_of,
)
from admitperf.reports.wording import as_written, plural, printable

MOST_RUNS = 3
"""Plain choice: runs shown whole, half a megabyte each; a page of more is a book."""
_LONGEST_SOURCE = 20_000
_STAMPS = ("SIMULATED", "ORACLE")

Document = Mapping[str, Any]
Level = Literal[1, 2]


def report_sheet(document: Document, command: str = "") -> Sheet:
    """The page of a report.

    Args:
        document: of a report, with `series` or without; then nothing is shown over
            time.
        command: what makes the page again; "" = not known.
    """
    safe = plain(document)
    command = visible(command)
    with as_written():
        runs = safe["runs"]
        rest = (*_repeats(runs), _files(safe["files"]), *_checks(safe.get("checks")))
        if len(runs) == 1:
            return _of_one(safe, rest, command)
        return Sheet(
            title=plural(len(runs), "run"),
            word="",
            mood="plain",
            lead=(*_claim(safe), *_overview(runs)),
            sections=(*_each(runs), *rest),
            command=command,
        )


def run_sections(run: Document) -> tuple[Section, ...]:
    """The parts of one run's page, without what stands above them.

    Args:
        run: one of a document's `runs`.
    """
    with as_written():
        return tuple(_sections(plain(run), 1))


def run_lead(run: Document) -> tuple[Block, ...]:
    """What stands above the parts: the finding, what was refused, goodput, notices.

    Args:
        run: one of a document's `runs`.
    """
    with as_written():
        return tuple(_lead(run_report(plain(run))))


def _of_one(safe: Document, rest: Sequence[Section], command: str) -> Sheet:
    (run,) = safe["runs"]
    made = run_report(run)
    return Sheet(
        title=headline.title(made),
        word=made.finding.word,
        mood=mood_of(made.finding.word),
        lead=(*_lead(made), *_claim(safe)),
        sections=(*_sections(run, 1), *rest),
        command=command,
    )


def _each(runs: Sequence[Document]) -> Iterator[Section]:
    for run in runs[:MOST_RUNS]:
        made = run_report(run)
        name = made.header.get("name")
        title = headline.title(made) + (f", {printable(str(name))}" if name else "")
        yield Section(title, tuple(_lead(made)))
        yield from _sections(run, 2)


# --------------------------------------------------------------------------- lead


def _lead(run: RunReport) -> Iterator[Block]:
    rows = list(headline.found(run))
    apart = (*_STAMPS, "notice")
    yield Rows(tuple(row for row in rows if row[0] not in apart))
    for name, said in rows:
        if name in _STAMPS:
            yield Words(said, name, "unsure")
        elif name == "notice":
            yield Words(said, "NOTICE", "unsure")
    yield Rows((*headline.who(run), *headline.load(run)))


def _claim(safe: Document) -> Iterator[Block]:
    checked = safe.get("checks")
    if checked is not None:
        mood = mood_of("pass" if checked["passed"] else "fail")
        yield Words(claim(checked), "CHECK", mood)


def _overview(runs: Sequence[Document]) -> Iterator[Block]:
    made = [run_report(run) for run in runs]
    for word, said in headline.stamps(
        simulated=any(map(stated.simulated, made)),
        oracle=any(map(stated.oracle, made)),
    ):
        yield Words(said, word, "unsure")
    held = any(run.answers.held.n for run in made)
    yield Table(
        "All runs",
        (
            Column("policy and run"),
            Column("finding"),
            *[_count("held")] * held,
            _count(runs_page.fired(made)),
            _count(runs_page.asked(made)),
            Column("goodput", kind="number"),
        ),
        tuple(_overview_row(run, held=held) for run in made),
    )
    if len(runs) > MOST_RUNS:
        yield Words(
            f"The first {MOST_RUNS} follow whole; the others are in this table only."
        )


def _overview_row(run: RunReport, *, held: bool) -> tuple[Cell, ...]:
    refused, offered = runs_page.refused_of(run)
    return (
        runs_page.named_run(run),
        run.finding.word,
        *[run.answers.held.n] * held,
        refused,
        offered,
        None if run.goodput is None else run.goodput.value,
    )


# ----------------------------------------------------------------------- sections


def _sections(run: Document, level: Level) -> Iterator[Section]:
    made, series = run_report(run), run.get("series")
    parts = (
        _fired(made),
        _moved(made, series),
        _did(made, series),
        _cost(made, run, series),
        blocks(run_words.faults(made)),
        _items(run),
    )
    for title, part in zip(run_words.SECTIONS, parts, strict=True):
        yield Section(title, tuple(part), level)
    yield Section("Configuration", tuple(_configuration(made)), level)


def _fired(run: RunReport) -> Iterator[Block]:
    for sentence in run_words.found(run):
        yield Words(sentence)
    if not run.gates:
        yield Words(run_words.NO_GATES)
        return
    shown = replace(run, gates=run.gates[:MOST_ROWS])
    yield Table(
        "Gates: what the policy compared",
        (
            Column("gate"),
            _count("n"),
            _count("true"),
            Column("share", kind="share"),
            *(Column(name, kind="number") for name in ("min", "max", "nearest")),
        ),
        tuple(_gate_row(gate) for gate in shown.gates),
        " ".join((*_cut(len(run.gates), "gate"), *run_words.gates(shown))),
    )
    if (figure := run_figures.gate_ranges(run)) is not None:
        yield figure


def _gate_row(gate: Gate) -> tuple[Cell, ...]:
    return (
        gate_text(gate),
        gate.evaluated,
        gate.true,
        _part(gate.true, gate.evaluated),
        gate.value_low,
        gate.value_high,
        None if gate.crossed else gate.distance,
    )


def _moved(run: RunReport, series: Document | None) -> Iterator[Block]:
    numbers = (Column(name, kind="number") for name in ("min", "p50", "p95", "max"))
    # Those never supplied are not of the log, so the catalogue's stay in any case.
    yield Table(
        "Every signal, also those the policy does not read",
        (Column("signal"), Column("unit"), *numbers, _count("n")),
        tuple(
            (printable(one.name), one.unit or None, *run_figures.spread(one.spread))
            for one in run.signals
        ),
        " ".join(run_words.signals(run)),
    )
    if (figure := run_figures.signal_ranges(run)) is not None:
        yield figure
    figures = tuple(run_figures.signals_over_time(run, series))
    if figures:
        yield Words(_HOW_TO_READ)
    yield from figures
    yield from _undrawn(series, len(figures))


_HOW_TO_READ = (
    "Over time: the band goes from the smallest to the largest value of each bin, so"
    " none is lost, and the line is the mean; a gate's bound is dashed."
)


def _undrawn(series: Document | None, drawn: int) -> Iterator[Block]:
    """What is not drawn over time, and why."""
    if series is None:
        return
    more = len(series["signals"]) + series["signals_left_out"] - drawn
    if series["fine"] is None:
        yield Words("No decision has a time, so nothing is drawn over time.")
    elif not drawn and more:
        yield Words("The run is too short for a course of time.")
    elif more:
        yield Words(f"{plural(more, 'more signal')} moved: see the table.")
    if series["fine"] is not None and series["untimed"]:
        yield Words(f"{plural(series['untimed'], 'decision')} without a time left out.")


def _did(run: RunReport, series: Document | None) -> Iterator[Block]:
    if not run.answers.offered:
        yield Words(run_words.NO_DECISION)
        return
    rows = run.answers.rows
    yield Table(
        "Answers by verdict and reason",
        (
            Column("verdict and reason"),
            _count("n"),
            Column("share", kind="share"),
            _count("turned"),
            Column("status"),
            Column("p50", "ms", "number"),
            Column("max", "ms", "number"),
        ),
        (*(_answer_row(run, one) for one in rows[:MOST_ROWS]), *_other_answers(run)),
        " ".join(run_words.answers(run)),
    )
    if (figure := run_figures.answers_over_time(series)) is not None:
        yield figure


def _answer_row(run: RunReport, one: Row) -> tuple[Cell, ...]:
    return (
        run_words.answer(one),
        one.n,
        _part(one.n, run.answers.offered),
        one.turned_away,
        "/".join(map(str, one.statuses)) or None,
        one.retry_after_ms.p50,
        one.retry_after_ms.high,
    )


def _other_answers(run: RunReport) -> Iterator[tuple[Cell, ...]]:
    rest = run.answers.rows[MOST_ROWS:]
    if rest:
        n, away = sum(one.n for one in rest), sum(one.turned_away for one in rest)
        name = f"others ({len(rest)})"
        yield (name, n, _part(n, run.answers.offered), away, None, None, None)


def _cost(run: RunReport, plain: Document, series: Document | None) -> Iterator[Block]:
    yield from blocks(cost(run))
    if run.basis == "samples":
        return
    yield from run_figures.histograms(run, plain["cost"])
    if (figure := run_figures.goodput_over_time(run, series)) is not None:
        yield figure


def _items(run: Document) -> Iterator[Block]:
    asked = run["items"]
    yield Answers(
        tuple(
            Answer(
                item["answer"], item["name"], (item["says"],), mood_of(item["answer"])
            )
            for item in asked
        )
    )
    if any(item["answer"] == "not carried" for item in asked):
        yield Words(run_words.NOT_CARRIED)


def _configuration(run: RunReport) -> Iterator[Block]:
    header = run.header
    if not header:
        yield Words("The log has no run header, so the configuration is not known.")
        return
    params, origin = header.get("params"), header.get("provenance")
    if isinstance(params, dict) and params:
        said = origin if isinstance(origin, dict) else {}
        yield Table(
            "Parameters",
            (Column("parameter"), Column("value"), Column("origin")),
            tuple(
                (name, _written(value), _written(said[name]) if name in said else None)
                for name, value in params.items()
            ),
        )
    known = {name: stated.text(run, name) for name in stated.CONFIGURATION}
    known["SLO"] = run.cost.slo or None
    yield Rows(tuple((name, said or "not stated") for name, said in known.items()))
    text = json.dumps(header, indent=2, ensure_ascii=False)
    if len(text) > _LONGEST_SOURCE:
        yield Words(f"The first {_LONGEST_SOURCE} of {len(text)} characters:")
    yield Words("The run header, as the log has it:")
    yield Source(text[:_LONGEST_SOURCE])


def _written(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


# --------------------------------------------------------------------------- rest


def _repeats(runs: Sequence[Document]) -> Iterator[Section]:
    for experiment, arm in repeated([run_report(run) for run in runs]):
        held = any(run.answers.held.n for run in arm.runs)
        yield Section(
            f"Repeats of {printable(arm.label)} in {printable(experiment)}",
            (
                Table(
                    "The runs of one arm",
                    (
                        Column("run"),
                        *[_count("held")] * held,
                        _count("offered"),
                        _count("refused"),
                        Column("goodput", kind="number"),
                        Column("p50", "ms", "number"),
                        Column("p95", "ms", "number"),
                        _count("n ok"),
                    ),
                    tuple(
                        _repeat_row(name, run, held=held)
                        for name, run in zip(arm.names, arm.runs, strict=True)
                    ),
                ),
                *map(Words, runs_page.over_repeats(arm.runs)),
            ),
        )


def _repeat_row(name: str, run: RunReport, *, held: bool) -> tuple[Cell, ...]:
    refused, offered = runs_page.refused_of(run)
    ttft = run.cost.ttft_ms
    return (
        printable(name),
        *[run.answers.held.n] * held,
        offered,
        refused,
        None if run.goodput is None else run.goodput.value,
        ttft.p50,
        "n<20" if ttft.withheld else ttft.p95,
        ttft.n,
    )


def _files(files: Document) -> Section:
    rows = tuple(run_words.files(read_files(files)))
    more = len(rows) - MOST_ROWS
    said = (Words(f"{plural(more, 'more row')} left out."),) if more > 0 else ()
    return Section("Files", (*blocks(rows[:MOST_ROWS]), *said))


def _checks(checked: Document | None) -> Iterator[Section]:
    if checked is None:
        return
    parts: list[Block] = []
    for run in checked["runs"]:
        parts += [Words(whose(run)), Answers(tuple(map(_answer, run["checks"])))]
    parts += [Words("The files"), Answers((_answer(checked["lines"]),))]
    yield Section("Check", (*parts, Words(claim(checked))))


def _answer(one: Document) -> Answer:
    return Answer(one["answer"], one["name"], (one["says"],), mood_of(one["answer"]))


def _count(name: str) -> Column:
    return Column(name, kind="number")


def _part(n: int, of: int) -> float | None:
    return n / of if of else None


def _cut(n: int, noun: str) -> Iterator[str]:
    if n > MOST_ROWS:
        yield f"{plural(n - MOST_ROWS, f'more {noun}')} left out."
