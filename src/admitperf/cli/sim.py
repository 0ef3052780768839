"""`admitperf sim`: simulated engines."""

import click

from admitperf.cli.lazy import LazyGroup

COMMANDS = {
    "run": ("admitperf.cli.sim_run:command", "Put a policy before a simulated engine."),
    "serve": ("admitperf.cli.sim_serve:command", "Serve a simulated engine over HTTP."),
    "profiles": ("admitperf.cli.sim_fit:profiles", "List the engines that come along."),
    "fit": ("admitperf.cli.sim_fit:fit", "Fit an engine to recorded runs."),
    "check": ("admitperf.cli.sim_fit:check", "Hold an engine against recorded runs."),
}


@click.group("sim", cls=LazyGroup, lazy=COMMANDS)
def command() -> None:
    """Simulated engines, and how far they are like real ones.

    Whatever is simulated says so.
    """
