"""`admitperf infra`: an engine to benchmark, brought up, tried and taken down."""

import json
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypedDict, Unpack, get_args

import click

from admitperf.cli.asking import token_options
from admitperf.cli.duration import Duration, spoken
from admitperf.cli.layout import row, wrapped
from admitperf.cli.lazy import LazyGroup
from admitperf.cli.names import NAME
from admitperf.cli.reading import UnreadableInput
from admitperf.core.errors import AdmitPerfError
from admitperf.provision.wish import Kind, Wish
from admitperf.reports.wording import printable

if TYPE_CHECKING:
    from admitperf.core.policy import Policy
    from admitperf.provision.down import Downed
    from admitperf.provision.smoke import Smoked
    from admitperf.provision.state import State
    from admitperf.provision.up import Progress

SCHEMA = 1
COMMANDS = {
    "up": ("admitperf.cli.infra:up", "Start an engine, and wait until it is healthy."),
    "smoke": ("admitperf.cli.infra:smoke", "Try the engine that is up."),
    "down": ("admitperf.cli.infra:down", "End everything that up has started."),
}
_COLUMN = 14
_FAILED = 1
_PORT = 8000
_DAY_S = 86400.0
_SAID_EACH_S = 30.0
_STATE = ".admitperf/infra.json"
_OF = {
    "profile": ("sim",),
    "url": ("url",),
    "gpu": ("skypilot",),
    "cluster": ("skypilot",),
    "ends_after_s": ("skypilot",),
    "port": ("vllm", "llamacpp", "sim", "skypilot"),
    "more": ("vllm", "llamacpp", "sim", "skypilot"),
}
"""Options that only some kinds of engine have."""


class _Options(TypedDict):
    """The options of `up` as click hands them over."""

    provider: Kind | None
    state: str
    port: int
    model: str | None
    profile: str
    url: str | None
    gpu: str
    cluster: str
    ends_after_s: float
    wait_s: float
    dry_run: bool
    as_json: bool
    token_env: str | None
    token_file: str | None
    more: tuple[str, ...]


_state = click.option(
    "--state",
    metavar="FILE",
    type=NAME,
    default=_STATE,
    show_default=True,
    help="Where it is noted down what is up; the engine's log stands beside it.",
)
_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group("infra", cls=LazyGroup, lazy=COMMANDS)
def command() -> None:
    """An engine to benchmark: brought up, tried, and taken down again.

    What is up stands in a small file, so that `down` ends it from any terminal, also
    after a crash.
    """


@click.command("up")
@click.option(
    "--provider",
    type=click.Choice(get_args(Kind)),
    help="Whose engine: a vLLM, a llama.cpp server or a simulated one on this machine,"
    " one that runs already, or a vLLM on a rented GPU.  [default: vllm where it is"
    " installed]",
)
@_state
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=_PORT,
    show_default=True,
    help="To serve on; 0 = any that is free.",
)
@click.option(
    "--model",
    type=NAME,
    help="What to serve: a name on the Hugging Face Hub, a folder or a .gguf file; the"
    " name alone with sim and url.  [default: a small one]",
)
@click.option(
    "--profile",
    metavar="NAME|FILE",
    type=NAME,
    default="vllm-cpu",
    show_default=True,
    help="With sim: the engine.",
)
@click.option("--url", type=NAME, help="With url: HOST:PORT of the engine.")
@click.option(
    "--gpu",
    metavar="NAME[:COUNT]",
    default="A10:1",
    show_default=True,
    help="With skypilot: what to rent.",
)
@click.option(
    "--cluster",
    metavar="NAME",
    default="admitperf",
    show_default=True,
    help="With skypilot: its name for what is rented.",
)
@click.option(
    "--ends-after",
    "ends_after_s",
    type=Duration(600, 7 * _DAY_S),
    default=7200.0,
    help="With skypilot: the machine ends itself so long after its launch, whatever"
    " runs.  [default: 2h]",
)
@click.option(
    "--wait",
    "wait_s",
    type=Duration(0, _DAY_S),
    default=900.0,
    help="Longest it may take to become healthy.  [default: 15m]",
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Print the command line, or SkyPilot's task, and start nothing.",
)
@_json
@token_options
@click.argument("more", metavar="[-- ENGINE ARGS]", nargs=-1, type=click.UNPROCESSED)
def up(**options: Unpack[_Options]) -> None:
    """Start an engine, and wait until it is healthy.

    It runs on when this command has ended; `admitperf infra down` ends it. What stands
    behind -- is handed to the engine, such as -- --max-num-seqs 4.

    An engine that does not become healthy, or Ctrl-C meanwhile, leaves nothing running
    on this machine. What is rented stays until down, and the error says so.

    Exit code 2 when it cannot be brought up, or something is up already.
    """
    from admitperf.provision.up import planned
    from admitperf.provision.up import up as brought_up

    with _one_line():
        wish = _wish(options)
        if options["dry_run"]:
            click.echo(printable(planned(wish)) if _is_line(wish) else planned(wish))
            return
        try:
            with _told(wish) as progress:
                made = brought_up(wish, progress)
        except KeyboardInterrupt:
            _stopped(wish)
    told = made.to_dict() | {"schema": SCHEMA}
    _put(told, _is_up(made, wish.state), as_json=options["as_json"])


@click.command("smoke")
@_state
@click.option(
    "--policy",
    "names",
    metavar="NAME",
    multiple=True,
    help="An installed policy whose signals must be there; may be given again.",
)
@_json
@token_options
def smoke(
    *,
    state: str,
    names: tuple[str, ...],
    as_json: bool,
    token_env: str | None,
    token_file: str | None,
) -> None:
    """Try the engine that is up.

    One request goes through it as a benchmark sends them; its metrics are read; and
    running and queue_depth must be supplied, and what the named policies need.

    Exit code 1 when something is not as it should be, 2 when nothing is up.
    """
    from admitperf.provision.smoke import smoke as tried
    from admitperf.scrape.token import read_token

    with _one_line():
        classes = _classes(names)
        done = tried(Path(state), read_token(token_env, token_file), classes)
    _put({"schema": SCHEMA, **done.to_dict()}, _tried(done), as_json=as_json)
    if not done.ok:
        sys.exit(_FAILED)


@click.command("down")
@_state
@_json
def down(*, state: str, as_json: bool) -> None:
    """End everything that up has started.

    Also what an up that was killed has left, and a second time there is nothing to do.
    Only processes that up began are ended, known by their number and by when they
    began. At the end stands what may still cost money.

    Exit code 1 when something could not be ended.
    """
    from admitperf.provision.down import down as taken_down

    with _one_line():
        done = taken_down(Path(state))
    told = {
        "schema": SCHEMA,
        "provider": done.provider,
        "ended": list(done.ended),
        "left": list(done.left),
        "costs": list(done.costs),
    }
    _put(told, _is_down(done), as_json=as_json)
    if done.left:
        sys.exit(_FAILED)


@contextmanager
def _one_line() -> Iterator[None]:
    try:
        yield
    except AdmitPerfError as error:
        raise UnreadableInput(printable(str(error))) from None


def _wish(options: _Options) -> Wish:
    from admitperf.provision.engines import default_kind
    from admitperf.scrape.token import read_token

    kind = options["provider"] or ("url" if options["url"] else default_kind())
    _refuse_others(kind)
    return Wish(
        kind=kind,
        state=Path(options["state"]),
        port=options["port"],
        model=options["model"],
        profile=options["profile"],
        url=options["url"],
        gpu=options["gpu"],
        cluster=options["cluster"],
        ends_after_min=round(options["ends_after_s"] / 60),
        wait_s=options["wait_s"],
        token=read_token(options["token_env"], options["token_file"]),
        more=options["more"],
    )


def _stopped(wish: Wish) -> NoReturn:
    """Says after a Ctrl-C whether something is left."""
    left = "nothing of it runs"
    if wish.state.exists():
        down = _with_state("down", wish.state)
        left = f"{wish.state} names what may be left, and cost: `{down}`"
    click.echo(f"\nstopped; {left}", err=True)
    sys.exit(_FAILED)


def _refuse_others(kind: str) -> None:
    """An option that this kind of engine has not is a mistake, and said to be."""
    context = click.get_current_context()
    for option in context.command.params:
        kinds = _OF.get(option.name or "", (kind,))
        source = context.get_parameter_source(option.name or "")
        given = source is click.core.ParameterSource.COMMANDLINE
        if given and kind not in kinds and context.params[option.name or ""] != ():
            name = "what is behind --" if option.name == "more" else option.opts[-1]
            told = f"{name} does not go with {kind}, only with {', '.join(kinds)}"
            raise click.UsageError(told)


def _is_line(wish: Wish) -> bool:
    return wish.kind != "skypilot"


def _classes(names: Sequence[str]) -> "list[type[Policy]]":
    from admitperf.policies import load

    return [load(name) for name in dict.fromkeys(names)]


@contextmanager
def _told(wish: Wish) -> "Iterator[Progress]":
    """Lines on standard error, and on a terminal one that counts the seconds."""
    from admitperf.provision.up import Progress

    shown = sys.stderr is not None and sys.stderr.isatty()

    def say(text: str) -> None:
        click.echo("\n".join(wrapped(text)), err=True)

    said = 0.0

    def wait(seconds: float) -> None:
        nonlocal said
        text = f"not healthy yet, {spoken(round(seconds))} of {spoken(wish.wait_s)}"
        if shown:
            click.echo(f"\r{text:<60}\r", nl=False, err=True)
        elif seconds >= said + _SAID_EACH_S:
            said = seconds
            click.echo(text, err=True)

    try:
        yield Progress(say, wait)
    finally:
        if shown:
            click.echo(f"\r{'':<60}\r", nl=False, err=True)


def _put(told: dict[str, Any], lines: Iterator[str], *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(told, indent=2, allow_nan=False))
        return
    for line in lines:
        click.echo(line)


def _is_up(made: "State", state: Path) -> Iterator[str]:
    yield from wrapped(f"{made.provider} is up on {made.url}")
    if made.model:
        yield from row("model", made.model, column=_COLUMN)
    if made.log:
        yield from row("log", made.log, column=_COLUMN)
    if made.cluster:
        told = f"{made.cluster}, which costs money until it is taken down"
        yield from row("cluster", told, column=_COLUMN)
    yield from row("try it", _with_state("smoke", state), column=_COLUMN)
    yield from row("end it", _with_state("down", state), column=_COLUMN)


def _with_state(command: str, state: Path) -> str:
    """A command line that finds the same file."""
    line = f"admitperf infra {command}"
    usual = str(state) == _STATE
    return line if usual else f"{line} --state {shlex.quote(str(state))}"


def _tried(done: "Smoked") -> Iterator[str]:
    if done.simulated:
        yield "SIMULATED: the numbers come from a simulated engine, not from hardware."
        yield ""
    for one in done.checks:
        told = f"{'ok' if one.ok else 'NO'}   {one.said}"
        yield from row(one.name, told, 0, _COLUMN)
    yield ""
    if done.usable or done.unusable:
        yield from row("policies", ", ".join(done.usable) or "none", 0, _COLUMN)
    for name, lacks in done.unusable.items():
        yield from row("", f"not {name}: it needs {lacks}", 0, _COLUMN)


def _is_down(done: "Downed") -> Iterator[str]:
    if done.ended:
        pids = ", ".join(map(str, done.ended))
        yield from wrapped(f"{done.provider or 'an engine'} is down (ended {pids})")
    elif done.provider is None:
        yield "nothing was up"
    elif done.provider != "url" and not done.left:
        yield from wrapped(f"{done.provider} is down; nothing of it ran here")
    for pid in done.left:
        yield from wrapped(f"pid {pid} runs on: it cannot be ended from here")
    for one in done.costs:
        yield from wrapped(one)
