"""One task: a session of which it is known how it calls and what it needs."""

from admitperf.policies.parts.ledger.history import History
from admitperf.policies.parts.ledger.needs import Needs
from admitperf.policies.parts.live.session import Session

WEIGHT = 0.3
"""What a task's last call weighs in its averages. Origin: research notes, 7.1."""

TICK_S = 0.001
"""Least seconds that a call takes, on a clock that ticks coarsely. Plain choice."""


class Task(Session):
    """A session with averages of its own calls, seeded by those of its class.

    Args:
        root, now_ns: as of `Session`.
        history: of its class.
        tenant: whose it is; None = nobody said.
        before: it as it was known before; None = it was not.

    Attributes:
        history, tenant: as given.
        asked_ns: when its first call came.
        entered_ns: when that was admitted.
        prompt: tokens of its last prompt.
        first: tokens that prefill had to compute of its first prompt.
        growth, fresh: tokens a call, as averages: by how much prompts grow, and how
            many of one prefill has to compute.
        gap_s, service_s: seconds between calls and of a call, as averages.
        is_new: it was not known before.
        stays_s: seconds that it is kept after its last call's end; None = its lease.
        cut: it did not come to its end by itself, and teaches nothing about ends.
        needs: what it is charged with; for `Books` alone.
    """

    __slots__ = (
        "asked_ns",
        "cut",
        "entered_ns",
        "first",
        "fresh",
        "gap_s",
        "growth",
        "history",
        "is_new",
        "needs",
        "prompt",
        "service_s",
        "stays_s",
        "tenant",
    )

    def __init__(
        self,
        root: str,
        now_ns: int,
        history: History,
        tenant: str | None,
        before: "Task | None",
    ) -> None:
        super().__init__(root, now_ns)
        self.history, self.tenant = history, tenant
        self.asked_ns = self.entered_ns = now_ns
        self.prompt = 0
        self.first = 0.0
        self.growth = self.fresh = history.grows
        self.gap_s, self.service_s = history.pause_s, history.call_s
        if before is not None:
            self.growth, self.fresh = before.growth, before.fresh
            self.gap_s, self.service_s = before.gap_s, before.service_s
        self.stays_s: float | None = None
        self.is_new = before is None
        self.cut = False
        self.needs: Needs | None = None

    @property
    def duty(self) -> float:
        """The part of its time in which a call is open, from 0 to 1."""
        return self.service_s / (self.service_s + self.gap_s)

    @property
    def turns_per_s(self) -> float:
        """Calls a second, if the engine were not crowded."""
        return 1.0 / (min(self.service_s, self.history.quick_s) + self.gap_s)

    def paused(self, gap_s: float) -> None:
        """Takes the time from one call's end to the next call."""
        self.gap_s += WEIGHT * (gap_s - self.gap_s)
        self.history.gap_s.add(gap_s)

    def asks(self, prompt: int) -> None:
        """Takes the length of a prompt that follows another; some are shorter."""
        if self.prompt:
            grown = max(0, prompt - self.prompt)
            self.growth += WEIGHT * (grown - self.growth)
            self.history.growth.add(grown)
        self.prompt = prompt

    def served(self, took_s: float, fresh: float) -> None:
        """Takes a call that ended.

        Args:
            took_s: seconds from its admission to its end.
            fresh: tokens of its prompt that prefill computed.
        """
        took_s = max(took_s, TICK_S)
        self.service_s += WEIGHT * (took_s - self.service_s)
        self.history.service_s.add(took_s)
        if self.calls > 1:
            self.fresh += WEIGHT * (fresh - self.fresh)
            self.history.fresh.add(fresh)
        else:
            self.first = fresh

    def charged(self, shared: float) -> Needs:
        """What it needs now.

        Args:
            shared: tokens with which all prompts begin, which are held once.
        """
        history = self.history
        return Needs(
            kv=max(0.0, self.tokens - shared) + history.ahead(self.calls) * self.growth,
            slots=self.duty,
            prefill=self.fresh * self.turns_per_s + self.first / history.lasts_s,
            since_ns=None if self.busy else self.idle_ns,
        )

    def to_finish(self) -> tuple[float, float, float]:
        """What it takes to its end, as `Needs.to_finish`; what is done is done."""
        if self.needs is None:
            return 0.0, 0.0, 0.0
        calls = self.history.remaining(self.calls)
        kv, slots, _ = self.needs.all
        return calls * kv, calls * slots, calls * self.fresh
