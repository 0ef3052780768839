"""`admitperf bench`: benchmarks of policies."""

import click

from admitperf.cli.lazy import LazyGroup

COMMANDS = {
    "run": (
        "admitperf.cli.bench_run:command",
        "Run a benchmark; `bench CONFIG.yaml` and `bench --OPTION` are this.",
    ),
    "compare": (
        "admitperf.cli.bench_compare:command",
        "Read a benchmark: verdicts, table, plot.",
    ),
    "workloads": (
        "admitperf.cli.bench_lists:workloads",
        "List what can be asked of an engine.",
    ),
    "clients": (
        "admitperf.cli.bench_lists:clients",
        "List what refused callers can do.",
    ),
    "read": (
        "admitperf.cli.bench_read:command",
        "Read the result files of other benchmarks.",
    ),
}

_RUN = "run"


class _Falling(LazyGroup):
    """A group whose first command needs no name."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Puts the name in front of what is no command."""
        if args and args[0] not in COMMANDS and args[0] not in ctx.help_option_names:
            args = [_RUN, *args]
        return super().parse_args(ctx, args)


@click.group("bench", cls=_Falling, lazy=COMMANDS)
def command() -> None:
    """Benchmarks: policies before one engine, held against no policy at all.

    `admitperf bench CONFIG.yaml`, or options for the common case, such as
    `admitperf bench --profile a100-40-qwen2.5-7b --policy queue_depth:max_waiting=8`.
    """
