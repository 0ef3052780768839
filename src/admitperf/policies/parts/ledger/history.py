"""What tasks of one class were like: how long, how large, how often they call."""

from math import ceil

from admitperf.core.recent import Recent

SERVICE_S = 5.7
GAP_S = 0.3
GROWTH = 900.0
"""Seconds of a call, seconds between two, and tokens from one prompt to the next, while
nothing was seen: medians of TraceLab (arXiv 2606.30560)."""

LEARNT_AFTER = 5
"""Values after which a median is taken. Plain choice: fewer say little."""

HORIZON_S = 60.0
HORIZON_CALLS = 10
"""How far ahead a task's growth is reserved, in seconds and calls. Origin: research
notes, 7.1."""

SOON_Q = 0.2
"""Of the seconds of calls, the part that hardly waited. Plain choice."""


class History:
    """What calls and whole tasks of a class were like lately.

    Attributes:
        service_s: seconds from a call's admission to its end.
        gap_s: seconds from a call's end to the next.
        growth: tokens from one prompt of a task to its next.
        fresh: tokens that prefill had to compute of a later prompt.
        calls: calls of tasks that came to their end by themselves.
        lasted_s: seconds of these, from their admission.
        tools: whether answers were seen that end in a tool call, so that one that does
            not ends the task.
    """

    __slots__ = (
        "calls",
        "fresh",
        "gap_s",
        "growth",
        "lasted_s",
        "service_s",
        "tools",
    )

    def __init__(self) -> None:
        self.service_s, self.gap_s, self.growth = Recent(), Recent(), Recent()
        self.fresh, self.calls, self.lasted_s = Recent(), Recent(), Recent()
        self.tools = False

    def learn(self, calls: int, lasted_s: float) -> None:
        """Takes a task that came to its end."""
        self.calls.add(calls)
        self.lasted_s.add(lasted_s)

    @property
    def call_s(self) -> float:
        """Seconds of a call, in the middle."""
        return _middle(self.service_s, SERVICE_S)

    @property
    def pause_s(self) -> float:
        """Seconds between two calls, in the middle."""
        return _middle(self.gap_s, GAP_S)

    @property
    def quick_s(self) -> float:
        """Seconds of a call that hardly waited: what a crowded engine hides."""
        quick = self.service_s.quantile(SOON_Q)
        return SERVICE_S if quick is None else quick

    @property
    def grows(self) -> float:
        """Tokens that a prompt is longer than the one before it, in the middle."""
        return _middle(self.growth, GROWTH)

    @property
    def computes(self) -> float:
        """Tokens that prefill computes of a later prompt, in the middle."""
        return _middle(self.fresh, GROWTH)

    @property
    def duty(self) -> float:
        """The part of its time in which a task has a call open, from 0 to 1."""
        return self.call_s / (self.call_s + self.pause_s)

    @property
    def lasts_s(self) -> float:
        """Seconds of a task, in the middle."""
        return max(1.0, _middle(self.lasted_s, HORIZON_S))

    def remaining(self, made: int) -> float:
        """Calls still to come of a task that has made some, in the middle.

        Of those that got so far; as many again when none did: the longer one has
        lasted the longer it will.
        """
        if len(self.calls) < LEARNT_AFTER:
            return float(HORIZON_CALLS)
        longer = self.calls.middle_above(made)
        return max(1.0, made if longer is None else longer - made)

    def ahead(self, made: int) -> float:
        """Of them, those within the horizon."""
        in_time = ceil(HORIZON_S / (self.call_s + self.pause_s))
        return min(self.remaining(made), HORIZON_CALLS, in_time)


def _middle(seen: Recent, prior: float) -> float:
    found = seen.quantile(0.5) if len(seen) >= LEARNT_AFTER else None
    return prior if found is None else found
