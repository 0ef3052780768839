"""`admitperf signals`."""

import json
import math
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import click

from admitperf.cli.asking import timeout_option, token_options
from admitperf.cli.layout import row, wrapped
from admitperf.cli.reading import UnreadableInput, say_when_waiting
from admitperf.core.errors import ConfigError
from admitperf.core.signal import Signal
from admitperf.core.signals import ALL
from admitperf.reports.wording import NOT_KNOWN, number, printable
from admitperf.scrape.survey import Line, Survey, described, legal, survey_all
from admitperf.scrape.target import target_of
from admitperf.scrape.token import read_token

SCHEMA = 1
_UNREAD = 2
_ORIGINS = {
    "engine": "From the engine",
    "request": "From each request, by the host",
    "ledger": "From the policy's own calls, once outcomes are reported",
}


@click.command()
@click.argument("targets", metavar="[URL|FILE]...", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option(
    "--once",
    is_flag=True,
    help="Read a URL once only: what is counted over time stays unknown.",
)
@token_options
@timeout_option
def command(
    targets: tuple[str, ...],
    *,
    as_json: bool,
    once: bool,
    token_env: str | None,
    token_file: str | None,
    timeout_s: float,
) -> None:
    """Say which signals an engine supplies.

    For each URL or FILE: every signal's value, source and age, what it serves and when
    it fails; for each missing one the nearest names on the page, and the line that
    would map one. Without any: the signals there are.

    A URL may be as short as HOST:PORT. It is read twice, a second apart, since hit
    rates and preemptions are counted over time. A FILE holds a metrics page; - is
    standard input. A token goes to the hosts named here and nowhere else.

    Exit code 2 when a target could not be read; the others are shown all the same.
    """
    if math.isnan(timeout_s):
        raise click.BadParameter("nan is no number of seconds", param_hint="--timeout")
    if not targets:
        _put(_catalogue(), _catalogue_text(), as_json=as_json)
        return
    say_when_waiting(targets)
    token = _token(token_env, token_file)
    found = [target_of(word, token, timeout_s) for word in targets]
    surveys = survey_all(found, threading.Event().wait, once=once)
    made = {"schema": SCHEMA, "targets": [one.to_dict() for one in surveys]}
    text = (line for one in surveys if one.lines for line in _text(one))
    _put(made, text, as_json=as_json)
    faults = [one.error for one in surveys if one.error]
    for fault in faults:
        click.echo(f"Error: {printable(str(fault))}", err=True)
    if faults:
        sys.exit(_UNREAD)


def _token(env: str | None, file: str | None) -> str | None:
    try:
        return read_token(env, file)
    except ConfigError as error:
        raise UnreadableInput(str(error)) from None


def _put(made: dict[str, Any], text: Iterator[str], *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(made, indent=2, allow_nan=False))
    else:
        for line in text:
            click.echo(line)


# -------------------------------------------------------------------- the catalogue


def _catalogue() -> dict[str, Any]:
    return {"schema": SCHEMA, "signals": [described(signal) for signal in ALL]}


def _catalogue_text() -> Iterator[str]:
    yield f"{'signal':<22}{'unit':<10}{'range':<8}serves"
    yield f"{'':<40}- fails when"
    for origin, title in _ORIGINS.items():
        yield ""
        yield title
        for signal in ALL:
            if signal.origin == origin:
                yield from _catalogue_rows(signal)


def _catalogue_rows(signal: Signal) -> Iterator[str]:
    head = f"  {signal.name:<20}{signal.unit:<10}{legal(signal):<8}"
    yield from wrapped(signal.serves, head, " " * 40)
    yield from wrapped(f"- {signal.fails_when}", " " * 40, " " * 42)


# ------------------------------------------------------------------------ one target


def _text(survey: Survey) -> Iterator[str]:
    yield from wrapped(survey.target)
    yield from wrapped(_head(survey), "  ", "  ")
    if survey.simulated_by is not None:
        yield from row("SIMULATED", _simulated(survey.simulated_by))
    for line in survey.lines:
        if line.value is not None:
            yield ""
            yield from _supplied(line)
    missing = [line for line in survey.lines if line.value is None]
    engine = [line for line in missing if line.signal.origin == "engine"]
    if engine:
        yield ""
        yield "Not supplied"
    for line in engine:
        yield ""
        yield from _missing(line)
    yield from _elsewhere([line for line in missing if line not in engine])
    if survey.warnings:
        yield ""
        yield "Warnings"
    for warning in survey.warnings:
        yield from wrapped(warning, "  ", "    ")
    yield ""


def _head(survey: Survey) -> str:
    engine = survey.engine.title if survey.engine else "no known engine"
    took = f", answered in {survey.took_s * 1e3:.0f} ms" if survey.took_s else ""
    twice = survey.window_s is not None
    window = f", two readings {survey.window_s:.1f} s apart" if twice else ""
    return f"{engine}, {survey.series} series{took}{window}"


def _simulated(profile: str) -> str:
    by = f" (profile {profile})" if profile else ""
    return f"the numbers come from a simulated engine{by}, not from hardware."


def _supplied(line: Line) -> Iterator[str]:
    signal = line.signal
    age = NOT_KNOWN if line.age_s is None else f"{line.age_s:.1f} s"
    renewed = f", renewed each {line.refresh_s:g} s" if line.refresh_s else ""
    value = f"{number(line.value)} {signal.unit}"
    yield f"{signal.name:<20}{value:<28}age {age}{renewed}"
    yield from row("source", line.source or "")
    if line.parts:
        parts = (f"{name} {number(value)}" for name, value in line.parts.items())
        yield from row("parts", ", ".join(parts))
    yield from row("serves", signal.serves)
    yield from row("fails when", signal.fails_when)


def _missing(line: Line) -> Iterator[str]:
    yield line.signal.name
    yield from row("why", line.why or "")
    for note in line.skipped:
        yield from row("skipped", note)
    if line.nearest:
        yield from row("nearest", ", ".join(line.nearest))
        yield from row("to map one", line.add_source or "")
    yield from row("serves", line.signal.serves)


def _elsewhere(lines: Sequence[Line]) -> Iterator[str]:
    """Signals no engine supplies: one paragraph for each place they come from."""
    for origin, title in _ORIGINS.items():
        names = [line.signal.name for line in lines if line.signal.origin == origin]
        if names:
            yield ""
            yield title
            yield from wrapped(", ".join(names), "  ", "  ")
