"""The gateway's own pages: whether it lives, whether it is ready, what it counts.

None of them is ever judged, and none depends on an engine.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from typing import Any
from urllib.parse import urlsplit

from admitperf.gateway.answers import Reply
from admitperf.gateway.proxy.headers import has

EXPLAIN = "/admitperf/explain/"
"""Path of one decision, before its id."""

_PATHS = ("/health", "/ready", "/metrics", "/admitperf/state")
_READ = ("GET", "HEAD")
_FORWARDED = (
    b"forwarded",
    b"x-forwarded-for",
    b"x-forwarded-host",
    b"x-forwarded-proto",
    b"x-real-ip",
    b"x-envoy-external-address",
    b"via",
)
_OK, _NOT_FOUND, _NOT_ALLOWED, _UNAVAILABLE = 200, 404, 405, 503


def _never() -> Sequence[str]:
    return ()


@dataclass(frozen=True, slots=True)
class Own:
    """Where the pages come from.

    Attributes:
        metrics: the Prometheus page, as text.
        state: what `/admitperf/state` shows.
        explain: one decision, by its id; None = not known.
        unready: why no request should come yet, or any longer; empty = they may. Never
            that it is full.
    """

    metrics: Callable[[], bytes]
    state: Callable[[], Mapping[str, object]]
    explain: Callable[[str], Mapping[str, object] | None]
    unready: Callable[[], Sequence[str]] = _never

    def answer(self, scope: Mapping[str, Any]) -> Reply | None:
        """The answer to a request for a page of ours; None = it is for another."""
        path: str = scope["path"]
        if path not in _PATHS and not path.startswith("/admitperf/"):
            return None
        if scope["method"] not in _READ:
            return _json(_NOT_ALLOWED, {"error": "read only"}, (b"allow", b"GET, HEAD"))
        if path == "/health":
            return _json(_OK, {"status": "ok"})
        if path == "/ready":
            reasons = list(self.unready())
            shown = {"ready": not reasons, "reasons": reasons}
            return _json(_UNAVAILABLE if reasons else _OK, shown)
        if path == "/metrics":
            return _reply(
                _OK, self.metrics(), b"text/plain; version=0.0.4; charset=utf-8"
            )
        return self._inside(scope, path)

    def _inside(self, scope: Mapping[str, Any], path: str) -> Reply:
        """What only somebody on this machine may see."""
        found: Mapping[str, object] | None = None
        if _local(scope):
            if path == "/admitperf/state":
                found = self.state()
            elif path.startswith(EXPLAIN):
                found = self.explain(path[len(EXPLAIN) :])
        if found is None:
            return _json(_NOT_FOUND, {"error": "not found"})
        return _json(_OK, found)


def _local(scope: Mapping[str, Any]) -> bool:
    """Whether a caller sits on this machine, with no other proxy in between.

    It has to call us by an address of this machine, too: a browser here may be made to
    ask for the page of a name that its owner then points at this machine.
    """
    client, headers = scope.get("client"), scope["headers"]
    if not client or any(has(headers, name) for name in _FORWARDED):
        return False
    hosts = [value for name, value in headers if name == b"host"]
    return _loopback(client[0]) and bool(hosts) and all(map(_named_local, hosts))


def _named_local(host: bytes) -> bool:
    """Whether a `host` header, with any port, names this machine."""
    try:
        name = urlsplit(b"//" + host).hostname or b""
    except ValueError:
        return False
    return name == b"localhost" or _loopback(name.decode("latin-1"))


def _loopback(name: str) -> bool:
    """Whether it is an address of this machine alone."""
    try:
        address = ip_address(name)
    except ValueError:
        return False
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return address.is_loopback


def _json(
    status: int, shown: Mapping[str, object], *more: tuple[bytes, bytes]
) -> Reply:
    body = json.dumps(shown, default=str).encode()
    return _reply(status, body, b"application/json", *more)


def _reply(
    status: int, body: bytes, content_type: bytes, *more: tuple[bytes, bytes]
) -> Reply:
    headers = [
        (b"content-type", content_type),
        (b"content-length", b"%d" % len(body)),
        (b"cache-control", b"no-store"),
        *more,
    ]
    return Reply(status, headers, body)
