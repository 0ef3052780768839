"""All requests that decode, as sums: a step costs the same however many they are."""

import heapq

from admitperf.simulator.engine.job import Job


class Decoding:
    """Requests that give a token a step; steps are counted over the engine's life.

    Args:
        block_size: tokens a block of the cache holds.

    Attributes:
        count: how many they are.
    """

    def __init__(self, block_size: int) -> None:
        self.count = 0
        self._size = block_size
        self._base = 0  # sum over them
        self._phases = [0] * block_size  # how many have base % size = place
        self._ends: list[tuple[int, int, Job]] = []  # a heap; who left stays in it
        self._inside: set[int] = set()  # turns

    def add(self, job: Job, step: int) -> None:
        """A request has its first token after this step; its turn is its own."""
        job.base = base = job.known - step
        job.since = step
        self.count += 1
        self._base += base
        self._phases[base % self._size] += 1
        self._inside.add(job.turn)
        heapq.heappush(self._ends, (step + job.left, job.turn, job))

    def remove(self, job: Job) -> None:
        """A request decodes no more."""
        base = job.base or 0
        self.count -= 1
        self._base -= base
        self._phases[base % self._size] -= 1
        self._inside.remove(job.turn)

    def ended(self, step: int) -> list[Job]:
        """Takes out those with their last token after this step, in their order."""
        ended = []
        while self.next_end() == step:
            job = heapq.heappop(self._ends)[2]
            self.remove(job)
            ended.append(job)
        return ended

    def next_end(self) -> int:
        """The step after which the next one has its last token; -1 = none will."""
        ends = self._ends
        while ends and ends[0][1] not in self._inside:
            heapq.heappop(ends)
        return ends[0][0] if ends else -1

    def tokens(self, step: int) -> int:
        """Tokens they have in the cache after so many steps."""
        return self._base + self.count * step

    def blocks(self, step: int) -> int:
        """Blocks the step after so many steps takes for them."""
        return self._phases[-step % self._size]

    def blocks_between(self, step: int, until: int) -> int:
        """Blocks that the steps after `step` steps up to `until` take together."""
        size, phases = self._size, self._phases
        cycles, rest = divmod(until - step, size)
        taken = sum(phases[-(step + more) % size] for more in range(rest))
        return cycles * self.count + taken

    def steps_with(self, free: int, step: int, most: int) -> int:
        """Steps after `step` steps for which so many blocks do, up to `most`."""
        if self.count * -(-most // self._size) <= free:
            return most
        cycles = free // self.count
        steps, free = cycles * self._size, free - cycles * self.count
        while steps < most and self.blocks(step + steps) <= free:
            free -= self.blocks(step + steps)
            steps += 1
        return min(steps, most)
