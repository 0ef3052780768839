"""Where each fact about a request is looked for, as data that can be replaced.

A place is a header's name in any case, or `body:` and the name of a body field.
Of the places of a fact the first that says something usable wins.
Origin of all names: the projects named beside them, read in autumn 2026.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import Literal, Self

from admitperf.core.errors import ConfigError
from admitperf.gateway.facts.body import Wish

Direction = Literal["higher", "lower"]
Unit = Literal["go", "grpc", "ms", "s"]
Charge = Literal["root", "child"]

_SESSION_IN_USER = re.compile(
    r"_session_([0-9A-Za-z-]{8,64})$|\"session_id\":\s*\"([0-9A-Za-z-]{8,64})\""
)
"""Origin: Claude Code's `metadata.user_id`, in its older and its newer form; both have
under the 256 characters that are kept of a name."""


def _session_in_user(wish: Wish) -> str | None:
    found = _SESSION_IN_USER.search(wish.user) if wish.user else None
    return found and (found[1] or found[2])


BODY: Mapping[str, Callable[[Wish], str | int | None]] = {
    "body:max_output_tokens": attrgetter("max_output_tokens"),
    "body:nvext.agent_hints.osl": attrgetter("hint_osl"),
    "body:nvext.agent_hints.priority": attrgetter("hint_priority"),
    "body:priority": attrgetter("priority"),
    "body:prompt_cache_key": attrgetter("cache_key"),
    "body:service_tier": attrgetter("service_tier"),
    "body:user": attrgetter("user"),
    "body:user.session": _session_in_user,
}
"""Body fields that can be a place. `body:max_output_tokens` and `body:user` are read
under all their names; `body:user.session` is the session that Claude Code puts into
`metadata.user_id`."""

SDK_READ_TIMEOUT_S = 600.0
"""Means "not set". Origin: the default of openai-python and anthropic-sdk-python."""

_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Priority:
    """A place that holds a priority.

    Attributes:
        place: see the module.
        direction: whether the "higher" or the "lower" number matters more there.
        neutral: the number there that matters as much as none at all.
        words: priorities, higher matters more, of what is no number there.
    """

    place: str
    direction: Direction
    neutral: int = 0
    words: Mapping[str, int] = field(default_factory=dict)

    def read(self, said: str | int) -> int | None:
        """What was said there, as a priority; None = not usable."""
        if isinstance(said, str):
            word = self.words.get(said.strip().lower())
            if word is not None:
                return word
            number = _WHOLE.fullmatch(said.strip()) or _URGENCY.search(said)
            if number is None:
                return None
            said = int(number[1])
        distance = said - self.neutral
        return distance if self.direction == "higher" else -distance


_WHOLE = re.compile(r"([+-]?[0-9]{1,9})")
_URGENCY = re.compile(r"(?:^|[,\s])u=([0-7])(?![0-9])")
"""The urgency of RFC 9218's `priority: u=3, i`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deadline:
    """A header that says how long an answer may take to begin.

    Attributes:
        place: the header.
        unit: how it is written: "go" (1m30s), "grpc" (100m), "ms" or "s".
        unset_s: the value that means "not set", in seconds; None = there is none.
    """

    place: str
    unit: Unit
    unset_s: float | None = None

    def read_s(self, said: str) -> float | None:
        """Seconds from now; None = not usable, not above zero, or not set."""
        seconds = UNITS[self.unit](said.strip())
        if seconds is None or not 0 < seconds < _FOREVER_S or seconds == self.unset_s:
            return None
        return seconds


_FOREVER_S = 1e9
"""A deadline past it is none. Plain choice: 30 years."""

_GO = re.compile(r"\+?(?:(?:[0-9]{1,12}\.?[0-9]*|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+")
_GO_PART = re.compile(r"([0-9.]+)(ns|us|µs|μs|ms|s|m|h)")
_GO_S = {
    "ns": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,
    "μs": 1e-6,  # Go reads both letters
    "ms": 1e-3,
    "s": 1.0,
    "m": 60.0,
    "h": 3600.0,
}
_GRPC = re.compile(r"([0-9]{1,8})([HMSmun])")
_GRPC_S = {"H": 3600.0, "M": 60.0, "S": 1.0, "m": 1e-3, "u": 1e-6, "n": 1e-9}
_DECIMAL = re.compile(r"[0-9]{1,12}(?:\.[0-9]{0,12})?")
_LONGEST = 64


def _go_s(said: str) -> float | None:
    if len(said) > _LONGEST or _GO.fullmatch(said) is None:
        return None
    return sum(float(number) * _GO_S[unit] for number, unit in _GO_PART.findall(said))


def _grpc_s(said: str) -> float | None:
    match = _GRPC.fullmatch(said)
    return int(match[1]) * _GRPC_S[match[2]] if match else None


def decimal(said: str) -> float | None:
    """A number of zero or more as a header writes it; None = it is none."""
    return float(said) if _DECIMAL.fullmatch(said) else None


def _ms_s(said: str) -> float | None:
    milliseconds = decimal(said)
    return None if milliseconds is None else milliseconds / 1000


UNITS: Mapping[Unit, Callable[[str], float | None]] = {
    "go": _go_s,
    "grpc": _grpc_s,
    "ms": _ms_s,
    "s": decimal,
}
"""Seconds that a text means in each unit; None = it is not written so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conventions:
    """The places of each fact, in the order in which they are asked.

    Attributes:
        request_id: the caller's id of this request.
        idempotency: what a call and its repeats have in common.
        attempt: 0 for the first try.
        credentials: the caller's key; ask first for what upstream checks first.
        tenant: who pays; believed only of trusted hops.
        session: the conversation.
        child: the agent inside the session that asks.
        child_parent: the agent inside it that began that one.
        parent_session: the session that began this one.
        session_final: "true" or "1" with a session's last call.
        charge: what a request of a child counts for: its "root" session or itself.
        slo_class: name of the objective.
        slo_ttft_ms, slo_tpot_ms: milliseconds to the first token, and per token after.
        output_tokens: how long the answer may get, or is expected to.
        cached_tokens: tokens of the prompt that are cached where it will be served, as
            a router in front knows; believed only of trusted hops.
        priority: places with a direction each.
        deadline: the shortest one counts, not the first; so does `slo_ttft_ms`.
        only_trusted: facts, besides `tenant` and `cached_tokens`, whose headers count
            only of trusted hops.
    """

    request_id: tuple[str, ...] = ("x-request-id", "request-id", "traceparent")
    idempotency: tuple[str, ...] = ("idempotency-key", "x-idempotency-key")
    attempt: tuple[str, ...] = ("x-stainless-retry-count",)
    credentials: tuple[str, ...] = ("authorization", "x-api-key", "api-key")
    tenant: tuple[str, ...] = (
        "x-tenant-id",
        "x-llm-d-inference-fairness-id",
        "x-gateway-inference-fairness-id",  # llm-d before 2026
        "user",  # AIBrix
    )
    session: tuple[str, ...] = (
        "x-claude-code-session-id",
        "session-id",  # Codex
        "session_id",  # Codex before
        "x-session-affinity",  # OpenCode
        "x-dynamo-session-id",
        "x-session-id",
        "body:user.session",
        "body:prompt_cache_key",
        "body:user",
    )
    child: tuple[str, ...] = ("x-claude-code-agent-id",)
    child_parent: tuple[str, ...] = ("x-claude-code-parent-agent-id",)
    parent_session: tuple[str, ...] = (
        "x-parent-session-id",
        "x-dynamo-parent-session-id",
    )
    session_final: tuple[str, ...] = ("x-dynamo-session-final",)
    charge: Charge = "root"
    slo_class: tuple[str, ...] = ("x-llm-d-inference-objective",)
    slo_ttft_ms: tuple[str, ...] = ("x-llm-d-slo-ttft-ms", "x-slo-ttft-ms")
    slo_tpot_ms: tuple[str, ...] = ("x-llm-d-slo-tpot-ms", "x-slo-tpot-ms")
    output_tokens: tuple[str, ...] = (
        "body:max_output_tokens",
        "body:nvext.agent_hints.osl",
    )
    cached_tokens: tuple[str, ...] = ("x-admitperf-cached-tokens",)
    priority: tuple[Priority, ...] = (
        Priority(place="x-llm-d-inference-objective", direction="higher"),
        Priority(place="body:nvext.agent_hints.priority", direction="higher"),
        Priority(place="body:priority", direction="lower"),  # vLLM, LiteLLM
        Priority(place="priority", direction="lower", neutral=3),  # RFC 9218
        Priority(
            place="body:service_tier",
            direction="higher",
            words={"flex": -1, "priority": 1, "fast": 1},
        ),
    )
    deadline: tuple[Deadline, ...] = (
        Deadline(place="x-llm-d-inference-ttl", unit="go"),
        Deadline(place="grpc-timeout", unit="grpc"),
        Deadline(place="x-envoy-expected-rq-timeout-ms", unit="ms"),
        Deadline(
            place="x-stainless-read-timeout", unit="s", unset_s=SDK_READ_TIMEOUT_S
        ),
        Deadline(place="x-stainless-timeout", unit="s", unset_s=SDK_READ_TIMEOUT_S),
    )
    only_trusted: tuple[str, ...] = ()

    @classmethod
    def of(cls, mapping: Mapping[str, object]) -> Self:
        """Conventions as a configuration writes them; what it leaves out stays.

        Args:
            mapping: fact to its places: a list of names or one name; of priorities and
                deadlines a list of mappings with the attributes above.

        Raises:
            ConfigError: with every fault at once.
        """
        faults: list[str] = []
        taken = {}
        for name, value in mapping.items():
            read = _SHAPES.get(name)
            if read is None:
                faults.append(f"{name} is not one of {', '.join(_SHAPES)}")
            else:
                taken[name] = read(name, value, faults)
        if faults:
            raise ConfigError("conventions", faults)
        return cls(**taken)  # type: ignore[arg-type]


def _place(path: str, value: object, faults: list[str]) -> str:
    """A place in the case that headers arrive in."""
    if not isinstance(value, str):
        faults.append(f"{path} = {value!r} is no name of a header or body field")
        return ""
    if value.startswith("body:"):
        if value not in BODY:
            faults.append(f"{path}: {value} is not one of {', '.join(BODY)}")
    elif _HEADER.fullmatch(value) is None:
        faults.append(f"{path}: {value!r} is no name of a header")
    return value if value.startswith("body:") else value.lower()


def _header(path: str, value: object, faults: list[str]) -> str:
    if isinstance(value, str) and value.startswith("body:"):
        faults.append(f"{path}: {value} is in the body; only a header can say this")
        return ""
    return _place(path, value, faults)


def _listed(path: str, value: object, faults: list[str]) -> list[object]:
    if isinstance(value, str | Mapping):
        return [value]
    if isinstance(value, list | tuple):
        return list(value)
    faults.append(f"{path} = {value!r} is no list")
    return []


def _each(
    one: Callable[[str, object, list[str]], object],
) -> Callable[[str, object, list[str]], object]:
    def read(path: str, value: object, faults: list[str]) -> object:
        return tuple(
            one(f"{path}[{at}]", item, faults)
            for at, item in enumerate(_listed(path, value, faults))
        )

    return read


def _choice(*choices: str) -> Callable[[str, object, list[str]], object]:
    def read(path: str, value: object, faults: list[str]) -> object:
        if value not in choices:
            faults.append(f"{path} = {value!r} is not one of {', '.join(choices)}")
        return value

    return read


def _known_fact(path: str, value: object, faults: list[str]) -> object:
    return _choice(*_FACTS)(path, value, faults)


def _integer(path: str, value: object, faults: list[str]) -> object:
    if isinstance(value, bool) or not isinstance(value, int):
        faults.append(f"{path} = {value!r} is no whole number")
    return value


def _seconds(path: str, value: object, faults: list[str]) -> object:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if value is not None and not number:
        faults.append(f"{path} = {value!r} is no number of seconds")
    return value


def _words(path: str, value: object, faults: list[str]) -> object:
    if not isinstance(value, Mapping):
        faults.append(f"{path} = {value!r} maps no words to priorities")
        return {}
    return {
        str(word).lower(): _integer(f"{path}.{word}", priority, faults)
        for word, priority in value.items()
    }


def _made(
    shape: type, members: Mapping[str, Callable[[str, object, list[str]], object]]
) -> Callable[[str, object, list[str]], object]:
    needed = list(members)[:2]

    def read(path: str, value: object, faults: list[str]) -> object:
        if not isinstance(value, Mapping):
            faults.append(f"{path} = {value!r} is no mapping with {', '.join(needed)}")
            return None
        faults += [f"{path}.{name} is missing" for name in needed if name not in value]
        faults += [
            f"{path}.{name} is not one of {', '.join(members)}"
            for name in value
            if name not in members
        ]
        taken = {
            name: member(f"{path}.{name}", value[name], faults)
            for name, member in members.items()
            if name in value
        }
        return None if faults else shape(**taken)

    return read


_priority = _made(
    Priority,
    {
        "place": _place,
        "direction": _choice("higher", "lower"),
        "neutral": _integer,
        "words": _words,
    },
)
_deadline = _made(
    Deadline, {"place": _header, "unit": _choice(*UNITS), "unset_s": _seconds}
)
_FACTS = tuple(
    each.name
    for each in fields(Conventions)
    if each.name
    not in {"charge", "only_trusted", "tenant", "credentials", "cached_tokens"}
)
_ANYWHERE = {"session", "output_tokens"}
_SHAPES: Mapping[str, Callable[[str, object, list[str]], object]] = {
    each.name: _each(_place if each.name in _ANYWHERE else _header)
    for each in fields(Conventions)
} | {
    "charge": _choice("root", "child"),
    "priority": _each(_priority),
    "deadline": _each(_deadline),
    "only_trusted": _each(_known_fact),
}
