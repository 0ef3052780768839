"""The engine's queue, in the order the engine takes from it."""

import heapq
from collections import deque

from admitperf.simulator.engine.job import Job


class FirstCome:
    """Who came first is first; who was started and is put back comes before all."""

    def __init__(self) -> None:
        self._jobs: deque[Job] = deque()

    def __len__(self) -> int:
        return len(self._jobs)

    def first(self) -> Job:
        """Who is next; there is one."""
        return self._jobs[0]

    def add(self, job: Job) -> None:
        """One that came."""
        self._jobs.append(job)

    def put_back(self, job: Job) -> None:
        """One that was started, and has to wait again."""
        self._jobs.appendleft(job)

    def take(self) -> Job:
        """Takes out who is next."""
        return self._jobs.popleft()

    def remove(self, job: Job) -> None:
        """Takes out one that may stand anywhere in it."""
        self._jobs.remove(job)


class ByRank:
    """The lowest rank is first, and who is put back has the rank it had."""

    def __init__(self) -> None:
        self._jobs: list[Job] = []

    def __len__(self) -> int:
        return len(self._jobs)

    def first(self) -> Job:
        """Who is next; there is one."""
        return self._jobs[0]

    def add(self, job: Job) -> None:
        """One that came."""
        heapq.heappush(self._jobs, job)

    put_back = add

    def take(self) -> Job:
        """Takes out who is next."""
        return heapq.heappop(self._jobs)

    def remove(self, job: Job) -> None:
        """Takes out one that may stand anywhere in it."""
        self._jobs.remove(job)
        heapq.heapify(self._jobs)
