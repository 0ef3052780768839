"""What is asked, and what becomes of whoever has an answer or none."""

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import count, islice
from typing import Protocol

from admitperf.simulator.traffic.arrival import Arrival


class Traffic(Protocol):
    """Who asks, and what they ask next."""

    def first(self) -> Iterable[Arrival]:
        """What is asked whatever happens, in the order of time."""
        ...

    def after(self, arrival: Arrival, at_s: float, *, ok: bool) -> Iterable[Arrival]:
        """What an answer leads to, or a refusal; none of it before `at_s`."""
        ...


class OpenLoop:
    """Requests at times of their own: nobody waits for an answer to ask.

    Args:
        arrivals: in the order of time.
    """

    def __init__(self, arrivals: Sequence[Arrival]) -> None:
        self._arrivals = arrivals

    def first(self) -> Iterable[Arrival]:
        """All of them."""
        return self._arrivals

    def after(self, _arrival: Arrival, _at_s: float, *, ok: bool) -> Iterable[Arrival]:
        """Nothing: who is refused does not come again."""
        del ok
        return ()


class Coming:
    """What is still to come, in the order of time."""

    def __init__(self, arrivals: Iterable[Arrival]) -> None:
        self._number = count()
        self._heap = [(one.at_s, next(self._number), one) for one in arrivals]
        heapq.heapify(self._heap)

    @property
    def next_s(self) -> float:
        """When the next one comes; inf = none does."""
        return self._heap[0][0] if self._heap else float("inf")

    def add(self, arrivals: Iterable[Arrival]) -> None:
        """More of them."""
        for one in arrivals:
            heapq.heappush(self._heap, (one.at_s, next(self._number), one))

    def take(self) -> Arrival:
        """The next one; there is one."""
        return heapq.heappop(self._heap)[2]


class ClosedLoop:
    """Clients who ask again as soon as they have an answer, or a refusal.

    Args:
        asked: what they ask, one after the other; its times do not count.
        clients: how many there are.
        count: requests after which nobody asks.
    """

    def __init__(self, asked: Iterator[Arrival], clients: int, count: int) -> None:
        self._asked = islice(asked, count)
        self._clients = clients

    def first(self) -> Iterable[Arrival]:
        """One request of each client, at the start."""
        first = islice(self._asked, self._clients)
        return [replace(one, at_s=0.0) for one in first]

    def after(self, _arrival: Arrival, at_s: float, *, ok: bool) -> Iterable[Arrival]:
        """The same client's next one, at once."""
        del ok
        return [replace(one, at_s=at_s) for one in islice(self._asked, 1)]
