"""One pool: which replica a request is judged for, and when a no is not believed."""

import asyncio

import pytest
from tests.gateway.asgi import scope

from admitperf import Reading
from admitperf.gateway.edge import Edge
from admitperf.gateway.pool import PROBE_S
from admitperf.gateway.setup import EdgeSetup, Holding, PoolSetup
from admitperf.policies import load
from admitperf.testing import FakeClock, MemoryLog


def page(waiting, running=8):
    """What an engine says."""
    return {"vllm:num_requests_waiting": waiting, "vllm:num_requests_running": running}


class Seen:
    """Readings of replicas, as a test sets them."""

    def __init__(self, clock, **waiting):
        self.clock = clock
        self.unseen = frozenset()
        self.at = {}
        for name, count in waiting.items():
            self.say(name, count)

    def say(self, name, waiting, running=8):
        """A replica says something new."""
        self.at[name] = Reading(
            page(waiting, running),
            taken_ns=self.clock.monotonic_ns(),
            replica=name,
            own_since=True,
        )

    @property
    def pool(self):
        """Any of them."""
        return next(iter(self.at.values()))

    @property
    def all(self):
        """All of them."""
        return tuple(self.at.values())

    def replica(self, name):
        """One of them."""
        return self.at[name]


class House:
    """A pool with a bound of eight, and requests for it."""

    def __init__(self, order=None, holding=None, **waiting):
        self.clock = FakeClock(start_s=1000.0)
        self.log = MemoryLog()
        self.seen = Seen(self.clock, **waiting)
        policy = load("queue_depth")(
            max_waiting=8, reports_outcomes=True, clock=self.clock, log=self.log,
            max_age_s=1e6,
        )  # fmt: skip
        one = PoolSetup(holding=holding or Holding())
        setup = EdgeSetup(pools=(one,))
        self.edge = Edge(setup, {"default": policy}, {"default": self.seen}, self.clock)
        (self.pool,) = self.edge.pools.values()
        self.pool.order = order
        self.made = 0

    def meet(self):
        """One new request."""
        self.made += 1
        body = b'{"model":"m","prompt":"%d"}' % self.made
        known = self.edge.known(scope(), body)
        return self.pool.meet(known, self.clock.monotonic_ns())

    def ask(self):
        """One new request; its final answer."""
        asked = self.meet()
        return asked, self.pool.settle(asked, self.pool.judge(asked))


def test_a_full_replica_does_not_starve_an_idle_one():
    """Who is refused by the first is judged for the next."""
    house = House(lambda _: ["full", "idle"], full=20, idle=0)
    asked, d = house.ask()
    assert (d.admitted, asked.replica) == (True, "idle")
    assert len(house.log.decisions) == 1


def test_when_all_refuse_the_first_ones_answer_stands():
    """One line, about the replica it would have gone to."""
    house = House(lambda _: ["a", "b"], a=20, b=30)
    _, d = house.ask()
    assert not d.admitted
    assert [line["replica"] for line in house.log.decisions] == ["a"]


@pytest.mark.parametrize("order", [None, lambda _: ["a"]])
def test_a_frozen_no_is_tried_every_ten_seconds(order):
    """Nothing of ours is open, nothing moves: one is let in to see, and so marked."""
    house = House(order, a=20)
    answers = []
    for _ in range(45):
        asked, d = house.ask()
        if d.admitted:
            house.pool.ended(asked, d, {"ok": True})
        answers.append(d.admitted)
        house.clock.advance(1.0)
    assert 3 <= sum(answers) <= 4
    assert not any(answers[: int(PROBE_S)])
    probes = [line for line in house.log.decisions if line.get("probe")]
    assert len(probes) == sum(answers) == house.pool.counters.probes
    assert {line["reason"] for line in probes} == {"queue_depth"}


def test_a_newcomer_does_not_pass_the_held():
    """Room that nobody told the queue of goes to those who wait in it."""

    async def run():
        house = House(a=20, holding=Holding(defer="hold"))
        asked = house.meet()
        waiter = house.pool.waiter(asked, house.pool.judge(asked))
        house.seen.say("a", 8)
        newcomer = house.pool.judge(house.meet())
        return waiter.decision.admitted, newcomer.admitted

    assert asyncio.run(run()) == (True, False)


def test_a_no_that_moves_is_believed():
    """A busy engine's queue goes up and down, and needs no probe."""
    house = House(a=20)
    for number in range(40):
        house.seen.say("a", 20 + number % 3)
        _, d = house.ask()
        assert not d.admitted
        house.clock.advance(1.0)


def test_a_probe_that_is_open_is_the_only_one():
    """Its answer is waited for."""
    house = House(a=20)
    admitted = 0
    for _ in range(60):
        admitted += house.ask()[1].admitted
        house.clock.advance(1.0)
    assert admitted == 1


def test_bodies_that_are_no_objects_are_counted():
    """The engine judges them; the page says how many there were."""
    house = House(a=0)
    for body in (b"{oops", b"[1]", b'"x"', b"{}"):
        house.pool.judge(house.pool.meet(house.edge.known(scope(), body), 0))
    assert house.pool.counters.unreadable == 3


def test_an_engine_that_comes_up_without_the_signal_is_named():
    """Start-up could not look; readiness can say so."""
    house = House(a=0)
    house.seen.at = {"a": Reading({"vllm:num_requests_running": 1})}
    house.pool.look_for_missing()
    assert "queue_depth" in house.pool.missing
    house.seen.say("a", 0)
    house.pool.look_for_missing()
    assert house.pool.missing is None


def test_what_is_explained_keeps_nothing_large():
    """A few words for each decision."""
    house = House(a=20)
    _, d = house.ask()
    told = house.pool.explain(house.pool.number(d))
    assert (told["reason"], told["admitted"]) == ("queue_depth", False)
    assert told["gates"][0][0] == "queue_depth"
