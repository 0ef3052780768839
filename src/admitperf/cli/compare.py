"""`admitperf compare`."""

import json
import shlex
import sys
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import click

from admitperf.cli import colour, html_file
from admitperf.cli.bounds import BOUNDS
from admitperf.cli.log_options import MEMORY_LIMIT
from admitperf.cli.reading import UnreadableInput, end_unread, say_when_waiting
from admitperf.core.errors import LogError
from admitperf.reports.runs.slo import Slo
from admitperf.reports.wording import as_written, printable

if TYPE_CHECKING:
    from admitperf.reports.comparison.arms import Arm
    from admitperf.reports.runs.log import Files

_FAILED = 1
_TWO = 2


class _Options(TypedDict):
    """The options as click hands them over."""

    experiment: str | None
    root: str
    baseline: str | None
    only: tuple[str, ...]
    margin: float
    checking: bool
    claim: str
    as_json: bool
    html: str | None
    slo: Slo | None
    warmup: str | None
    memory_limit: str | None


def _a_number(_ctx: click.Context, _param: click.Parameter, value: float) -> float:
    """What is between two bounds; NaN is between any."""
    if value != value:  # noqa: PLR0124  no NaN
        raise click.BadParameter("is no number")
    return value


@click.command()
@click.argument("paths", metavar="[A B]", nargs=-1)
@click.option(
    "--experiment",
    metavar="NAME",
    help="Compare every arm of an experiment with its baseline.",
)
@click.option(
    "--root",
    metavar="DIR",
    default="experiments",
    show_default=True,
    help="Where the logs of --experiment are.",
)
@click.option(
    "--baseline",
    metavar="POLICY",
    help="The arm to compare with.  [default: the one that refuses nothing by design]",
)
@click.option(
    "--arm",
    "only",
    metavar="POLICY",
    multiple=True,
    help="Compare this arm of the experiment only; may be given again.",
)
@click.option(
    "--margin",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.01,
    show_default=True,
    callback=_a_number,
    help="Smallest difference in goodput that matters, as a fraction of offered.",
)
@click.option(
    "--check",
    "checking",
    is_flag=True,
    help="Exit 1 unless the logs support the claim, and say why.",
)
@click.option(
    "--claim",
    type=click.Choice(["better", "not-worse", "equivalent"]),
    default="better",
    show_default=True,
    help="What --check asks of every arm.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the comparison as JSON.")
@html_file.html_option
@click.option(
    "--slo",
    type=BOUNDS,
    help="Bounds in ms, such as ttft_ms=1500,stall_ms=500 (also e2e_ms), in place of"
    " those in the logs.",
)
@click.option(
    "--warmup",
    metavar="N|Ns",
    help="Leave the first 10 requests, or the first 30s, of every run out.",
)
@MEMORY_LIMIT
def command(paths: tuple[str, ...], **options: Unpack[_Options]) -> None:
    """Compare two arms, or all arms of an experiment with its baseline.

    A and B are the logs of one policy each: a file or a folder with one run a repeat.
    Repeats are paired by their run name, else in order. Goodput counts requests that
    met the SLO over those offered.

    Checks come before numbers: did the policy fire, did both arms meet the same load,
    is anything missing. Then one of five verdicts. better, worse: the arms separate by
    the margin or more. equivalent: the difference is shown to be within it.
    inconclusive: these runs do not settle it. void: a check failed, so no claim is
    made. With 1 or 2 pairs the question is not asked.

    Exit code 1 when --check finds that the claim is not supported, 2 when something
    could not be read.
    """
    from admitperf.core.errors import AdmitPerfError
    from admitperf.reports.comparison.comparison import compare_all

    _refuse_mixed(paths, options)
    if options["html"] is not None:
        html_file.ready(options["html"])
    try:
        with _as_shown(options):
            arms, files = _arms(paths, options)
            made = compare_all(*arms, margin=options["margin"])
    except LogError as error:
        end_unread(error.args)
        return
    except AdmitPerfError as error:
        raise UnreadableInput(printable(str(error))) from None
    _show(made, files, options, _again(paths, options))


def _as_shown(options: _Options) -> AbstractContextManager[None]:
    """HTML shows any script of the world; a terminal may not."""
    return nullcontext() if options["html"] is None else as_written()


def _refuse_mixed(paths: tuple[str, ...], options: _Options) -> None:
    """Two paths, or an experiment, and not both."""
    if options["experiment"] is None and len(paths) != _TWO:
        raise click.UsageError("give two paths, A and B, or --experiment NAME")
    if options["experiment"] is not None and paths:
        raise click.UsageError("--experiment reads --root DIR: give no paths with it")
    if options["only"] and options["experiment"] is None:
        raise click.UsageError("--arm chooses among the arms of an --experiment")
    if options["as_json"] and options["html"] is not None:
        raise click.UsageError("--json and --html are two forms: choose one")
    if len(set(paths)) < len(paths):
        raise click.UsageError("A and B are the same: there is nothing to compare")


def _arms(paths: tuple[str, ...], options: _Options) -> "tuple[tuple[Arm, ...], Files]":
    """The arms, the baseline last, and the files they were read from."""
    from admitperf.reports.comparison.sides import of_experiment, two
    from admitperf.reports.report import report

    say_when_waiting(paths)
    limits: dict[str, Any] = {
        name: options[name] for name in ("slo", "warmup", "memory_limit")
    }
    if options["experiment"] is not None:
        made = report([options["root"]], **limits)
        wanted = options["experiment"], options["baseline"], options["only"]
        return of_experiment(made.runs, *wanted), made.files
    read = [report([path], **limits) for path in paths]
    sides = [(path, one.runs) for path, one in zip(paths, read, strict=True)]
    return two(sides, options["baseline"]), _added(*(one.files for one in read))


def _added(first: "Files", second: "Files") -> "Files":
    from admitperf.reports.runs.log import Files

    unusable = dict(first.unusable)
    for why, n in second.unusable.items():
        unusable[why] = unusable.get(why, 0) + n
    return Files(
        paths=first.paths + second.paths,
        unread=first.unread + second.unread,
        lines=first.lines + second.lines,
        unusable=unusable,
        first=first.first + second.first,
        notices=first.notices + second.notices,
        cut=first.cut | second.cut,
    )


def _show(made: Any, files: "Files", options: _Options, again: str) -> None:  # noqa: ANN401
    from admitperf.reports.pages import comparison_page
    from admitperf.reports.pages.comparison_document import document, failures
    from admitperf.reports.sheets.comparison_sheet import comparison_sheet

    claim: Any = options["claim"] if options["checking"] else None
    if options["html"] is not None:
        sheet = comparison_sheet(document(made, files, claim), again)
        html_file.write(sheet, options["html"])
    elif options["as_json"]:
        plain = document(made, files, claim)
        click.echo(json.dumps(plain, indent=2, allow_nan=False))
    else:
        colour.echo(comparison_page.text(made, files))
    end_unread(files.unread)
    if claim is None:
        return
    failed = failures(made, claim)
    for why in failed:
        click.echo(printable(f"check failed: {why}"), err=True)
    if failed:
        sys.exit(_FAILED)


def _again(paths: tuple[str, ...], options: _Options) -> str:
    """The command line that makes the same page."""
    said = ["admitperf", "compare", *paths]
    if options["experiment"] is not None:
        said += ["--experiment", options["experiment"], "--root", options["root"]]
    given = {name: options[name] for name in ("baseline", "warmup", "html")}
    for name, value in given.items():
        if value is not None:
            said += [f"--{name}", value]
    for arm in options["only"]:
        said += ["--arm", arm]
    if options["slo"] is not None:
        said += ["--slo", options["slo"].option]
    if options["checking"]:
        said += ["--check", "--claim", options["claim"]]
    return shlex.join([*said, "--margin", f"{options['margin']:g}"])
