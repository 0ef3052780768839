"""`admitperf demo`."""

import json
from pathlib import Path

import click

from admitperf.bench.demo import FOLDER, POLICIES, run_demo
from admitperf.cli.layout import wrapped
from admitperf.cli.reading import UnreadableInput
from admitperf.core.errors import AdmitPerfError
from admitperf.reports import render
from admitperf.reports.wording import printable


@click.command()
@click.option(
    "-o",
    "--output",
    "folder",
    metavar="DIR",
    default=FOLDER,
    show_default=True,
    help="Where the logs go. Those of an earlier demo are replaced.",
)
@click.option(
    "--policy",
    "names",
    metavar="NAME",
    multiple=True,
    default=POLICIES,
    help=f"An installed policy; may be given again.  [default: {', '.join(POLICIES)}]",
)
@click.option("--json", "as_json", is_flag=True, help="Print the reports as JSON.")
def command(folder: str, names: tuple[str, ...], *, as_json: bool) -> None:
    """Run policies over a recorded run of an engine.

    A real vLLM engine was offered twice what it can carry, and its metrics and every
    request were recorded. Each policy decides on all of it, in recorded time, nothing
    enforced, and the reports say whether it would have fired. It takes seconds and
    needs no GPU and no network.
    """
    try:
        demo = run_demo(names, Path(folder))
    except AdmitPerfError as error:
        raise UnreadableInput(printable(str(error))) from None
    if as_json:
        click.echo(json.dumps(demo.report.to_dict(), indent=2, allow_nan=False))
        return
    for paragraph in demo.opening():
        click.echo("\n".join(wrapped(paragraph)) + "\n")
    click.echo(render.text(demo.report))
    for paragraph in demo.closing():
        click.echo("\n".join(wrapped(paragraph)) + "\n")
