"""Groups of commands that are loaded when they are used."""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any

import click

_UNWRITTEN = 2
_BROKEN_PIPE = 141  # 128 + SIGPIPE, what a shell shows for a command cut off by `head`


class LazyGroup(click.Group):
    """A group whose commands are imported when they are asked for.

    Args:
        lazy: command to where it is, as `module:name`, and its line in the list.
        given: as for any group.
    """

    def __init__(self, *, lazy: Mapping[str, tuple[str, str]], **given: Any) -> None:  # noqa: ANN401  click's own
        super().__init__(**given)
        self._lazy = lazy

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """The names, in the order a newcomer needs them."""
        return list(self._lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Imports a command; None when there is none of that name."""
        if cmd_name not in self._lazy:
            return None
        module, _, name = self._lazy[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(module), name)
        return command

    def format_commands(
        self,
        ctx: click.Context,  # noqa: ARG002
        formatter: click.HelpFormatter,
    ) -> None:
        """Lists the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, said) for name, (_, said) in self._lazy.items()])

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
