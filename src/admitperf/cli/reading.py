"""How commands that read logs behave towards the person who typed them."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import click

from admitperf.core.errors import LogError
from admitperf.reports.wording import printable

_UNREAD = 2


class UnreadableInput(click.ClickException):
    """Input that cannot be read: one line on standard error, exit code 2."""

    exit_code = 2


@contextmanager
def no_traceback() -> Iterator[None]:
    """Turns an unreadable log into one clear line.

    Raises:
        UnreadableInput: the log cannot be read.
    """
    try:
        yield
    except LogError as error:
        raise UnreadableInput(printable(str(error))) from None


def say_when_waiting(paths: Sequence[str]) -> None:
    """Tells a person at a terminal that standard input is being read."""
    if "-" in paths and sys.stdin is not None and sys.stdin.isatty():
        click.echo("reading standard input; end it with Ctrl-D", err=True)


def end_unread(unread: Iterable[object]) -> None:
    """Says which files could not be read, one line each; any ends with exit code 2."""
    faults = [printable(str(fault)) for fault in unread]
    for fault in faults:
        click.echo(f"Error: {fault}", err=True)
    if faults:
        sys.exit(_UNREAD)
