"""`admitperf report`."""

import json
import shlex
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypedDict, Unpack

import click

from admitperf.cli import colour, html_file
from admitperf.cli.log_options import MEMORY_LIMIT, SLO, WARMUP
from admitperf.cli.reading import UnreadableInput, end_unread, say_when_waiting
from admitperf.core.errors import AdmitPerfError, ConfigError, LogError
from admitperf.reports.runs.slo import Slo
from admitperf.reports.wording import printable

if TYPE_CHECKING:
    from admitperf.reports.pages.checks import Checked
    from admitperf.reports.report import Report
    from admitperf.reports.series.series import Series

_FAILED = 1


class _Options(TypedDict):
    """The options as click hands them over."""

    as_json: bool
    series: bool
    checking: bool
    card: str | None
    html: str | None
    slo: Slo | None
    warmup: str | None
    memory_limit: str | None


@click.command()
@click.argument("logs", metavar="LOG|DIR...", nargs=-1, required=True)
@click.option("--json", "as_json", is_flag=True, help="Print the numbers as JSON.")
@click.option(
    "--series",
    is_flag=True,
    help="With --json: each run over time too, in at most 300 bins.",
)
@click.option(
    "--check",
    "checking",
    is_flag=True,
    help="Exit 1 unless the logs support a claim, and say why.",
)
@click.option(
    "--card",
    type=click.Choice(["md"]),
    help="Print a card for a paper instead of the page: Markdown tables.",
)
@html_file.html_option
@SLO
@WARMUP
@MEMORY_LIMIT
def command(logs: tuple[str, ...], **options: Unpack[_Options]) -> None:
    """Report on the runs in logs, or in folders of logs.

    Each run answers five questions: could the policy have fired, which signals moved,
    what it did, what it cost, and where the instrument failed; then the seven reporting
    items. A LOG may be packed (.gz, .zst); - is standard input. The files of a rotated
    log may be given in any order, or as their folder.

    The finding is one word. LIVE: it refused something. INERT: it ran and never
    answered anything but admit. UNKNOWN: the log cannot say. BASELINE: it refuses
    nothing by design. SHADOW: nothing was enforced.

    Exit code 1 when a check failed, 2 when a LOG could not be read; the others are
    reported all the same.
    """
    _refuse_two_forms(options)
    if options["html"] is not None:
        html_file.ready(options["html"])
    say_when_waiting(logs)
    try:
        made, over_time = _read(logs, options)
    except LogError as error:
        end_unread(error.args)
        return
    except ConfigError as error:
        raise click.UsageError(printable(str(error))) from None
    except AdmitPerfError as error:
        raise UnreadableInput(printable(str(error))) from None
    _end(made, over_time, logs, options)


def _refuse_two_forms(options: _Options) -> None:
    forms = {
        "--card": options["card"],
        "--json": options["as_json"],
        "--html": options["html"],
    }
    chosen = [name for name, value in forms.items() if value]
    if chosen[1:]:
        raise click.UsageError(f"{' and '.join(chosen)} are two forms: choose one")
    if options["series"] and not options["as_json"]:
        raise click.UsageError("--series is a part of --json: give both")


def _read(
    logs: Sequence[str], options: _Options
) -> "tuple[Report, Sequence[Series | None] | None]":
    """The report, and its runs over time for the forms that show them."""
    from admitperf.reports.report import reported
    from admitperf.reports.series.series import series
    from admitperf.reports.sheets.report_sheet import MOST_RUNS

    limits = {"warmup": options["warmup"], "memory_limit": options["memory_limit"]}
    with reported(logs, options["slo"], **limits) as (log, made):
        if options["html"] is not None:
            return made, series(log, made, MOST_RUNS)
        return made, series(log, made) if options["series"] else None


def _end(
    made: "Report",
    over_time: "Sequence[Series | None] | None",
    logs: Sequence[str],
    options: _Options,
) -> None:
    """Shows the report; ends the program when something in it failed."""
    from admitperf.reports.pages.checks import check

    checked = check(made) if options["checking"] else None
    if options["html"] is not None:
        _write(made, checked, over_time, options["html"], _again(logs, options))
    else:
        shown = _shown(made, checked, over_time, logs, options)
        if options["as_json"] or options["card"]:
            click.echo(shown, nl=False)
        else:
            colour.echo(shown)
    end_unread(made.files.unread)
    if checked is not None and not checked.passed:
        sys.exit(_FAILED)


def _shown(
    made: "Report",
    checked: "Checked | None",
    over_time: "Sequence[Series | None] | None",
    logs: Sequence[str],
    options: _Options,
) -> str:
    """The report in the form that was asked for, with a line end."""
    from admitperf.reports.pages import render
    from admitperf.reports.pages.card import card
    from admitperf.reports.pages.document import document

    if options["as_json"]:
        plain = document(made, checked, over_time)
        return json.dumps(plain, indent=2, allow_nan=False) + "\n"
    if options["card"]:
        return card(made, _again(logs, options))
    return render.text(made, checked)


def _write(
    made: "Report",
    checked: "Checked | None",
    over_time: "Sequence[Series | None] | None",
    output: str,
    command_line: str,
) -> None:
    """Writes the page as HTML."""
    from admitperf.reports.pages.document import document
    from admitperf.reports.sheets.report_sheet import report_sheet

    plain = document(made, checked, over_time)
    html_file.write(report_sheet(plain, command_line), output)


def _again(logs: Sequence[str], options: _Options) -> str:
    """The command line that makes the same card, or the same page."""
    said = ["admitperf", "report", *logs]
    if options["card"]:
        said += ["--card", options["card"]]
    if options["html"] is not None:
        said += ["--html", options["html"], *["--check"] * options["checking"]]
    if options["slo"] is not None:
        said += ["--slo", options["slo"].option]
    if options["warmup"] is not None:
        said += ["--warmup", options["warmup"]]
    return shlex.join(said)
