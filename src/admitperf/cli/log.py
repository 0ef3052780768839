"""`admitperf log`."""

import os
import secrets
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from stat import S_IMODE, S_ISREG
from typing import BinaryIO

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
    from admitperf.reports.files.expand import Expander
    from admitperf.reports.files.lines import LogFile

    say_when_waiting((log,))
    expander, source = Expander(), LogFile(log)
    with no_traceback():
        try:
            lines = source.checked()
        finally:  # also when nothing is left in it to read
            _refuse_same(source.status, output)
    _write(expander.expand(lines), output)
    _say(expander.dangling, "decision line", "left as it was: its reading is not there")
    _say(expander.dropped, "line", "too long to hold and left out")
    if source.cut:
        click.echo(printable(f"{log}: ends early: {source.cut}"), err=True)


def _refuse_same(status: os.stat_result | None, output: str) -> None:
    """Refuses a file as output that is the one being read, by whatever name."""
    to_stdout = output == _STDOUT
    try:
        found = os.fstat(sys.stdout.fileno()) if to_stdout else os.stat(output)  # noqa: PTH116
    except (OSError, ValueError):  # not there yet, or no file of the system
        return
    if status and S_ISREG(found.st_mode) and os.path.samestat(status, found):
        name = "standard output" if to_stdout else printable(output)
        raise UnreadableInput(f"{name} is LOG itself; name another file")


def _write(lines: Iterable[str], output: str) -> None:
    encoded = (line.encode(errors="surrogateescape") + b"\n" for line in lines)
    if output == _STDOUT:
        sys.stdout.flush()
        sys.stdout.buffer.writelines(encoded)
        sys.stdout.buffer.flush()
        return
    try:
        with _replacing(output) as file:
            file.writelines(encoded)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise UnreadableInput(printable(f"{output}: {why.lower()}")) from None


@contextmanager
def _replacing(output: str) -> Iterator[BinaryIO]:
    """A file that takes the place of the output once all of it is written."""
    path = Path(output)
    if output.endswith(("/", "\0")) or not output or _is_special(path):
        with open(output, "wb") as file:  # noqa: PTH123  a path may be no path at all
            yield file
        return
    path = path.resolve()  # a link stays, and what it leads to is replaced
    new = path.with_name(f".admitperf-{secrets.token_hex(8)}.tmp")
    try:
        with new.open("xb") as file:
            yield file
        if path.exists():
            new.chmod(S_IMODE(path.stat().st_mode))
        new.replace(path)
    except BaseException:
        new.unlink(missing_ok=True)
        raise


def _is_special(path: Path) -> bool:
    """Whether it is there and cannot be replaced: a device, a pipe, a folder."""
    return path.exists() and not path.is_file()


def _say(n: int, noun: str, what: str) -> None:
    if n:
        click.echo(f"{plural(n, noun)} {what}", err=True)
