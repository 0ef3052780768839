"""One engine in virtual time: slots, a queue, a KV cache, prefill and decode.

It leaps from one thing that happens to the next. Between two of them the memory in use
grows on a straight line, so the moment it is full is known, and nothing is stepped.
"""

import heapq
import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from admitperf.simulator.arrival import Arrival
from admitperf.simulator.model import EngineModel


@dataclass(frozen=True, slots=True)
class FirstToken:
    """A request has its first token.

    Attributes:
        arrival: the request.
        at_s: when, in seconds from the start.
    """

    arrival: Arrival
    at_s: float


@dataclass(frozen=True, slots=True)
class End:
    """A request has its last token and let go of its slot and memory.

    Attributes:
        arrival: the request.
        at_s: when, in seconds from the start.
        ttft_ms: from its submission to the first token.
        max_gap_ms: longest time between two tokens; None = it has only one.
        e2e_ms: from its submission to the last token.
        preempted: how often it was thrown out of memory on the way.
    """

    arrival: Arrival
    at_s: float
    ttft_ms: float
    max_gap_ms: float | None
    e2e_ms: float
    preempted: int


Event = FirstToken | End


class _Job:
    """A request inside the engine."""

    __slots__ = (
        "arrival",
        "done",
        "first_s",
        "gap_s",
        "last_s",
        "preempted",
        "since_s",
        "submitted_s",
        "tokens",
        "turn",
    )

    def __init__(self, arrival: Arrival, submitted_s: float) -> None:
        self.arrival = arrival
        self.submitted_s = submitted_s
        self.done = 0  # tokens it has given
        self.tokens = 0  # it holds, without those of the present decode
        self.turn = 0  # which start in the engine's life this is; 0 = it waits
        self.first_s = self.last_s = math.nan
        self.since_s: float | None = None  # decoding since; None = it is not
        self.gap_s = 0.0
        self.preempted = 0


class Engine:
    """An engine that nothing has been asked of yet.

    Attributes:
        model: what it can do.
        now_s: seconds since the start.
        preempted: requests thrown out of memory so far.
        started: requests that had their first token.
        ended: requests that had their last.
        prompt_tokens: of the requests started.
        cached_tokens: of those, found in the prefix cache.
        ttft_s, queue_s, e2e_s: sums over the requests started, started and ended.
    """

    def __init__(self, model: EngineModel) -> None:
        self.model = model
        self.now_s = 0.0
        self.preempted = self.started = self.ended = 0
        self.prompt_tokens = self.cached_tokens = 0
        self.ttft_s = self.queue_s = self.e2e_s = 0.0
        self._given = 0  # tokens, without those of present decodes
        self._queue: deque[_Job] = deque()
        self._slots: dict[int, _Job] = {}  # by turn, so the youngest stands last
        self._turns = 0
        self._prefilled: tuple[float, _Job] | None = None
        self._ends: list[tuple[float, int]] = []  # a heap; a turn that is over is void
        # Memory in use at t: held + growth * t - before.
        self._held = 0
        self._growth = 0.0
        self._before = 0.0

    @property
    def waiting(self) -> int:
        """Requests in the queue, those thrown out of memory among them."""
        return len(self._queue)

    @property
    def running(self) -> int:
        """Requests that hold a slot."""
        return len(self._slots)

    @property
    def kv_tokens(self) -> float:
        """Tokens in the KV cache."""
        return self._held + self._growth * self.now_s - self._before

    @property
    def given_tokens(self) -> int:
        """Tokens of all answers so far."""
        return self._given + sum(self._fresh(job) for job in self._slots.values())

    def submit(self, arrival: Arrival) -> None:
        """Takes a request, now.

        Raises:
            ValueError: it can never fit into the KV cache.
        """
        if arrival.input_tokens + arrival.output_tokens > self.model.kv_tokens:
            raise ValueError(
                f"request {arrival.id} needs {arrival.input_tokens} +"
                f" {arrival.output_tokens} tokens and the KV cache holds"
                f" {self.model.kv_tokens}"
            )
        self._queue.append(_Job(arrival, self.now_s))
        self._start()

    def run_to(self, until_s: float) -> Iterator[Event]:
        """Lets time pass, and tells what happens in its order.

        Args:
            until_s: included; infinity = until nothing is left to do.
        """
        while True:
            end_s = self._next_end_s()
            prefilled_s = self._prefilled[0] if self._prefilled else math.inf
            full_s = self._full_s()
            at_s = min(end_s, prefilled_s, full_s)
            if at_s > until_s or at_s == math.inf:
                break
            self.now_s = at_s
            if at_s == end_s:  # first of what falls together: it makes room
                yield self._end(self._slots[heapq.heappop(self._ends)[1]])
                self._start()
            elif at_s == prefilled_s:
                yield from self._token()
                self._start()
            else:
                self._preempt()
        if until_s != math.inf:
            self.now_s = until_s

    def _next_end_s(self) -> float:
        ends = self._ends
        while ends and ends[0][1] not in self._slots:
            heapq.heappop(ends)
        return ends[0][0] if ends else math.inf

    def _full_s(self) -> float:
        """When memory will be full if nothing happens before."""
        if self._growth <= 0.0:
            return math.inf
        room = self.model.kv_tokens - self._held + self._before
        return max(self.now_s, room / self._growth)

    def _start(self) -> None:
        """Begins the prefill of the request that waits longest, if it may."""
        if self._prefilled or not self._queue:
            return
        model, job = self.model, self._queue[0]
        tokens = job.arrival.input_tokens + job.done
        if len(self._slots) >= model.max_num_seqs:
            return
        if self.kv_tokens + tokens > model.kv_tokens:
            return
        self._queue.popleft()
        self._turns += 1
        job.turn, job.tokens = self._turns, tokens
        self._slots[job.turn] = job
        self._held += tokens
        if not job.preempted:
            self.queue_s += self.now_s - job.submitted_s
        cached = 0 if job.preempted else job.arrival.cached_tokens
        took_ms = model.prefill_ms + model.prefill_ms_per_token * (tokens - cached)
        self._prefilled = self.now_s + took_ms * job.arrival.slowness / 1e3, job

    def _token(self) -> Iterator[Event]:
        """A prefill is over, and with it comes a token; the rest is decoded."""
        if self._prefilled is None:
            return
        _, job = self._prefilled
        self._prefilled = None
        self._given += 1
        job.done += 1
        if job.done == 1:
            job.first_s = self.now_s
            self.started += 1
            self.prompt_tokens += job.arrival.input_tokens
            self.cached_tokens += job.arrival.cached_tokens
            self.ttft_s += self.now_s - job.submitted_s
            yield FirstToken(job.arrival, self.now_s)
        else:
            job.gap_s = max(job.gap_s, self.now_s - job.last_s)
        job.last_s = self.now_s
        if job.done == job.arrival.output_tokens:
            yield self._end(job)
        else:
            self._decode(job)

    def _decode(self, job: _Job) -> None:
        step_s = self._step_s(job)
        left = job.arrival.output_tokens - job.done
        job.since_s = self.now_s
        job.gap_s = max(job.gap_s, step_s)
        self._growth += 1 / step_s
        self._before += self.now_s / step_s
        heapq.heappush(self._ends, (self.now_s + left * step_s, job.turn))

    def _step_s(self, job: _Job) -> float:
        return self.model.decode_ms_per_token * job.arrival.slowness / 1e3

    def _fresh(self, job: _Job) -> int:
        """Whole tokens of the present decode; the last is told by the end alone."""
        if job.since_s is None:
            return 0
        whole = int((self.now_s - job.since_s) / self._step_s(job))
        return min(whole, job.arrival.output_tokens - job.done - 1)

    def _end(self, job: _Job) -> End:
        self._given += job.arrival.output_tokens - job.done
        self._leave(job)
        self.ended += 1
        e2e_s = self.now_s - job.submitted_s
        self.e2e_s += e2e_s
        return End(
            job.arrival,
            self.now_s,
            (job.first_s - job.submitted_s) * 1e3,
            job.gap_s * 1e3 if job.arrival.output_tokens > 1 else None,
            e2e_s * 1e3,
            job.preempted,
        )

    def _preempt(self) -> None:
        """Memory is full: the request started last gives its own back, and waits first.

        It keeps its tokens and computes them anew. Nothing is started in its place
        before something else happens: what was freed is what it would need.
        """
        job = self._slots[next(reversed(self._slots))]
        if self._prefilled and self._prefilled[1] is job:
            self._prefilled = None
        fresh = self._fresh(job)
        if job.since_s is not None and fresh:
            job.last_s = job.since_s + fresh * self._step_s(job)
        self._given += fresh
        job.done += fresh
        self._leave(job)
        job.preempted += 1
        self.preempted += 1
        self._queue.appendleft(job)

    def _leave(self, job: _Job) -> None:
        """Gives slot and memory back."""
        del self._slots[job.turn]
        self._held -= job.tokens
        if job.since_s is not None:
            step_s = self._step_s(job)
            self._growth -= 1 / step_s
            self._before -= job.since_s / step_s
            job.since_s = None
        if not self._ends or not self._slots:  # nothing decodes: no rounding is left
            self._growth = self._before = 0.0
