"""How long requests wait before their prefill, seen while they wait."""

from math import inf

from admitperf.core.outcome import Outcome
from admitperf.core.signals import OLDEST_WAIT_S
from admitperf.core.snapshot import Snapshot
from admitperf.policies.parts.settled import prompt_tokens

KEPT_S = 300.0
"""Seconds for which the fastest prefill is remembered, and as long again. Plain choice:
a controller empties the queue many times in it, so that one prefill was unhindered."""

_SMOOTHING = 0.05


class Waits:
    """The wait of who has waited longest, less the prefill it would have had anyway.

    A wait is known as soon as it is long, and not when its answer has ended: the ledger
    knows the age of the oldest request without a first token. What prefill takes of it
    is the mean prompt over the fastest prefill seen lately, and nothing until an
    outcome told both.
    """

    def __init__(self) -> None:
        self._tokens: float | None = None
        self._fastest = [0.0, 0.0]  # tokens a second: lately, and before
        self._begun_s = 0.0
        self._ended_from_s = -inf  # when the youngest that has ended began

    @property
    def prefill_s(self) -> float:
        """Seconds that a prompt of the usual length takes on an idle engine."""
        fastest = max(self._fastest)
        return self._tokens / fastest if self._tokens and fastest else 0.0

    def sample_s(self, metrics: Snapshot, outcome: Outcome | None) -> float | None:
        """Learns from an end, if there is one, and looks at who waits.

        Returns:
            Seconds, 0.0 when nobody waits longer than prefill takes. None = not known.
            Where the oldest was overtaken it is what the one waited that has just
            ended, and None at a look.
        """
        if outcome is not None:
            self._learn(metrics.now_s, outcome)
        age_s = metrics.read(OLDEST_WAIT_S)
        if age_s is not None and self.overtaken(metrics):
            first_ms = None if outcome is None else outcome.ttft_ms
            age_s = None if first_ms is None else first_ms / 1000
        return None if age_s is None else max(0.0, float(age_s) - self.prefill_s)

    def overtaken(self, metrics: Snapshot) -> bool:
        """Whether one that began after the oldest has ended.

        Then the oldest waits for something else than its turn.
        """
        age_s = metrics.read(OLDEST_WAIT_S)
        return bool(age_s) and metrics.now_s - float(age_s or 0) < self._ended_from_s

    def _learn(self, now_s: float, outcome: Outcome) -> None:
        if outcome.ok and outcome.e2e_ms is not None:
            begun_s = now_s - outcome.e2e_ms / 1000
            self._ended_from_s = max(self._ended_from_s, begun_s)
        tokens = prompt_tokens(outcome, cached=False)
        if not tokens or not outcome.ttft_ms:
            return
        known = self._tokens or tokens
        self._tokens = known + _SMOOTHING * (tokens - known)
        if now_s - self._begun_s > KEPT_S:
            self._fastest, self._begun_s = [0.0, self._fastest[0]], now_s
        self._fastest[0] = max(self._fastest[0], 1000 * tokens / outcome.ttft_ms)
