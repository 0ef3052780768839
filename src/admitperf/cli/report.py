"""`admitperf report`."""

import json
import shlex
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypedDict, Unpack

import click

from admitperf.cli.log_options import MEMORY_LIMIT, SLO, WARMUP
from admitperf.cli.reading import UnreadableInput, end_unread, say_when_waiting
from admitperf.core.errors import AdmitPerfError, ConfigError, LogError
from admitperf.reports.runs.slo import Slo
from admitperf.reports.wording import printable

if TYPE_CHECKING:
    from admitperf.reports.pages.checks import Checked
    from admitperf.reports.report import Report

_FAILED = 1


class _Options(TypedDict):
    """The options as click hands them over."""

    as_json: bool
    checking: bool
    card: str | None
    slo: Slo | None
    warmup: str | None
    memory_limit: str | None


@click.command()
@click.argument("logs", metavar="LOG|DIR...", nargs=-1, required=True)
@click.option("--json", "as_json", is_flag=True, help="Print the numbers as JSON.")
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
    from admitperf.reports.pages.checks import check
    from admitperf.reports.report import report

    if options["card"] and options["as_json"]:
        raise click.UsageError("--card and --json are two forms: choose one")
    say_when_waiting(logs)
    limits = {"warmup": options["warmup"], "memory_limit": options["memory_limit"]}
    try:
        made = report(logs, options["slo"], **limits)
    except LogError as error:
        end_unread(error.args)
        return
    except ConfigError as error:
        raise click.UsageError(printable(str(error))) from None
    except AdmitPerfError as error:
        raise UnreadableInput(printable(str(error))) from None
    checked = check(made) if options["checking"] else None
    click.echo(_shown(made, checked, logs, options), nl=False)
    end_unread(made.files.unread)
    if checked is not None and not checked.passed:
        sys.exit(_FAILED)


def _shown(
    made: "Report", checked: "Checked | None", logs: Sequence[str], options: _Options
) -> str:
    """The report in the form that was asked for, with a line end."""
    from admitperf.reports.pages import render
    from admitperf.reports.pages.card import card
    from admitperf.reports.pages.document import document

    if options["as_json"]:
        plain = document(made, checked)
        return json.dumps(plain, indent=2, allow_nan=False) + "\n"
    if options["card"]:
        return card(made, _again(logs, options))
    return render.text(made, checked)


def _again(logs: Sequence[str], options: _Options) -> str:
    """The command line that makes the same card."""
    said = ["admitperf", "report", *logs, "--card", "md"]
    if options["slo"] is not None:
        said += ["--slo", options["slo"].text.replace(" ", "=").replace(",=", ",")]
    if options["warmup"] is not None:
        said += ["--warmup", options["warmup"]]
    return shlex.join(said)
