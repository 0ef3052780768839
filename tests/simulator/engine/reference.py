"""The engine again, slow and plain: every step, every block, every queue is a list.

To hold the real simulator against: written from what it promises, not from how it does
it. What a promise leaves open, and how it is settled here (as vLLM 0.32 does, but for
what is said to differ):

- A step takes its blocks when it is scheduled, at its start: first the running
  requests in the order in which they were admitted, then new ones. A block that the
  step will fill can be found from then on, by the next request of the same pass too.
- Before a running request takes blocks, victims are let go one at a time until they
  fit, so blocks that earlier requests took in this pass came from the queue as it was.
  A victim that was already scheduled is taken out of the step; blocks it would have
  filled stay findable. How many tokens a request computes is fixed before that.
- Resident tokens (R) are those of the step's requests before it: what a new one found
  in the cache counts, what a victim had does not.
- At a boundary: cancelled requests go first, in the order of cancelling, without a
  token. Then the step's requests get theirs in running order, and those that end let go
  of their blocks in that order. Then what reached the queue meanwhile can be admitted.
- The step at t sees what reaches the queue at t, unless t was gone to before: `run_to`
  is over when all that is due then has happened, the start of the next step included.
- Freed blocks: an incomplete last one to the front of the free queue, complete ones to
  its back, the last first. Taken from the front. A block found in the cache leaves the
  queue, and comes back behind all others: that is the whole of "least recently used".
- Room at admission: for all that is known of the request (prompt and what it had
  given). Blocks found in the cache that lie in the free queue are needed too.
- Who extends a chain is settled at admission, chain by chain along the prompt: the
  request does, if it found all that can be found of the chain and no other running
  request extends it. That one does until all its prompt's part of the chain is
  scheduled; a prompt's last chain goes on into the answer, so it is extended until its
  request stops. From the first chain that it cannot extend, all that a request computes
  is its own copy, which nobody finds, until it is preempted and looks again. (In vLLM
  copies are found too, once the first is gone.)
- A cancelled request counts against the engine's own limits until the boundary. (In
  vLLM it leaves the limits' books at once, up to a step sooner.)
"""

import itertools
import math
from collections.abc import Iterator

from admitperf.simulator.engine.events import End, Event, FirstToken, Refused
from admitperf.simulator.engine.model import EngineModel
from admitperf.simulator.streams import stream
from admitperf.simulator.traffic.arrival import Arrival, Prefix

Chain = tuple[Prefix, str]
"""A chain: what prompts that name it begin with, and its name."""

Name = tuple[Prefix, str, int]
"""A block's content: its chain, and its place in the prompt."""


class Block:
    """One block of the KV cache."""

    def __init__(self) -> None:
        self.name: Name | None = None  # None = cannot be found
        self.complete = False
        self.holders = 0


class Pool:
    """All blocks: held by requests, or in the one queue of free ones."""

    def __init__(self, blocks: int) -> None:
        self.total = blocks
        self.free = [Block() for _ in range(blocks)]
        self.findable: dict[Name, Block] = {}
        self.forgotten = 0

    @property
    def in_use(self) -> int:
        """Blocks that requests hold."""
        return self.total - len(self.free)

    def found(self, names: list[Name]) -> list[Block]:
        """The blocks that can be found, up to the first that cannot."""
        blocks = []
        for name in names:
            if name not in self.findable:
                break
            blocks.append(self.findable[name])
        return blocks

    def hold(self, block: Block) -> None:
        """One more request holds a block that was found."""
        if block.holders == 0:
            self.free.remove(block)
        block.holders += 1

    def take(self) -> Block:
        """The next free block; what it held is gone."""
        block = self.free.pop(0)
        if block.name is not None:
            del self.findable[block.name]
            self.forgotten += 1
        block.name, block.complete, block.holders = None, False, 1
        return block

    def publish(self, block: Block, name: Name) -> None:
        """Let a block be found."""
        assert name not in self.findable
        block.name = name
        self.findable[name] = block

    def let_go(self, blocks: list[Block]) -> None:
        """A request no longer holds its blocks, given in the order of its tokens."""
        for block in reversed(blocks):
            block.holders -= 1
            if block.holders == 0 and block.complete:
                self.free.append(block)
            elif block.holders == 0:
                self.free.insert(0, block)


class Request:
    """One request inside, on its way, waiting or running."""

    def __init__(
        self, arrival: Arrival, now_s: float, front_s: float, key: str
    ) -> None:
        self.arrival = arrival
        self.submitted_s = now_s
        self.queued_s = now_s + front_s
        self.prefix = arrival.prefix or ((key, arrival.input_tokens),)
        self.blocks: list[Block] = []
        self.computed = 0
        self.from_start = 0  # tokens known when it was last admitted
        self.given = 0
        self.copies_from = math.inf  # from this block on it holds own copies
        self.cached: int | None = None
        self.preempted = 0
        self.token_at_s: list[float] = []

    @property
    def known(self) -> int:
        """Tokens of the prompt and of what it has given."""
        return self.arrival.input_tokens + self.given

    @property
    def rank(self) -> tuple[int, float, str]:
        """Its place in a queue that sorts by priority."""
        return self.arrival.priority, self.arrival.at_s, self.arrival.id

    @property
    def named(self) -> int:
        """Tokens of its prompt that belong to named chains."""
        return sum(tokens for _, tokens in self.prefix)

    def chain(self, end: int) -> Chain:
        """The path and the name of the chain in which this many tokens end."""
        total = 0
        for place, (name, tokens) in enumerate(self.prefix):
            total += tokens
            if end <= total or place == len(self.prefix) - 1:
                return self.prefix[:place], name
        raise AssertionError

    def name(self, place: int, size: int) -> Name:
        """The name of the content of its block at a place, counted from 0."""
        return (*self.chain((place + 1) * size), place)


class Reference:
    """An engine as `Engine` promises it, one step after the other."""

    def __init__(self, model: EngineModel, seed: int = 0) -> None:
        self.model = model
        self.pool = Pool(model.kv_blocks)
        self.now_s = 0.0
        self.steps = 0
        self.preemptions = 0
        self._cancelled: list[Request] = []
        self._on_the_way: list[Request] = []
        self._waiting: list[Request] = []
        self._running: list[Request] = []
        self._step: list[tuple[Request, int]] = []
        self._step_ends_s: float | None = None
        self._chance = stream(seed, "noise")
        self._factor = 1.0
        self._keys = 0

    @property
    def waiting(self) -> int:
        """Requests in the queue."""
        return len(self._waiting)

    @property
    def running(self) -> int:
        """Requests with a slot."""
        return len(self._running)

    @property
    def kv_fraction(self) -> float:
        """Share of the blocks that running requests hold."""
        return self.pool.in_use / self.pool.total

    # ---------------------------------------------------------------- from outside

    def submit(self, arrival: Arrival) -> bool:
        """A request arrives now; False = refused by a limit."""
        if self._refuses():
            return False
        self._keys += 1
        front_s = self.model.front_ms / 1000
        request = Request(arrival, self.now_s, front_s, f"\0{self._keys}")
        self._on_the_way.append(request)
        return True

    def cancel(self, request_id: str) -> None:
        """The caller of a request went away."""
        self._on_the_way = [r for r in self._on_the_way if r.arrival.id != request_id]
        for request in self._waiting + self._running:
            if request.arrival.id == request_id and request not in self._cancelled:
                self._cancelled.append(request)

    def given(self, request_id: str) -> int:
        """Tokens a request inside has given."""
        return self._inside(request_id).given

    def cached(self, request_id: str) -> int:
        """Tokens of its prompt that were found in the cache."""
        return self._inside(request_id).cached or 0

    def remember(self, name: str, tokens: int) -> None:
        """Put a chain into the cache, as far as there are free blocks."""
        names: list[Name] = [
            ((), name, n) for n in range(tokens // self.model.block_size)
        ]
        blocks = self.pool.found(names)
        for block in blocks:
            self.pool.hold(block)
        for missing in names[len(blocks) : len(blocks) + len(self.pool.free)]:
            block = self.pool.take()
            block.complete = True
            self.pool.publish(block, missing)
            blocks.append(block)
        self.pool.let_go(blocks)

    def run_to(self, until_s: float) -> Iterator[Event]:
        """All that happens until then, in order."""
        while True:
            if self._on_the_way and self._on_the_way[0].queued_s <= self.now_s:
                yield from self._arrive()
            elif self._step_ends_s is None and self._busy:
                self._begin()
            elif self.next_s <= until_s and self.next_s < math.inf:
                self.now_s = self.next_s
                if self._step_ends_s == self.now_s:
                    yield from self._finish()
            else:
                break
        self.now_s = until_s if until_s < math.inf else self.now_s

    @property
    def next_s(self) -> float:
        """When something happens next; inf = nothing will."""
        ends_s = math.inf if self._step_ends_s is None else self._step_ends_s
        arrives_s = self._on_the_way[0].queued_s if self._on_the_way else math.inf
        return min(ends_s, arrives_s)

    # ---------------------------------------------------------------- the queue

    @property
    def _busy(self) -> bool:
        return bool(self._waiting or self._running)

    def _inside(self, request_id: str) -> Request:
        inside = self._running + self._waiting + self._on_the_way
        return next(r for r in inside if r.arrival.id == request_id)

    def _refuses(self) -> bool:
        held = self._waiting + self._running
        backlog = sum(r.arrival.input_tokens for r in held if not r.given)
        most, most_tokens = (
            self.model.max_num_queued_reqs,
            self.model.max_num_queued_tokens,
        )
        if most is not None and len(held) >= most:
            return True
        return most_tokens is not None and backlog >= most_tokens

    def _arrive(self) -> Iterator[Event]:
        request = self._on_the_way.pop(0)
        if self._refuses():
            yield Refused(request.arrival, request.queued_s)
        else:
            self._queue(request)

    def _queue(self, request: Request, *, first: bool = False) -> None:
        self._waiting.insert(0 if first else len(self._waiting), request)
        if self.model.scheduling == "priority":
            self._waiting.sort(key=lambda waiting: waiting.rank)

    # ---------------------------------------------------------------- a step

    def _begin(self) -> None:
        self._drop_cancelled()
        self._step = []
        if not self._go_on():
            self._admit()
        if self._step:
            self._step_ends_s = self.now_s + self._step_s()
            self.steps += 1

    def _step_s(self) -> float:
        model = self.model
        resident = sum(request.computed for request in self._running)
        prefill = sum(tokens for request, tokens in self._step if _prefills(request))
        cost_ms = (
            model.step_ms
            + model.ms_per_resident_token * resident
            + model.ms_per_prefill_token * prefill
            + model.ms_per_sequence * len(self._step)
        )
        if self.steps % model.noise_steps == 0 and model.noise:
            mean = -(model.noise**2) / 2
            self._factor = math.exp(self._chance.gauss(mean, model.noise))
        return cost_ms * self._factor / 1000

    def _finish(self) -> Iterator[Event]:
        self._step_ends_s = None
        self._drop_cancelled()
        for request, tokens in self._step:
            if request in self._running:
                request.computed += tokens
                if request.computed == request.known:
                    yield from self._token(request)
        self._step = []

    def _token(self, request: Request) -> Iterator[Event]:
        request.given += 1
        request.token_at_s.append(self.now_s)
        if request.given == 1:
            yield FirstToken(request.arrival, self.now_s)
        if request.given == request.arrival.output_tokens:
            self._stop(request)
            yield self._end(request)

    def _end(self, request: Request) -> End:
        at_s = request.token_at_s
        gaps = [later - sooner for sooner, later in itertools.pairwise(at_s)]
        return End(
            arrival=request.arrival,
            at_s=self.now_s,
            ttft_ms=(at_s[0] - request.submitted_s) * 1000,
            max_gap_ms=max(gaps) * 1000 if gaps else None,
            e2e_ms=(self.now_s - request.submitted_s) * 1000,
            preempted=request.preempted,
            cached_tokens=request.cached or 0,
        )

    def _stop(self, request: Request) -> None:
        self._running.remove(request)
        self.pool.let_go(request.blocks)
        request.blocks = []

    def _drop_cancelled(self) -> None:
        for request in self._cancelled:
            if request in self._running:
                self._stop(request)
            if request in self._waiting:
                self._waiting.remove(request)
        self._cancelled = []

    # ---------------------------------------------------------------- scheduling

    @property
    def _budget(self) -> int:
        return self.model.max_num_batched_tokens - sum(
            tokens for _, tokens in self._step
        )

    def _go_on(self) -> bool:
        """Schedule what runs; True = somebody was preempted."""
        before = self.preemptions
        for request in list(self._running):
            tokens = min(request.known - request.computed, self._budget)
            if request in self._running and self._make_room(request, tokens):
                self._compute(request, tokens)
        return self.preemptions > before

    def _needs(self, request: Request, tokens: int) -> int:
        blocks = math.ceil((request.computed + tokens) / self.model.block_size)
        return blocks - len(request.blocks)

    def _make_room(self, request: Request, tokens: int) -> bool:
        while self._needs(request, tokens) > len(self.pool.free):
            victim = self._victim()
            self._preempt(victim)
            if victim is request:
                return False
        return True

    def _victim(self) -> Request:
        if self.model.scheduling == "fcfs":
            return self._running[-1]
        return max(reversed(self._running), key=lambda running: running.rank[:2])

    def _preempt(self, victim: Request) -> None:
        self._step = [(r, tokens) for r, tokens in self._step if r is not victim]
        self._stop(victim)
        victim.computed = 0
        victim.preempted += 1
        self.preemptions += 1
        self._queue(victim, first=True)

    def _admit(self) -> None:
        while self._waiting and self._budget and self.running < self.model.max_num_seqs:
            request = self._waiting[0]
            found = self._found(request)
            rest = request.known - len(found) * self.model.block_size
            whole = self.model.chunked_prefill or rest <= self._budget
            if not whole or not self._fits(request, found):
                break
            self._waiting.remove(request)
            self._start(request, found)
            self._compute(request, min(rest, self._budget))

    def _found(self, request: Request) -> list[Block]:
        if not self.model.prefix_caching:
            return []
        size = self.model.block_size
        most = (request.known - 1) // size
        return self.pool.found([request.name(place, size) for place in range(most)])

    def _fits(self, request: Request, found: list[Block]) -> bool:
        blocks = math.ceil(request.known / self.model.block_size)
        lying = sum(block.holders == 0 for block in found)
        return blocks - len(found) + lying <= len(self.pool.free)

    def _start(self, request: Request, found: list[Block]) -> None:
        request.copies_from = self._copies_from(request, len(found))
        for block in found:
            self.pool.hold(block)
        request.blocks = list(found)
        request.computed = len(found) * self.model.block_size
        request.from_start = request.known
        if request.cached is None:
            request.cached = request.computed
        self._running.append(request)

    def _compute(self, request: Request, tokens: int) -> None:
        size = self.model.block_size
        for _ in range(self._needs(request, tokens)):
            request.blocks.append(self.pool.take())
        for place in range(
            request.computed // size, (request.computed + tokens) // size
        ):
            request.blocks[place].complete = True
            if self.model.prefix_caching and place < request.copies_from:
                self.pool.publish(request.blocks[place], request.name(place, size))
        self._step.append((request, tokens))

    def _copies_from(self, request: Request, found: int) -> float:
        """The first block that is its own copy; inf = none will be."""
        size, before = self.model.block_size, None
        for place in range(found, max(found, request.named // size) + 1):
            chain = request.chain((place + 1) * size)
            name = request.name(place, size)
            if chain != before and (
                name in self.pool.findable or self._extended(chain)
            ):
                return place
            before = chain
        return math.inf

    def _extended(self, chain: Chain) -> bool:
        """Whether one that runs will have more blocks of a chain to be found."""
        size = self.model.block_size
        for other in self._running:
            done = sum(block.complete for block in other.blocks)
            most = min(other.copies_from, max(done, other.named // size) + 1)
            ahead = range(done, int(most))
            if chain in [other.chain((place + 1) * size) for place in ahead]:
                return True
        return False


def _prefills(request: Request) -> bool:
    """Whether it computes its prompt, or computes again what it had given."""
    return request.computed < request.from_start
