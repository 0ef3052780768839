"""`admitperf doctor`."""

import json
import math
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from admitperf.cli.asking import token_options
from admitperf.cli.duration import Duration
from admitperf.cli.layout import wrapped
from admitperf.cli.reading import UnreadableInput
from admitperf.core.errors import ConfigError
from admitperf.reports.wording import plural, printable

if TYPE_CHECKING:
    from admitperf.lab.doctor.doctor import Diagnosis
    from admitperf.lab.doctor.finding import Finding

SCHEMA = 1
_PROBLEM = 1
_NOT_REACHED = 2
_WIDTH = 79
_TIMEOUT_S = 5.0
_INDENT = " " * 4


@click.command()
@click.option(
    "--engine",
    metavar="URL",
    help="An engine's metrics; HOST:PORT is enough.",
)
@click.option("--gateway", metavar="URL", help="A gateway; HOST:PORT is enough.")
@click.option("--log", metavar="PATH", help="A decision log.")
@click.option(
    "--probe/--no-probe",
    default=True,
    show_default=True,
    help="Send one small request through the gateway.",
)
@click.option(
    "--max-num-seqs",
    "slots",
    type=click.IntRange(1),
    help="Requests one engine runs at once, which no engine says.",
)
@click.option(
    "--timeout",
    "timeout_s",
    type=Duration(0.05, 3600),
    default=_TIMEOUT_S,
    help="Longest a step may take; the probe may take 4 times as long.  [default: 5s]",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@token_options
def command(  # noqa: PLR0913  one argument an option
    *,
    engine: str | None,
    gateway: str | None,
    log: str | None,
    probe: bool,
    slots: int | None,
    timeout_s: float,
    as_json: bool,
    token_env: str | None,
    token_file: str | None,
) -> None:
    """Say what is set up wrong, and how to put it right.

    Give at least one of --engine, --gateway and --log; what is said of one is used
    for the others. Each problem comes with its fix and the page that says more; then
    warnings, what is fine, and what could not be asked.

    Through a gateway goes one streamed request of 24 tokens for the first model it
    offers; where its events come in one burst, the engine is asked the same once.
    Nothing else is sent, and nothing is changed. The token goes to the addresses named
    here and nowhere else.

    Exit codes: 0 no problem, though there may be warnings; 1 a problem; 2 wrong use,
    or nothing that could be reached or read.
    """
    from admitperf.lab.doctor.doctor import Patient, examine

    if engine is gateway is log is None:
        what = "give at least one of --engine URL, --gateway URL and --log PATH"
        raise click.UsageError(what)
    if math.isnan(timeout_s):
        raise click.BadParameter("nan is no duration", param_hint="--timeout")
    token = _token(token_env, token_file)
    patient = Patient(engine, gateway, log, token, timeout_s, probe, slots)
    progress = _Progress()
    found = examine(patient, threading.Event().wait, progress.show)
    progress.show("")
    if as_json:
        made = {"schema": SCHEMA, **found.to_dict()}
        click.echo(json.dumps(made, indent=2, allow_nan=False))
    else:
        click.echo("\n".join(_text(found)))
    sys.exit(_code(found))


def _token(env: str | None, file: str | None) -> str | None:
    from admitperf.scrape.token import read_token

    try:
        return read_token(env, file)
    except ConfigError as error:
        raise UnreadableInput(str(error)) from None


def _code(found: "Diagnosis") -> int:
    if not found.reached:
        return _NOT_REACHED
    return _PROBLEM if found.at("problem") else 0


class _Progress:
    """What is asked now, on a terminal; nothing anywhere else."""

    def __init__(self) -> None:
        self._shown = sys.stderr is not None and sys.stderr.isatty()

    def show(self, what: str) -> None:
        if self._shown:
            text = f"asking: {what} ..." if what else ""
            with suppress(OSError):
                sys.stderr.write(f"\r{text[:_WIDTH]:<{_WIDTH}}\r")
                sys.stderr.flush()


def _text(found: "Diagnosis") -> Iterator[str]:
    problems, warnings = found.at("problem"), found.at("warning")
    said = plural(len(warnings), "warning")
    yield f"{plural(len(problems), 'problem')}, {said}"
    for title, some in (("Problems", problems), ("Warnings", warnings)):
        if some:
            yield from ("", title)
        for one in some:
            yield ""
            yield from _at_length(one)
    if fine := found.at("ok"):
        yield from ("", "Fine")
    for one in fine:
        yield from _in_short(one)
    if left := found.at("not asked"):
        yield from ("", "Could not be asked")
    for one in left:
        yield from _in_short(one)


def _at_length(one: "Finding") -> Iterator[str]:
    yield f"  {one.check}"
    yield from wrapped(one.says, _INDENT, _INDENT)
    if one.fix:
        yield from wrapped(f"fix: {one.fix}", _INDENT, _INDENT + "  ")
    yield f"{_INDENT}see: {printable(one.link)}"


def _in_short(one: "Finding") -> Iterator[str]:
    start = f"  {one.check} ".ljust(24)
    said = f"{one.says} ({one.fix})" if one.fix else one.says
    yield from wrapped(said, start, " " * 24)
