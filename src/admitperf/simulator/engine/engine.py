"""One engine: a queue, steps that mix prefill and decode, a paged KV cache.

It works as vLLM 0.32's scheduler does, step by step, but leaps over steps in which
nobody comes, starts, ends or is thrown out: their times add up in closed form, and so
do the blocks they take. It knows nothing of clocks: it is told up to when to go on, so
the same engine runs in virtual time and behind HTTP.

What it models and what it leaves out: docs/engine-model.md.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from math import inf, isnan

from admitperf.simulator.engine.blocks import Blocks
from admitperf.simulator.engine.decoding import Decoding
from admitperf.simulator.engine.events import End, Event, FirstToken, Gone, Refused
from admitperf.simulator.engine.job import Job
from admitperf.simulator.engine.model import EngineModel
from admitperf.simulator.engine.pace import Leap, Noise, Slowest
from admitperf.simulator.engine.tally import Histogram, Tally
from admitperf.simulator.engine.waiting import ByRank, FirstCome
from admitperf.simulator.traffic.arrival import Arrival

_MAY_CHANGE = (
    "max_num_seqs",
    "step_ms",
    "ms_per_resident_token",
    "ms_per_prefill_token",
    "ms_per_sequence",
)


@dataclass(frozen=True, slots=True)
class Gauges:
    """What an engine's page says of its present.

    Attributes:
        running, waiting: requests.
        kv_fraction: of the cache's blocks, those of running requests.
    """

    running: int = 0
    waiting: int = 0
    kv_fraction: float = 0.0


class Engine:
    """An engine that nothing has been asked of yet.

    Args:
        model: what it can do.
        seed: of the noise on its steps.

    Attributes:
        model: as given.
        now_s: seconds since the start.
        tally: what it has counted.
    """

    def __init__(self, model: EngineModel, seed: int = 0) -> None:
        self.model = model
        self.now_s = 0.0
        self.tally = Tally()
        self._noise = Noise(model, seed)
        self._slowest = Slowest()
        self._blocks = Blocks(
            model.kv_blocks, model.block_size, findable=model.prefix_caching
        )
        self._inside: dict[str, Job] = {}
        self._coming: deque[Job] = deque()
        self._queue: FirstCome | ByRank = (
            ByRank() if model.scheduling == "priority" else FirstCome()
        )
        self._running: dict[int, Job] = {}  # by turn
        self._decoding = Decoding(model.block_size)
        self._half: Job | None = None  # its prompt is computed in part
        self._prefilled: list[Job] = []  # their prompts are after this step
        self._leaving: list[Job] = []  # their callers went away
        self._leap: Leap | None = None
        self._steps = 0  # that are over, up to the present leap
        self._turns = 0
        self._backlog = 0  # tokens of prompts without a first token
        self._given = 0  # tokens
        self._at_end = Gauges()  # of the last step before the present leap
        self._left = 0  # in the queue when the present leap began

    @property
    def waiting(self) -> int:
        """Requests in the queue, those thrown out of memory among them."""
        return len(self._queue)

    @property
    def running(self) -> int:
        """Requests that hold a slot."""
        return len(self._running)

    @property
    def inside(self) -> int:
        """Requests that were taken and are not over."""
        return len(self._inside)

    @property
    def ahead_s(self) -> float:
        """Until when nothing will happen; inf = nothing will."""
        coming_s = self._coming[0].due_s if self._coming else inf
        return min(coming_s, self._leap.end_s) if self._leap else coming_s

    @property
    def kv_fraction(self) -> float:
        """Of the cache's blocks, those of running requests."""
        ahead = 0
        if self._leap:  # the first of its steps has its blocks already
            begun = min(self._done() + 1, self._leap.steps)
            ahead = self._decoding.blocks_between(self._steps + 1, self._steps + begun)
        return 1.0 - (self._blocks.free - ahead) / self.model.kv_blocks

    @property
    def gauges(self) -> Gauges:
        """As vLLM's page shows them: it is written when a step ends, and only then."""
        if self._leap and self.now_s < self._leap.after_s(1):
            return self._at_end
        return Gauges(self.running, self.waiting, self.kv_fraction)

    @property
    def given_tokens(self) -> int:
        """Tokens of all answers so far."""
        return self._given + self._decoding.count * self._done()

    @property
    def gaps(self) -> Histogram:
        """Times between tokens so far, in seconds."""
        done, count = self._done(), self._decoding.count
        if self._leap is None or not done or not count:
            return self.tally.gap_s
        mean_s = (self._leap.after_s(done) - self._leap.start_s) / done
        return self.tally.gap_s.with_more(mean_s, count * done)

    @property
    def next_s(self) -> float:
        """When its present step ends or a request reaches its queue; inf = neither."""
        coming_s = self._coming[0].due_s if self._coming else inf
        if not self._leap:
            return coming_s
        return min(coming_s, self._leap.after_s(self._done() + 1))

    def given(self, request_id: str) -> int:
        """Tokens a request inside has given.

        Raises:
            KeyError: it is not inside.
        """
        return self._inside[request_id].given_after(self._steps + self._done())

    def cached(self, request_id: str) -> int:
        """Tokens of its prompt found in the cache, once a request has started.

        Raises:
            KeyError: it is not inside.
        """
        return self._inside[request_id].cached_tokens

    def remember(self, name: str, tokens: int) -> None:
        """Puts a chain into the prefix cache, as if it had been asked before.

        Raises:
            ValueError: there is no room, or requests are inside.
        """
        if self._inside:
            raise ValueError(f"{name} cannot be put in: requests are inside")
        self._blocks.remember(name, tokens)

    def become(self, model: EngineModel) -> None:
        """Has other slots and step times from the end of the present step on.

        Who runs goes on, also where they are more than the new slots.

        Args:
            model: like the present one but for `max_num_seqs` and the times.

        Raises:
            ValueError: it differs in more than that.
        """
        same = {name: getattr(self.model, name) for name in _MAY_CHANGE}
        if replace(model, **same) != self.model:
            told = ", ".join(_MAY_CHANGE)
            raise ValueError(f"an engine at work changes in nothing but {told}")
        self.model = model
        if self._leap:
            self._leap.cut(self.now_s)

    def submit(self, arrival: Arrival) -> bool:
        """Takes a request, now.

        Returns:
            False: one of the engine's own limits refuses it.

        Raises:
            ValueError: it can never fit, or one of its id is inside.
        """
        self._check(arrival)
        if self._refused():
            return False
        due_s = self.now_s + self.model.front_ms / 1e3
        job = Job(arrival, self.now_s, due_s)
        self._inside[arrival.id] = job
        self._coming.append(job)
        return True

    def cancel(self, request_id: str) -> Gone | None:
        """Its caller went away: it is gone when the present step is over.

        One that is not inside is nobody's concern.

        Returns:
            What it had by now; None = it is not inside, or is leaving already.
        """
        job = self._inside.get(request_id)
        if job is None or job in self._leaving:
            return None
        if job in self._coming:
            self._coming.remove(job)
            del self._inside[request_id]
            return job.had(0)
        had = job.had(self._steps + self._done())
        self._leaving.append(job)
        if self._leap:
            self._leap.cut(self.now_s)
        return had

    def run_to(self, until_s: float) -> Iterator[Event]:
        """Lets time pass, and tells what happens in its order.

        To be gone through to its end.

        Args:
            until_s: included; infinity = until nothing is left to do.
        """
        while True:
            at_s = self.ahead_s
            if at_s > until_s or at_s == inf:
                break
            self.now_s = at_s
            yield from self._happen()
        if until_s != inf:
            self.now_s = until_s

    def _happen(self) -> list[Event]:
        """Everything there is just now."""
        told = list[Event]()
        while self._coming and self._coming[0].due_s == self.now_s:
            self._arrive(self._coming.popleft(), told)
        leap = self._leap
        if leap and leap.end_s == self.now_s:
            self._leap = None
            self._step_over(leap, told)
            self._schedule()
        elif not leap and len(self._queue):
            self._schedule()
        return told

    def _done(self) -> int:
        """Steps of the present leap that are over."""
        return self._leap.done(self.now_s) if self._leap else 0

    def _check(self, arrival: Arrival) -> None:
        tokens = arrival.input_tokens + arrival.output_tokens
        most = self.model.longest_tokens
        if arrival.id in self._inside:
            raise ValueError(f"request {arrival.id} is inside already")
        if arrival.input_tokens < 1 or arrival.output_tokens < 1:
            raise ValueError(f"request {arrival.id} has no prompt or asks for nothing")
        if tokens > most:
            raise ValueError(
                f"request {arrival.id} needs {arrival.input_tokens} +"
                f" {arrival.output_tokens} tokens and the engine takes {most}"
            )
        if sum(tokens for _, tokens in arrival.prefix) > arrival.input_tokens:
            raise ValueError(f"request {arrival.id} names more prefix than prompt")

    def _refused(self) -> bool:
        """Whether a limit of the engine's own holds, and counts it."""
        model, inside = self.model, len(self._queue) + len(self._running)
        for name, limit, now in (
            ("max_num_queued_reqs", model.max_num_queued_reqs, inside),
            ("max_num_queued_tokens", model.max_num_queued_tokens, self._backlog),
        ):
            if limit is not None and now >= limit:
                self.tally.refused[name] += 1
                return True
        return False

    def _arrive(self, job: Job, told: list[Event]) -> None:
        """It reaches the queue just now."""
        if self._refused():
            del self._inside[job.arrival.id]
            told.append(Refused(job.arrival, self.now_s))
            return
        self._backlog += job.arrival.input_tokens
        stored = partial(self._stored_now, job)
        job.claim = self._blocks.claim(job.arrival.prefix, stored)
        self._queue.add(job)
        if self._leap and self._may_start(job):
            self._leap.cut(self.now_s)

    def _may_start(self, job: Job) -> bool:
        free_slot = len(self._running) < self.model.max_num_seqs
        return free_slot and self._queue.first() is job

    def _stored_now(self, job: Job) -> int:
        """Tokens in the cache, those of the step that is being put together too."""
        return job.stored_after(self._steps + 1)

    # ------------------------------------------------------------- the end of a step

    def _step_over(self, leap: Leap, told: list[Event]) -> None:
        self._count(leap)
        for job in self._leaving:
            self._drop(job)
        self._leaving.clear()
        for job in self._decoding.ended(self._steps):
            job.gap_s = max(job.gap_s, self._slowest.since(job.since))
            told.append(self._end(job))
        for job in self._prefilled:
            self._token(job, told)
        self._prefilled.clear()

    def _count(self, leap: Leap) -> None:
        """Books the steps of a leap."""
        count, begun = self._decoding.count, self._steps
        self._steps += leap.steps
        if count:
            self._blocks.take(self._decoding.blocks_between(begun + 1, self._steps))
            self._slowest.add(self._steps, leap.longest_s)
            mean_s = (leap.end_s - leap.start_s) / leap.steps
            unheard = sum(job.base is not None for job in self._leaving)
            self.tally.gap_s.add(mean_s, count * leap.steps - unheard)
            self._given += count * leap.steps - unheard

    def _drop(self, job: Job) -> None:
        """Lets a request go whose caller went away."""
        if self._inside.pop(job.arrival.id, None) is None:
            return
        if not job.given:
            self._backlog -= job.arrival.input_tokens
        if job.turn in self._running:
            self._stop(job)
            if job in self._prefilled:
                self._prefilled.remove(job)
        else:
            self._queue.remove(job)
        self._blocks.leave(job.claim)

    def _stop(self, job: Job) -> None:
        """Takes slot and blocks from a request."""
        del self._running[job.turn]
        self._blocks.let_go(job.claim, job.stored_after(self._steps))
        if job is self._half:
            self._half = None
        if job.base is not None:
            self._decoding.remove(job)
            job.base = None
        job.stored = 0
        if not self._running:
            self._slowest.clear()

    def _token(self, job: Job, told: list[Event]) -> None:
        """The prompt is computed, and what was given before: with it comes a token."""
        job.given += 1
        self._given += 1
        if job.given == 1:
            job.first_s = self.now_s
            self._backlog -= job.arrival.input_tokens
            self._started(job)
            told.append(FirstToken(job.arrival, self.now_s))
        else:
            gap_s = self.now_s - job.last_s
            job.gap_s = max(job.gap_s, gap_s)
            self.tally.gap_s.add(gap_s)
        if job.left:
            self._decoding.add(job, self._steps)
        else:
            told.append(self._end(job))

    def _started(self, job: Job) -> None:
        tally = self.tally
        tally.started += 1
        tally.prompt_tokens += job.arrival.input_tokens
        tally.ttft_s.add(self.now_s - job.submitted_s)
        tally.prefill_s.add(self.now_s - job.began_s)

    def _end(self, job: Job) -> End:
        """Its last token is given: it leaves, and its blocks are free at once."""
        arrival, tally = job.arrival, self.tally
        e2e_s = self.now_s - job.submitted_s
        tally.ended += 1
        tally.e2e_s.add(e2e_s)
        tally.decode_s.add(self.now_s - job.first_s)
        self._release(job)
        return End(
            arrival,
            self.now_s,
            (job.first_s - job.submitted_s) * 1e3,
            job.gap_s * 1e3 if arrival.output_tokens > 1 else None,
            e2e_s * 1e3,
            job.preempted,
            job.cached_tokens,
        )

    def _release(self, job: Job) -> None:
        del self._running[job.turn], self._inside[job.arrival.id]
        self._blocks.let_go(job.claim, job.stored_after(self._steps))
        self._blocks.leave(job.claim)
        if not self._running:
            self._slowest.clear()

    # ----------------------------------------------------------- the start of a step

    def _schedule(self) -> None:
        """Puts the next step together, and as many like it as will follow."""
        self._at_end = Gauges(self.running, self._left, self.kv_fraction)
        squeezed, chunk = self._make_room()
        decoding, size = self._decoding, self.model.block_size
        resident = decoding.tokens(self._steps)
        self._blocks.take(decoding.blocks(self._steps))
        if self._half is not None:
            resident += self._half.stored
            self._blocks.take(_more_blocks(self._half, chunk, size))
            self._compute(self._half, chunk)
        budget = self.model.max_num_batched_tokens - decoding.count
        left = budget - chunk
        if not squeezed:
            left, found = self._admit(left)
            resident += found
        if self._running:
            self._set_out(budget - left, resident, again=squeezed)
        self._left = len(self._queue)

    def _make_room(self) -> tuple[bool, int]:
        """Throws requests out until the next step's blocks are free.

        Returns:
            Whether any were, and the tokens of the half-computed prompt that are next:
            room is made for as many as were meant before it was made.
        """
        decoding, free, squeezed = self._decoding, self._blocks, False
        while decoding.blocks(self._steps) > free.free:
            self._preempt(self._victim())
            squeezed = True
        if self._half is None:
            return squeezed, 0
        budget = self.model.max_num_batched_tokens - decoding.count
        chunk = min(self._half.known - self._half.stored, budget)
        more = _more_blocks(self._half, chunk, self.model.block_size)
        while (
            self._half is not None and decoding.blocks(self._steps) + more > free.free
        ):
            self._preempt(self._victim())
            squeezed = True
        return squeezed, 0 if self._half is None else chunk

    def _victim(self) -> Job:
        """Who came last; where priority counts, who matters least."""
        latest = reversed(self._running.values())
        if self.model.scheduling == "fcfs":
            return next(latest)
        return max(latest, key=lambda job: job.rank[:2])

    def _preempt(self, job: Job) -> None:
        """It waits first, keeps its tokens, and computes them anew."""
        if job.base is not None:
            job.given = job.given_after(self._steps)
            job.last_s = self.now_s
            if self._steps > job.since:
                job.gap_s = max(job.gap_s, self._slowest.since(job.since))
        self._stop(job)
        job.known = job.arrival.input_tokens + job.given
        job.preempted += 1
        self.tally.preempted += 1
        self._queue.put_back(job)

    def _admit(self, budget: int) -> tuple[int, int]:
        """Starts who waits, as far as slots, blocks and budget go.

        Returns:
            The budget that is left, and tokens that were found in the cache.
        """
        queue, model, found = self._queue, self.model, 0
        while len(queue) and budget and len(self._running) < model.max_num_seqs:
            job = queue.first()
            if not model.chunked_prefill and self._uncached(job) > budget:
                break
            if not self._blocks.start(job.claim, job.known):
                break
            queue.take()
            cached = job.claim.found * model.block_size
            chunk = min(job.known - cached, budget)
            self._begin(job, cached)
            stored = cached + chunk
            self._blocks.take(-(-stored // model.block_size) - job.claim.found)
            self._compute(job, chunk)
            budget -= chunk
            found += cached
        return budget, found

    def _uncached(self, job: Job) -> int:
        found = self._blocks.findable(job.claim, job.known)
        return job.known - found * self.model.block_size

    def _begin(self, job: Job, cached: int) -> None:
        self._turns += 1
        job.turn, job.stored = self._turns, cached
        self._running[job.turn] = job
        if isnan(job.began_s):
            job.began_s = self.now_s
            job.cached_tokens = cached
            self.tally.queried_tokens += job.known
            self.tally.cached_tokens += cached
            self.tally.queue_s.add(self.now_s - job.submitted_s)

    def _compute(self, job: Job, chunk: int) -> None:
        job.stored += chunk
        whole = job.stored == job.known
        self._half = None if whole else job
        if whole:
            self._prefilled.append(job)

    def _set_out(self, prompt_tokens: int, resident: int, *, again: bool) -> None:
        """Begins the step, and all after it that will be like it.

        Args:
            prompt_tokens: it computes.
            resident: tokens in the cache when it begins.
            again: somebody was thrown out, so the queue is asked again after it.
        """
        model, decoding = self.model, self._decoding
        sequences = decoding.count + len(self._prefilled) + (self._half is not None)
        first_ms = (
            model.step_ms
            + model.ms_per_resident_token * resident
            + model.ms_per_prefill_token * prompt_tokens
            + model.ms_per_sequence * sequences
        )
        steps = 1 if again or prompt_tokens else self._alike()
        factor = self._noise.at(self._steps) / 1e3
        growth_ms = model.ms_per_resident_token * decoding.count
        self._leap = Leap(self.now_s, steps, first_ms * factor, growth_ms * factor)

    def _alike(self) -> int:
        """Steps from here on in which everybody gives a token and nothing else is."""
        step, decoding = self._steps, self._decoding
        most = min(decoding.next_end() - step, self._noise.lasts(step))
        if len(self._queue) and len(self._running) < self.model.max_num_seqs:
            first = self._queue.first()
            most = min(most, self._blocks.grows_in(first.claim, first.known))
        return 1 + decoding.steps_with(self._blocks.free, step + 1, int(most) - 1)


def _more_blocks(job: Job, chunk: int, size: int) -> int:
    """Blocks that so many tokens more of a prompt take."""
    return -(-(job.stored + chunk) // size) - -(-job.stored // size)
