"""Leases under abuse: whatever happens to a request, none stays open."""

import asyncio
import random

import pytest
from tests.gateway.asgi import DONE, Caller, event, scope

from admitperf.gateway.broke import UpstreamBroke
from admitperf.gateway.setup import EdgeSetup, Holding, Limits, PoolSetup

ABORTS = 100_000
AT_ONCE = 50
CHAT = b'{"model":"m","stream":true,"messages":[]}'


class Chaos:
    """An app that ends in every way there is, by a seeded draw."""

    def __init__(self, seed):
        self.chance = random.Random(seed)

    async def pause(self, caller):
        """Lets others run; sometimes the caller leaves meanwhile."""
        if self.chance.random() < 0.3:
            caller.left.set()
        await asyncio.wait_for(_turn(), timeout=5)

    async def app(self, asked, receive, send):
        """Serves, breaks off, crashes or is left."""
        caller = asked["caller"]
        await receive()
        fate = self.chance.randrange(7)
        if fate == 0:
            raise ValueError("crash")
        if fate == 1:
            raise UpstreamBroke("timeout_first_token")
        kind = b"application/json" if fate == 2 else b"text/event-stream"
        await send(
            {"type": "http.response.start", "status": 200,
             "headers": [(b"content-type", kind)]}
        )  # fmt: skip
        await self.pause(caller)
        for _ in range(self.chance.randrange(3)):
            part = {"type": "http.response.body", "body": event(), "more_body": True}
            await send(part)
            await self.pause(caller)
        if fate == 3:
            raise UpstreamBroke("timeout_gap")
        if fate == 4:
            return
        await send({"type": "http.response.body", "body": DONE if fate == 5 else b""})


async def _turn():
    await asyncio.wait({asyncio.ensure_future(_nothing())})


async def _nothing():
    pass


async def one(made, chance, number):
    """One request that goes wrong somewhere."""
    parts = [CHAT] if chance.random() < 0.9 else [CHAT[:5], None]
    caller = Caller(*parts)
    if chance.random() < 0.2:
        caller.fails_after = chance.randrange(4)
    asked = scope(headers=[("x-session-id", str(number % 7))])
    asked["caller"] = caller
    task = asyncio.ensure_future(made.app(asked, caller.receive, caller.send))
    if chance.random() < 0.2:
        await _turn()
        task.cancel()
    if chance.random() < 0.3:
        caller.left.set()
    await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize("defer", ["respond", "hold"])
def test_100_000_randomised_aborts_leave_no_lease(door, defer):
    """Callers leaving, sends failing, crashes, cancellations, at every stage."""

    async def run():
        chance = random.Random(7)
        pool = PoolSetup(holding=Holding(defer=defer, most=20, longest_s=0.05))
        setup = EdgeSetup(pools=(pool,), limits=Limits(peek_ms=1, identities=100))
        made = door(Chaos(11).app, max_in_flight=20, setup=setup, log=None)
        numbers = iter(range(ABORTS // 2))

        async def worker():
            for number in numbers:
                await one(made, chance, number)

        await asyncio.gather(*(worker() for _ in range(AT_ONCE)))
        return made

    made = asyncio.run(run())
    assert made.open == 0
    assert made.pool.counters.live == 0
    assert len(made.pool.queue) == 0
    assert sum(made.pool.counters.decisions.values()) > ABORTS // 4
