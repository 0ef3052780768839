"""What may stand in a gateway's file, and what becomes of it.

Types are strict: `"8"` is no number, and nothing is converted. Ranges of a policy's
parameters are the policy's own, so they are asked of the policy.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from ipaddress import ip_network
from typing import Annotated, Any, Literal, TypeVar
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
)

from admitperf.core.errors import AdmitPerfError, ConfigError
from admitperf.gateway.config.configured import HOST, PORT, Configured, Server
from admitperf.gateway.config.logs import faults as log_faults
from admitperf.gateway.config.policies import faults as policy_faults
from admitperf.gateway.facts.conventions import Conventions
from admitperf.gateway.setup import (
    EdgeSetup,
    Holding,
    Limits,
    PoolSetup,
    Scrape,
    Tenant,
    Timeouts,
    Upstream,
)
from admitperf.policies.parts.compose.written import with_none
from admitperf.scrape.address import Address

_DIGEST = re.compile(r"[0-9a-f]{32}")
_PRINTED = re.compile(r"[\w.:\[\]/-]{1,200}", re.ASCII)
_LAST_PORT = 65_535
_MOST_S = 86_400.0
_MOST = 1 << 40
_SECRET = frozenset(("secret", "metrics_token", "keys", "url", "metrics_url"))
"""Keys whose values stand in no message: an address may hold a password."""
_SHOWN = 60

_M = TypeVar("_M", bound=BaseModel)

_Seconds = Annotated[float, Field(gt=0, le=_MOST_S, allow_inf_nan=False)]
_Whole = Annotated[int, Field(ge=0, le=_MOST)]
_FromOne = Annotated[int, Field(ge=1, le=_MOST)]
_Text = Annotated[str, Field(min_length=1, max_length=1000)]


def _name(text: str) -> str:
    if not _PRINTED.fullmatch(text):
        raise ValueError("is no name of letters, digits and . _ : / - only")
    return text


def _digest(text: str) -> str:
    if not _DIGEST.fullmatch(text):
        raise ValueError("is no digest; `admitperf gateway hash-key` makes one")
    return text


def _page(text: str) -> str:
    """An address with its scheme; a bare HOST:PORT is http."""
    whole = text if "://" in text else f"http://{text}"
    try:
        Address.of(whole)
        parts = urlsplit(whole)
    except (AdmitPerfError, ValueError):
        raise ValueError("is no http:// or https:// address of a host") from None
    if "@" in parts.netloc:
        raise ValueError("must hold no password; the page takes metrics_token")
    return whole


def _origin(text: str) -> str:
    """Where requests go: their path is put behind it."""
    whole = _page(text).rstrip("/")
    parts = urlsplit(whole)
    if parts.query or parts.fragment:
        raise ValueError("must have no query: the path of each request follows it")
    if parts.path.endswith("/v1"):
        raise ValueError("must not end in /v1: that comes with each request")
    return whole


def _network(text: str) -> str:
    try:
        ip_network(text)
    except ValueError:
        raise ValueError("is no network such as 10.0.0.0/8") from None
    return text


def _listening(text: str) -> str:
    host, _, port = text.rpartition(":")
    if not (host and port.isascii() and port.isdigit() and int(port) <= _LAST_PORT):
        raise ValueError("is not HOST:PORT")
    return text


_Name = Annotated[str, AfterValidator(_name)]


def _or_mapping(key: str) -> BeforeValidator:
    """A text alone stands for a mapping with that one key."""
    return BeforeValidator(lambda told: {key: told} if isinstance(told, str) else told)


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class _Upstream(_Strict):
    url: Annotated[str, AfterValidator(_origin)]
    metrics_url: Annotated[str, AfterValidator(_page)] | None = None
    name: _Name | None = None
    metrics_token: _Text | None = None
    slots: _FromOne | None = None


class _Policy(_Strict):
    """Ranges and words are checked by the policy itself."""

    name: _Text
    params: dict[str, Any] = {}
    enforce: float | None = None
    preset: str | None = None
    on_blind: str | None = None
    blind_cap: int | None = None
    hold_last_s: float | None = None
    max_age_s: float | None = None
    max_defer_s: float | None = None
    experiment: str | None = None
    run: str | None = None
    notes: dict[str, Any] | str | None = None
    provenance: dict[str, str] | None = None


class _Log(_Strict):
    path: _Text
    max_mb: float | None = None
    keep: int | None = None
    raw: str | None = None


class _Holding(_Strict):
    defer: Literal["respond", "hold"] = "respond"
    most: _FromOne = Holding().most
    longest_s: _Seconds = Holding().longest_s
    never: list[str] = []


class _Scrape(_Strict):
    interval_s: Annotated[float, Field(ge=0.05, le=60)] = Scrape().interval_s
    timeout_s: Annotated[float, Field(gt=0, le=60)] = Scrape().timeout_s
    view: Literal["pool", "replica"] = "pool"


class _Timeouts(_Strict):
    connect_s: _Seconds = Timeouts().connect_s
    first_token_s: _Seconds | None = Timeouts().first_token_s
    gap_s: _Seconds | None = Timeouts().gap_s
    total_s: _Seconds | None = Timeouts().total_s


class _Pool(_Strict):
    name: _Name | None = None
    models: list[_Text] = []
    upstreams: Annotated[
        list[Annotated[_Upstream, _or_mapping("url")]],
        Field(min_length=1, max_length=1000),
    ]
    policy: Annotated[_Policy, _or_mapping("name")] = _Policy(name="no_admission")
    log: Annotated[_Log | None, _or_mapping("path")] = None
    slo: dict[str, Any] | None = None
    holding: Annotated[_Holding, _or_mapping("defer")] = _Holding()
    scrape: _Scrape = _Scrape()
    timeouts: _Timeouts = _Timeouts()
    tokens_each: dict[Literal["image", "audio", "file"], _Whole] = {}


class _Limits(_Strict):
    body_bytes: _FromOne = Limits().body_bytes
    off_loop_bytes: _FromOne = Limits().off_loop_bytes
    body_s: _Seconds = Limits().body_s
    peek_ms: Annotated[float, Field(ge=0, le=10_000)] = Limits().peek_ms
    identities: _FromOne = Limits().identities


class _Server(_Strict):
    """`keep_alive_s`: below 65 s it races with the load balancers before us."""

    keep_alive_s: Annotated[float, Field(ge=1, le=3600)] = Server().keep_alive_s
    header_bytes: Annotated[int, Field(ge=8192, le=1 << 24)] = Server().header_bytes
    backlog: Annotated[int, Field(ge=1024, le=65_535)] = Server().backlog
    grace_s: Annotated[float, Field(ge=0, le=_MOST_S)] = Server().grace_s
    drain_s: Annotated[float, Field(ge=0, le=_MOST_S)] = Server().drain_s


class _Tenant(_Strict):
    name: _Name
    keys: list[Annotated[str, AfterValidator(_digest)]]
    weight: Annotated[float, Field(gt=0, le=1e6)] = 1.0
    priority: Annotated[int, Field(ge=-(10**6), le=10**6)] = 0
    in_flight: _FromOne | None = None
    per_minute: Annotated[float, Field(gt=0, le=1e9)] | None = None


class _Top(_Strict):
    listen: Annotated[str, AfterValidator(_listening)] = f"{HOST}:{PORT}"
    pools: Annotated[list[Any], Field(min_length=1, max_length=1000)]
    server: _Server = _Server()
    limits: _Limits = _Limits()
    tenants: list[_Tenant] = []
    secret: Annotated[str, Field(min_length=16)] | None = None
    trusted: list[Annotated[str, AfterValidator(_network)]] = []
    conventions: dict[str, Any] = {}


_AT: dict[str, type[BaseModel]] = {
    "": _Top,
    "pools": _Pool,
    "server": _Server,
    "limits": _Limits,
    "tenants": _Tenant,
    "upstreams": _Upstream,
    "policy": _Policy,
    "log": _Log,
    "holding": _Holding,
    "scrape": _Scrape,
    "timeouts": _Timeouts,
}
"""What may stand under a key."""


def parsed(told: Mapping[str, Any], where: str) -> Configured:
    """A gateway from a document.

    Args:
        told: plain values.
        where: what errors call it.

    Raises:
        ConfigError: with everything that is wrong, each with its path.
    """
    faults: list[str] = []
    top = _checked(_Top, told, "", faults)
    listed = told.get("pools")
    pools = _pools(listed if isinstance(listed, list) else [], faults)
    right = top or _as_far_as_right(_Top, told, {"pools": [{}]})
    faults += _top_faults(right, secret_given=told.get("secret") is not None)
    if top is None or faults:
        raise ConfigError(where, faults)
    return Configured(
        server=_server(top),
        edge=EdgeSetup(
            pools=tuple(pools),
            limits=Limits(**top.limits.model_dump()),
            tenants=_tenants(top),
            secret=top.secret.encode() if top.secret else b"",
            trusted_hops=tuple(top.trusted),
            conventions=top.conventions,
        ),
    )


def _checked(model: type[_M], told: object, path: str, faults: list[str]) -> _M | None:
    try:
        return model.model_validate(told)
    except ValidationError as error:
        faults += _faults(error, path)
        return None


def _as_far_as_right(model: type[_M], told: object, least: dict[str, Any]) -> _M:
    """What is right of something wrong, so that it is checked further all the same.

    Args:
        model: its shape.
        told: the whole of it.
        least: stands for what it cannot do without.
    """
    try:
        return model.model_validate(told)
    except ValidationError as error:
        wrong = {one["loc"][:2] for one in error.errors(include_url=False)}
    some = told.items() if isinstance(told, Mapping) else ()
    kept = {key: _kept(key, value, wrong) for key, value in some}
    right = {key: value for key, value in kept.items() if value is not None}
    try:
        return model.model_validate(least | right)
    except ValidationError:  # keys that are no texts, for one
        return model.model_validate(least)


def _kept(key: object, value: object, wrong: set[tuple[int | str, ...]]) -> object:
    """What is right of a value, such as of a list its right items; None = nothing."""
    parts = {one[1:] for one in wrong if one and one[0] == key}
    if not parts:
        return value
    if isinstance(value, list) and () not in parts:
        return [one for at, one in enumerate(value) if (at,) not in parts] or None
    if isinstance(value, Mapping) and all(one and one[0] in value for one in parts):
        return {name: one for name, one in value.items() if (name,) not in parts}
    return None  # it is no such thing, or what it lacks it cannot do without


# ---------------------------------------------------------------- in our own words


def _faults(error: ValidationError, above: str) -> Iterator[str]:
    for one in error.errors(include_url=False):
        names = [part for part in one["loc"] if part != "[key]"]
        at = _path(above, names)
        if one["type"] == "missing":
            yield f"{at} is missing"
        elif one["type"] == "extra_forbidden":
            yield f"{at} is unknown; {_known(above, names)}"
        else:
            yield f"{at}{_value(names, one['input'])} {_words(one['msg'])}"


def _path(above: str, names: list[int | str]) -> str:
    path = above
    for part in names:
        if isinstance(part, int):
            path += f"[{part}]"
        else:
            path += f".{part}" if path else part
    return path or "the document"


def _known(above: str, names: list[int | str]) -> str:
    """What would have been right, the nearest first where there is one."""
    parents = [part for part in names[:-1] if isinstance(part, str)]
    parent = parents[-1] if parents else above.partition("[")[0]
    known = list(_AT[parent].model_fields)
    near = get_close_matches(str(names[-1]), known, 1)
    return f"is it {near[0]}?" if near else f"known: {', '.join(known)}"


def _value(names: list[int | str], value: object) -> str:
    """The value, where it is short and no secret."""
    plain = value is None or isinstance(value, (str, int, float))
    if not plain or _SECRET.intersection(map(str, names)):
        return ""
    return f" = {value!r:.{_SHOWN}}"


_WORDS = (
    ("Input should be ", "is not "),
    ("Value error, ", ""),
    ("String should ", "should "),
    ("List should ", "should "),
    ("greater than or equal to ", "at least "),
    ("less than or equal to ", "at most "),
    ("a valid integer", "a whole number"),
    ("a valid ", "a "),
)
"""The library's words, and ours."""


def _words(message: str) -> str:
    for theirs, ours in _WORDS:
        message = message.replace(theirs, ours)
    return message


# ----------------------------------------------------------------------- the pools


def _pools(told: list[Any], faults: list[str]) -> list[PoolSetup]:
    """All of them, as far as they are right; what is not goes to the faults."""
    made = []
    for place, one in enumerate(told):
        path = f"pools[{place}]"
        pool = _checked(_Pool, one, path, faults)
        if pool is None:
            pool = _as_far_as_right(_Pool, one, _NOWHERE)
        setup = _pool(pool, place, len(told))
        faults += policy_faults(setup, path)
        faults += log_faults(setup, path)
        faults += _same_replicas(setup, path)
        made.append(setup)
    faults += _shared(made)
    others = [one for one in told if isinstance(one, Mapping) and not one.get("models")]
    if len(others) > 1:
        faults.append("pools: only one may be without models: it takes all other names")
    return made


_NOWHERE: dict[str, Any] = {"upstreams": ["nowhere:1"]}
"""Stands for upstreams that are wrong, while the rest of their pool is checked."""


def _pool(pool: _Pool, place: int, of: int) -> PoolSetup:
    default = "default" if of == 1 else f"pool-{place + 1}"
    holding = pool.holding.model_dump()
    return PoolSetup(
        name=pool.name or default,
        models=tuple(pool.models),
        upstreams=tuple(map(_upstream, pool.upstreams)),
        policy=pool.policy.name,
        parameters=with_none(pool.policy.name, pool.policy.params),
        settings=_settings(pool),
        holding=Holding(**holding | {"never": frozenset(holding["never"])}),
        scrape=Scrape(**pool.scrape.model_dump()),
        timeouts=Timeouts(**pool.timeouts.model_dump()),
        tokens_each={str(kind): n for kind, n in pool.tokens_each.items()},
    )


def _settings(pool: _Pool) -> dict[str, object]:
    told = pool.policy.model_dump(exclude={"name", "params"})
    told["slo"] = pool.slo
    if pool.log is not None:
        told["log"] = pool.log.path
        told["log_max_mb"] = pool.log.max_mb
        told["log_keep"] = pool.log.keep
        told["raw"] = pool.log.raw
    return {name: value for name, value in told.items() if value is not None}


def _upstream(one: _Upstream) -> Upstream:
    return Upstream(
        url=one.url,
        metrics_url=one.metrics_url or f"{one.url}/metrics",
        name=one.name or urlsplit(one.url).netloc,
        metrics_token=one.metrics_token,
        slots=one.slots,
    )


def _same_replicas(pool: PoolSetup, path: str) -> Iterator[str]:
    names = Counter(one.name for one in pool.upstreams)
    pages = Counter(one.metrics_url for one in pool.upstreams)
    for what, counted in (("name", names), ("metrics page", pages)):
        for name in _repeated(counted):
            yield f"{path}.upstreams: {name} is the {what} of more than one"


def _shared(pools: list[PoolSetup]) -> Iterator[str]:
    """What more than one pool has, and only one can."""
    names = Counter(pool.name for pool in pools)
    models = Counter(model for pool in pools for model in set(pool.models))
    logs = Counter(
        str(pool.settings["log"]) for pool in pools if "log" in pool.settings
    )
    for what, counted in (("name", names), ("model", models), ("log", logs)):
        for value in _repeated(counted):
            yield f"pools: {what} {value} is that of more than one"


def _repeated(counted: Counter[str]) -> list[str]:
    return [value for value, n in counted.items() if n > 1]


# ------------------------------------------------------------- all that is no pool


def _top_faults(top: _Top, *, secret_given: bool) -> Iterator[str]:
    """What its parts say against each other, as far as they are right."""
    try:
        Conventions.of(top.conventions)
    except ConfigError as error:
        yield from (f"conventions.{fault}" for fault in error.faults)
    if any(tenant.keys for tenant in top.tenants) and not secret_given:
        yield "secret is missing: keys of tenants are digests under it"
    for name in _repeated(Counter(tenant.name for tenant in top.tenants)):
        yield f"tenants: {name} is the name of more than one"
    if _repeated(Counter(key for tenant in top.tenants for key in tenant.keys)):
        yield "tenants: one key is given more than once"


def _server(top: _Top) -> Server:
    host, _, port = top.listen.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    return Server(host=host, port=int(port), **top.server.model_dump())


def _tenants(top: _Top) -> dict[str, Tenant]:
    return {
        key: Tenant(**tenant.model_dump(exclude={"keys"}))
        for tenant in top.tenants
        for key in tenant.keys
    }
