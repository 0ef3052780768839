"""`admitperf sim serve`."""

import sys
from dataclasses import replace
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypedDict, Unpack

import click

from admitperf.cli.names import HOST, NAME
from admitperf.cli.reading import UnreadableInput
from admitperf.core.errors import AdmitPerfError, ConfigError
from admitperf.reports.wording import printable

if TYPE_CHECKING:
    from admitperf.simulator.engine.model import EngineModel
    from admitperf.simulator.server.faults import Fault
    from admitperf.simulator.server.setup import Setup

PROFILE = "vllm-cpu"
_MOST_MEAN_TOKENS = 1e9


class _Options(TypedDict):
    """The options as click hands them over."""

    profile: str
    host: str
    port: int
    model: str
    dialect: Literal["vllm", "sglang"]
    seed: int
    faults: str | None
    fault: tuple[str, ...]
    max_num_queued_reqs: int | None
    max_num_queued_tokens: int | None
    mean_tokens: float
    shutdown: Literal["hang", "drain", "cut"]


def _no_nan(context: click.Context, parameter: click.Parameter, value: float) -> float:
    """Refuses what compares with nothing, so that no bound refuses it."""
    if isnan(value):
        raise click.BadParameter("nan is no number", context, parameter)
    return value


@click.command("serve")
@click.option(
    "--profile",
    metavar="NAME|FILE",
    default=PROFILE,
    show_default=True,
    help="The engine: one that comes along (`admitperf sim profiles`), or a file.",
)
@click.option(
    "--host",
    type=HOST,
    default="127.0.0.1",
    show_default=True,
    help="To listen on.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8000,
    show_default=True,
    help="To listen on; 0 = any that is free.",
)
@click.option(
    "--model",
    type=NAME,
    default="simulated",
    show_default=True,
    help="The name the model is served under.",
)
@click.option(
    "--dialect",
    type=click.Choice(["vllm", "sglang"]),
    default="vllm",
    show_default=True,
    help="Whose names the metrics have.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Of noise, answers and faults.",
)
@click.option("--faults", metavar="FILE", help="JSON: what goes wrong, and when.")
@click.option(
    "--fault",
    metavar="KIND[:NAME=VALUE,...]",
    multiple=True,
    help="The same in short: slow:factor=3,at=10,for=5. May be given again.",
)
@click.option(
    "--max-num-queued-reqs",
    type=click.IntRange(min=1),
    help="As vLLM's: requests inside at which more get 503.  [default: the profile's]",
)
@click.option(
    "--max-num-queued-tokens",
    type=click.IntRange(min=1),
    help="As vLLM's: prompt tokens waiting at which more get 503.  [default: the"
    " profile's]",
)
@click.option(
    "--mean-tokens",
    type=click.FloatRange(1, _MOST_MEAN_TOKENS),
    callback=_no_nan,
    default=200.0,
    show_default=True,
    help="Mean length of answers without ignore_eos.",
)
@click.option(
    "--shutdown",
    type=click.Choice(["hang", "drain", "cut"]),
    default="hang",
    show_default=True,
    help="What SIGTERM or Ctrl-C does to open requests: they stand still until their"
    " callers leave, as with vLLM; are finished; or end. The second one ends all.",
)
def command(**options: Unpack[_Options]) -> None:
    """Serve a simulated engine over HTTP, as vLLM would.

    It answers /v1/completions, /v1/chat/completions, /v1/responses and /v1/messages,
    streamed or not, gets as busy and as full as the engine of the profile, and shows
    that on /metrics. The answers are words without sense. What goes wrong is said with
    --fault, --faults, or while it runs with POST /admin/faults from the same machine.

    It prints its address once it listens. Exit codes: 0 ended as asked, 1 a second
    signal cut off what was open, 2 wrong use.
    """
    try:
        setup, faults = _setup(options), _faults(options)
    except AdmitPerfError as error:
        raise UnreadableInput(printable(str(error))) from None
    try:
        code = _serve(setup, faults, options)
    except ConfigError as error:
        raise UnreadableInput(printable(str(error))) from None
    except OSError as error:
        where = f"{options['host']}:{options['port']}"
        why = (error.strerror or str(error)).lower()
        raise UnreadableInput(printable(f"{where}: {why}")) from None
    sys.exit(code)


def _setup(options: _Options) -> "Setup":
    from admitperf.simulator.profile import profile
    from admitperf.simulator.server.extra import needed

    needed("aiohttp")  # before anything that imports it
    from admitperf.simulator.server.setup import Setup

    chosen = profile(options["profile"])
    return Setup(
        engine=_limited(chosen.engine, options),
        profile=chosen.name,
        model=options["model"],
        dialect=options["dialect"],
        seed=options["seed"],
        mean_tokens=options["mean_tokens"],
    )


def _limited(engine: "EngineModel", options: _Options) -> "EngineModel":
    """The engine with the limits that were given in place of its own."""
    reqs, tokens = options["max_num_queued_reqs"], options["max_num_queued_tokens"]
    if reqs is not None:
        engine = replace(engine, max_num_queued_reqs=reqs)
    if tokens is not None:
        engine = replace(engine, max_num_queued_tokens=tokens)
    return engine


def _faults(options: _Options) -> "list[Fault]":
    """Those of the file and those of the command line; all that is wrong at once."""
    from admitperf.simulator.server.faults import parsed, written

    told: list[Fault] = []
    wrong: list[str] = []
    try:
        told += written(options["fault"])
    except ConfigError as error:
        wrong.append(str(error))
    path = options["faults"]
    if path is not None:
        try:
            told += parsed(Path(path).read_bytes(), f"--faults {path}")
        except OSError as error:
            why = (error.strerror or "cannot be read").lower()
            wrong.append(f"--faults {path}: {why}")
        except ConfigError as error:
            wrong.append(str(error))
    if wrong:
        raise AdmitPerfError("; ".join(wrong))
    return told


def _serve(setup: "Setup", faults: "list[Fault]", options: _Options) -> int:
    import asyncio

    from admitperf.simulator.server.serving import Serving

    def ready(host: str, port: int) -> None:
        said = f"[{host}]" if ":" in host else host
        click.echo(f"{printable(setup.model)} on http://{said}:{port} (simulated)")
        sys.stdout.flush()

    async def serving() -> int:
        server = Serving(setup, faults, options["shutdown"])
        return await server.run(options["host"], options["port"], ready)

    return asyncio.run(serving())
