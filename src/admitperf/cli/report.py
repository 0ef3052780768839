"""`admitperf report`."""

import json
import sys
from collections.abc import Iterable

import click

from admitperf.cli.reading import say_when_waiting
from admitperf.core.errors import LogError
from admitperf.reports.slo import Slo
from admitperf.reports.wording import printable

_UNREAD = 2


class _SloType(click.ParamType[Slo]):
    """`ttft_ms=1500,stall_ms=500`."""

    name = "BOUNDS"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Slo:
        """Parses the option; a fault is a usage error."""
        try:
            return Slo.parsed(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


@click.command()
@click.argument("logs", metavar="LOG...", nargs=-1, required=True)
@click.option("--json", "as_json", is_flag=True, help="Print the numbers as JSON.")
@click.option(
    "--slo",
    type=_SloType(),
    help="Bounds in ms, such as ttft_ms=1500,stall_ms=500 (also e2e_ms), in place of"
    " those in the log.",
)
def command(logs: tuple[str, ...], *, as_json: bool, slo: Slo | None) -> None:
    """Report on the runs in one or more LOG files.

    Each run answers five questions: could the policy have fired, which signals moved,
    what it did, what it cost, and where the instrument failed. A LOG may be gzipped; -
    is standard input. The files of a rotated log may be given in any order.

    The finding is one word. LIVE: it refused something. INERT: it ran and never
    answered anything but admit. UNKNOWN: the log cannot say. BASELINE: it refuses
    nothing by design. SHADOW: nothing was enforced.

    Exit code 2 when a LOG could not be read; the others are reported all the same.
    """
    from admitperf.reports import render
    from admitperf.reports.report import report

    say_when_waiting(logs)
    try:
        made = report(logs, slo)
    except LogError as error:
        _end(error.args)
        return
    if as_json:
        click.echo(json.dumps(made.to_dict(), indent=2, allow_nan=False))
    else:
        click.echo(render.text(made), nl=False)
    _end(made.files.unread)


def _end(unread: Iterable[str]) -> None:
    """Says which files could not be read; any makes the exit code 2."""
    faults = list(unread)
    for fault in faults:
        click.echo(f"Error: {printable(fault)}", err=True)
    if faults:
        sys.exit(_UNREAD)
