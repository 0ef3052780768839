"""Options of the commands that read logs."""

import click

from admitperf.cli.bounds import BOUNDS

SLO = click.option(
    "--slo",
    type=BOUNDS,
    help="Bounds in ms, such as ttft_ms=1500,stall_ms=500 (also e2e_ms), in place of"
    " those in the log.",
)
WARMUP = click.option(
    "--warmup",
    metavar="N|Ns",
    help="Leave the first 10 requests, or the first 30s, out of every number.",
)
MEMORY_LIMIT = click.option(
    "--memory-limit",
    metavar="SIZE",
    help="Most memory to read with, such as 2GB; what is more goes to disk.",
)
