"""`admitperf gateway`: the front door as a process of its own."""

import json
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

import click

from admitperf.cli.asking import token_options
from admitperf.cli.bounds import BOUNDS
from admitperf.cli.duration import Duration, spoken
from admitperf.cli.layout import row, wrapped
from admitperf.cli.lazy import LazyGroup
from admitperf.cli.names import NAME
from admitperf.cli.reading import UnreadableInput
from admitperf.core.errors import AdmitPerfError, ConfigError
from admitperf.reports.runs.slo import Slo
from admitperf.reports.wording import number, printable

if TYPE_CHECKING:
    from admitperf.gateway.config.configured import Configured, Server
    from admitperf.gateway.edge import Edge
    from admitperf.gateway.findings import Finding
    from admitperf.gateway.setup import Timeouts

SCHEMA = 1
COMMANDS = {
    "serve": (
        "admitperf.cli.gateway:serve",
        "Serve; `gateway --OPTION` is this.",
    ),
    "hash-key": (
        "admitperf.cli.gateway:hash_key",
        "Print the digest of a key, for `tenants`.",
    ),
}
SECRET_ENV = "ADMITPERF_SECRET"  # noqa: S105  the name of a variable
_SERVE = "serve"
_FAILED = 1
_WRONG = 2
_COLUMN = 16
_SHORTEST_SECRET = 16
_DAY_S = 86400.0


class _Options(TypedDict):
    """The options of `serve` as click hands them over."""

    config: str | None
    listen: str | None
    upstreams: tuple[str, ...]
    slots: int | None
    policy: str | None
    params: tuple[str, ...]
    log: str | None
    log_max_mb: float | None
    slo: Slo | None
    defer: Literal["respond", "hold"] | None
    preset: str | None
    enforce: float | None
    grace_s: float | None
    token_env: str | None
    token_file: str | None
    checking: bool
    as_json: bool


class _Falling(LazyGroup):
    """A group whose first command needs no name."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Puts the name in front of what is no command."""
        if args and args[0] not in COMMANDS and args[0] not in ctx.help_option_names:
            args = [_SERVE, *args]
        return super().parse_args(ctx, args)


@click.group("gateway", cls=_Falling, lazy=COMMANDS)
def command() -> None:
    """The front door: a reverse proxy that decides before it forwards.

    `admitperf gateway --upstream URL --policy queue_depth --param max_waiting=8`, or
    `admitperf gateway --config FILE` for several pools, tenants and bounds.

    All options: `admitperf gateway serve --help`.
    """


@click.command("serve")
@click.option(
    "--config", metavar="FILE", type=NAME, help="YAML; options stand over it."
)
@click.option(
    "--listen",
    metavar="HOST:PORT",
    type=NAME,
    help="To listen on; port 0 = any that is free.  [default: 127.0.0.1:8080]",
)
@click.option(
    "--upstream",
    "upstreams",
    metavar="URL",
    type=NAME,
    multiple=True,
    help="An engine to forward to; HOST:PORT is enough; may be given again.",
)
@click.option(
    "--slots",
    type=click.IntRange(1),
    help="Requests each engine runs at once, vLLM's --max-num-seqs.  [default: learnt]",
)
@click.option(
    "--policy",
    metavar="NAME",
    type=NAME,
    help="An installed policy.  [default: no_admission]",
)
@click.option(
    "--param",
    "params",
    metavar="NAME=VALUE",
    type=NAME,
    multiple=True,
    help="A parameter of the policy, such as max_waiting=8; may be given again.",
)
@click.option("--log", metavar="FILE", type=NAME, help="The decision log.")
@click.option(
    "--log-max-mb",
    metavar="MB",
    type=float,
    help="Rotate it at this size; `log.keep` of the file says how many stay.",
)
@click.option(
    "--slo", type=BOUNDS, help="For reports: deadlines in ms, such as ttft_ms=1500."
)
@click.option(
    "--defer",
    type=click.Choice(["respond", "hold"]),
    help="A deferred request is answered with a wait, or held.  [default: respond]",
)
@click.option(
    "--preset",
    metavar="NAME",
    type=NAME,
    help="How reasons become codes: default, openai, anthropic or mesh-safe.",
)
@click.option(
    "--enforce",
    metavar="SHARE",
    type=click.FloatRange(0, 1),
    help="Share of the traffic that is governed; 0 = only watch.  [default: 1]",
)
@click.option(
    "--grace",
    "grace_s",
    type=Duration(0, _DAY_S),
    help="After the first signal serve on for so long, with /ready at 503."
    "  [default: 0s]",
)
@token_options
@click.option(
    "--check",
    "checking",
    is_flag=True,
    help="Check all of it, read the engines once, and end.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def serve(**options: Unpack[_Options]) -> None:
    """Serve: decide about each request, forward it or refuse it.

    /v1/completions, /v1/chat/completions, /v1/responses, /v1/embeddings and
    /v1/messages are judged; everything else is forwarded as it is. /health, /ready and
    /metrics are the gateway's own.

    It prints what it found, and its address once it listens. An engine that cannot be
    read yet is asked again; one that does not supply what the policy needs ends it.
    The token is for the engines' metrics pages. The first SIGTERM, SIGHUP or Ctrl-C
    lets open requests finish, the second one cuts them.

    Exit codes: 0 ended as asked, 1 something was cut off, or --check found a page that
    cannot be read, 2 wrong use or nothing that can be started.
    """
    with _one_line():
        setup = _configured(options)
    code = _run(setup, options)
    sys.exit(code)


@click.command("hash-key")
@click.option(
    "--config",
    metavar="FILE",
    type=NAME,
    help=f"The file whose `secret` it is for.  [default: {SECRET_ENV} in the"
    " environment]",
)
def hash_key(*, config: str | None) -> None:
    """Print the digest of a key, for `tenants` in a gateway's file.

    The key is read from standard input, so that it stands in no history and no list of
    processes.
    """
    from admitperf.gateway.facts.identity import Tenants

    with _one_line():
        secret = _secret(config)
        if sys.stdin is not None and sys.stdin.isatty():
            click.echo("type the key, then Enter", err=True)
        key = sys.stdin.readline().strip() if sys.stdin is not None else ""
        if not key:
            raise ConfigError("standard input", ["holds no key"])
    click.echo(Tenants(secret=secret).digest(key))


@contextmanager
def _one_line() -> Iterator[None]:
    """A fault ends it; several are a line each."""
    try:
        yield
    except ConfigError as error:
        *first, last = (f"{error.where}: {fault}" for fault in error.faults)
        for line in first:
            click.echo(f"Error: {printable(line)}", err=True)
        raise UnreadableInput(printable(last)) from None
    except AdmitPerfError as error:
        raise UnreadableInput(printable(str(error))) from None


def _secret(config: str | None) -> bytes:
    if config is None:
        found = os.environ.get(SECRET_ENV)
        where = SECRET_ENV
    else:
        from admitperf.gateway.config.document import read

        found, where = read(Path(config), os.environ).get("secret"), config
    if not isinstance(found, str) or len(found) < _SHORTEST_SECRET:
        fault = f"holds no secret of at least {_SHORTEST_SECRET} characters"
        raise ConfigError(where, [fault])
    return found.encode()


# ------------------------------------------------------------------ configuration


def _configured(options: _Options) -> "Configured":
    from admitperf.gateway.extra import needed

    needed()
    from admitperf.gateway.config.document import read
    from admitperf.gateway.config.schema import parsed

    path = options["config"]
    told = read(Path(path), os.environ) if path else {"pools": [{}]}
    if not path and not options["upstreams"]:
        raise click.UsageError("give --upstream URL, or --config FILE")
    if options["listen"]:
        told["listen"] = options["listen"]
    server = told.get("server") or {}
    if options["grace_s"] is not None and isinstance(server, dict):
        told["server"] = server | {"grace_s": options["grace_s"]}
    given = _given(options)
    if given:
        told["pools"] = [_over(_only_pool(told), given)]
    return parsed(told, path or "options")


def _given(options: _Options) -> dict[str, Any]:
    """The options that describe a pool, as far as they were given."""
    slo = options["slo"]
    told = {
        "upstreams": _upstreams(options),
        "policy": options["policy"],
        "params": dict(_pairs(options["params"])),
        "log": options["log"],
        "log_max_mb": options["log_max_mb"],
        "slo": dict(slo.everyone or {}) if slo else None,
        "defer": options["defer"],
        "preset": options["preset"],
        "enforce": options["enforce"],
    }
    return {key: value for key, value in told.items() if value not in (None, [], {})}


def _upstreams(options: _Options) -> list[object]:
    from admitperf.scrape.token import read_token

    token = read_token(options["token_env"], options["token_file"])
    told = {"metrics_token": token, "slots": options["slots"]}
    known = {key: value for key, value in told.items() if value is not None}
    return [{"url": url, **known} for url in options["upstreams"]]


def _only_pool(told: dict[str, Any]) -> dict[str, Any]:
    pools = told.get("pools")
    if not isinstance(pools, list) or len(pools) != 1 or not isinstance(pools[0], dict):
        what = "options that describe a pool go with a file that has exactly one"
        raise click.UsageError(what)
    return dict(pools[0])


def _over(pool: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """A pool with what the options say in its place."""
    pool |= {key: given[key] for key in ("upstreams", "slo") if key in given}
    if given.keys() & {"log", "log_max_mb"}:
        names = {"log": "path", "log_max_mb": "max_mb"}
        log = {name: given[key] for key, name in names.items() if key in given}
        pool["log"] = _mapping(pool.get("log"), "path") | log
    if "defer" in given:
        pool["holding"] = _mapping(pool.get("holding"), "defer")
        pool["holding"]["defer"] = given["defer"]
    if given.keys() & {"policy", "params", "preset", "enforce"}:
        policy = _mapping(pool.get("policy", "no_admission"), "name")
        if "policy" in given:
            policy |= {"name": given["policy"], "params": {}}
        policy |= {key: given[key] for key in ("preset", "enforce") if key in given}
        told = _typed(policy.get("name"), given.get("params", {}))
        policy["params"] = {**(policy.get("params") or {}), **told}
        pool["policy"] = policy
    return pool


def _mapping(told: object, key: str) -> dict[str, Any]:
    """What a text alone stands for; a copy of what is a mapping already."""
    if isinstance(told, dict):
        return dict(told)
    return {} if told is None else {key: told}


def _pairs(told: Iterable[str]) -> Iterator[tuple[str, str]]:
    for one in told:
        name, equals, text = one.partition("=")
        if not (equals and name):
            raise click.UsageError(f"--param {one}: write NAME=VALUE")
        yield name, text


def _typed(policy: object, texts: dict[str, str]) -> dict[str, object]:
    """Each text as a number or a word, but where the policy wants the text itself."""
    from admitperf.policies import load
    from admitperf.policies.parts.compose.written import typed

    try:
        known = load(str(policy)).declared()
    except AdmitPerfError:  # said with everything else that is wrong
        known = {}
    return {name: typed(known.get(name), text) for name, text in texts.items()}


# ------------------------------------------------------------------------ starting


def _run(setup: "Configured", options: _Options) -> int:
    from admitperf.gateway.edge import Edge
    from admitperf.gateway.findings import look

    with _one_line():
        edge = Edge.of(setup.edge)
        if options["checking"]:
            return _checked(edge, look(edge), as_json=options["as_json"])
        return _served(setup.server, edge, as_json=options["as_json"])


def _checked(edge: "Edge", found: "list[Finding]", *, as_json: bool) -> int:
    """What was found; 2 when it must not be started, 1 when a page was not read."""
    if as_json:
        _put_json(edge, found, None)
    else:
        _put(edge, found)
    _warn(found)
    if _stopped(found):
        return _WRONG
    return 0 if all(one.ok for one in found) else _FAILED


def _served(server: "Server", edge: "Edge", *, as_json: bool) -> int:
    from admitperf.gateway.findings import look
    from admitperf.gateway.serve import listening
    from admitperf.gateway.serve import serve as until_told

    held = listening(server)
    host = f"[{server.host}]" if ":" in server.host else server.host
    address = f"http://{host}:{held.getsockname()[1]}"
    found = look(edge)
    if not as_json:
        _put(edge, found)
    _warn(found, ". It is asked again each time.")
    if _stopped(found):
        held.close()
        edge.close()
        return _WRONG

    def ready() -> None:
        with suppress(OSError):  # nobody reads it any more
            if as_json:
                _put_json(edge, found, address)
            else:
                click.echo(f"gateway on {address}")
            sys.stdout.flush()

    return until_told(server, edge, held, ready)


def _warn(found: "list[Finding]", more: str = "") -> None:
    """Whose metrics cannot be read yet, and what becomes of it, on standard error."""
    for one in found:
        for name, why in one.unread.items():
            said = f"Warning: pool {one.pool.name}: {name} cannot be read: {why}"
            click.echo("\n".join(wrapped(said + more)), err=True)


def _stopped(found: "list[Finding]") -> bool:
    """Whether a policy would be blind; said in a line each."""
    for one in found:
        if one.stop is not None:
            said = f"pool {one.pool.name}: policy {one.pool.policy}: {one.stop}"
            click.echo(f"Error: {printable(said)}", err=True)
    return any(one.stop is not None for one in found)


# ------------------------------------------------------------------------- showing


def _put_json(edge: "Edge", found: "list[Finding]", address: str | None) -> None:
    told = {
        "schema": SCHEMA,
        "address": address,
        "tenants": _tenants(edge),
        "pools": [one.to_dict() for one in found],
    }
    click.echo(json.dumps(told, indent=2, allow_nan=False))


def _tenants(edge: "Edge") -> int:
    return len({tenant.name for tenant in edge.setup.tenants.values()})


def _put(edge: "Edge", found: "list[Finding]") -> None:
    for one in found:
        if one.shadow:
            name = one.pool.name
            click.echo(f"SHADOW: pool {name} decides and refuses nobody (enforce 0).")
    if any(one.shadow for one in found):
        click.echo()
    if any(one.simulated for one in found):
        said = "SIMULATED: the numbers come from a simulated engine, not from hardware."
        click.echo(f"{said}\n")
    for one in found:
        for line in _text(one):
            click.echo(line)
    if _tenants(edge):
        click.echo(f"tenants known beforehand: {_tenants(edge)}\n")


def _text(one: "Finding") -> Iterator[str]:
    pool = one.pool
    yield from wrapped(f"pool {pool.name}")
    yield from _row("models", ", ".join(pool.models) or "all that no other pool names")
    for upstream in pool.upstreams:
        shown = upstream.url.partition("://")[2]
        name = "" if upstream.name == shown else f"{upstream.name}: "
        why = one.unread.get(upstream.name)
        unread = f" (NOT READ: {why})" if why else ""
        yield from _row("upstream", f"{name}{upstream.url}{unread}")
    yield from _row("engine", one.engine or "")
    yield from _policy(one)
    for name in one.required:
        source = one.supplied.get(name)
        missing = f"{name}: NOT SUPPLIED" if name in one.absent else name
        yield from _row("reads", f"{name} from {source}" if source else missing)
    others = [name for name in one.supplied if name not in one.required]
    yield from _row("also there", ", ".join(others))
    rest = [name for name in one.absent if name not in one.required]
    yield from _row("not supplied", ", ".join(rest))
    yield from _row("reach", one.reach or "")
    for name, value in _settings(one):
        yield from _row(name, value)
    yield ""


def _policy(one: "Finding") -> Iterator[str]:
    """Its parameters; of a composition its parts, with those that they were given."""
    if one.parts:
        yield from _row("policy", one.pool.policy)
        for number, part in enumerate(one.parts, 1):
            yield from _row("part", f"{number} {part}")
        return
    told = one.parameters.items()
    said = ", ".join(f"{name} {_shown(value)}" for name, value in told)
    yield from _row("policy", f"{one.pool.policy}: {said}" if said else one.pool.policy)


def _settings(one: "Finding") -> Iterator[tuple[str, str]]:
    """What it does beside deciding: the same row for everything that can be set."""
    settings, holding = one.settings, one.pool.holding
    said = "0: nobody is refused" if one.shadow else "1: all traffic is governed"
    if 0 < settings.enforce < 1:
        said = f"{settings.enforce:g} of the traffic; the rest is only watched"
    yield "enforce", said
    wait = "is answered with a wait"
    if holding.defer == "hold":
        wait = f"is held, at most {holding.most} for {spoken(holding.longest_s)}"
    yield "deferred", wait
    yield "codes", settings.preset
    blind, cap = settings.on_blind, settings.blind_cap
    if blind == "degrade":
        blind += f": at most {'as many' if cap is None else cap} open"
        blind += " as usual" if cap is None else ""
    yield "when blind", blind
    yield "log", one.log or "none"
    yield "slo", ", ".join(f"{k} {_shown(v)}" for k, v in (settings.slo or {}).items())
    yield "timeouts", ", ".join(_differing(one.pool.timeouts))


def _differing(told: "Timeouts") -> Iterator[str]:
    """Those that are not the usual ones."""
    usual = asdict(type(told)())
    for name, value in asdict(told).items():
        if value != usual[name]:
            yield f"{name} {'none' if value is None else _shown(value)}"


def _row(name: str, value: str) -> Iterator[str]:
    return row(name, value, column=_COLUMN) if value else iter(())


def _shown(value: object) -> str:
    plain = isinstance(value, (int, float)) and not isinstance(value, bool)
    return number(value) if plain else str(value)  # type: ignore[arg-type]
