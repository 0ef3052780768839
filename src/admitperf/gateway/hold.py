"""Deferred requests that wait here instead of at the caller's.

The order: higher priority first; within one priority the rank that the policy gave, as
a rule none; within one rank the tenant that has had the least work for its weight;
within a tenant the nearest deadline. Nobody waits past a deadline,
and whoever can no longer make it is let go at once.
"""

import asyncio
from collections.abc import Callable

from admitperf.core.clock import SYSTEM, Clock
from admitperf.core.decision import Decision
from admitperf.core.verdict import Verdict

TRIED_AT_ONCE = 8
"""Waiting requests asked about in one go before the rest wait for the next change: the
first may lack room only for its own size or session. Plain choice."""

_REMEMBERED = 1000
"""Tenants whose share is remembered before those without a claim are forgotten. Plain
choice: about 100 KB."""

_NS = 1_000_000_000


def may_wait(d: Decision) -> bool:
    """Whether room may come for this refusal: deferred, or only nothing ends yet."""
    meant = d.said[0] if d.said is not None else d.verdict
    unknown = d.estimate_ms is None and meant is Verdict.DEFER
    return d.verdict is Verdict.DEFER or unknown


class Waiter:
    """One held request.

    Args:
        ask: asks the policy again; gets how long it has been held, in milliseconds.
        decision: the open refusal that it is held on.
        tenant: whose share of the queue it uses; None = nobody's in particular.
        weight: of the tenant.
        tokens: its work.
        priority: higher goes first.
        wait_s: longest it may be held, finite.

    Attributes:
        decision: the last answer, open until somebody records it.
        began_ns, until_ns: when it came and when it must go, on the queue's clock.
        woken: done when it need not wait any longer.
    """

    def __init__(  # noqa: PLR0913
        self,
        ask: Callable[[float], Decision],
        decision: Decision,
        *,
        tenant: str | None = None,
        weight: float = 1.0,
        tokens: float = 1.0,
        priority: int = 0,
        wait_s: float,
    ) -> None:
        self.ask = ask
        self.decision = decision
        self.tenant = tenant
        self.work = tokens / weight
        self.priority = priority
        self.wait_s = wait_s
        self.began_ns = self.until_ns = 0
        self.woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def wake(self) -> None:
        """It need not wait any longer."""
        if not self.woken.done():
            self.woken.set_result(None)


class HoldQueue:
    """Held requests of one pool.

    Args:
        most: requests held at once.
        clock: source of time.
    """

    def __init__(self, most: int, clock: Clock = SYSTEM) -> None:
        self._most = most
        self._clock = clock
        self._waiters: dict[int, Waiter] = {}
        self._had: dict[str | None, float] = {}
        self._now = 0.0  # of the fair share: what the last one let in had had before
        self.closed = False

    def __len__(self) -> int:
        return len(self._waiters)

    @property
    def full(self) -> bool:
        """Whether one more would be too many, or nobody is held any longer."""
        return self.closed or len(self._waiters) >= self._most

    def enter(self, waiter: Waiter) -> bool:
        """Takes a request in, here and now; False = there is no place for it.

        Who enters must `leave`, or `hold`, which leaves.
        """
        if self.full:
            return False
        now_ns = waiter.began_ns = self._clock.monotonic_ns()
        waiter.until_ns = now_ns + int(waiter.wait_s * _NS)
        self._enter(waiter)
        return True

    async def hold(self, waiter: Waiter) -> float:
        """Waits until the answer is known, or the time is up, for one that entered.

        Returns:
            How long it was held, in milliseconds. `waiter.decision` is the answer:
            admitted, or a refusal still open.
        """
        timer = asyncio.get_running_loop().call_later(waiter.wait_s, waiter.wake)
        try:
            await waiter.woken
        finally:
            timer.cancel()
            self.leave(waiter)
        return self.held_ms(waiter)

    def held_ms(self, waiter: Waiter) -> float:
        """How long it has been held, in milliseconds."""
        return (self._clock.monotonic_ns() - waiter.began_ns) / 1e6

    def pump(self) -> None:
        """Something changed: asks again, in order, until several get the same no."""
        tried: set[int] = set()
        refused = 0
        while refused < TRIED_AT_ONCE:
            waiter = self._next(tried)
            if waiter is None:
                return
            before = waiter.decision
            waiter.decision = d = waiter.ask(self.held_ms(waiter))
            if not d.open:
                self._serve(waiter)
            elif may_wait(d) and not self._too_late(waiter):
                tried.add(id(waiter))
                refused += d is not before  # else nobody was asked: its own quota
                continue
            self.leave(waiter)
            waiter.wake()

    def close(self) -> None:
        """Wakes everybody; nobody is held from now on."""
        self.closed = True
        for waiter in list(self._waiters.values()):
            waiter.wake()

    def _too_late(self, waiter: Waiter) -> bool:
        """Whether its estimate says that there will be no room in time."""
        estimate_ms = waiter.decision.estimate_ms
        if estimate_ms is None or waiter.decision.wait != "measured":
            return False
        left_ns = waiter.until_ns - self._clock.monotonic_ns()
        return estimate_ms * 1e6 > left_ns

    def _next(self, tried: set[int]) -> Waiter | None:
        left = (
            w
            for w in self._waiters.values()
            if id(w) not in tried and not w.woken.done()
        )
        return min(left, key=self._place, default=None)

    def _place(self, waiter: Waiter) -> tuple[float, float, float, int]:
        had = self._had[waiter.tenant]
        return -waiter.priority, waiter.decision.rank, had, waiter.until_ns

    def _enter(self, waiter: Waiter) -> None:
        """Takes it in. A tenant that was away has no claim from that time."""
        had = self._had.get(waiter.tenant, 0.0)
        self._had[waiter.tenant] = max(had, self._now)
        self._waiters[id(waiter)] = waiter

    def _serve(self, waiter: Waiter) -> None:
        self._now = max(self._now, self._had[waiter.tenant])
        self._had[waiter.tenant] += waiter.work

    def leave(self, waiter: Waiter) -> None:
        """It is held no longer; a second time there is nothing to do."""
        self._waiters.pop(id(waiter), None)
        if len(self._had) > _REMEMBERED and len(self._had) > 2 * len(self._waiters):
            here = {one.tenant for one in self._waiters.values()}
            self._had = {
                tenant: had
                for tenant, had in self._had.items()
                if had > self._now or tenant in here
            }
