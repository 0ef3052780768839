"""Admission as ASGI middleware: decide, answer, watch, report how it ended.

    app = AdmissionMiddleware(app, load("queue_depth")(max_waiting=8, log="d.jsonl"),
                              metrics="http://127.0.0.1:8000/metrics")

Pure ASGI, the standard library only. Only POSTs to the paths of an API that generates
are judged; everything else passes untouched.
"""

import asyncio
import os
import posixpath
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any

from admitperf.core.decision import Decision
from admitperf.core.policy import Policy
from admitperf.gateway.answers import (
    JUDGED,
    Dialect,
    dialect_of,
    fault,
    header_value,
    refusal,
)
from admitperf.gateway.broke import UpstreamBroke
from admitperf.gateway.edge import Edge, Fixed, one_pool
from admitperf.gateway.facts.facts import Known
from admitperf.gateway.intake import (
    BodyTooLargeError,
    BodyUnfinishedError,
    Intake,
    Message,
    Receive,
    announced,
)
from admitperf.gateway.pool import Asked, Pool, Seen
from admitperf.gateway.readings import Readings
from admitperf.gateway.relay import Relay, Send, send_reply
from admitperf.gateway.setup import EdgeSetup, Limits, PoolSetup, Timeouts, Upstream
from admitperf.gateway.ticket import Ticket
from admitperf.gateway.watching.watch import Watch

Scope = dict[str, Any]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

SCOPE_KEY = "admitperf"
"""Where an app behind finds the `Ticket` of a request."""

_DECISION_ID = b"x-admitperf-decision-id"
_REFUSED_KEY = (401, 403)
_SERVED = range(200, 300)
_BAD_REQUEST = 400
_NOT_FOUND = 404


class AdmissionMiddleware:
    """Judges the requests of the app behind it.

    Args:
        app: what serves the admitted ones.
        policy: decides; made with `reports_outcomes=True`, or signals of its own open
            requests are not known before the first end.
        metrics: address of the engine's metrics page; None = the policy needs none.
        pool: holding, scraping and more; None = the defaults.
        limits: bounds; None = the defaults.
        edge: a whole front door, in place of all of these.

    Raises:
        TypeError: neither a policy nor an edge was given; or timeouts, which only the
            proxy can keep: an app's own are its own.
    """

    def __init__(
        self,
        app: App,
        policy: Policy | None = None,
        *,
        metrics: str | None = None,
        pool: PoolSetup | None = None,
        limits: Limits | None = None,
        edge: Edge | None = None,
    ) -> None:
        self.app = app
        if edge is None:
            if policy is None:
                raise TypeError("give a policy, or an edge")
            if pool is not None and pool.timeouts != Timeouts():
                raise TypeError("timeouts are kept by the proxy, not by the middleware")
            edge = _edge(policy, metrics, pool or PoolSetup(), limits or Limits())
        self.edge = edge

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One ASGI connection."""
        kind = scope["type"]
        if kind == "http" and scope["method"] == "POST":
            path = judged(scope)
            if path is not None:
                self.edge.start()
                await _Exchange(self, scope, receive, send, dialect_of(path)).run()
                return
        if kind == "lifespan":
            self.edge.start()
            await self.app(scope, partial(self._until_shutdown, receive), send)
            return
        await self.app(scope, receive, send)

    async def _until_shutdown(self, receive: Receive) -> Message:
        """The app's `receive` of a server's life. An app without one goes on."""
        message = await receive()
        if message["type"] == "lifespan.shutdown":
            self.edge.close()
        return message


def judged(scope: Scope) -> str | None:
    """The path a request is judged by; None = it is not.

    Doubled slashes, dot segments, a slash at the end and the path an app is mounted
    under make no difference: what stands between may resolve them.
    """
    path: str = scope["path"]
    if path in JUDGED:
        return path
    root = scope.get("root_path", "")
    if root and path.startswith(root):
        path = path[len(root) :]
    path = "/" + posixpath.normpath(path).strip("/")
    return path if path in JUDGED else None


class _Exchange:
    """One judged request, from its head to the end of its answer."""

    __slots__ = (
        "_dialect",
        "_edge",
        "_inner",
        "_intake",
        "_scope",
        "_send",
        "_start_ns",
        "_why",
    )

    def __init__(
        self,
        outer: AdmissionMiddleware,
        scope: Scope,
        receive: Receive,
        send: Send,
        dialect: Dialect,
    ) -> None:
        self._inner = outer.app
        self._edge = outer.edge
        self._scope = scope
        self._intake = Intake(receive, outer.edge.setup.limits)
        self._send = send
        self._dialect = dialect
        self._start_ns = outer.edge.clock.monotonic_ns()
        self._why: str | None = None

    async def run(self) -> None:
        """Reads, decides, and answers or serves."""
        try:
            known = await self._known()
            if known is None:
                return
            pool = self._edge.pool_of(known.wish.model)
            if pool is None:
                await self._no_such_model(known.request_id)
                return
            await self._through(pool, pool.meet(known, self._start_ns))
        finally:
            self._intake.close()

    async def _known(self) -> Known | None:
        """What it says; None = there is no whole body, and who can be told was.

        No frame but this one holds the body: a long answer would keep it.
        """
        try:
            body = await self._intake.body(announced(self._scope["headers"]))
            return await self._edge.read(self._scope, body)
        except BodyTooLargeError as error:
            await self._too_large(str(error))
        except BodyUnfinishedError as error:
            next(iter(self._edge.pools.values())).counters.unfinished += 1
            with suppress(OSError):  # servers say so too when the framing was wrong
                await self._own(_BAD_REQUEST, "body_unfinished", str(error), None)
        return None

    async def _through(self, pool: Pool, asked: Asked) -> None:
        try:
            d = await self._decided(pool, asked)
        except BaseException:
            pool.forget_call(asked)
            raise
        if d is None:
            return
        if not d.admitted:
            await self._refuse(pool, d)
            return
        try:
            await self._serve(pool, asked, d)
        finally:
            if not asked.outcome:
                pool.ended(asked, d, {"ok": False, "error": "handler_error"})

    async def _refuse(self, pool: Pool, d: Decision) -> None:
        reply = refusal(
            d, self._dialect, request_id=d.request_id, decision_id=pool.number(d)
        )
        await send_reply(self._send, reply)

    # Before the start.

    async def _decided(self, pool: Pool, asked: Asked) -> Decision | None:
        """The final answer; None = the caller left meanwhile."""
        d = pool.judge(asked)
        if not d.open:
            return d
        waiter = pool.waiter(asked, d)
        if waiter is None:
            return pool.settle(asked, d)
        held = asyncio.ensure_future(pool.queue.hold(waiter))
        try:
            await asyncio.wait(
                {held, self._intake.leaving()}, return_when=asyncio.FIRST_COMPLETED
            )
        except asyncio.CancelledError:
            pool.left(asked, waiter.decision, pool.queue.held_ms(waiter))
            raise
        finally:
            held.cancel()
            pool.queue.leave(waiter)
        held_ms = pool.queue.held_ms(waiter)
        if self._intake.gone:
            pool.left(asked, waiter.decision, held_ms)
            return None
        return pool.settle(asked, waiter.decision, held_ms)

    # After it.

    async def _serve(self, pool: Pool, asked: Asked, d: Decision) -> None:
        watch = Watch(self._dialect, self._start_ns, self._edge.clock)
        relay = self._relay(watch, pool, d)
        known = asked.known
        ticket = Ticket(
            pool.name,
            self._intake.whole,
            d.request_id,
            known.facts.get("session"),
            asked.replica,
        )
        self._scope[SCOPE_KEY] = ticket
        pool.counters.live += 1
        try:
            await self._run_app(relay)
        except asyncio.CancelledError:
            self._why = "shutdown" if pool.draining else "client_closed"
            raise
        except Exception:
            self._why = self._why or "handler_error"
            raise
        finally:
            relay.close()
            pool.counters.live -= 1
            asked.replica = ticket.replica
            gone = "client_closed" if self._intake.gone else None
            why = gone or self._why or ticket.why
            pool.ended(asked, d, self._outcome(watch, why))
            self._identify(asked, relay.status)
            if known.wish.readable and asked.outcome.get("input_tokens"):
                self._edge.learn(known.wish, asked.outcome["input_tokens"])

    async def _run_app(self, relay: Relay) -> None:
        """Runs the app, and closes its answer when that broke off."""
        try:
            await self._inner(self._scope, self._intake.replay, relay.send)
            await relay.finish()
        except UpstreamBroke as broke:
            self._why = broke.why
            await relay.break_off(broke.why)

    def _outcome(self, watch: Watch, why: str | None) -> dict[str, Any]:
        """How it ended; whatever goes wrong in saying so costs no lease."""
        try:
            return watch.outcome(self._edge.clock.monotonic_ns(), why)
        except Exception:  # noqa: BLE001  the lease must be given back
            return {"ok": False, "error": why or "handler_error"}

    def _identify(self, asked: Asked, status: int) -> None:
        """An engine that took a key, or did not, says whose it is."""
        tenants, identity = self._edge.tenants, asked.known.identity
        if status in _REFUSED_KEY:
            tenants.refused(identity)
        elif status in _SERVED:
            tenants.accepted(identity)

    # Answers of our own.

    async def _too_large(self, text: str) -> None:
        known = await self._edge.read(self._scope, b"")
        pool = next(iter(self._edge.pools.values()))
        d = pool.too_large(pool.meet(known, self._start_ns))
        reply = fault(413, "too_large", text, self._dialect, request_id=d.request_id)
        reply.headers.append((_DECISION_ID, pool.number(d).encode()))
        await send_reply(self._send, reply)

    async def _no_such_model(self, request_id: str | None) -> None:
        text = "No pool serves this model"
        await self._own(_NOT_FOUND, "model_not_found", text, request_id)

    async def _own(
        self, status: int, code: str, text: str, request_id: str | None
    ) -> None:
        made = request_id or os.urandom(8).hex()
        reply = fault(status, code, text, self._dialect, request_id=made)
        await send_reply(self._send, reply)

    def _relay(self, watch: Watch, pool: Pool, d: Decision) -> Relay:
        made = header_value(d.request_id)
        return Relay(
            self._send,
            watch,
            self._dialect,
            ids=[
                (b"x-request-id", made),
                (b"request-id", made),
                (_DECISION_ID, pool.number(d).encode()),
            ],
            request_id=d.request_id,
            peek_ms=self._edge.setup.limits.peek_ms,
            alive=partial(pool.policy.first_token, d.request_id),
            clock=self._edge.clock,
        )


def _edge(policy: Policy, metrics: str | None, pool: PoolSetup, limits: Limits) -> Edge:
    setup = EdgeSetup(pools=(pool,), limits=limits)
    seen: Seen = Fixed()
    if metrics is not None:
        engine = Upstream(url="", metrics_url=metrics, name="engine")
        seen = Readings((engine,), pool.scrape)
    return one_pool(policy, seen, setup)


__all__ = ["AdmissionMiddleware", "App", "Message", "Scope", "judged"]
