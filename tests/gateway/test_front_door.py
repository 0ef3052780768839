"""The policy to begin with, behind the real front door: who is let out first."""

import asyncio
import json

from tests.gateway.asgi import Caller, scope
from tests.gateway.proxy.rig import rest, until

from admitperf.core.reading import Reading
from admitperf.gateway.setup import EdgeSetup, Holding, PoolSetup

ROUTER = ("10.0.0.1", 80)
STRANGER = ("203.0.113.9", 80)
BOUNDS = {"high_water": 0.9, "hard_kv": 0.97, "cheap_tokens": 100}
SETUP = EdgeSetup(
    trusted_hops=("10.0.0.1",), pools=(PoolSetup(holding=Holding(defer="hold")),)
)


def says(kv):
    """A reading of an engine whose cache is so full."""
    return Reading({"kv_pressure": kv, "queue_depth": 0.0, "running": 4.0})


async def reaches(count, of):
    """Waits until there are so many, and a little for more."""
    await until(lambda: of() >= count)
    await rest(0.02)


def starts_in_order(made_door, steps, client=ROUTER):
    """Which requests were started after each step.

    First come two that are not cached, then one whose prefix is, all while the cache is
    full; then the engine says how full it is, and so many have started.
    """
    started = []

    async def app(_scope, receive, send):
        started.append(json.loads((await receive())["body"])["user"])
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"{}"})

    def caller(name, cached):
        body = json.dumps({"prompt": "x" * 4000, "user": name}).encode()
        headers = [("x-admitperf-cached-tokens", cached)]
        one = Caller(body)
        return made.app(
            scope("/v1/completions", headers, client), one.receive, one.send
        )

    async def run():
        tasks = []
        for name, cached in (("first", "0"), ("second", "500"), ("cached", "990")):
            tasks.append(asyncio.ensure_future(caller(name, cached)))
            await reaches(len(tasks), lambda: len(made.pool.queue))
        assert started == []
        seen = []
        for kv, count in steps:
            made.pool.seen.pool = says(kv)
            made.pool.queue.pump()
            await reaches(count, lambda: len(started))
            seen.append(started.copy())
        await asyncio.gather(*tasks)
        return seen

    made = made_door(app, "front_door", setup=SETUP, reading=says(0.99), **BOUNDS)
    return asyncio.run(run())


def test_of_the_held_the_cached_one_goes_first(door):
    """Below the mark all may go, and it does not stay behind those that came before."""
    (all_of_them,) = starts_in_order(door, [(0.5, 3)])
    assert all_of_them[0] == "cached"
    assert sorted(all_of_them) == ["cached", "first", "second"]


def test_between_the_mark_and_the_hard_bound_it_goes_alone(door):
    """The others wait for the mark."""
    over_hard, between, under = starts_in_order(door, [(0.98, 0), (0.93, 1), (0.8, 3)])
    assert (over_hard, between) == ([], ["cached"])
    assert sorted(under) == ["cached", "first", "second"]


def test_who_only_says_so_of_itself_is_as_the_others(door):
    """A header of a caller that is no trusted hop puts nobody in front."""
    between, under = starts_in_order(door, [(0.93, 0), (0.5, 3)], STRANGER)
    assert between == []
    assert under == ["first", "second", "cached"]


def test_a_full_pool_holds_nobody(door):
    """It is told to go elsewhere, at once, although others would be held."""
    made = door(
        None, "front_door", setup=SETUP, full_queue=8,
        reading=Reading({"kv_pressure": 0.99, "queue_depth": 8.0, "running": 4.0}),
    )  # fmt: skip
    one = Caller(b'{"prompt":"x"}')
    asyncio.run(made.app(scope(), one.receive, one.send))
    assert (one.status, made.lines("decision")[0]["reason"]) == (529, "pool_saturated")
    assert int(one.headers["retry-after"]) >= 15


def test_a_pool_that_only_seems_full_holds_who_comes(door):
    """What was sent since the reading may wait there or not: that is no 529."""
    idle = {"kv_pressure": 0.1, "queue_depth": 0.0, "running": 0.0}
    started, answered = [], []

    async def app(_scope, receive, send):
        started.append(json.loads((await receive())["body"])["user"])
        await until(lambda: answered)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"{}"})

    async def run():
        callers = [Caller(json.dumps({"user": name}).encode()) for name in "abc"]
        tasks = []
        for one in callers:
            tasks.append(
                asyncio.ensure_future(made.app(scope(), one.receive, one.send))
            )
            await reaches(len(tasks), lambda: len(started) + len(made.pool.queue))
        held = len(made.pool.queue), sorted(started)
        answered.append(True)
        made.pool.seen.pool = Reading(idle, own_since=True, slots=1)
        made.pool.queue.pump()
        await asyncio.gather(*tasks)
        return held, [one.status for one in callers]

    made = door(
        app, "front_door", setup=SETUP, full_queue=1,
        reading=Reading(idle, own_since=True, slots=1),
    )  # fmt: skip
    assert asyncio.run(run()) == ((1, ["a", "b"]), [200, 200, 200])
