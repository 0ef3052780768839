"""`admitperf dashboard`."""

import ipaddress
import sys
from importlib.util import find_spec
from pathlib import Path

import click

from admitperf.cli.log_options import SLO, WARMUP
from admitperf.cli.reading import UnreadableInput
from admitperf.core.errors import ConfigError
from admitperf.reports.runs.slo import Slo
from admitperf.reports.runs.warmup import Cut
from admitperf.reports.wording import printable

_NEEDED = ("streamlit", "duckdb", "scipy")


@click.command()
@click.argument("path", metavar="[PATH]", default="", required=False)
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    help="Serve on this port.  [default: the first free one from 8501 on]",
)
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on. There is no login: leave it on loopback.",
)
@SLO
@WARMUP
def command(
    path: str, port: int | None, host: str, slo: Slo | None, warmup: str | None
) -> None:
    """Look at logs in a browser: experiments, one run, a comparison, a growing log.

    PATH is a log, or a folder with logs below it: ./experiments when there is one, else
    this folder. Only what lies there is read, and nothing is written but a cache in the
    user's own folder. The address is printed once it serves; Ctrl-C ends it.

    Every number is one of `admitperf report --json`.

    Exit code 2 when it cannot be started.
    """
    _installed()
    _cut(warmup)
    where = _place(path)
    chosen = _port(host, port)
    _exposed(host)
    bounds = "" if slo is None else slo.option

    from admitperf.dashboard import start

    start.run(
        host,
        chosen,
        [str(where), bounds, warmup or ""],
        lambda: click.echo(f"dashboard at {_url(host, chosen)} (Ctrl-C ends it)"),
    )
    sys.exit(0)


def _installed() -> None:
    absent = [name for name in _NEEDED if find_spec(name) is None]
    if absent:
        raise UnreadableInput(
            f"this needs {', '.join(absent)}, of the extra admitperf[dashboard]:"
            f" pip install {' '.join(absent)}"
        )


def _cut(warmup: str | None) -> None:
    """Refuses a warm-up that makes no sense before anything is served."""
    try:
        if warmup is not None:
            Cut.parsed(warmup)
    except ConfigError as error:
        raise click.UsageError(printable(str(error))) from None


def _place(path: str) -> Path:
    default = Path("experiments")
    where = Path(path) if path else default if default.is_dir() else Path()
    try:
        there = where.exists()
    except (OSError, ValueError):
        there = False
    if not there:
        raise UnreadableInput(printable(f"{where}: no such file or folder"))
    return where


def _exposed(host: str) -> None:
    """Warns of an address that others can reach."""
    try:
        inside = ipaddress.ip_address(host).is_loopback
    except ValueError:
        inside = host == "localhost"
    if not inside:
        click.echo(
            "warning: there is no login, and whoever reaches this address reads"
            " the logs",
            err=True,
        )


def _port(host: str, port: int | None) -> int:
    from admitperf.dashboard import start

    try:
        if port is None:
            found = start.free_port(host)
        else:
            found = start.free_port(host, port, most=1)
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise UnreadableInput(
            printable(f"{host}: cannot listen there: {why}")
        ) from None
    if found is None:
        which = f"port {port} is" if port else "all ports from 8501 to 8600 are"
        raise UnreadableInput(f"{which} in use: choose another with --port")
    return found


def _url(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
