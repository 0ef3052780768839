"""When would a request have its first token, and how long would its answer take?

From what is measured: the prompt tokens ahead of it and how fast they are worked off,
how long answers are, and how long a token of an answer takes.
"""

from admitperf.core.outcome import Outcome
from admitperf.core.snapshot import Snapshot

SMOOTHING = 0.2
"""What one answer weighs in the seconds per output token. Plain choice: ten answers
make nine tenths of it."""


def first_token_s(metrics: Snapshot) -> float | None:
    """Seconds until a request's first token.

    The prompt tokens ahead and its own, at the rate at which prompts are worked off.
    None while that is not measured, or when its own are not known. For `decide`: in
    `decided` a request that was started is itself among those ahead.
    """
    ahead, rate = metrics.prefill_tokens, metrics.prefill_rate
    own = metrics.request.own_prefill_tokens
    if ahead is None or own is None or not rate:
        return None
    return (ahead + own) / rate


def held_tokens(metrics: Snapshot) -> int | None:
    """Prompt tokens that this request holds of the KV cache, from its start to its end.

    All of them, cached or not: vLLM counts blocks that nobody uses as free although
    their content is kept, and as used once a request takes them up. None when the
    length is not known.
    """
    return metrics.request.input_tokens


class Forecast:
    """How long an answer would take, from how long earlier ones took.

    It keeps one number, whatever was seen. A forked child goes on with a copy of it.
    """

    def __init__(self) -> None:
        self._token_s: float | None = None

    @property
    def token_s(self) -> float | None:
        """Seconds per output token of one answer; None until an answer told it."""
        return self._token_s

    def observe(self, metrics: Snapshot, outcome: Outcome | None) -> None:  # noqa: ARG002  the hook's arguments, as they come
        """Takes what a policy's own `observe` gets; None is a reading and says nothing.

        Learns from answers that ended properly and told the time of their first token:
        an answer that was not streamed says nothing about its parts.
        """
        took_s = None if outcome is None else _seconds_per_token(outcome)
        if took_s is None:
            return
        known = self._token_s
        self._token_s = (
            took_s if known is None else known + SMOOTHING * (took_s - known)
        )

    def answer_s(self, metrics: Snapshot, q: float = 0.5) -> float | None:
        """Seconds from its first token to its end; None while that is not measured.

        Args:
            q: the quantile of the answer's length, from 0 to 1.
        """
        tokens = metrics.output_tokens(q)
        if tokens is None or self._token_s is None:
            return None
        return self._token_s * tokens / metrics.request.n


def _seconds_per_token(outcome: Outcome) -> float | None:
    """Of one answer, of the `n` that were made side by side."""
    first_ms, end_ms, tokens = outcome.ttft_ms, outcome.e2e_ms, outcome.output_tokens
    if not outcome.ok or first_ms is None or end_ms is None or tokens is None:
        return None
    each = tokens / (outcome.request.n if outcome.request else 1)
    if each <= 1 or end_ms < first_ms:
        return None
    return (end_ms - first_ms) / 1000 / (each - 1)
