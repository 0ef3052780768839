"""The HTTP side: routes, errors, metrics, and the commands that make faults."""

import asyncio
import re
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from ipaddress import ip_address
from math import prod
from typing import Any

from aiohttp import web

from admitperf.core.clock import SYSTEM, Clock
from admitperf.core.errors import ConfigError
from admitperf.simulator.server import vllm_page
from admitperf.simulator.server.answering import (
    APIS,
    Answering,
    answered,
    read,
    received,
)
from admitperf.simulator.server.ask import message
from admitperf.simulator.server.faults import MOST_FAULTS, Fault
from admitperf.simulator.server.faults import parsed as parsed_faults
from admitperf.simulator.server.house import House
from admitperf.simulator.server.paced import slowed
from admitperf.simulator.server.refusal import Refusal, bad, broken, too_large, unready
from admitperf.simulator.server.setup import Setup
from admitperf.simulator.server.slowness import LEAST, MOST, bounded
from admitperf.simulator.server.tokens import count
from admitperf.simulator.server.trouble import Trouble
from admitperf.simulator.streams import stream

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

VERSION = "0.32.0"
"""The release of vLLM whose ways this server has."""

SERVER = "admitperf-simulated"
COUNT_TOKENS = "/v1/messages/count_tokens"
FAULTS = "/admin/faults"
_BODILESS = {"/health", "/ping", "/load", "/version", "/metrics", FAULTS}


class Front:
    """Everything between a socket and the engine.

    Args:
        setup: what the server is made of.
        restart: called with a fault of that kind; None = only the engine restarts.
        clock: to drive the engine by.

    Attributes:
        house: the engine and what belongs to it.
        trouble: faults.
        idle: set when there are none.
        unready: requests get 503, as while an engine starts.
    """

    def __init__(
        self,
        setup: Setup,
        restart: Callable[[Fault], None] | None = None,
        clock: Clock = SYSTEM,
    ) -> None:
        self.house = House(setup, clock)
        chance = stream(setup.seed, "faults")
        self.trouble = Trouble(chance, self._changed, self._once)
        self._inside: dict[int, web.Request] = {}
        self.idle = asyncio.Event()
        self.idle.set()
        self.unready = False
        self._restart = restart
        self._answering = Answering(self.house, self.trouble)
        self._still: str | None = None  # the page while it is frozen
        self._held = self._closing = False

    def app(self) -> web.Application:
        """The application with all its routes."""
        most = self.house.setup.most_bytes
        app = web.Application(middlewares=[self._around], client_max_size=most)
        app.add_routes([web.post(path, self._answering.answer) for path in APIS])
        app.add_routes(
            [
                web.post(COUNT_TOKENS, self._count_tokens),
                web.get("/v1/models", self._models),
                web.get("/health", self._nothing),
                web.get("/ping", self._nothing),
                web.post("/ping", self._nothing),
                web.get("/version", self._version),
                web.get("/load", self._load),
                web.get("/metrics", self._metrics),
                web.get(FAULTS, self._faults_told),
                web.post(FAULTS, self._faults_tell),
                web.delete(FAULTS, self._faults_clear),
            ]
        )
        app.on_response_prepare.append(_signed)
        return app

    @property
    def open(self) -> int:
        """Requests that are being answered."""
        return len(self._inside)

    def cut_unsent(self) -> None:
        """Ends requests whose bodies are not all there, now and from now on.

        The engine never saw them, and their callers may never send the rest.
        """
        self._closing = True
        for request in list(self._inside.values()):
            self._cut_if_unsent(request)

    def _cut_if_unsent(self, request: web.Request) -> None:
        if request.content.is_eof():
            return
        self._leave(request)
        if request.transport is not None:
            request.transport.abort()

    def _leave(self, request: web.Request) -> None:
        self._inside.pop(id(request), None)
        if not self._inside:
            self.idle.set()

    def hold_for_good(self) -> None:
        """Stops the engine whatever the faults say."""
        self._held = True
        self.house.wall.hold(held=True)

    # ---------------------------------------------------------------- around all

    @web.middleware
    async def _around(
        self, request: web.Request, handler: Handler
    ) -> web.StreamResponse:
        """Counts what is open, and turns whatever goes wrong into an answer."""
        self._inside[id(request)] = request
        self.idle.clear()
        if self._closing:
            self._cut_if_unsent(request)
        try:
            made = await self._guarded(request, handler)
        finally:
            self._leave(request)
        self._count(request, made.status)
        return made

    async def _guarded(
        self, request: web.Request, handler: Handler
    ) -> web.StreamResponse:
        try:
            self._check_ready(request)
            return await handler(request)
        except Refusal as refusal:
            return refused(request, refusal)
        except web.HTTPRequestEntityTooLarge:
            return refused(request, too_large(self.house.setup.most_bytes))
        except web.HTTPException as error:
            return _plain_error(error)
        except (ConnectionError, TimeoutError):
            raise
        except Exception as error:  # noqa: BLE001  an error in here is ours: 500
            print(f"{request.path}: {error!r}", file=sys.stderr)  # noqa: T201
            return refused(request, broken())

    def _check_ready(self, request: web.Request) -> None:
        if self.unready and request.path != FAULTS:
            raise unready()

    def _count(self, request: web.Request, status: int) -> None:
        path = request.path
        if path in _BODILESS:
            return
        known = path if path in APIS or path in {COUNT_TOKENS, "/v1/models"} else "none"
        self.house.served.http[known, request.method, f"{status // 100}xx"] += 1

    # -------------------------------------------------------------------- routes

    async def _count_tokens(self, request: web.Request) -> web.Response:
        body = await read(request)
        ask = message(body, counted=True)
        self._answering.check_model(body)
        tokens = count(ask.prompts[0])
        kept = {"original_input_tokens": tokens}
        return answered({"input_tokens": tokens, "context_management": kept})

    async def _models(self, _: web.Request) -> web.Response:
        second, setup = self.house.second, self.house.setup
        allowed = {
            f"allow_{what}": what in {"sampling", "logprobs", "view"}
            for what in (
                "create_engine",
                "sampling",
                "logprobs",
                "search_indices",
                "view",
                "fine_tuning",
            )
        }
        permission = {
            "id": f"modelperm-{self.house.new_id()}",
            "object": "model_permission",
            "created": second,
            **allowed,
            "organization": "*",
            "group": None,
            "is_blocking": False,
        }
        model = {
            "id": setup.model,
            "object": "model",
            "created": second,
            "owned_by": setup.dialect,
            "root": setup.model,
            "parent": None,
            "max_model_len": self.house.intake.longest_tokens,
            "permission": [permission],
        }
        return answered({"object": "list", "data": [model]})

    async def _nothing(self, _: web.Request) -> web.Response:
        return web.Response()

    async def _version(self, _: web.Request) -> web.Response:
        return answered({"version": VERSION})

    async def _load(self, _: web.Request) -> web.Response:
        return answered({"server_load": 0})

    async def _metrics(self, _: web.Request) -> web.Response:
        for fault in self.trouble.active("scrape_delay"):
            await _pause(fault.number("seconds"))
        text = self._still
        if text is None:
            text = self.house.page(blank=bool(self.trouble.active("nan")))
        text = _renamed(text, self.trouble.active("renamed"))
        headers = {"content-type": vllm_page.CONTENT_TYPE}
        return web.Response(body=text.encode(), headers=headers)

    # -------------------------------------------------------------------- faults

    async def _faults_told(self, request: web.Request) -> web.Response:
        _only_from_here(request)
        return answered(self.trouble.document())

    async def _faults_tell(self, request: web.Request) -> web.Response:
        _only_from_here(request)
        raw = await received(request)
        try:
            told = parsed_faults(raw, "faults")
            self.check(told, "faults")
        except ConfigError as error:
            raise bad(str(error)) from None
        self.trouble.tell(told)
        return answered(self.trouble.document())

    async def _faults_clear(self, request: web.Request) -> web.Response:
        _only_from_here(request)
        self.trouble.clear()
        return answered(self.trouble.document())

    def check(self, told: Sequence[Fault], where: str) -> None:
        """Sees that faults can be told beside those that were.

        Raises:
            ConfigError: they cannot; nothing was changed.
        """
        if not self.trouble.room(len(told)):
            raise ConfigError(where, [f"there would be more than {MOST_FAULTS} faults"])
        for factor in self.trouble.extremes(told):
            if factor != bounded(factor):
                said = f"{factor:g}, which is not from {LEAST:g} to {MOST:g}"
                raise ConfigError(where, [f"slow factors multiply to {said}"])
            try:
                slowed(self.house.setup.engine, factor)
            except ValueError as error:
                said = f"slow factors multiply to {factor:g}: {error}"
                raise ConfigError(where, [said]) from None

    def _changed(self) -> None:
        """Has the engine and the page do what the faults that hold ask for."""
        wall = self.house.wall
        # Timers of faults that follow one another may overlap by a moment.
        slow = (fault.number("factor") for fault in self.trouble.active("slow"))
        wall.slow(bounded(prod(slow)))
        frozen = {f.word("what") for f in self.trouble.active("frozen")}
        wall.hold(held=self._held or "engine" in frozen)
        if "metrics" not in frozen:
            self._still = None
        elif self._still is None:
            self._still = self.house.page(blank=bool(self.trouble.active("nan")))

    def _once(self, fault: Fault) -> None:
        if fault.kind == "counter_reset":
            self.house.forget_counts()
        elif self._restart:
            self._restart(fault)
        else:
            self.house.restart()


async def _signed(_: web.Request, made: web.StreamResponse) -> None:
    """Says what answers; no caller decides by it, and nobody is misled."""
    made.headers["server"] = SERVER


def refused(request: web.Request, refusal: Refusal) -> web.Response:
    """An error in the shape of its API."""
    anthropic = request.path.startswith("/v1/messages")
    body: dict[str, Any] = refusal.anthropic() if anthropic else refusal.openai()
    return answered(body, refusal.status)


def _plain_error(error: web.HTTPException) -> web.Response:
    """A wrong path or method, as FastAPI says it."""
    made = answered({"detail": error.reason}, error.status)
    if isinstance(error, web.HTTPMethodNotAllowed):
        made.headers["allow"] = ", ".join(sorted(error.allowed_methods))
    return made


def _renamed(page: str, faults: Sequence[Fault]) -> str:
    """A page in which words are others; what was replaced is not replaced again."""
    if not faults:
        return page
    words = {fault.word("from"): fault.word("to") for fault in reversed(faults)}
    known = re.compile("|".join(map(re.escape, words)))
    return known.sub(lambda found: words[found[0]], page)


def _only_from_here(request: web.Request) -> None:
    """Faults are made from this machine only.

    Raises:
        Refusal: the request comes from another.
    """
    with suppress(ValueError):
        if ip_address((request.remote or "").partition("%")[0]).is_loopback:
            return
    message = "faults are told from this machine only"
    raise Refusal(403, "PermissionDeniedError", message)


async def _pause(seconds: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await asyncio.Event().wait()
