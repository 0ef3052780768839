"""Who asks: the tenant behind a key, and whose word counts.

A key is never kept, only a keyed digest of it. A key nobody has vouched for yet shares
one name with all such keys, so that making keys up buys no share of its own.
"""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from threading import Lock

from admitperf.core.digest import blake2b
from admitperf.core.errors import ConfigError
from admitperf.core.request import bounded
from admitperf.gateway.facts.conventions import Conventions
from admitperf.gateway.setup import Tenant

Network = IPv4Network | IPv6Network
Headers = Sequence[tuple[bytes, bytes]]

ANONYMOUS = "anonymous"
"""Tenant of requests without a key."""

UNVERIFIED = "unverified"
"""Tenant of all keys that upstream has not accepted yet."""

_SHORT = 12
"""Hex digits of a digest in a tenant's name. Plain choice: 48 bits tell thousands of
keys apart."""

_CLIENTS_MOST = 4096
"""Addresses whose trust is remembered. Plain choice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Who asks.

    Attributes:
        tenant: the name, as logs and quotas have it.
        scope: a name that is this caller's alone and stays the same before and after
            its key is accepted: sessions and fingerprints are told apart by it.
        digest: of the key; None = no key decided.
        setup: what is known beforehand; None = nothing.
        verified: named by a trusted hop or by configuration, or accepted by upstream.
    """

    tenant: str
    scope: str
    digest: str | None = field(default=None, repr=False)
    setup: Tenant | None = None
    verified: bool = False


_NOBODY = Identity(tenant=ANONYMOUS, scope=ANONYMOUS)
_AMBIGUOUS = Identity(tenant=UNVERIFIED, scope=UNVERIFIED)


class Tenants:
    """Keys to tenants.

    Args:
        known: `digest(key)` to the tenant whose key it is.
        secret: what digests are keyed with; the same in every process that shall agree.
        trusted: networks, or single addresses, of hops whose headers may name a tenant.
        most: accepted keys remembered; the longest unused go first, and start over.

    Raises:
        ConfigError: a network is none.
    """

    def __init__(
        self,
        known: Mapping[str, Tenant] | None = None,
        secret: bytes = b"",
        trusted: Sequence[str] = (),
        most: int = 10_000,
    ) -> None:
        key = blake2b(secret, digest_size=32).digest()
        self._keyed = blake2b(key=key, digest_size=16)
        self._trusted = _networks(trusted)
        self._most = most
        self._known = {
            digest: Identity(
                tenant=tenant.name,
                scope=tenant.name,
                digest=digest,
                setup=tenant,
                verified=True,
            )
            for digest, tenant in (known or {}).items()
        }
        self._by_name = {each.tenant: each.setup for each in self._known.values()}
        self._accepted: OrderedDict[str, Identity] = OrderedDict()
        self._clients: dict[str, bool] = {}
        self._lock = Lock()
        self.follow(Conventions())

    def follow(self, conventions: Conventions) -> None:
        """Looks for keys and tenants in the headers that these conventions name."""
        self._credentials = [name.encode() for name in conventions.credentials]
        self._names = [name.encode() for name in conventions.tenant]

    def digest(self, key: str | bytes) -> str:
        """A key's keyed digest, 32 hex digits; what configuration writes for it."""
        return self.mark(key.encode() if isinstance(key, str) else key)

    def mark(self, last: bytes, *before: bytes) -> str:
        """A keyed digest, 32 hex digits, of parts no other parts have the digest of."""
        hashed = self._keyed.copy()
        if before:
            lengths = b"%d:" * len(before) % tuple(map(len, before))
            hashed.update(b"".join((lengths, *before)))
        hashed.update(last)
        return hashed.hexdigest()

    def trusts(self, client: object) -> bool:
        """Whether an ASGI `client`, host and port or None, is a trusted hop."""
        if not self._trusted or not isinstance(client, list | tuple) or not client:
            return False
        host = str(client[0])
        trusted = self._clients.get(host)
        if trusted is None:
            trusted = self._looked_up(host)
            if len(self._clients) >= _CLIENTS_MOST:
                self._clients.clear()
            self._clients[host] = trusted
        return trusted

    def of(self, headers: Headers, client: object) -> Identity:
        """Who asks, by the headers of an ASGI scope and its client. Never raises."""
        return self.among(dict(reversed(headers)), headers, trusted=self.trusts(client))

    def among(
        self, first: Mapping[bytes, bytes], headers: Headers, *, trusted: bool
    ) -> Identity:
        """As `of`, for who has looked already.

        Args:
            first: each header's first value.
            headers: all of them.
            trusted: they come from a trusted hop.
        """
        if trusted:
            for name in self._names:
                tenant = _name(first.get(name))
                if tenant is not None:
                    return self._named(tenant)
        if len(first) != len(headers) and self._repeats(headers):
            return self._by_keys(headers)
        return self._by_key(first)

    def _named(self, tenant: str) -> Identity:
        setup = self._by_name.get(tenant)
        return Identity(tenant=tenant, scope=tenant, setup=setup, verified=True)

    def _repeats(self, headers: Headers) -> bool:
        """Whether a header that holds a key is there twice."""
        names = [name for name, _ in headers if name in self._credentials]
        return len(names) != len(set(names))

    def _by_keys(self, headers: Headers) -> Identity:
        """Which of several would decide? A listed one, lest it escape its quota.

        Of several listed ones the first, as engines take it: Starlette does.
        """
        said = {
            name: [_key(value) for at, value in headers if at == name]
            for name in self._credentials
        }
        keys = [key for each in said.values() for key in each if key]
        for key in keys:
            known = self._known.get(self.mark(key))
            if known is not None:
                return known
        if any(len(set(each)) > 1 for each in said.values()):
            return _AMBIGUOUS
        return self._by_digest(self.mark(keys[0])) if keys else _NOBODY

    def _by_key(self, first: Mapping[bytes, bytes]) -> Identity:
        said = map(first.get, self._credentials)
        digests = [self.mark(key) for key in map(_key, said) if key]
        if not digests:
            return _NOBODY
        for digest in digests:
            if digest in self._known:
                return self._known[digest]
        return self._by_digest(digests[0])

    def _by_digest(self, digest: str) -> Identity:
        with self._lock:
            accepted = self._accepted.get(digest)
            if accepted is not None:
                self._accepted.move_to_end(digest)
                return accepted
        return Identity(
            tenant=UNVERIFIED, scope=f"key-{digest[:_SHORT]}", digest=digest
        )

    def accepted(self, identity: Identity) -> None:
        """Upstream took the request: from now on its key has a tenant of its own."""
        digest = identity.digest
        if digest is None or identity.verified:
            return
        named = Identity(
            tenant=identity.scope, scope=identity.scope, digest=digest, verified=True
        )
        with self._lock:
            self._accepted[digest] = named
            if len(self._accepted) > self._most:
                self._accepted.popitem(last=False)

    def refused(self, identity: Identity) -> None:
        """Upstream answered 401 or 403: if its key had a tenant of its own, no more."""
        if identity.digest is not None:
            with self._lock:
                self._accepted.pop(identity.digest, None)

    def _looked_up(self, host: str) -> bool:
        try:
            address = _plain(ip_address(host))
        except ValueError:
            return False
        return any(address in network for network in self._trusted)


def _networks(texts: Sequence[str]) -> list[Network]:
    found: list[Network] = []
    faults: list[str] = []
    for at, text in enumerate(texts):
        try:
            found.append(ip_network(text))
        except ValueError as error:
            faults.append(f"[{at}]: {error}")
    if faults:
        raise ConfigError("trusted_hops", faults)
    return found


def _plain(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """A caller over IPv4 on a socket for both is who it is."""
    mapped = getattr(address, "ipv4_mapped", None)
    return address if mapped is None else mapped


def _key(said: bytes | None) -> bytes:
    """The key in a header's value, without the word `Bearer`; empty = none."""
    if not said:
        return b""
    scheme, _, rest = said.strip().partition(b" ")
    return rest.strip() if scheme.lower() == b"bearer" else said.strip()


def _name(said: bytes | None) -> str | None:
    return bounded(said.strip()) or None if said else None
