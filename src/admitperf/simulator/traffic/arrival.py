"""One request on its way to the engine."""

from dataclasses import dataclass

from admitperf.core.facts import Facts

Prefix = tuple[tuple[str, int], ...]
"""The beginning of a prompt by what it repeats: (name of a chain, tokens), in order.

A chain is text that only grows: two prompts that name the same chains to the same
lengths begin alike. The last one named goes on through the rest of the prompt and the
answer, as a session's does; a request that shares a beginning and then goes its own
way names its own part too: `(("system", 2000), ("request-17", 300))`.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """What is asked for and when, and what only the engine will find out.

    Attributes:
        id: the host's id for it.
        at_s: when it arrives, in seconds from the start.
        input_tokens: prompt.
        max_output_tokens: the bound its caller set.
        output_tokens: how long the answer will be, at least 1; no host knows it.
        prefix: what of it others repeat; empty = all of it is its own.
        session: the agent's session; None = it belongs to none.
        tenant: who pays; None = nobody is told apart.
        priority: for an engine that sorts by it, the lower the sooner.
    """

    id: str
    at_s: float
    input_tokens: int
    max_output_tokens: int
    output_tokens: int
    prefix: Prefix = ()
    session: str | None = None
    tenant: str | None = None
    priority: int = 0

    def facts(self) -> Facts:
        """What a host can know before the answer, for the call of a policy."""
        facts: Facts = {
            "input_tokens": self.input_tokens,
            "max_output_tokens": self.max_output_tokens,
            "stream": True,
            "late_ms": 0.0,  # virtual time is never late
        }
        if self.session is not None:
            facts["session"] = self.session
        if self.tenant is not None:
            facts["tenant"] = self.tenant
        if self.priority:
            facts["priority"] = self.priority
        return facts
