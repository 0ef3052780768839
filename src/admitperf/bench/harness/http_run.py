"""One run on the wall clock: traffic through a policy to an engine behind HTTP.

Each attempt is due at an instant of its own, and all its times count from there: what
is sent late was slow for whoever asked. Nothing bounds how many are under way but the
plan. Whatever goes wrong with a policy, a look or an answer is counted, and the run
goes on.
"""

import asyncio
import json
import math
from array import array
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from typing import Any

import aiohttp

from admitperf.bench.harness.http_looks import Looks
from admitperf.bench.harness.http_prompts import Prompts
from admitperf.bench.harness.http_stream import Stream
from admitperf.core.clock import SYSTEM
from admitperf.core.decision import Decision
from admitperf.core.policy import Policy
from admitperf.reports.quantile import Spread
from admitperf.simulator.loop import Driven
from admitperf.simulator.traffic.arrival import Arrival
from admitperf.simulator.traffic.traffic import Answer, Coming, Traffic

FIRST_S = 600.0
"""Longest wait for a first token before an attempt is given up. Plain choice: above any
queue that a caller sits out."""

IDLE_S = 60.0
"""Longest silence between tokens. A vLLM that was told to end leaves its streams open
and says nothing more. Plain choice: twenty times the longest gap seen (3 s)."""

LEAD_S = 0.05  # from here to the first instant, so that it is not late by itself
_NS = 1_000_000_000
_MOST_ERROR_BYTES = 1 << 16
_CLOSED = "client_closed"
_UNFINISHED = "unfinished"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """How an engine is asked.

    Attributes:
        url: of its completions.
        model: the name it is asked for.
        headers: of each request.
        prompts: their text.
        longest: most tokens of a prompt and its answer; None = not known.
        first_s: longest wait for a first token before an attempt is given up.
        idle_s: longest silence after it.
    """

    url: str
    model: str
    headers: Mapping[str, str]
    prompts: Prompts
    longest: int | None = None
    first_s: float = FIRST_S
    idle_s: float = IDLE_S

    def body(self, arrival: Arrival) -> bytes:
        """A request, whose answer is as long as planned whatever the text would be.

        What its caller cuts off goes on for longer, up to the bound.
        """
        wish: dict[str, object] = {
            "model": self.model,
            "max_tokens": self._tokens(arrival),
            "temperature": 0,
            "ignore_eos": True,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if arrival.prefix:  # the answer may be part of a later prompt
            wish["return_token_ids"] = True
        if arrival.priority:
            wish["priority"] = arrival.priority
        rest = json.dumps(wish)[1:]
        return f'{{"prompt": [{self.prompts.of(arrival)}], {rest}'.encode()

    def _tokens(self, arrival: Arrival) -> int:
        tokens = arrival.output_tokens
        if not arrival.hangs_up:
            return tokens
        most = max(tokens + 1, arrival.max_output_tokens)
        room = most if self.longest is None else self.longest - arrival.input_tokens
        return max(tokens, min(most, room))


@dataclass(frozen=True, slots=True, kw_only=True)
class WallDriven(Driven):
    """What a run on the wall clock was, beside its log.

    Attributes:
        facts: what the instrument saw of itself and of the engine, as plain values.
    """

    facts: Mapping[str, object] = field(default_factory=dict)

    @property
    def restarts(self) -> int:
        """How often the engine began anew meanwhile."""
        told = self.facts.get("restarts")
        return told if isinstance(told, int) else 0


async def driven(
    policy: Policy, traffic: Traffic, asking: Asking, looks: Looks, until_s: float
) -> WallDriven:
    """Drives traffic through a policy until the last attempt has ended.

    Args:
        policy: constructed with `reports_outcomes=True`.
        traffic: who asks, and what they ask next. Its method `sent(arrival, late_ms)`
            is called for each attempt, where it has one.
        asking: how the engine is asked.
        looks: started already.
        until_s: seconds from the start after which what is inside is given up.
    """
    # A connection for each attempt: a kept one may be dead by the time it is used.
    wire = aiohttp.TCPConnector(limit=0, force_close=True)
    patience = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(connector=wire, timeout=patience) as web:
        return await _Run(policy, traffic, asking, looks, web).to_the_end(until_s)


class _Run:
    def __init__(
        self,
        policy: Policy,
        traffic: Traffic,
        asking: Asking,
        looks: Looks,
        web: aiohttp.ClientSession,
    ) -> None:
        self._policy = policy
        self._traffic = traffic
        self._asking = asking
        self._looks = looks
        self._web = web
        self._loop = asyncio.get_running_loop()
        self._sent: Callable[[Arrival, float], None] | None = getattr(
            traffic, "sent", None
        )
        self._coming = Coming(())
        self._open: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._done = asyncio.Event()
        self._over = False
        self._fatal: BaseException | None = None
        self._decide_ns = array("q")
        self._late_ms: list[float] = []
        self._counts = {"policy_faults": 0, "engine_refused": 0, "failed": 0}
        self._first_fault: str | None = None
        self._zero_ns = 0

    async def to_the_end(self, until_s: float) -> WallDriven:
        self._coming.add(self._traffic.first())
        self._zero_ns = SYSTEM.monotonic_ns() + int(LEAD_S * _NS)
        self._arm()
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(_finite(until_s, LEAD_S)):
                    await self._done.wait()
        finally:
            await self._end()
        if self._fatal is not None:
            raise self._fatal
        return WallDriven(
            decide_ns=self._decide_ns, seconds=self._now_s(), facts=self._facts()
        )

    async def _end(self) -> None:
        """Gives up what is inside, and asks nothing more."""
        self._over = True
        if self._timer is not None:
            self._timer.cancel()
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    def _facts(self) -> dict[str, object]:
        late = Spread.of(self._late_ms)
        told = {"p50": late.p50, "p99": late.p99, "max": late.high, "n": late.n}
        return {
            "late_ms": told,
            **self._counts,
            "first_policy_fault": self._first_fault,
            **self._looks.facts(),
        }

    # ------------------------------------------------------------------- when

    def _now_s(self) -> float:
        return (SYSTEM.monotonic_ns() - self._zero_ns) / _NS

    def _arm(self) -> None:
        """Waits for the next instant at which something is due, or for the end."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        due_s = self._coming.next_s
        if due_s < math.inf and not self._over:
            left_s = due_s - self._now_s()
            self._timer = self._loop.call_later(max(0.0, left_s), self._turn)
        elif not self._open:
            self._done.set()

    def _turn(self) -> None:
        try:
            while self._coming.next_s <= self._now_s():
                self._arrive(self._coming.take())
        except Exception as error:  # noqa: BLE001  the traffic's own fault ends the run
            self._fail(error)
        else:
            self._arm()

    def _fail(self, error: BaseException) -> None:
        self._fatal = self._fatal or error
        self._done.set()

    # ------------------------------------------------------------ one attempt

    def _arrive(self, arrival: Arrival) -> None:
        decision = self._decided(arrival)
        if decision is not None and not decision.admitted:
            answer = Answer(
                ok=False,
                refused=True,
                status=decision.status,
                reason=decision.reason,
                retry_after_ms=decision.retry_after_ms,
                should_retry=decision.should_retry,
            )
            self._say_sent(arrival)
            self._coming.add(self._traffic.after(arrival, self._now_s(), answer))
            return
        request_id = arrival.id if decision is None else decision.request_id
        task = self._loop.create_task(self._serve(arrival, request_id))
        self._open.add(task)
        task.add_done_callback(partial(self._served, arrival, request_id))

    def _decided(self, arrival: Arrival) -> Decision | None:
        """What the policy says; None = it broke its word never to raise."""
        facts = arrival.facts()
        facts["late_ms"] = self._late(arrival)
        began_ns = SYSTEM.monotonic_ns()
        try:
            return self._policy(self._looks.newest, request_id=arrival.id, **facts)
        except Exception as error:  # noqa: BLE001  no policy ends a run
            self._policy_fault(error)
            return None
        finally:
            self._decide_ns.append(SYSTEM.monotonic_ns() - began_ns)

    def _served(
        self, arrival: Arrival, request_id: str, task: asyncio.Task[None]
    ) -> None:
        self._open.discard(task)
        if task.cancelled():  # before it began
            self._close(arrival, request_id, _unfinished(), SYSTEM.monotonic_ns())
        if not task.cancelled() and (error := task.exception()) is not None:
            self._fail(error)
        elif not self._over:
            self._arm()

    async def _serve(self, arrival: Arrival, request_id: str) -> None:
        began_ns = SYSTEM.monotonic_ns()
        stream = Stream()
        hung_up = False
        try:
            hung_up = await self._ask(arrival, request_id, stream)
        except asyncio.CancelledError:
            stream.error = _UNFINISHED
        except (aiohttp.ClientError, OSError, ValueError) as error:
            if stream.finish is None:  # else the answer was there already
                stream.error = stream.error or _in_words(error)
        self._close(arrival, request_id, stream, began_ns, hung_up=hung_up)

    async def _ask(self, arrival: Arrival, request_id: str, stream: Stream) -> bool:
        """Sends it and takes the answer; whether its caller hung up."""
        body = self._asking.body(arrival)
        self._say_sent(arrival)
        try:
            async with asyncio.timeout(self._patience_s(arrival)) as limit:
                async with self._posted(arrival, body) as reply:
                    return await self._take(arrival, request_id, stream, reply, limit)
        except TimeoutError:
            if arrival.patience_s is not None and stream.first_ns is None:
                return True
            stream.error = "silent for too long"
            return False

    def _posted(
        self, arrival: Arrival, body: bytes
    ) -> "AbstractAsyncContextManager[aiohttp.ClientResponse]":
        headers = heads(self._asking, arrival)
        # a redirect would carry the token to wherever it leads
        return self._web.post(
            self._asking.url, data=body, headers=headers, allow_redirects=False
        )

    async def _take(
        self,
        arrival: Arrival,
        request_id: str,
        stream: Stream,
        reply: aiohttp.ClientResponse,
        limit: asyncio.Timeout,
    ) -> bool:
        """Reads an answer to its end; whether its caller hung up before."""
        stream.head(reply.status, reply.headers)
        if reply.status != HTTPStatus.OK:
            stream.fault(await reply.content.read(_MOST_ERROR_BYTES))
            return False
        async for data in reply.content.iter_any():
            waiting = stream.first_ns is None
            stream.take(data, SYSTEM.monotonic_ns())
            if waiting and stream.first_ns is not None:
                self._begun(request_id)
            if stream.first_ns is not None:
                limit.reschedule(self._loop.time() + self._asking.idle_s)
            if arrival.hangs_up and stream.tokens >= arrival.output_tokens:
                reply.close()  # really: the engine sees its caller leave
                return True
        stream.end()
        return False

    def _patience_s(self, arrival: Arrival) -> float:
        """Seconds from now in which a first token has to come."""
        if arrival.patience_s is None:
            return self._asking.first_s
        return max(0.0, arrival.at_s + arrival.patience_s - self._now_s())

    # ------------------------------------------------------------- what is told

    def _say_sent(self, arrival: Arrival) -> None:
        late_ms = self._late(arrival)
        self._late_ms.append(late_ms)
        if self._sent is not None:
            self._sent(arrival, late_ms)

    def _begun(self, request_id: str) -> None:
        try:
            self._policy.first_token(request_id)
        except Exception as error:  # noqa: BLE001  no policy ends a run
            self._policy_fault(error)

    def _close(
        self,
        arrival: Arrival,
        request_id: str,
        stream: Stream,
        began_ns: int,
        *,
        hung_up: bool = False,
    ) -> None:
        self._report(request_id, stream, began_ns, hung_up=hung_up)
        self._tell(arrival, stream, hung_up=hung_up)

    def _report(
        self, request_id: str, stream: Stream, began_ns: int, *, hung_up: bool
    ) -> None:
        """The second call of production, on the clock of who was asked."""
        told: dict[str, Any] = {
            "ok": stream.ok and not hung_up,
            "ttft_ms": _ms(began_ns, stream.first_ns),
            "max_gap_ms": _ms(0, stream.gap_ns),
            "e2e_ms": _ms(began_ns, SYSTEM.monotonic_ns()),
            "output_tokens": stream.tokens,
            "cached_tokens": stream.cached,
            "finish_reason": stream.finish,
            "error": _CLOSED if hung_up else stream.error,
        }
        try:
            self._policy.outcome(request_id, **told)
        except Exception as error:  # noqa: BLE001  no policy ends a run
            self._policy_fault(error)

    def _tell(self, arrival: Arrival, stream: Stream, *, hung_up: bool) -> None:
        """The answer for who asked, on the clock of who waited."""
        planned = hung_up and arrival.hangs_up and stream.first_ns is not None
        ok = planned or (stream.ok and not hung_up)
        self._count(stream, ok=ok or hung_up)
        if ok:
            self._asking.prompts.answered(arrival, stream.ids)
        answer = Answer(
            ok=ok,
            refused=stream.refused,
            status=stream.status,
            reason=stream.reason,
            retry_after_ms=stream.retry_after_ms,
            should_retry=stream.should_retry,
            ttft_ms=self._since_ms(arrival, stream.first_ns),
            max_gap_ms=_ms(0, stream.gap_ns),
            e2e_ms=self._since_ms(arrival, stream.last_ns if ok else None),
            output_tokens=stream.tokens,
            cached_tokens=stream.cached,
            error=_CLOSED if hung_up and not planned else stream.error,
            hung_up=hung_up,
        )
        asked = self._traffic.after(arrival, self._now_s(), answer)
        self._coming.add(() if self._over else asked)

    def _count(self, stream: Stream, *, ok: bool) -> None:
        if stream.status == HTTPStatus.SERVICE_UNAVAILABLE:
            self._counts["engine_refused"] += not stream.refused
        elif not ok and stream.error != _UNFINISHED:
            self._counts["failed"] += 1

    def _policy_fault(self, error: Exception) -> None:
        self._counts["policy_faults"] += 1
        self._first_fault = self._first_fault or _in_words(error)

    def _late(self, arrival: Arrival) -> float:
        """How much after its instant it is now, in ms."""
        return self._since_ms(arrival, SYSTEM.monotonic_ns()) or 0.0

    def _since_ms(self, arrival: Arrival, at_ns: int | None) -> float | None:
        return _ms(self._zero_ns + int(arrival.at_s * _NS), at_ns)


def heads(asking: Asking, arrival: Arrival) -> dict[str, str]:
    """What a request says of itself beside its body: its session, and its last call."""
    told = {**asking.headers, "x-request-id": arrival.id}
    if arrival.session is not None:
        told["x-session-id"] = arrival.session
    if arrival.session_final:
        told["x-dynamo-session-final"] = "true"
    return told


def _ms(from_ns: int, to_ns: int | None) -> float | None:
    """From one instant to another in ms, to a thousandth; None = there is none."""
    return None if to_ns is None else round(max(0, to_ns - from_ns) / 1e6, 3)


def _unfinished() -> Stream:
    stream = Stream()
    stream.error = _UNFINISHED
    return stream


def _finite(until_s: float, lead_s: float) -> float | None:
    return None if math.isinf(until_s) else until_s + lead_s


def _in_words(error: BaseException) -> str:
    said = " ".join(str(error).split())[:200]
    return f"{type(error).__name__}: {said}" if said else type(error).__name__
