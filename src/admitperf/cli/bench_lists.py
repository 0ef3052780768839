"""`admitperf bench workloads` and `admitperf bench clients`."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict

import click

from admitperf.cli.layout import row
from admitperf.cli.reading import UnreadableInput
from admitperf.core.errors import AdmitPerfError
from admitperf.reports.wording import printable


@click.command("workloads")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def workloads(*, as_json: bool) -> None:
    """List the workloads by name, those of plug-ins too.

    Each is generated, or replayed from the real trace where one is given with --trace.
    """
    from admitperf.bench.workloads import available

    try:
        found = available()
    except AdmitPerfError as error:
        raise UnreadableInput(printable(str(error))) from None
    _show(found, found, as_json=as_json)


@click.command("clients")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def clients(*, as_json: bool) -> None:
    """List the client models by name: what a caller does who is refused, or waits."""
    from admitperf.bench.callers.client import CLIENTS

    words = {name: f"{one.words()}." for name, one in CLIENTS.items()}
    plain = {name: asdict(one) for name, one in CLIENTS.items()}
    _show(words, plain, as_json=as_json)


def _show(
    words: Mapping[str, str], plain: Mapping[str, object], *, as_json: bool
) -> None:
    if as_json:
        click.echo(json.dumps(plain, indent=2, allow_nan=False))
        return
    for line in _lines(words.items()):
        click.echo(line)


def _lines(words: Iterable[tuple[str, str]]) -> Iterable[str]:
    for name, said in words:
        yield from row(name, said, column=18)
