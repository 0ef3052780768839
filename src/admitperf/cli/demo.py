"""`admitperf demo`."""

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TypedDict, Unpack

import click

from admitperf.cli.layout import wrapped
from admitperf.cli.reading import UnreadableInput
from admitperf.core.errors import AdmitPerfError
from admitperf.reports.wording import printable

_SIMULATED = ("repeats", "seed")
_RECORDED = ("names",)


class _Options(TypedDict):
    """The options as click hands them over."""

    repeats: int
    seed: int
    folder: str | None
    recorded: bool
    names: tuple[str, ...]
    as_json: bool


@click.command()
@click.option(
    "--repeats",
    type=click.IntRange(1, 100),
    default=5,
    show_default=True,
    help="Runs of each policy; 3 or more give a verdict.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=1,
    show_default=True,
    help="Of the traffic and the engine; the same seed writes the same bytes.",
)
@click.option(
    "-o",
    "--output",
    "folder",
    metavar="DIR",
    help="Where the logs go; those of an earlier demo are replaced.  [default:"
    " experiments; with --recorded, admitperf-demo]",
)
@click.option(
    "--recorded",
    is_flag=True,
    help="Decide over a recorded run of a real engine instead, nothing enforced.",
)
@click.option(
    "--policy",
    "names",
    metavar="NAME",
    multiple=True,
    help="With --recorded: an installed policy; may be given again.  [default:"
    " kv_threshold, queue_depth, no_admission]",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(**options: Unpack[_Options]) -> None:
    """Show the argument: three policies before one overloaded engine.

    The engine is simulated and its time is virtual, so it takes seconds, and needs no
    GPU and no network. A KV threshold picked without the SLO cuts the tail and lowers
    goodput. A bound on the queue that follows from the SLO cuts the tail and raises
    goodput. Logs go to DIR/demo/POLICY/r1.jsonl and so on, and what is printed last is
    what `admitperf compare --experiment demo` prints.

    With --recorded each policy decides over a run of a real vLLM engine at twice its
    capacity, and its reports say whether it would have fired.
    """
    from admitperf.reports.extra import needed

    _refuse_mixed(recorded=options["recorded"])
    try:
        needed("duckdb")  # said before seconds are spent on runs
        (_recorded if options["recorded"] else _simulated)(options)
    except AdmitPerfError as error:
        raise UnreadableInput(printable(str(error))) from None


def _refuse_mixed(*, recorded: bool) -> None:
    """Options of one demo with the other are a mistake, and said to be."""
    context = click.get_current_context()
    given = [
        option.opts[-1]
        for option in context.command.params
        if option.name in (_SIMULATED if recorded else _RECORDED)
        and context.get_parameter_source(option.name)
        is not click.core.ParameterSource.DEFAULT
    ]
    if given:
        where = "does not go with" if recorded else "needs"
        raise click.UsageError(f"{given[0]} {where} --recorded")


def _simulated(options: _Options) -> None:
    from admitperf.bench.demo.demo import EXPERIMENT, FOLDER, run_demo
    from admitperf.cli.compare import command as compare

    folder = options["folder"] or FOLDER
    demo = run_demo(Path(folder), options["repeats"], options["seed"], _progress)
    _progress("", 0, 0)
    if not options["as_json"]:
        _paragraphs(demo.opening())
    click.get_current_context().invoke(
        compare, experiment=EXPERIMENT, root=folder, as_json=options["as_json"]
    )


def _progress(what: str, done: int, of: int) -> None:
    """One line on a terminal, written over; nothing anywhere else."""
    if sys.stderr is None or not sys.stderr.isatty():
        return
    text = f"{what} ({done} of {of} runs done)" if what else ""
    click.echo(f"\r{text:<60}\r", nl=False, err=True)


def _recorded(options: _Options) -> None:
    from admitperf.bench.demo.recorded import FOLDER, POLICIES, run_recorded
    from admitperf.reports.pages import render
    from admitperf.reports.pages.document import document

    names = options["names"] or POLICIES
    demo = run_recorded(names, Path(options["folder"] or FOLDER))
    if options["as_json"]:
        click.echo(json.dumps(document(demo.report), indent=2, allow_nan=False))
        return
    _paragraphs(demo.opening())
    click.echo(render.text(demo.report))
    _paragraphs(demo.closing())


def _paragraphs(said: Iterable[str]) -> None:
    for paragraph in said:
        click.echo("\n".join(wrapped(paragraph)) + "\n")
