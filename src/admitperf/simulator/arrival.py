"""One request on its way to the engine."""

from dataclasses import dataclass

from admitperf.core.facts import Facts


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """What is asked for and when, and what only the engine will find out.

    Attributes:
        id: the host's id for it.
        at_s: when it arrives, in seconds from the start.
        input_tokens: prompt.
        max_output_tokens: the bound its caller set.
        output_tokens: how long the answer will be, at least 1; no host knows it.
        cached_tokens: of the prompt, in the engine's prefix cache when it comes; no
            host knows it before.
        slowness: factor on its times in the engine, 1.0 = as the model says; no host
            knows it. It belongs to the request, so that every policy meets the same.
    """

    id: str
    at_s: float
    input_tokens: int
    max_output_tokens: int
    output_tokens: int
    cached_tokens: int = 0
    slowness: float = 1.0

    def facts(self) -> Facts:
        """What a host can know before the answer, for the call of a policy."""
        return {
            "input_tokens": self.input_tokens,
            "max_output_tokens": self.max_output_tokens,
            "stream": True,
            "late_ms": 0.0,  # virtual time is never late
        }
