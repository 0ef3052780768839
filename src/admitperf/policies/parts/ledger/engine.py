"""What the engines have: KV cache, slots, prefill, and how far the sums are trusted."""

from admitperf.core.outcome import Outcome
from admitperf.core.signals import (
    KV_CAPACITY_TOKENS,
    KV_PRESSURE,
    PREEMPTIONS,
    QUEUE_DEPTH,
    RUNNING,
)
from admitperf.core.snapshot import Snapshot
from admitperf.policies.parts.replicas import REPLICAS_MOST
from admitperf.policies.parts.settled import prompt_tokens

UNHEARD_S = 60.0
"""Seconds after which a replica that was not read again no longer counts. Plain choice:
hundreds of readings."""

TO_SPARE = 0.9
"""KV cache in use, as a fraction, up to which a queue says that slots are short. Plain
choice: over it the cache may be what is."""

FRESH_LEAST = 512
"""Prompt tokens that tell how fast prefill is; a shorter prompt tells how long a step
takes. Plain choice, a quarter of what vLLM computes in a step."""

SOONEST_MS = 1.0
"""A first token that comes sooner was not measured. Plain choice."""

FORGETS = 0.98
"""What is left of the fastest prefill seen with each slower one, so that an engine may
become slow. Plain choice: after fifty prompts of half its speed it is believed."""

RETAINED = 0.7
"""Part of former contexts that has to be cached for all to be well. Origin: research
notes, 7.2."""

TRUST_LEAST, TRUST_FALLS, TRUST_RISES = 0.5, 0.95, 0.01
"""How far the trust falls, by what factor a bad second lowers it, and what a good one
adds. Origin: research notes, 7.2: recovery takes longer on purpose."""

TRUST_AT_FIRST = 0.6
"""Of a process that begins before an engine at work. Origin: research notes, 7.4."""

ADOPT_S = 30.0
"""Seconds from then in which tasks begin as if all were trusted: most of them began
before. Plain choice: 95 of 100 pauses of an agent are shorter."""

DRIFT, DRIFT_ROUNDS, DRIFT_EVERY_S = 1.2, 3, 10.0
"""Times the ledger's open contexts that are measured in use, for so many rounds so many
seconds apart, before the measure is believed. Origin: research notes, 7.4."""


class _Replica:
    """One replica as it was read last.

    Attributes:
        tokens, used: of its KV cache: all, and those in use.
        slots: most that ran while others waited with memory to spare; 0 = never seen.
    """

    __slots__ = ("seen_s", "slots", "tokens", "used")

    def __init__(self) -> None:
        self.tokens = self.used = self.slots = self.seen_s = 0.0


class Engine:
    """Every replica together.

    Args:
        slots: requests that one runs at once; None = learnt from its queue.

    Attributes:
        trust: what part of the cache is handed out, from 0.5 to 1.
        foreign: tokens in use that the ledger knows nothing of, when that has gone on
            for some rounds: other hosts' requests, or books that are wrong.
    """

    def __init__(self, slots: int | None) -> None:
        self._slots = slots
        self._replicas: dict[str | None, _Replica] = {}
        self._prefill = 0.0
        self._next_s: float | None = None
        self._preempted = False
        self._adopts_until_s = self._compared_s = 0.0
        self._drifts = 0
        self.foreign = 0.0
        self.trust = 1.0

    @property
    def tokens(self) -> float:
        """Tokens of all KV caches."""
        return sum(one.tokens for one in self._replicas.values())

    @property
    def largest(self) -> float:
        """Tokens of the largest of them; 0.0 while none was read."""
        return max((one.tokens for one in self._replicas.values()), default=0.0)

    def trusted(self, now_s: float) -> float:
        """What part of the cache is handed out: all of it to who was there before us.

        Args:
            now_s: the present, on the policy's clock.
        """
        return 1.0 if now_s < self._adopts_until_s else self.trust

    @property
    def slots(self) -> float | None:
        """Requests that run at once; None while no queue has shown it."""
        if self._slots is not None:
            return float(self._slots * max(1, len(self._replicas)))
        known = [one.slots for one in self._replicas.values()]
        return sum(known) if known and all(known) else None

    @property
    def prefill(self) -> float | None:
        """Prompt tokens a second; None until a prompt has shown it."""
        return self._prefill * max(1, len(self._replicas)) or None

    def observe(
        self, metrics: Snapshot, outcome: Outcome | None, kept: float | None
    ) -> None:
        """Takes a reading, or the end of a request.

        Args:
            metrics: at that time.
            outcome: of the request; None = a reading.
            kept: part of former contexts that was cached; None = not known.
        """
        if outcome is not None:
            self._time(outcome)
            return
        self._read(metrics)
        self._preempted = self._preempted or bool(metrics.read(PREEMPTIONS))
        if self._next_s is None:
            self._begin(metrics)
        if self._next_s is not None and metrics.now_s >= self._next_s:
            self._next_s = metrics.now_s + 1.0
            self._judge(bad=self._preempted or (kept is not None and kept < RETAINED))

    def compare(self, metrics: Snapshot, open_tokens: float, part: float) -> None:
        """Holds what is measured against the contexts of open calls, now and then.

        Args:
            metrics: with a reading.
            open_tokens: of the calls that the ledger knows.
            part: of what is measured that is this process's, from 0 to 1.
        """
        if metrics.now_s - self._compared_s < DRIFT_EVERY_S:
            return
        self._compared_s = metrics.now_s
        used = part * sum(one.used for one in self._replicas.values())
        self._drifts = self._drifts + 1 if used > DRIFT * open_tokens else 0
        drifted = self._drifts >= DRIFT_ROUNDS
        self.foreign = used - open_tokens if drifted else 0.0

    def _begin(self, metrics: Snapshot) -> None:
        """Before an engine at work: who began is adopted, and trust has to be won."""
        self._next_s = metrics.now_s + 1.0
        if metrics.read(RUNNING):
            self.trust = TRUST_AT_FIRST
            self._adopts_until_s = metrics.now_s + ADOPT_S

    def _judge(self, *, bad: bool) -> None:
        self._preempted = False
        if bad:
            self.trust = max(TRUST_LEAST, TRUST_FALLS * self.trust)
        else:
            self.trust = min(1.0, TRUST_RISES + self.trust)

    def _read(self, metrics: Snapshot) -> None:
        tokens, pressure = metrics.read(KV_CAPACITY_TOKENS), metrics.read(KV_PRESSURE)
        if tokens is None:
            return
        full = len(self._replicas) >= REPLICAS_MOST
        if full and metrics.replica not in self._replicas:
            self._replicas.clear()  # all are read anew
        one = self._replicas.setdefault(metrics.replica, _Replica())
        one.tokens, one.used = float(tokens), float(tokens) * float(pressure or 0.0)
        one.seen_s = metrics.now_s
        running, waiting = metrics.read(RUNNING), metrics.read(QUEUE_DEPTH)
        spare = pressure is None or pressure < TO_SPARE
        if running and (running > one.slots > 0 or (waiting and spare)):
            one.slots = max(one.slots, float(running))
        self._forget(metrics.now_s)

    def _forget(self, now_s: float) -> None:
        for name, one in tuple(self._replicas.items()):
            if now_s - one.seen_s > UNHEARD_S:
                del self._replicas[name]

    def _time(self, outcome: Outcome) -> None:
        """How fast a prompt was computed; one that waited was no slower than that."""
        fresh, ttft_ms = prompt_tokens(outcome, cached=False), outcome.ttft_ms
        known = outcome.cached_tokens is not None
        if not known or fresh is None or fresh < FRESH_LEAST:
            return
        if ttft_ms is None or ttft_ms < SOONEST_MS:
            return
        speed = 1000 * fresh / ttft_ms
        self._prefill = max(speed, FORGETS * self._prefill)
