"""`admitperf watch`."""

import json
import math
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import click

from admitperf.cli import colour
from admitperf.cli.asking import timeout_option, token_options
from admitperf.cli.duration import Duration, spoken
from admitperf.cli.layout import wrapped
from admitperf.cli.reading import UnreadableInput
from admitperf.core.errors import AdmitPerfError
from admitperf.reports.wording import plural, printable

if TYPE_CHECKING:
    from admitperf.core.policy import Policy
    from admitperf.lab.judge import Judged
    from admitperf.lab.recorder import Counts
    from admitperf.lab.watch import Watch
    from admitperf.reports.report import Report
    from admitperf.scrape.target import Endpoint

SCHEMA = 1
_UNREAD = 2
_DEFAULT_FOR_S = 60.0
_DEFAULT_PATH = "trace.jsonl"
_LONGEST_S = 366 * 86400.0
_WIDTH = 79


@click.command()
@click.argument("urls", metavar="URL...", nargs=-1, required=True)
@click.option(
    "--for",
    "for_s",
    type=Duration(0.001, _LONGEST_S),
    default=_DEFAULT_FOR_S,
    help="How long, such as 90s, 5m or 1h30m.  [default: 1m]",
)
@click.option(
    "--interval",
    "interval_s",
    type=Duration(0.05, 3600),
    default=1.0,
    help="From one sample to the next.  [default: 1s]",
)
@click.option(
    "-o",
    "--output",
    "path",
    metavar="FILE",
    default=_DEFAULT_PATH,
    show_default=True,
    help="The trace.",
)
@click.option("--force", is_flag=True, help="Replace FILE when it is there.")
@click.option(
    "--policy",
    "names",
    metavar="NAME",
    multiple=True,
    help="An installed policy to run at the end; may be given again.  [default: all]",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@token_options
@timeout_option
def command(  # noqa: PLR0913  one argument an option
    urls: tuple[str, ...],
    *,
    for_s: float,
    interval_s: float,
    path: str,
    force: bool,
    names: tuple[str, ...],
    as_json: bool,
    token_env: str | None,
    token_file: str | None,
    timeout_s: float,
) -> None:
    """Watch engines: could a policy have fired?

    Reads the metrics of each URL (HOST:PORT is enough) at fixed times and writes them
    to a trace. Several replicas make one pool; a GPU exporter may stand among them. No
    request is touched and nothing is governed.

    At the end every installed policy runs over the samples, at its defaults. A summary
    says which signals moved, and on how many samples each policy would have fired; the
    page of `admitperf report` follows. SIGINT (Ctrl-C), SIGTERM and SIGHUP end the
    watch early in the same way.

    Exit code 2 when no URL can be read, or FILE cannot be written.
    """
    from admitperf.lab.watch import Plan, Watch

    if math.isnan(timeout_s):
        raise click.BadParameter("nan is no number of seconds", param_hint="--timeout")
    count = max(1, math.ceil(round(for_s / interval_s, 6)))
    with _one_line():
        endpoints = _endpoints(urls, (token_env, token_file), timeout_s)
        plan = Plan(endpoints, interval_s, count, path, force, _classes(names))
        with Watch(plan) as watch:
            with _ended_by_signals(watch):
                _begin(watch)
                _sample(watch)
            judged = _judge(watch)
    _end(watch, judged, as_json=as_json)


@contextmanager
def _one_line() -> Iterator[None]:
    try:
        yield
    except AdmitPerfError as error:
        raise UnreadableInput(printable(str(error))) from None


def _endpoints(
    urls: Sequence[str], where: tuple[str | None, str | None], timeout_s: float
) -> "list[Endpoint]":
    from admitperf.scrape.address import Address, is_address
    from admitperf.scrape.fault import ScrapeError
    from admitperf.scrape.target import Endpoint
    from admitperf.scrape.token import read_token

    token = read_token(*where)
    for url in urls:
        if not is_address(url):
            what = "is no address of a running engine; write HOST:PORT"
            raise ScrapeError("bad_address", url or "''", what)
    return [Endpoint(Address.of(url), token, timeout_s) for url in urls]


def _classes(names: Sequence[str]) -> "list[type[Policy]]":
    """The policies to run; without names all but the one that holds the samples."""
    from admitperf.policies import available, load

    if names:
        return [load(name) for name in dict.fromkeys(names)]
    return [cls for name, cls in available().items() if name != "no_admission"]


@contextmanager
def _ended_by_signals(watch: "Watch") -> Iterator[None]:
    """The first of the signals ends the sampling; then only Ctrl-C is listened to.

    Handlers are installed whatever was there: a shell starts what runs in the
    background with SIGINT ignored. A terminal that stops its background jobs when they
    write must not hold up the report.
    """
    if hasattr(signal, "SIGTTOU"):
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    ends = [s for s in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, s)]
    for name in ends:
        signal.signal(getattr(signal, name), lambda *_: watch.stop())
    yield
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _begin(watch: "Watch") -> None:
    """Asks every engine once: when none answers there is nothing to wait for."""
    faults = watch.first()
    ended = len(faults) == len(watch.names)
    for fault in faults:
        said = printable(str(fault))
        lines = [f"Error: {said}"] if ended else wrapped(f"Warning: {_again(said)}")
        click.echo("\n".join(lines), err=True)
    if ended:
        sys.exit(_UNREAD)


def _again(said: str) -> str:
    end = "" if said.endswith(("?", ".", "!")) else "."
    return f"{said}{end} It is asked again each time."


def _sample(watch: "Watch") -> None:
    progress = _Progress(watch.plan.count, watch.plan.interval_s)
    for counts in watch.run():
        progress.show(counts)
    progress.clear()
    if watch.fault:
        click.echo(f"Error: {printable(watch.fault)}; the watch ends here", err=True)


def _judge(watch: "Watch") -> "list[Judged]":
    from admitperf.core.notice import hushed

    progress = _Progress(watch.counts.samples, 0.0, "policies over the samples: ")
    with hushed():  # that a policy was blind is said by the report
        judged = watch.judge(progress.tick)
    progress.clear()
    return judged


class _Progress:
    """One line on a terminal, rewritten; nothing anywhere else."""

    def __init__(self, most: int, interval_s: float, what: str = "") -> None:
        self._most = most
        self._interval_s = interval_s
        self._what = what
        self._n = 0
        self._shown = _in_the_foreground()

    def tick(self) -> None:
        self._n += 1
        if self._n % 50 == 0:
            self._write(f"{self._what}{self._n} of {self._most}")

    def show(self, counts: "Counts") -> None:
        left_s = (self._most - counts.rounds - counts.missed) * self._interval_s
        failed = sum(counts.failed.values())
        self._write(
            f"{plural(counts.samples, 'sample')},"
            f" {plural(failed, 'failed scrape')};"
            f" ends in {spoken(max(0.0, left_s))}, or with Ctrl-C"
        )

    def clear(self) -> None:
        self._write("")

    def _write(self, text: str) -> None:
        if self._shown:
            with suppress(OSError):
                sys.stderr.write(f"\r{text[:_WIDTH]:<{_WIDTH}}\r{text[:_WIDTH]}")
                sys.stderr.flush()


def _in_the_foreground() -> bool:
    """Whether standard error is a terminal that is ours to write on."""
    try:
        ours = os.tcgetpgrp(sys.stderr.fileno()) == os.getpgrp()
    except (OSError, AttributeError, ValueError):
        return False
    return ours and sys.stderr.isatty()


def _end(watch: "Watch", judged: "Sequence[Judged]", *, as_json: bool) -> None:
    """The report; exit code 2 when there is nothing to report on, or no trace."""
    from admitperf.cli.watched import closing, summary, unseen
    from admitperf.core.record import strict

    if not watch.counts.samples:
        why = "; ".join(watch.counts.last.values()) or "it was stopped before the first"
        raise UnreadableInput(printable(f"no sample was taken: {why}"))
    page = None if watch.fault else _page(watch.plan.path)
    if as_json:
        told = {"schema": SCHEMA, **watch.to_dict(judged)}
        told["report"] = _document(page) if page else None
        click.echo(json.dumps(strict(told), indent=2, allow_nan=False))
    else:
        for line in (*unseen(watch), *summary(watch, judged), ""):
            click.echo(line)
        if page:
            _show(page)
        click.echo("\n".join(closing(watch, judged, reported=page is not None)))
    if watch.fault:
        sys.exit(_UNREAD)


def _document(page: "Report") -> dict[str, object]:
    from admitperf.reports.pages.document import document

    return document(page)


def _show(page: "Report") -> None:
    from admitperf.reports.pages import render

    colour.echo(render.text(page))


def _page(path: str) -> "Report | None":
    """What `admitperf report` says of the trace; None where it is not installed."""
    from admitperf.core.errors import LogError

    try:
        from admitperf.reports.report import report

        return report([path])
    except ImportError:
        return None
    except LogError as error:
        raise UnreadableInput(printable(str(error))) from None
