"""From headers, client and body to the keywords of a policy call."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

from admitperf.core.request import bounded
from admitperf.gateway.facts.body import Wish
from admitperf.gateway.facts.conventions import BODY, Conventions, decimal
from admitperf.gateway.facts.identity import ANONYMOUS, Identity, Tenants
from admitperf.gateway.facts.tokens import TokenCounter

T = TypeVar("T")
Said = dict[str, list[tuple[int, bytes | str | int]]]
"""Fact to what was said about it, each with the rank of its place."""

Index = Mapping[bytes, list[tuple[str, int]]]
"""Header to the facts it is a place of, and its rank among the places of each."""

_NOT_SAID = frozenset(("credentials", "tenant", "charge", "only_trusted"))
"""Conventions that are no facts of this module: `identity.py` reads the first two."""

_NEVER_PUBLIC = frozenset(("cached_tokens",))
"""What a caller gains by: who says that its prompt is cached may pass others."""

_REQUEST_ID = re.compile(rb"[!-~]{1,256}")
"""Goes into answers as it came, so it is visible ASCII. Origin of 256: `core.request`
cuts names there."""

_DIGITS = 6
_ATTEMPTS_MOST = 1000
"""A retry count past it is not believed. Plain choice: clients give up long before."""


@dataclass(slots=True, kw_only=True)
class Known:
    """What is known of one request.

    Attributes:
        request_id: the caller's own; None = it gave none that is usable.
        facts: keywords of a policy call; what is not known is left out. Sessions have
            the caller's scope before them, so that nobody can name another's.
        identity: who asks.
        idempotency: the key that a call and its repeats share; None = none given.
        said_attempt: 0 for the first try, as the client counts; None = not said.
        fingerprint: the same for a call and its repeats and nothing else, 32 digits:
            of an idempotency key or the body, of the session and of who asks; who
            shows no usable key is told apart by address.
        slo: `ttft_ms` and `tpot_ms`, where they were sent.
        wish: what the body asks for.
    """

    request_id: str | None
    facts: dict[str, Any]
    identity: Identity
    idempotency: str | None
    said_attempt: int | None
    fingerprint: str
    slo: dict[str, float] = field(default_factory=dict)
    wish: Wish


class Reader:
    """Reads requests.

    Args:
        conventions: where each fact is looked for.
        tenants: who asks; follows the same conventions from now on.
        counter: estimates tokens.
    """

    def __init__(
        self, conventions: Conventions, tenants: Tenants, counter: TokenCounter
    ) -> None:
        tenants.follow(conventions)
        self._conventions = conventions
        self._tenants = tenants
        self._counter = counter
        self._trusted = _index(conventions, frozenset())
        self._public = _index(
            conventions, _NEVER_PUBLIC.union(conventions.only_trusted)
        )
        self._body = [
            (fact, rank, BODY[place])
            for fact, rank, place in _places(conventions)
            if place in BODY
        ]

    def read(self, scope: Mapping[str, Any], body: bytes, wish: Wish) -> Known:
        """What the request with this ASGI scope and body says. Never raises.

        Args:
            scope: its `headers` and `client` are looked at.
            body: for the fingerprint of a call without an idempotency key.
            wish: `read_wish(body)`.
        """
        headers = list(scope.get("headers", ()))
        first = dict(reversed(headers))
        client = scope.get("client")
        trusted = self._tenants.trusts(client)
        identity = self._tenants.among(first, headers, trusted=trusted)
        said = self._said(first, wish, trusted=trusted)
        idempotency = _first(said, "idempotency", _text)
        own, facts = self._sessions(said, identity)
        who = identity.scope.encode()
        if identity.digest is None and not identity.verified:
            who += b" " + _address(client, first, trusted=trusted)
        slo = _slo(said)
        self._sizes(facts, wish, said)
        self._urgency(facts, identity, said, slo)
        return Known(
            request_id=_first(said, "request_id", _request_id),
            facts=facts,
            identity=identity,
            idempotency=idempotency,
            said_attempt=_first(said, "attempt", _attempt),
            fingerprint=self._fingerprint(who, own, idempotency, body),
            slo=slo,
            wish=wish,
        )

    def _said(
        self, headers: Mapping[bytes, bytes], wish: Wish, *, trusted: bool
    ) -> Said:
        index = self._trusted if trusted else self._public
        said: Said = {}
        for name, value in headers.items():
            if name in index and value:
                for fact, rank in index[name]:
                    said.setdefault(fact, []).append((rank, value))
        for fact, rank, read in self._body:
            found = read(wish)
            if found is not None:
                said.setdefault(fact, []).append((rank, found))
        return said

    def _sessions(
        self, said: Said, identity: Identity
    ) -> tuple[str | None, dict[str, Any]]:
        """The session that asks, and what is said of whom it counts for."""
        facts: dict[str, Any] = {"tenant": identity.tenant}
        own = _first(said, "session", _text)
        parent = _first(said, "parent_session", _text)
        child = _first(said, "child", _text)
        root = parent or own
        if child is not None and own is not None:
            begun_by = _first(said, "child_parent", _text)
            begun_in = own if begun_by is None else f"{own}:{begun_by}"
            own, parent = f"{own}:{child}", parent or begun_in
        charged = root if self._conventions.charge == "root" else own
        if charged is not None:
            facts["session"] = _scoped(identity, charged)
        if parent is not None:
            facts["parent_session"] = _scoped(identity, parent)
        if charged == own and _first(said, "session_final", _flag):
            facts["session_final"] = True
        return own, facts

    def _sizes(self, facts: dict[str, Any], wish: Wish, said: Said) -> None:
        stream = False if wish.readable and wish.stream is None else wish.stream
        sizes = (
            ("model", wish.model),
            ("input_tokens", self._counter.estimate(wish.model, wish)),
            ("cached_tokens", _first(said, "cached_tokens", _tokens)),
            ("max_output_tokens", _first(said, "output_tokens", _tokens)),
            ("n", wish.n),
            ("stream", stream),
        )
        facts.update([each for each in sizes if each[1] is not None])

    def _urgency(
        self,
        facts: dict[str, Any],
        identity: Identity,
        said: Said,
        slo: Mapping[str, float],
    ) -> None:
        slo_class = _first(said, "slo_class", _text)
        if slo_class is not None:
            facts["slo_class"] = slo_class
        deadline_s = self._deadline_s(said, slo)
        if deadline_s is not None:
            facts["deadline_s"] = deadline_s
        priority = self._priority(said)
        if identity.setup is not None:
            priority += identity.setup.priority
        if priority:
            facts["priority"] = priority

    def _deadline_s(self, said: Said, slo: Mapping[str, float]) -> float | None:
        """The shortest one, since each of them may only shorten what another allows."""
        if "deadline" not in said:
            return slo["ttft_ms"] / 1000 if "ttft_ms" in slo else None
        places = self._conventions.deadline
        times = [
            seconds
            for rank, value in said["deadline"]
            if (seconds := places[rank].read_s(_text(value) or "")) is not None
        ]
        if "ttft_ms" in slo:
            times.append(slo["ttft_ms"] / 1000)
        return min(times, default=None)

    def _priority(self, said: Said) -> int:
        places = self._conventions.priority
        for rank, value in sorted(said.get("priority", ())):
            text = value if isinstance(value, int) else _text(value) or ""
            found = places[rank].read(text)
            if found is not None:
                return found
        return 0

    def _fingerprint(
        self, who: bytes, session: str | None, idempotency: str | None, body: bytes
    ) -> str:
        if idempotency is not None:
            content, kind = idempotency.encode(), b"key"
        else:
            content, kind = body, b"body"
        return self._tenants.mark(content, kind, who, (session or "").encode())


def _address(client: object, headers: Mapping[bytes, bytes], *, trusted: bool) -> bytes:
    """Whose socket it is; behind a trusted hop, for whom that one says it asks."""
    if trusted:
        said = headers.get(b"x-forwarded-for", b"").partition(b",")[0].strip()
        if said:
            return said
    if not isinstance(client, list | tuple) or not client:
        return b""
    return str(client[0]).encode("utf-8", "backslashreplace")


def _places(conventions: Conventions) -> Iterable[tuple[str, int, str]]:
    """Each fact, with the rank and the name of each of its places."""
    for each in fields(conventions):
        if each.name not in _NOT_SAID:
            for rank, place in enumerate(getattr(conventions, each.name)):
                yield each.name, rank, getattr(place, "place", place)


def _index(conventions: Conventions, without: frozenset[str]) -> Index:
    index: dict[bytes, list[tuple[str, int]]] = {}
    for fact, rank, place in _places(conventions):
        if place not in BODY and fact not in without:
            index.setdefault(place.encode(), []).append((fact, rank))
    return index


def _first(said: Said, fact: str, read: Callable[[Any], T | None]) -> T | None:
    """The first thing said that can be used; None = there is none."""
    options = said.get(fact)
    if options is None:
        return None
    if len(options) == 1:
        return read(options[0][1])
    found = (read(value) for _, value in sorted(options))
    return next((one for one in found if one is not None), None)


def _scoped(identity: Identity, session: str) -> str | None:
    """A name nobody else's session has: others' begin with a scope and a slash."""
    if identity.scope == ANONYMOUS and "/" not in session:
        return session
    return bounded(f"{identity.scope}/{session}")


def _slo(said: Said) -> dict[str, float]:
    slo = {}
    for name, fact in (("ttft_ms", "slo_ttft_ms"), ("tpot_ms", "slo_tpot_ms")):
        value = _first(said, fact, _milliseconds)
        if value is not None:
            slo[name] = value
    return slo


def _text(value: bytes | str | int) -> str | None:
    text = value.decode("utf-8", "backslashreplace") if type(value) is bytes else value
    return bounded(str(text).strip()) or None


def _flag(value: bytes) -> bool | None:
    text = (_text(value) or "").lower()
    return {"true": True, "1": True, "false": False, "0": False}.get(text)


def _milliseconds(value: bytes) -> float | None:
    return decimal(_text(value) or "") or None


def _tokens(value: bytes | int) -> int | None:
    if isinstance(value, int):
        return value
    number = decimal(_text(value) or "")
    return int(number) if number is not None and number == int(number) else None


def _request_id(value: bytes) -> str | None:
    said = value.strip()
    return said.decode("ascii") if _REQUEST_ID.fullmatch(said) else None


def _attempt(value: bytes) -> int | None:
    number = int(value) if value.isdigit() and len(value) < _DIGITS else None
    return number if number is not None and number <= _ATTEMPTS_MOST else None
