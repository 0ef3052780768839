"""The front door as a whole: which pool, who asks, and when it opens and closes."""

import asyncio
import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any, Self

from admitperf.core.background import Background
from admitperf.core.clock import SYSTEM, Clock
from admitperf.core.errors import AdmitPerfError, ConfigError
from admitperf.core.policy import Policy
from admitperf.core.reading import Reading
from admitperf.core.request import bounded
from admitperf.gateway.facts.body import LARGE_BYTES, Wish, read_wish
from admitperf.gateway.facts.conventions import Conventions
from admitperf.gateway.facts.facts import Known, Reader
from admitperf.gateway.facts.identity import Tenants
from admitperf.gateway.facts.tokens import TokenCounter
from admitperf.gateway.pool import Pool, Seen
from admitperf.gateway.quotas import Quotas
from admitperf.gateway.readings import Readings
from admitperf.gateway.setup import EdgeSetup, PoolSetup
from admitperf.policies import load
from admitperf.scrape.pool import pool_sources


class Edge:
    """Pools behind one front door.

    Args:
        setup: what it is made of.
        policies: one a pool, by its name.
        seen: where each pool's readings come from, by its name.
        clock: source of time.

    Attributes:
        setup: as given.
        pools: by name.
        tenants: who asks, by key.
        on_reading: called after each reading, in the thread that read it.
    """

    def __init__(
        self,
        setup: EdgeSetup,
        policies: Mapping[str, Policy],
        seen: Mapping[str, Seen],
        clock: Clock = SYSTEM,
    ) -> None:
        self.setup = setup
        self.clock = clock
        secret = setup.secret or os.urandom(32)
        most = setup.limits.identities
        self.tenants = Tenants(setup.tenants, secret, setup.trusted_hops, most)
        each = {model: one.tokens_each for one in setup.pools for model in one.models}
        rest = next((one.tokens_each for one in setup.pools if not one.models), {})
        self._counter = TokenCounter(rest, each)
        conventions = Conventions.of(setup.conventions)
        self._reader = Reader(conventions, self.tenants, self._counter)
        quotas = Quotas()
        self.pools = {
            one.name: Pool(
                one, policies[one.name], seen[one.name], setup.limits, quotas, clock
            )
            for one in setup.pools
        }
        self._by_model = {
            bounded(model): self.pools[one.name]
            for one in setup.pools
            for model in one.models
        }
        self._readers = ThreadPoolExecutor(1, "admitperf-bodies")
        self._rest = next(
            (self.pools[one.name] for one in setup.pools if not one.models), None
        )
        self.on_reading: Callable[[], None] = _nothing
        self._loop: asyncio.AbstractEventLoop | None = None

    @classmethod
    def of(cls, setup: EdgeSetup, clock: Clock = SYSTEM) -> Self:
        """A front door with policies and readings of its own.

        Raises:
            ConfigError: with every fault of every pool at once.
        """
        policies: dict[str, Policy] = {}
        seen: dict[str, Readings] = {}
        faults: list[str] = []
        for place, one in enumerate(setup.pools):
            try:
                policies[one.name] = policy_of(one, clock)
                seen[one.name] = Readings(one.upstreams, one.scrape, clock)
            except ConfigError as error:
                faults += [f"pools[{place}]: {fault}" for fault in error.faults]
            except AdmitPerfError as error:
                faults.append(f"pools[{place}]: {error}")
        if faults:
            raise ConfigError("gateway", faults)
        return cls(setup, policies, seen, clock)

    def pool_of(self, model: str | None) -> Pool | None:
        """The pool that serves a model; None = no pool does.

        A request that names none goes where all others go, else to the first pool: its
        engine knows what it lacks.
        """
        if model is None:
            return self._rest or next(iter(self.pools.values()))
        return self._by_model.get(model, self._rest)

    async def read(self, scope: Mapping[str, Any], body: bytes) -> Known:
        """What a request says; large bodies are read off the loop."""
        if len(body) <= min(self.setup.limits.off_loop_bytes, LARGE_BYTES):
            return self.known(scope, body)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(
            self._readers, partial(self.known, scope, body)
        )

    def known(self, scope: Mapping[str, Any], body: bytes) -> Known:
        """What a request says."""
        return self._reader.read(scope, body, read_wish(body))

    def learn(self, wish: Wish, input_tokens: int | None) -> None:
        """An answer told how many tokens a prompt really had."""
        if input_tokens:
            self._counter.learn(wish.model, wish, input_tokens)

    # Opening and closing.

    def start(self) -> None:
        """Begins to read engines, on the running loop; a second call does nothing."""
        if self._loop is not None:
            return
        self._loop = asyncio.get_running_loop()
        for pool in self.pools.values():
            beside = Background(pool.policy)
            pool.seen.start(partial(self._new_reading, pool, beside))

    def _new_reading(self, pool: Pool, beside: Background) -> None:
        """In the thread that reads: prepares decisions, has the held asked about.

        Args:
            beside: where the policy works for as long as it takes: readings go on.
        """
        for reading in pool.seen.all:
            pool.policy.look(reading)
        beside.soon()
        pool.look_for_missing()
        self.on_reading()
        if len(pool.queue):
            self.soon(pool.queue.pump)

    def soon(self, act: Callable[[], None]) -> None:
        """Has something done on the loop; for another thread."""
        if self._loop is not None:
            with suppress(RuntimeError):  # it is closed
                self._loop.call_soon_threadsafe(act)

    def drain(self) -> None:
        """From now on every request is refused, and held ones are answered."""
        for pool in self.pools.values():
            pool.draining = True
            pool.queue.close()

    def close(self) -> None:
        """Stops reading and writes what is left of the logs."""
        for pool in self.pools.values():
            pool.seen.stop()
            pool.policy.close()
        self._readers.shutdown(wait=False)


class Fixed:
    """Readings of a host that has none, or one that hands them in by itself."""

    rounds: int | None = None
    failures: int | None = None

    def __init__(self, reading: Reading | None = None) -> None:
        self.pool = reading if reading is not None else Reading({})
        self.failed: dict[str, str] = {}

    def first(self) -> dict[str, str]:
        """There is nothing to read."""
        return self.failed

    def start(self, _on_new: Callable[[], None]) -> None:
        """There is nothing to begin."""

    def stop(self) -> None:
        """There is nothing to end."""

    def replica(self, _name: str) -> Reading:
        """The same."""
        return self.pool

    @property
    def all(self) -> tuple[Reading, ...]:
        """The one."""
        return (self.pool,)


def policy_of(setup: PoolSetup, clock: Clock = SYSTEM) -> Policy:
    """A pool's policy.

    Raises:
        ConfigError: unknown policy, or parameters and settings it does not take.
    """
    settings: dict[str, Any] = {"reports_outcomes": True, "clock": clock}
    if len(setup.upstreams) > 1 and setup.scrape.view == "pool":
        settings["sources"] = pool_sources()
    both = set(setup.parameters) & set(setup.settings)
    if both:
        raise ConfigError("policy", [f"{', '.join(sorted(both))} given twice"])
    made: Policy = load(setup.policy)(
        **{**settings, **setup.settings, **setup.parameters}
    )
    return made


def one_pool(policy: Policy, seen: Seen, setup: EdgeSetup) -> Edge:
    """A front door with one pool, whose policy somebody else made."""
    (pool,) = setup.pools
    return Edge(setup, {pool.name: policy}, {pool.name: seen})


def _nothing() -> None:
    """Nobody wants to know."""
