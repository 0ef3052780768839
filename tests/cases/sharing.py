"""Tenants before four slots, in virtual time: a policy, and clients that come back."""

import asyncio
import heapq
import itertools
import json

from admitperf.core.request import Request
from admitperf.gateway.hold import HoldQueue, Waiter, may_wait
from admitperf.testing import FakeClock

SLOTS = 4
SERVICE_S = {"a": 10.0, "b": 1.0}


def arrivals(data):
    """The case's requests, in the file's order."""
    path = data / "cases/s-qf-06/arrivals.jsonl"
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def facts(row, number):
    """What a front door knows of a request."""
    return {
        "tenant": row["tenant"],
        "logical_id": f"{row['tenant']}-{number}",
        "input_tokens": row["prompt_tokens"],
        "max_output_tokens": row["max_tokens"],
    }


def tokens(row):
    """What a request costs."""
    return row["prompt_tokens"] + row["max_tokens"]


class Bench:
    """Events in order of time, and what was served when.

    Attributes:
        waits: seconds from arrival to start, by tenant.
        spans: (tenant, start, end, tokens) of what was served.
    """

    def __init__(self, start_s=100.0):
        self.clock = FakeClock(start_s=start_s)
        self._zero_s = start_s
        self._events = []
        self._order = itertools.count()
        self.waits = {"a": [], "b": []}
        self.spans = []

    @property
    def now_s(self):
        """Seconds since the start."""
        return self.clock.monotonic_ns() / 1e9 - self._zero_s

    def at(self, time_s, do, *args):
        """Do something at a time, after what was planned for it before.

        So who arrives at the moment in which a slot becomes free comes too early.
        """
        heapq.heappush(self._events, (time_s, next(self._order), do, args))

    def serve(self, row, number, began_s, end):
        """It starts now; `end` is called when it is done."""
        last_s = self.now_s + SERVICE_S[row["tenant"]]
        self.waits[row["tenant"]].append(self.now_s - began_s)
        self.spans.append((row["tenant"], self.now_s, last_s, tokens(row)))
        self.at(last_s, end, row, number)

    def run(self, until_s=float("inf")):
        """Let it happen."""
        while self._events and self._events[0][0] <= until_s:
            time_s, _, do, args = heapq.heappop(self._events)
            self.clock.advance(max(0.0, time_s - self.now_s))
            do(*args)

    def busy(self, tenant, first_s, last_s):
        """Slot seconds that a tenant had in a stretch of time; None = all of them."""
        cut = (
            min(end, last_s) - max(start, first_s)
            for name, start, end, _ in self.spans
            if tenant in (name, None)
        )
        return sum(max(0.0, each) for each in cut)

    def served(self, tenant, first_s, last_s):
        """Tokens served to a tenant in a stretch of time, evenly over each request."""
        return sum(
            cost * max(0.0, min(end, last_s) - max(start, first_s)) / (end - start)
            for name, start, end, cost in self.spans
            if name == tenant
        )


def retrying(policy_of, rows, until_s=float("inf")):
    """Clients that come back when they were told to, before one policy."""
    bench = Bench()
    policy = policy_of(bench.clock)

    def ask(row, number, began_s):
        d = policy({}, request_id=f"{row['tenant']}-{number}", **facts(row, number))
        if d.admitted:
            bench.serve(row, number, began_s, end)
            return
        headers = d.headers()
        assert headers["x-should-retry"] == "true", d
        wait_s = int(headers["retry-after-ms"]) / 1000
        bench.at(bench.now_s + wait_s, ask, row, number, began_s)

    def end(row, number):
        policy.outcome(
            f"{row['tenant']}-{number}", ttft_ms=100.0,
            output_tokens=row["max_tokens"], input_tokens=row["prompt_tokens"],
        )  # fmt: skip

    for number, row in enumerate(rows):
        bench.at(row["t"], ask, row, number, row["t"])
    bench.run(until_s)
    return bench


def held(policy_of, rows, until_s=float("inf")):
    """Callers that wait in a gateway's queue, before one policy."""
    return asyncio.run(_held(policy_of, rows, until_s))


async def _held(policy_of, rows, until_s):
    bench = Bench()
    policy, queue = policy_of(bench.clock), HoldQueue(len(rows), bench.clock)

    def ask(row, number, began_s, held_ms=None):
        told = facts(row, number)
        d = policy.ask({}, request_id=told["logical_id"], held_ms=held_ms, **told)
        if d.admitted:
            bench.serve(row, number, began_s, end)
        return d

    def arrive(row, number):
        queue.pump()
        d = ask(row, number, row["t"])
        if d.open:
            assert may_wait(d), d
            cost = policy.ledger.cost_of(Request(facts(row, number)))
            waiter = Waiter(
                lambda held_ms: ask(row, number, row["t"], held_ms), d,
                tenant=row["tenant"], tokens=cost, wait_s=10_000.0,
            )  # fmt: skip
            assert queue.enter(waiter)

    def end(row, number):
        policy.outcome(
            f"{row['tenant']}-{number}", ttft_ms=100.0,
            output_tokens=row["max_tokens"], input_tokens=row["prompt_tokens"],
        )  # fmt: skip
        queue.pump()

    for number, row in enumerate(rows):
        bench.at(row["t"], arrive, row, number)
    bench.run(until_s)
    queue.close()
    return bench


def p95(values):
    """Nearest rank."""
    ranked = sorted(values)
    return ranked[-(-95 * len(ranked) // 100) - 1]


def jain(*shares):
    """Jain's index: 1 when all are equal, 1/n when one has everything."""
    return sum(shares) ** 2 / (len(shares) * sum(one * one for one in shares))
