"""What a task is charged with, while it lives and before it begins."""

from admitperf.policies.parts.ledger.history import History


class Needs:
    """What a task is charged with while it lives.

    Args:
        kv: tokens of the KV cache: its context, and its growth within the horizon.
        slots: requests it has running, on average.
        prefill: prompt tokens a second that it makes prefill compute.
        since_ns: since when it has no open call, which makes it count less; None = it
            has one.

    Attributes:
        all: tokens, slots and prompt tokens a second.
        first, fresh: prompt tokens that are computed of its first prompt and of a later
            one.
        since_ns: as given.
    """

    __slots__ = ("all", "first", "fresh", "since_ns")

    def __init__(
        self, kv: float, slots: float, prefill: float, since_ns: int | None = None
    ) -> None:
        self.all = kv, slots, prefill
        self.first = self.fresh = 0.0
        self.since_ns = since_ns

    def to_finish(self, calls: float) -> tuple[float, float, float]:
        """What so many calls take: tokens and slots, by calls, and prompt tokens."""
        kv, slots, _ = self.all
        return calls * kv, calls * slots, self.first + calls * self.fresh

    @classmethod
    def once(cls, tokens: int | None) -> "Needs":
        """What one request needs that belongs to no task."""
        return cls(kv=float(tokens or 0), slots=1.0, prefill=0.0)

    @classmethod
    def begun(cls, history: History, tokens: float, growth: float) -> "Needs":
        """What a task needs that begins.

        Args:
            history: of its class.
            tokens: of its first prompt, but for those that all prompts begin with.
            growth: tokens by which its prompts are expected to grow a call.
        """
        fresh, turn_s = history.computes, history.quick_s + history.pause_s
        made = cls(
            kv=tokens + history.ahead(0) * growth,
            slots=history.duty,
            prefill=fresh / turn_s + tokens / history.lasts_s,
        )
        made.first, made.fresh = tokens, fresh
        return made
