"""The app at the end of the line: the gateway's own pages, and the way to replicas.

It runs behind `AdmissionMiddleware`. Requests that were judged come with a `Ticket`,
which holds their body; all others pass unjudged, to the pool that names no models.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any
from uuid import uuid4

from admitperf.core.clock import SYSTEM, Clock
from admitperf.core.signal import Signal
from admitperf.gateway.answers import Reply, dialect_of, fault
from admitperf.gateway.broke import UpstreamBroke
from admitperf.gateway.edge import Edge
from admitperf.gateway.exposition import Exposition
from admitperf.gateway.intake import (
    BodyTooLargeError,
    BodyUnfinishedError,
    Intake,
    announced,
)
from admitperf.gateway.middleware import SCOPE_KEY
from admitperf.gateway.pool import Pool
from admitperf.gateway.proxy.balance import Balancer, Replica
from admitperf.gateway.proxy.headers import Outgoing, has, upgrades
from admitperf.gateway.proxy.own import Own
from admitperf.gateway.proxy.passage import (
    CLIENT_LEFT,
    ClientLeftError,
    Passage,
    Receive,
    Send,
)
from admitperf.gateway.proxy.upstream import Connections, UnreachableError
from admitperf.gateway.relay import send_reply
from admitperf.gateway.setup import Limits
from admitperf.gateway.state import explain, state
from admitperf.gateway.ticket import Ticket

Scope = Mapping[str, Any]

_BAD_REQUEST, _TOO_LARGE = 400, 413
_NOT_IMPLEMENTED, _BAD_GATEWAY, _GATEWAY_TIMEOUT = 501, 502, 504
_IDS = (b"x-request-id", b"request-id")
_UNREACHABLE = "upstream_unreachable"
_PACKED = "transfer_coding"
_TEXTS = {
    _UNREACHABLE: "The engine cannot be reached",
    "upstream_ended_early": "The engine ended the connection without an answer",
    "timeout_first_token": "The engine did not answer in time",
    "timeout_total": "The answer took too long",
}


class ProxyApp:
    """Forwards requests to replicas and their answers to callers.

    Args:
        pools: by name; the unjudged go to the first one that names no models, else to
            the first.
        limits: bounds of what is read here, that is of unjudged requests.
        own: pages of the gateway itself; None = it has none.
        clock: source of time.

    Attributes:
        pools: as given.
    """

    def __init__(
        self,
        pools: Mapping[str, Balancer],
        *,
        limits: Limits | None = None,
        own: Own | None = None,
        clock: Clock = SYSTEM,
    ) -> None:
        self.pools = dict(pools)
        self._limits = limits or Limits()
        self._own = own
        self._clock = clock
        self._connections = Connections()
        open_to_all = (n for n, pool in self.pools.items() if not pool.setup.models)
        self._default = next(open_to_all, next(iter(self.pools)))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request.

        Raises:
            UpstreamBroke: its answer broke off after it had begun.
        """
        if scope["type"] != "http":
            raise TypeError(f"no {scope['type']} is served here")
        ticket: Ticket | None = scope.get(SCOPE_KEY)
        if ticket is not None:
            await self._forward(scope, ticket, receive, send)
            return
        reply = self._own.answer(scope) if self._own is not None else None
        if reply is None:
            reply = _unserved(scope)
        if reply is None:
            await self._unjudged(scope, receive, send)
        else:
            await send_reply(send, reply, bodiless=scope["method"] == "HEAD")

    async def close(self) -> None:
        """Closes every connection to a replica."""
        await self._connections.close()

    async def _unjudged(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Reads a request that nobody has read yet, and forwards it."""
        intake = Intake(receive, self._limits)
        length = announced(scope["headers"])
        try:
            body = await intake.body(length) if _has_body(scope) else b""
        except BodyTooLargeError as error:
            reply = _fault(scope, _TOO_LARGE, "too_large", str(error))
            await send_reply(send, reply)
        except BodyUnfinishedError as error:
            if not intake.gone:
                reply = _fault(scope, _BAD_REQUEST, "body_unfinished", str(error))
                await send_reply(send, reply)
        else:
            ticket = Ticket(self._default, body, _request_id(scope))
            await self._forward(scope, ticket, receive, send)

    async def _forward(
        self, scope: Scope, ticket: Ticket, receive: Receive, send: Send
    ) -> None:
        balancer = self.pools[ticket.pool]
        outgoing = Outgoing(scope, ticket.body, ticket.request_id)
        if outgoing.packed:
            ticket.why = _PACKED
            text = "The only transfer coding served is chunked"
            await send_reply(send, _fault(scope, _NOT_IMPLEMENTED, _PACKED, text))
            return
        with Passage(balancer.setup.timeouts, receive, send, self._clock) as passage:
            try:
                reply = await self._through(balancer, passage, ticket, outgoing, scope)
            except ClientLeftError:
                ticket.why = CLIENT_LEFT
                return
        if reply is not None:
            await send_reply(send, reply, bodiless=outgoing.bodiless)

    async def _through(
        self,
        balancer: Balancer,
        passage: Passage,
        ticket: Ticket,
        outgoing: Outgoing,
        scope: Scope,
    ) -> Reply | None:
        """To one replica after another; what to answer if none did."""
        tried: list[Replica] = []
        in_time = True
        while True:
            replica = balancer.pick(ticket.session, named=ticket.replica, without=tried)
            if replica is None:
                return _no_answer(scope, ticket, _UNREACHABLE, late=not in_time)
            ticket.replica = replica.name
            with replica:
                try:
                    head = await passage.ask(self._connections, replica, outgoing)
                except UnreachableError as error:
                    balancer.failed(replica)
                    tried.append(replica)
                    in_time = error.in_time
                    continue
                except UpstreamBroke as broke:
                    replica.worked()
                    late = broke.why.startswith("timeout")
                    return _no_answer(scope, ticket, broke.why, late=late)
                replica.worked()
                ticket.body = outgoing.body = b""  # it will not be sent again
                await passage.answer(head)
                return None


def proxy_of(edge: Edge) -> ProxyApp:
    """The proxy behind a front door, with its pages."""
    limits = edge.setup.limits
    pools = {
        pool.name: Balancer(pool.setup, limits.identities, edge.clock)
        for pool in edge.pools.values()
    }
    for name, pool in edge.pools.items():
        pools[name].unseen = partial(getattr, pool.seen, "unseen", ())
        if pool.setup.scrape.view == "replica":
            pool.order = pools[name].order
    own = Own(
        metrics=Exposition(edge, lambda name: _in_flight(pools[name])).page,
        state=lambda: _state(edge, app),
        explain=lambda name: explain(edge, name),
        unready=lambda: _unready(edge),
    )
    app = ProxyApp(pools, limits=limits, own=own, clock=edge.clock)
    return app


def _state(edge: Edge, app: ProxyApp) -> Mapping[str, object]:
    replicas = {name: _in_flight(pool) for name, pool in app.pools.items()}
    return {**state(edge), "in_flight_by_replica": replicas}


def _in_flight(balancer: Balancer) -> dict[str, int]:
    """Open requests of each replica."""
    return {one.name: one.in_flight for one in balancer.replicas}


def _unready(edge: Edge) -> list[str]:
    """Why nothing should be sent here: never that it is full."""
    reasons: list[str] = []
    for name, pool in edge.pools.items():
        if pool.draining:
            reasons.append(f"{name}: draining")
        rounds = pool.seen.rounds
        if rounds is not None:  # else a host hands readings in
            blind = _looks(pool) and not pool.seen.pool.raw
            if blind or not rounds:
                reasons.append(f"{name}: no reading of its engines yet")
        if pool.missing is not None:
            reasons.append(f"{name}: {pool.missing}")
    return reasons


def _looks(pool: Pool) -> bool:
    """Whether its policy cannot do without an engine's word."""
    needs = (one for one in pool.policy.requires if isinstance(one, Signal))
    return any(one.origin == "engine" for one in needs)


def _unserved(scope: Scope) -> Reply | None:
    """The answer to what no proxy of this kind forwards; None = it is forwarded."""
    if upgrades(scope["headers"]) or scope["method"] == "CONNECT":
        text = "Only plain HTTP requests are served: no WebSocket, no tunnel"
        return _fault(scope, _NOT_IMPLEMENTED, "not_implemented", text)
    if not scope["raw_path"].startswith(b"/"):
        return _fault(scope, _BAD_REQUEST, "bad_path", "The path must begin with /")
    return None


def _no_answer(scope: Scope, ticket: Ticket, why: str, *, late: bool) -> Reply:
    ticket.why = why
    status = _GATEWAY_TIMEOUT if late else _BAD_GATEWAY
    dialect = dialect_of(scope["path"])
    made = ticket.request_id
    retry = not why.startswith("timeout")
    return fault(status, why, _TEXTS[why], dialect, request_id=made, retry=retry)


def _fault(scope: Scope, status: int, code: str, text: str) -> Reply:
    dialect = dialect_of(scope["path"])
    return fault(status, code, text, dialect, request_id=_request_id(scope))


def _request_id(scope: Scope) -> str:
    """The caller's own, under either spelling, else a new one."""
    for name, value in scope["headers"]:
        if name in _IDS:
            given: str = value.decode("latin-1")
            return given
    return uuid4().hex


def _has_body(scope: Scope) -> bool:
    headers = scope["headers"]
    return has(headers, b"content-length") or has(headers, b"transfer-encoding")
