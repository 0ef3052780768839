"""`admitperf bench compare`."""

import json
import shlex
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

import click

from admitperf.cli import colour, html_file
from admitperf.cli.reading import UnreadableInput
from admitperf.reports.wording import as_written, printable

if TYPE_CHECKING:
    from admitperf.bench.design.claims import Claim
    from admitperf.bench.design.comparison import Verdicts
    from admitperf.bench.design.results import Experiment

_FAILED = 1


class _Options(TypedDict):
    """The options as click hands them over."""

    root: Path
    metric: str | None
    only: tuple[str, ...]
    plots: tuple[Path, ...]
    checking: bool
    claim: "Claim"
    as_json: bool
    html: str | None


@click.command()
@click.argument("experiment", metavar="FOLDER|NAME")
@click.option(
    "--root",
    metavar="DIR",
    type=click.Path(path_type=Path),
    default=Path("experiments"),
    show_default=True,
    help="Where an experiment that is given by NAME lies.",
)
@click.option(
    "--metric",
    metavar="NAME",
    help="What is compared, such as session_goodput; any but the experiment's own is"
    " exploratory.  [default: the experiment's own]",
)
@click.option(
    "--arm",
    "only",
    metavar="NAME",
    multiple=True,
    help="Ask --check of this arm only; may be given again.",
)
@click.option(
    "--plot",
    "plots",
    metavar="FILE",
    type=click.Path(path_type=Path),
    multiple=True,
    help="Write the metric against load as .svg or .png; may be given again.",
)
@click.option(
    "--check",
    "checking",
    is_flag=True,
    help="Exit 1 unless the runs support the claim, and say why.",
)
@click.option(
    "--claim",
    type=click.Choice(["better", "gain", "no-harm"]),
    default="better",
    show_default=True,
    help="What --check asks of every arm.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the comparison as JSON.")
@html_file.html_option
def command(experiment: str, **options: Unpack[_Options]) -> None:
    """Say which policy of a benchmark won, and by how much.

    Every arm is held against the baseline, block by block. Two claims are judged: a
    gain, pooled over the loads of 1.2x of capacity and more, and no harm, pooled over
    those of 0.8x and less. Checks come before numbers: one that fails voids the arms it
    is about. Single loads are exploratory.

    better: a gain, and no harm. worse: the opposite, or harm without a gain.
    equivalent: the difference is shown to be within the margin. inconclusive: anything
    else; gain above capacity with harm below it is said in words. void: no claim is
    made.

    Exit code 1 when --check finds that the claim is not supported, 2 when something
    could not be read or written.
    """
    from admitperf.core.errors import AdmitPerfError

    if options["as_json"] and options["html"] is not None:
        raise click.UsageError("--json and --html are two forms: choose one")
    if options["html"] is not None:
        html_file.ready(options["html"])
    try:
        shown(_read(_folder(experiment, options["root"])), **options)
    except AdmitPerfError as error:
        raise UnreadableInput(printable(str(error))) from None


def shown(found: "Experiment", **options: Unpack[_Options]) -> None:
    """Shows an experiment that was read; exits 1 when a check is not met.

    Raises:
        AdmitPerfError: it cannot be compared, or a plot cannot be written.
    """
    with as_written() if options["html"] is not None else nullcontext():
        made = _compared(found, options["metric"])
    _known(made, options["only"])
    _plotted(made, options["plots"])
    _show(made, found, options)


def _folder(given: str, root: Path) -> Path:
    """The folder itself, or the one of that name under the root."""
    here, there = Path(given), root / given
    return there if there.is_dir() or not here.is_dir() else here


def _read(folder: Path) -> "Experiment":
    from admitperf.bench.design.results import read_experiment

    return read_experiment(folder)


def _compared(found: "Experiment", metric: str | None) -> "Verdicts":
    from admitperf.bench.design.comparison import compare

    return compare(found, metric)


def _known(made: "Verdicts", only: tuple[str, ...]) -> None:
    """Refuses a name that no arm has."""
    names = [one.arm for one in made.arms]
    for name in only:
        if name not in names:
            raise UnreadableInput(
                f"no arm is called {printable(name)}: there are {', '.join(names)}"
            )


def _plotted(made: "Verdicts", plots: tuple[Path, ...]) -> None:
    if plots:
        from admitperf.bench.pages.plot import plot

        for path in plots:
            plot(made, path)


def _show(made: "Verdicts", found: "Experiment", options: _Options) -> None:
    from admitperf.bench.pages import page
    from admitperf.bench.pages.document import document
    from admitperf.bench.pages.sheet import bench_sheet

    claim = options["claim"] if options["checking"] else None
    only = options["only"]
    plain = document(made, claim, only, found.runs)
    if options["html"] is not None:
        html_file.write(bench_sheet(plain, _again(found, options)), options["html"])
    elif options["as_json"]:
        click.echo(json.dumps(plain, indent=2, allow_nan=False))
    else:
        colour.echo(page.text(made, found.runs))
    failed = [] if claim is None else list(made.against(claim, only))
    for why in failed:
        click.echo(printable(f"check failed: {why}"), err=True)
    if failed:
        sys.exit(_FAILED)


def _again(found: "Experiment", options: _Options) -> str:
    """The command line that makes the same page."""
    said = ["admitperf", "bench", "compare", str(found.folder)]
    if options["metric"] is not None:
        said += ["--metric", options["metric"]]
    for arm in options["only"]:
        said += ["--arm", arm]
    if options["checking"]:
        said += ["--check", "--claim", options["claim"]]
    return shlex.join([*said, "--html", str(options["html"])])
