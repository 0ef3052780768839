"""`admitperf log`."""

import os
import sys
from collections.abc import Iterable

import click

from admitperf.cli.reading import UnreadableInput, no_traceback, say_when_waiting
from admitperf.reports.wording import plural, printable

_STDOUT = "-"


@click.group()
def command() -> None:
    """Work on the lines of a log."""


@command.command()
@click.argument("log", metavar="LOG")
@click.option(
    "-o",
    "--output",
    default=_STDOUT,
    metavar="OUT",
    help="Write there instead of to standard output. Not LOG itself.",
)
def expand(log: str, output: str) -> None:
    """Put raw metrics and their sources onto every decision line of LOG.

    A log writes each reading of the engine once, and a decision names the one it was
    made on. Afterwards every decision line reads alone. All other lines stay as they
    are. LOG may be gzipped; - is standard input.
    """
    from admitperf.reports.expand import Expander
    from admitperf.reports.lines import LogFile

    say_when_waiting((log,))
    _refuse_same(log, output)
    expander, source = Expander(), LogFile(log)
    with no_traceback():
        lines = source.checked()
    _write(expander.expand(lines), output)
    _say(expander.dangling, "decision line", "left as it was: its reading is not there")
    _say(expander.dropped, "line", "too long to hold and left out")
    if source.cut:
        click.echo(printable(f"{log}: ends early: {source.cut}"), err=True)


def _refuse_same(log: str, output: str) -> None:
    if _STDOUT in (log, output) or not os.path.exists(output):  # noqa: PTH110
        return
    if os.path.realpath(log) == os.path.realpath(output):
        raise UnreadableInput(f"{printable(output)} is LOG itself; name another file")


def _write(lines: Iterable[str], output: str) -> None:
    encoded = (line.encode(errors="surrogateescape") + b"\n" for line in lines)
    if output == _STDOUT:
        sys.stdout.flush()
        sys.stdout.buffer.writelines(encoded)
        sys.stdout.buffer.flush()
        return
    try:
        with open(output, "wb") as file:  # noqa: PTH123  a path may be no path at all
            file.writelines(encoded)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise UnreadableInput(printable(f"{output}: {why.lower()}")) from None


def _say(n: int, noun: str, what: str) -> None:
    if n:
        click.echo(f"{plural(n, noun)} {what}", err=True)
