"""What a request that ended cost in the end."""

from admitperf.core.outcome import Outcome

_LEFT = "client_closed"
"""How a gateway calls an end that its caller made: no reason to give anything back."""


def never_started(outcome: Outcome) -> bool:
    """Whether the engine failed it, or refused it, before anything came of it."""
    came = outcome.ttft_ms is not None or bool(outcome.output_tokens)
    return not (outcome.ok or came or outcome.error == _LEFT)


def prompt_tokens(outcome: Outcome, *, cached: bool) -> int | None:
    """Tokens of its prompt: the engine's count, else its caller's; None = not known.

    Args:
        cached: count those the engine had; without, those it had to compute.
    """
    asked = outcome.request
    known = outcome.input_tokens
    if known is None and asked is not None:
        known = asked.input_tokens
    had = outcome.cached_tokens
    if had is None and asked is not None:
        had = asked.cached_tokens
    return known if cached or known is None else max(0, known - (had or 0))
