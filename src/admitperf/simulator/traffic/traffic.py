"""What is asked, and what becomes of whoever has an answer or none."""

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count, islice
from typing import Protocol

from admitperf.simulator.engine.events import End
from admitperf.simulator.traffic.arrival import Arrival


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a caller got for one attempt.

    Attributes:
        ok: a whole answer, or as much of it as the caller had planned to take.
        refused: by the policy.
        status: the HTTP status the caller saw; 0 = no answer at all.
        reason: the policy's, for a refusal; None = it was none.
        retry_after_ms: what the refusal asked to wait; None = it did not say.
        should_retry: False = the refusal says that to come again is no use.
        ttft_ms: from the attempt's arrival to its first token; None = it had none.
        max_gap_ms: longest time between two tokens; None = it had fewer than two.
        e2e_ms: from the attempt's arrival to its last token; None = it had no end.
        output_tokens: that the caller received.
        cached_tokens: of its prompt, found in the prefix cache; None = not known.
        error: what went wrong, in words; None = nothing did.
        hung_up: the caller closed it, as planned or out of patience.
    """

    ok: bool
    refused: bool = False
    status: int = 200
    reason: str | None = None
    retry_after_ms: float | None = None
    should_retry: bool = True
    ttft_ms: float | None = None
    max_gap_ms: float | None = None
    e2e_ms: float | None = None
    output_tokens: int = 0
    cached_tokens: int | None = None
    error: str | None = None
    hung_up: bool = False


BUSY = Answer(ok=False, status=503, error="503, the engine's own limit")
"""What the engine's own limit refused, at its door or in its queue."""


def answer_to(end: End) -> Answer:
    """What a caller got whose request has ended; times to a thousandth of a ms."""
    gap_ms = end.max_gap_ms
    return Answer(
        ok=True,
        ttft_ms=round(end.ttft_ms, 3),
        max_gap_ms=None if gap_ms is None else round(gap_ms, 3),
        e2e_ms=round(end.e2e_ms, 3),
        output_tokens=end.arrival.output_tokens,
        cached_tokens=end.cached_tokens,
        hung_up=end.arrival.hangs_up,
    )


class Traffic(Protocol):
    """Who asks, and what they ask next."""

    def first(self) -> Iterable[Arrival]:
        """What is asked whatever happens, in the order of time."""
        ...

    def after(self, arrival: Arrival, at_s: float, answer: Answer) -> Iterable[Arrival]:
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

    def after(
        self, _arrival: Arrival, _at_s: float, _answer: Answer
    ) -> Iterable[Arrival]:
        """Nothing: who is refused does not come again."""
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

    def after(
        self, _arrival: Arrival, at_s: float, _answer: Answer
    ) -> Iterable[Arrival]:
        """The same client's next one, at once."""
        return [replace(one, at_s=at_s) for one in islice(self._asked, 1)]
