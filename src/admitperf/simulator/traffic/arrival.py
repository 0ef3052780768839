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
        logical_id: the call this is an attempt at; None = it is the call itself.
        attempt: 0 for the first.
        slo_class: name of the class its caller belongs to; None = of none.
        session_final: the session says this is its last call.
        deadline_s: seconds from `at_s` within which its caller wants a first token;
            None = it says nothing.
        parent_session: the session that its session was begun by; None = by none.
        hangs_up: its caller closes after the last of `output_tokens`, which is then no
            full answer.
        patience_s: its caller closes when no first token came so long after `at_s`;
            None = it waits.
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
    logical_id: str | None = None
    attempt: int = 0
    slo_class: str | None = None
    session_final: bool = False
    deadline_s: float | None = None
    parent_session: str | None = None
    hangs_up: bool = False
    patience_s: float | None = None

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
            facts["priority"] = -self.priority  # of a fact the higher matters more
        self._add_call(facts)
        return facts

    def _add_call(self, facts: Facts) -> None:
        if self.logical_id is not None:
            facts["logical_id"] = self.logical_id
        if self.attempt:
            facts["attempt"] = self.attempt
        if self.slo_class is not None:
            facts["slo_class"] = self.slo_class
        if self.session_final:
            facts["session_final"] = True
        if self.deadline_s is not None:
            facts["deadline_s"] = self.deadline_s
        if self.parent_session is not None:
            facts["parent_session"] = self.parent_session
