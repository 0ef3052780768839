"""A request inside the engine."""

from math import isnan, nan

from admitperf.simulator.engine.blocks import Claim
from admitperf.simulator.engine.events import Gone
from admitperf.simulator.traffic.arrival import Arrival


class Job:
    """A request inside the engine, and how far it is.

    Attributes:
        arrival: what was asked.
        rank: priority, arrival and id: who waits first where priority counts.
        claim: what it has to do with the KV cache.
        submitted_s: when it was.
        due_s: when it reaches the queue.
        turn: its last start, counted over the engine's life.
        known: tokens of its prompt and those it had given at its last start.
        stored: of them in the cache, while they are being computed.
        base: while it decodes, it has stored base + steps of the engine's life.
        since: step after which it had its first token since its last start.
        given: tokens it had given at its last start, or just after.
        first_s, last_s, began_s: time of its first token, its last before it was
            thrown out, and its first start.
        gap_s: longest time between two tokens before its last start.
        preempted: how often it was thrown out of memory.
        cached_tokens: of its prompt, found in the cache at its first start.
    """

    __slots__ = (
        "arrival",
        "base",
        "began_s",
        "cached_tokens",
        "claim",
        "due_s",
        "first_s",
        "gap_s",
        "given",
        "known",
        "last_s",
        "preempted",
        "rank",
        "since",
        "stored",
        "submitted_s",
        "turn",
    )

    claim: Claim

    def __init__(self, arrival: Arrival, submitted_s: float, due_s: float) -> None:
        self.arrival = arrival
        self.rank = (arrival.priority, submitted_s, arrival.id)
        self.submitted_s = submitted_s
        self.due_s = due_s
        self.turn = 0
        self.known = arrival.input_tokens
        self.stored = 0
        self.base: int | None = None
        self.since = 0
        self.given = 0
        self.first_s = self.last_s = self.began_s = nan
        self.gap_s = 0.0
        self.preempted = 0
        self.cached_tokens = 0

    def __lt__(self, other: "Job") -> bool:
        return self.rank < other.rank

    @property
    def left(self) -> int:
        """Tokens it has still to give."""
        return self.arrival.output_tokens - self.given

    def stored_after(self, steps: int) -> int:
        """Tokens it has in the cache after so many steps of the engine's life."""
        return self.stored if self.base is None else self.base + steps

    def given_after(self, steps: int) -> int:
        """Tokens it has given after so many steps of the engine's life."""
        if self.base is None:
            return self.given
        return self.base + steps - self.arrival.input_tokens + 1

    def had(self, steps: int) -> Gone:
        """What it has after so many steps of the engine's life."""
        begun, answering = not isnan(self.began_s), not isnan(self.first_s)
        return Gone(
            self.given_after(steps),
            (self.first_s - self.submitted_s) * 1e3 if answering else None,
            self.cached_tokens if begun else None,
        )
