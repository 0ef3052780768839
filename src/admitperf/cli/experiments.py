"""`admitperf experiments`."""

import json
import sys

import click

from admitperf.cli import colour
from admitperf.cli.log_options import MEMORY_LIMIT
from admitperf.cli.reading import end_unread, say_when_waiting
from admitperf.core.errors import LogError

_FAILED = 1


@click.command()
@click.argument("root", metavar="[ROOT]", default="experiments")
@click.option("--json", "as_json", is_flag=True, help="Print the list as JSON.")
@click.option(
    "--check", "checking", is_flag=True, help="Exit 1 when anything is missing."
)
@MEMORY_LIMIT
def command(
    root: str, *, as_json: bool, checking: bool, memory_limit: str | None
) -> None:
    """List the experiments under ROOT, and what is missing in them.

    For each: its arms, how many repeats each has, their findings, the range of their
    goodput over offered, and what a comparison would lack. Runs are grouped by what
    their headers say, wherever the files are. ROOT is experiments unless it is given.

    Exit code 1 when --check finds something missing, 2 when a log could not be read;
    the others are listed all the same.
    """
    from admitperf.reports.comparison.experiments import document, listed, text
    from admitperf.reports.report import report

    say_when_waiting((root,))
    try:
        made = report([root], memory_limit=memory_limit)
    except LogError as error:
        end_unread(error.args)
        return
    found = listed(made.runs)
    if as_json:
        plain = document(found, made.files)
        click.echo(json.dumps(plain, indent=2, allow_nan=False))
    else:
        colour.echo(text(found, made.files))
    end_unread(made.files.unread)
    if checking and not all(one.complete for one in found):
        click.echo("check failed: something is missing, as listed", err=True)
        sys.exit(_FAILED)
