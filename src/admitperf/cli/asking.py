"""The options of commands that ask endpoints for their metrics."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from admitperf.scrape.limits import TIMEOUT_S
from admitperf.scrape.token import DEFAULT_ENV

_Command = TypeVar("_Command", bound=Callable[..., Any])


def token_options(command: _Command) -> _Command:
    """Adds `--token-env` and `--token-file`: where the token is, never the token."""
    from_file = click.option(
        "--token-file", metavar="PATH", help="File that holds the token."
    )
    from_env = click.option(
        "--token-env",
        metavar="NAME",
        help=f"Environment variable that holds the token.  [default: {DEFAULT_ENV}]",
    )
    return from_env(from_file(command))


timeout_option = click.option(
    "--timeout",
    "timeout_s",
    metavar="SECONDS",
    type=click.FloatRange(0, 3600, min_open=True),
    default=TIMEOUT_S,
    show_default=True,
    help="Longest an answer may take.",
)
