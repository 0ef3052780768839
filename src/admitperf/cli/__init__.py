"""The command line. One file a command, loaded when it is used.

Results go to standard output, everything else to standard error. Exit codes: 0 fine,
1 a check failed, 2 wrong use, or input that cannot be read.
"""

import click

from admitperf._version import __version__
from admitperf.cli.lazy import LazyGroup

# Command -> where it is, and its line in the list of commands.
COMMANDS = {
    "signals": (
        "admitperf.cli.signals:command",
        "Say which signals an engine supplies.",
    ),
    "watch": (
        "admitperf.cli.watch:command",
        "Watch engines: could a policy have fired?",
    ),
    "reach": (
        "admitperf.cli.reach:command",
        "Say how high KV pressure can get at all.",
    ),
    "policies": ("admitperf.cli.policies:command", "List the installed policies."),
    "report": (
        "admitperf.cli.report:command",
        "Report on a log: could it have fired, and more.",
    ),
    "advise": (
        "admitperf.cli.advise:command",
        "Say which shape of policy follows from a log.",
    ),
    "doctor": (
        "admitperf.cli.doctor:command",
        "Say what is set up wrong, and how to fix it.",
    ),
    "compare": (
        "admitperf.cli.compare:command",
        "Compare policies: checks before numbers.",
    ),
    "experiments": (
        "admitperf.cli.experiments:command",
        "List experiments and their runs.",
    ),
    "log": ("admitperf.cli.log:command", "Work on the lines of a log."),
    "sim": ("admitperf.cli.sim:command", "Simulated engines: serve, run, fit, check."),
    "gateway": (
        "admitperf.cli.gateway:command",
        "The front door: decide, then forward or refuse.",
    ),
    "infra": (
        "admitperf.cli.infra:command",
        "An engine to benchmark: up, smoke, down.",
    ),
    "bench": (
        "admitperf.cli.bench:command",
        "Run and read benchmarks of policies.",
    ),
    "dashboard": (
        "admitperf.cli.dashboard:command",
        "Look at logs in a browser.",
    ),
    "demo": ("admitperf.cli.demo:command", "Show the argument on a simulated engine."),
}


@click.group(
    cls=LazyGroup,
    lazy=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, "--version", message="admitperf %(version)s")
def main() -> None:
    """Admission control for LLM inference: admit, defer or reject, and prove it.

    Exit codes: 0 fine, 1 a check failed, 2 wrong use or input that cannot be read.
    """
