"""The command line. One file a command, loaded when it is used.

Results go to standard output, everything else to standard error. Exit codes: 0 fine,
1 a check failed, 2 wrong use, or input that cannot be read.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module

import click

from admitperf._version import __version__

# Command -> the module whose `command` it is, and its line in the list of commands.
COMMANDS = {
    "signals": ("admitperf.cli.signals", "Say which signals an engine supplies."),
    "watch": ("admitperf.cli.watch", "Watch engines: could a policy have fired?"),
    "reach": ("admitperf.cli.reach", "Say how high KV pressure can get at all."),
    "policies": ("admitperf.cli.policies", "List the installed policies."),
    "report": (
        "admitperf.cli.report",
        "Report on a log: could it have fired, and more.",
    ),
    "compare": ("admitperf.cli.compare", "Compare policies: checks before numbers."),
    "experiments": ("admitperf.cli.experiments", "List experiments and their runs."),
    "log": ("admitperf.cli.log", "Work on the lines of a log."),
    "demo": ("admitperf.cli.demo", "Show the argument on a simulated engine."),
}

_UNWRITTEN = 2
_BROKEN_PIPE = 141  # 128 + SIGPIPE, what a shell shows for a command cut off by `head`


class LazyGroup(click.Group):
    """A group whose commands are imported when they are asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """The names, in the order a newcomer needs them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Imports a command; None when there is none of that name."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(COMMANDS[cmd_name][0]).command
        return command

    def format_commands(
        self,
        ctx: click.Context,  # noqa: ARG002
        formatter: click.HelpFormatter,
    ) -> None:
        """Lists the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, said) for name, (_, said) in COMMANDS.items()])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parses what stands before the command, and prints help or version."""
        with _writing():
            return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        """Runs the command."""
        with _writing():
            return super().invoke(ctx)


@contextmanager
def _writing() -> Iterator[None]:
    """Ends without a traceback when standard output takes no more.

    Quietly when its reader has gone away; with one line when it is full or closed.
    """
    if sys.stdout is None:
        # Opened for reading: writing to it fails like writing to what is closed.
        nothing = os.open(os.devnull, os.O_RDONLY)
        sys.stdout = open(nothing, "w", encoding="utf-8")  # noqa: PTH123, SIM115
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        _let_go()
        sys.exit(_BROKEN_PIPE)
    except OSError as error:
        _let_go()
        where = error.filename or "standard output"
        why = (error.strerror or type(error).__name__).lower()
        with suppress(OSError):
            click.echo(f"Error: {where}: {why}", err=True)
        sys.exit(_UNWRITTEN)


def _let_go() -> None:
    """What is still buffered is flushed at exit, and must not fail again."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "--version", message="admitperf %(version)s")
def main() -> None:
    """Admission control for LLM inference: admit, defer or reject, and prove it.

    Exit codes: 0 fine, 1 a check failed, 2 wrong use or input that cannot be read.
    """
