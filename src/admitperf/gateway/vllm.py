r"""The front door inside vLLM's own API server.

    ADMITPERF_POLICY=queue_depth ADMITPERF_PARAMS=max_waiting=8 \
    vllm serve MODEL --middleware admitperf.gateway.vllm.AdmissionMiddleware

vLLM builds a middleware with nothing but the app behind it, in each of its API-server
processes, and outside of its check of the key. So the policy comes from the
environment, the engine is read from the process's own metrics, and a request without a
key that the server takes passes undecided, to get vLLM's own 401.
"""

import logging
import os
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from hashlib import sha256
from hmac import compare_digest
from importlib import metadata
from pathlib import Path
from typing import Any

from prometheus_client import REGISTRY

from admitperf.core.errors import AdmitPerfError, ConfigError
from admitperf.gateway.edge import Edge, one_pool, policy_of
from admitperf.gateway.environment import Environment
from admitperf.gateway.exposition import Exposition, Shared
from admitperf.gateway.in_process import InProcess, RegistryPage
from admitperf.gateway.intake import Receive, header
from admitperf.gateway.middleware import AdmissionMiddleware as Inner
from admitperf.gateway.middleware import App, Scope, judged
from admitperf.gateway.relay import Send
from admitperf.gateway.setup import EdgeSetup, Limits, PoolSetup

_PREFIX = "vllm:"
_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
_KEY = "VLLM_API_KEY"


class AdmissionMiddleware:
    """Judges the requests of the vLLM it is put into.

    Args:
        app: what is behind it.
    """

    def __init__(self, app: App) -> None:
        self._app = app
        self._door: _Door | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One ASGI connection."""
        if scope["type"] == "lifespan":
            await self._live(scope, receive, send)
            return
        if self._door is None:
            self._door = _Door(self._app, scope["app"].state, os.environ)
        known = scope["type"] != "http" or self._door.takes(scope)
        app = self._door.inner if known else self._app
        await app(scope, receive, send)

    async def _live(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The server's start and end. What is wrong ends the start, in one line."""
        try:
            door = self._door = _Door(self._app, scope["app"].state, os.environ)
        except AdmitPerfError as error:
            await receive()
            told = f"admitperf: {error}"
            await send({"type": "lifespan.startup.failed", "message": told})
            return
        try:
            await door.inner(scope, receive, send)
        finally:
            door.close()


class _Door:
    """The front door of one API-server process. Is made on its loop.

    Args:
        app: what is behind it.
        state: of vLLM's app: its arguments, and its server.
        environment: variables.

    Attributes:
        inner: the middleware that judges.

    Raises:
        AdmitPerfError: faults of the environment or the policy, or a signal that the
            policy requires and vLLM does not supply.
    """

    def __init__(self, app: App, state: Any, environment: Mapping[str, str]) -> None:  # noqa: ANN401
        voice, args = _voice(), state.args
        self._state = state
        told = Environment(environment, getattr(args, "api_server_count", None) or 1)
        for wrong, meant in told.unknown.items():
            voice.warning("%s means nothing; %s does", wrong, meant)
        setup = told.pool(_notes(args, told.processes))
        folder = environment.get(_FOLDER)
        page = RegistryPage(REGISTRY, _PREFIX, Path(folder) if folder else None)
        self._seen = InProcess(page, setup.scrape, _slots(state))
        edge = self._edge(setup, told.peek_ms)
        self._digests = digests(args, environment)
        self._own = Exposition(edge)
        if not folder:
            REGISTRY.register(self._own)
        shared = Shared(self._own) if folder else None
        edge.on_reading = partial(self._after_reading, edge, shared)
        edge.start()
        self.inner = Inner(app, edge=edge)
        voice.info(_line(edge, told.processes))

    def takes(self, scope: Scope) -> bool:
        """Whether the server will take the request's key, or needs none for it."""
        if not self._digests or judged(scope) is None:
            return True
        given = _digest(bearer(header(scope["headers"], b"authorization")))
        return any(compare_digest(given, one) for one in self._digests)

    def close(self) -> None:
        """Stops reading, and takes our metrics off the server's page."""
        self._seen.stop()
        with suppress(KeyError):
            REGISTRY.unregister(self._own)

    def _edge(self, setup: PoolSetup, peek_ms: float) -> Edge:
        policy = policy_of(setup)
        for why in self._seen.first().values():
            raise ConfigError("vLLM's metrics", [f"cannot be read: {why}"])
        policy.check(self._seen.pool)
        whole = EdgeSetup(pools=(setup,), limits=Limits(peek_ms=peek_ms))
        return one_pool(policy, self._seen, whole)

    def _after_reading(self, edge: Edge, shared: Shared | None) -> None:
        """In the thread that reads: our own numbers, and whether the server ends."""
        if shared is not None:
            shared.write()
        if self._is_ending() and not any(p.draining for p in edge.pools.values()):
            edge.soon(edge.drain)

    def _is_ending(self) -> bool:
        """Whether the server waits for its last requests, of which some may be held."""
        return getattr(getattr(self._state, "server", None), "should_exit", False)


def _slots(state: Any) -> int | None:  # noqa: ANN401
    """Requests that the engines run at once, all ranks; None = vLLM does not say."""
    config = getattr(state, "vllm_config", None)
    each = getattr(getattr(config, "scheduler_config", None), "max_num_seqs", None)
    parallel = getattr(config, "parallel_config", None)
    ranks = getattr(parallel, "data_parallel_size", None) or 1
    return each * ranks if isinstance(each, int) else None


def digests(args: Any, environment: Mapping[str, str]) -> list[bytes]:  # noqa: ANN401
    """Of the keys that the server takes, by its own rule; empty = it needs none."""
    told = getattr(args, "api_key", None) or [environment.get(_KEY)]
    return [_digest(key) for key in told if key]


def bearer(value: bytes) -> str:
    """The key in an Authorization header, read as vLLM reads it; empty = none."""
    scheme, _, key = value.decode("latin-1").partition(" ")
    return key if scheme.lower() == "bearer" else ""


def _voice() -> logging.Logger:
    """Our logger, heard like vLLM's own; its root logger lets only errors out."""
    voice = logging.getLogger("admitperf")
    if voice.level == logging.NOTSET and not voice.handlers:
        voice.setLevel(logging.INFO)
        for handler in logging.getLogger("vllm").handlers:
            voice.addHandler(handler)
    return voice


def _digest(key: str) -> bytes:
    return sha256(key.encode()).digest()


def _notes(args: Any, processes: int) -> dict[str, str | int]:  # noqa: ANN401
    """What the log cannot know by itself."""
    names = getattr(args, "served_model_name", None) or [getattr(args, "model", None)]
    model = names if isinstance(names, str) else names[0]
    notes: dict[str, str | int] = {"engine": "vllm", "processes": processes}
    if model:
        notes["model"] = str(model)
    with suppress(metadata.PackageNotFoundError):
        notes["engine_version"] = metadata.version("vllm")
    return notes


def _line(edge: Edge, processes: int) -> str:
    """What stands before the engine, in one line."""
    (pool,) = edge.pools.values()
    policy = pool.policy
    told = ", ".join(f"{name}={value}" for name, value in policy.parameters.items())
    count = f", this process's part of {processes}" if processes > 1 else ""
    return f"{policy.name} ({told}) stands before vLLM{count}; run {policy.run}"
