"""The holding queue: who goes next, and that nobody stays too long."""

import asyncio

from admitperf.core.decision import Decision
from admitperf.core.verdict import Verdict
from admitperf.gateway.hold import TRIED_AT_ONCE, HoldQueue, Waiter


def no(verdict=Verdict.DEFER, **told):
    """An open refusal."""
    d = Decision(verdict, "queue_depth")
    d.open, d.admitted, d.status = True, False, 503
    for name, value in told.items():
        setattr(d, name, value)
    return d


class Engine:
    """Lets so many in; writes down whom it was asked about."""

    def __init__(self, room=0):
        self.room = room
        self.asked = []
        self.served = []

    def ask(self, name, answer=None):
        """The policy's side of one waiter."""

        def asked(_held_ms):
            self.asked.append(name)
            if self.room > 0:
                self.room -= 1
                self.served.append(name)
                return Decision(Verdict.ADMIT)
            return answer or no()

        return asked


async def hold_all(queue, waiters):
    """Holds each, and lets them get in line."""
    assert all(queue.enter(one) for one in waiters)
    tasks = [asyncio.ensure_future(queue.hold(one)) for one in waiters]
    await asyncio.wait(tasks, timeout=0.01)
    return tasks


def order(waiters_of, rounds):
    """In what order an engine that takes one at a time serves them."""

    async def run():
        engine, queue = Engine(), HoldQueue(most=1000)
        tasks = await hold_all(queue, waiters_of(engine))
        for _ in range(rounds):
            engine.room = 1
            queue.pump()
        queue.close()
        await asyncio.gather(*tasks)
        return engine.served

    return asyncio.run(run())


def test_the_nearest_deadline_goes_first_within_a_tenant():
    """Not who came first."""

    def waiters(engine):
        return [
            Waiter(engine.ask(name), no(), tenant="a", wait_s=wait)
            for name, wait in (("late", 30), ("soon", 5), ("middle", 10))
        ]

    assert order(waiters, 3) == ["soon", "middle", "late"]


def test_a_higher_priority_goes_before_any_deadline():
    """Classes come first."""

    def waiters(engine):
        return [
            Waiter(engine.ask("soon"), no(), priority=0, wait_s=1),
            Waiter(engine.ask("important"), no(), priority=1, wait_s=30),
        ]

    assert order(waiters, 2) == ["important", "soon"]


def test_tenants_share_by_tokens_not_by_requests():
    """One of 8,000 tokens weighs as much as forty of 200."""

    def waiters(engine):
        big = [
            Waiter(engine.ask("big"), no(), tenant="a", tokens=8000, wait_s=60)
            for _ in range(5)
        ]
        small = [
            Waiter(engine.ask("small"), no(), tenant="b", tokens=200, wait_s=60)
            for _ in range(80)
        ]
        return [*big, *small]

    served = order(waiters, 42)
    assert served.count("big") == 2
    assert served.count("small") == 40


def test_a_tenant_of_twice_the_weight_gets_twice_the_tokens():
    """Weights are shares."""

    def waiters(engine):
        return [
            Waiter(
                engine.ask(name),
                no(),
                tenant=name,
                weight=weight,
                tokens=100,
                wait_s=60,
            )
            for name, weight in (("a", 2.0), ("b", 1.0))
            for _ in range(30)
        ]

    served = order(waiters, 30)
    assert served.count("a") == 20


def test_a_tenant_that_was_away_has_no_claim_from_that_time():
    """It shares from when it comes, it does not catch up."""

    async def run():
        engine, queue = Engine(), HoldQueue(most=1000)
        early = [
            Waiter(engine.ask("a"), no(), tenant="a", tokens=10, wait_s=60)
            for _ in range(20)
        ]
        tasks = await hold_all(queue, early)
        for _ in range(10):
            engine.room = 1
            queue.pump()
        late = [
            Waiter(engine.ask("b"), no(), tenant="b", tokens=10, wait_s=60)
            for _ in range(20)
        ]
        tasks += await hold_all(queue, late)
        engine.served.clear()
        for _ in range(8):
            engine.room = 1
            queue.pump()
        queue.close()
        await asyncio.gather(*tasks)
        return engine.served

    served = asyncio.run(run())
    assert 3 <= served.count("a") <= 5


def test_nobody_is_held_past_its_time():
    """A waiter whose time is up leaves with its refusal still open."""

    async def run():
        queue = HoldQueue(most=10)
        waiter = Waiter(Engine().ask("a"), no(), wait_s=0.05)
        assert queue.enter(waiter)
        held_ms = await asyncio.wait_for(queue.hold(waiter), timeout=5)
        return held_ms, waiter.decision, len(queue)

    held_ms, decision, left = asyncio.run(run())
    assert held_ms >= 50
    assert decision.open
    assert left == 0


def test_one_who_cannot_make_it_is_let_go_at_once():
    """A measured wait beyond its time is an answer."""

    async def run():
        queue = HoldQueue(most=10)
        hopeless = no(estimate_ms=60_000, wait="measured")
        waiter = Waiter(Engine().ask("a", hopeless), no(), wait_s=20)
        tasks = await hold_all(queue, [waiter])
        queue.pump()
        await asyncio.wait_for(tasks[0], timeout=5)
        return waiter.decision

    assert asyncio.run(run()).estimate_ms == 60_000


def test_a_refusal_that_became_final_wakes_its_waiter():
    """Rejected is not held on."""

    async def run():
        queue = HoldQueue(most=10)
        waiter = Waiter(Engine().ask("a", no(Verdict.REJECT)), no(), wait_s=20)
        tasks = await hold_all(queue, [waiter])
        queue.pump()
        await asyncio.wait_for(tasks[0], timeout=5)
        return waiter.decision.verdict

    assert asyncio.run(run()) is Verdict.REJECT


def test_closing_wakes_everybody_and_takes_nobody():
    """Shutdown leaves no waiter behind."""

    async def run():
        queue = HoldQueue(most=10)
        waiters = [Waiter(Engine().ask("a"), no(), wait_s=60) for _ in range(5)]
        tasks = await hold_all(queue, waiters)
        queue.close()
        await asyncio.wait_for(asyncio.gather(*tasks), timeout=5)
        return queue.full, len(queue)

    assert asyncio.run(run()) == (True, 0)


def test_a_caller_that_leaves_frees_its_place():
    """Cancelling the wait is leaving."""

    async def run():
        queue = HoldQueue(most=1)
        tasks = await hold_all(queue, [Waiter(Engine().ask("a"), no(), wait_s=60)])
        full = queue.full
        tasks[0].cancel()
        await asyncio.wait(tasks)
        return full, queue.full

    assert asyncio.run(run()) == (True, False)


def test_a_change_asks_only_a_few():
    """What many get the same no for is not asked of all of them."""

    async def run():
        engine, queue = Engine(), HoldQueue(most=1000)
        waiters = [Waiter(engine.ask(n), no(), wait_s=60) for n in range(100)]
        tasks = await hold_all(queue, waiters)
        queue.pump()
        asked = len(engine.asked)
        queue.close()
        await asyncio.gather(*tasks)
        return asked

    assert asyncio.run(run()) == TRIED_AT_ONCE


def test_no_more_enter_than_allowed_not_even_at_once():
    """A place is taken when it is given, not a turn of the loop later."""

    async def run():
        queue = HoldQueue(most=4)
        return [
            queue.enter(Waiter(Engine().ask("a"), no(), wait_s=60)) for _ in range(64)
        ]

    assert asyncio.run(run()).count(True) == 4


def test_nobody_enters_a_closed_queue():
    """Shutdown cannot be slipped past."""

    async def run():
        queue = HoldQueue(most=4)
        queue.close()
        return queue.enter(Waiter(Engine().ask("a"), no(), wait_s=60))

    assert asyncio.run(run()) is False


def test_tenants_that_passed_through_are_forgotten():
    """Inventing tenants fills no memory, also while one stays."""

    async def run():
        engine, queue = Engine(), HoldQueue(most=10)
        queue.enter(Waiter(engine.ask("stays"), no(), tenant="stays", wait_s=60))
        for number in range(5000):
            passing = Waiter(engine.ask(number), no(), tenant=str(number), wait_s=60)
            queue.enter(passing)
            queue.leave(passing)
        return len(queue._had)

    assert asyncio.run(run()) < 2000


def test_those_over_their_own_quota_stand_in_nobodys_way():
    """They are passed over, however many there are, since nobody was asked."""

    async def run():
        engine, queue = Engine(room=1), HoldQueue(most=100)
        blocked = no()
        for _ in range(3 * TRIED_AT_ONCE):
            queue.enter(Waiter(lambda _: blocked, blocked, tenant="a", wait_s=1))
        queue.enter(Waiter(engine.ask("b"), no(), tenant="b", wait_s=60))
        queue.pump()
        return engine.served

    assert asyncio.run(run()) == ["b"]
