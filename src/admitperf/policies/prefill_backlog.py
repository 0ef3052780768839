"""Bound the prompt tokens that wait for prefill: the time to first token, in tokens."""

from typing import Annotated

from admitperf.core.decision import Decision
from admitperf.core.errors import ConfigError
from admitperf.core.param import Param
from admitperf.core.policy import Policy
from admitperf.core.signals import IN_FLIGHT
from admitperf.core.snapshot import Snapshot
from admitperf.policies.parts.stuck import Stuck

UNMEASURED_TOKENS = 10_000.0
"""Prompt tokens that may wait while nobody knows how fast they are worked off. Origin:
NVIDIA Dynamo's example of a busy worker, 10,000 active prefill tokens (research notes,
3A)."""


class PrefillBacklog(Policy):
    """Refuses while too many prompt tokens wait for their first token.

    The newcomer's own uncached tokens count with those ahead of it. The bound is what
    is worked off within `target_s`, or `max_tokens`, or the smaller of both. With
    nothing ahead any request passes: one that is longer than the bound would never be
    served otherwise. While nobody is let in, a probe is now and then: the prompt that
    is ahead may be stuck, and shows it by being overtaken.

    Raises:
        ConfigError: both bounds are None.
    """

    name = "prefill_backlog"
    slo_awareness = "latency"
    signal_quantity = "wait_estimate"
    metadata_assumed = ("input_tokens", "cached_tokens")
    refuses_with = ("prefill_backlog",)
    requires = (IN_FLIGHT, "input_tokens", "cached_tokens")

    target_s: Annotated[
        float | None,
        Param(
            "seconds in which the backlog must be worked off; None = no such bound",
            above=0.0,
            high=3600.0,
            origin="plain choice, to be set: the time to first token that is promised",
        ),
    ] = 2.0
    max_tokens: Annotated[
        int | None,
        Param(
            "prompt tokens that may wait, with the newcomer's; None = no such bound",
            low=1,
            high=1e12,
            per_process=True,
            origin="off: target_s says the same for an engine of any speed",
        ),
    ] = None

    def __init__(self, **given: object) -> None:
        super().__init__(**given)
        if self.target_s is None and self.max_tokens is None:
            known = ", ".join(self.declared())
            raise ConfigError(f"policy {self.name}", [f"give at least one of {known}"])
        self._stuck = Stuck(0.0)

    def decide(self, metrics: Snapshot) -> Decision:
        """Compare the backlog, this request in it, with the bound."""
        rate = metrics.prefill_rate
        own = metrics.request.own_prefill_tokens or 0
        backlog = (metrics.prefill_tokens or 0.0) + own
        bound = max(self._bound(rate), own)
        over = metrics.gate("prefill_backlog_tokens", backlog, bound, ">")
        if not over or self._stuck.probe_is_due(metrics):
            return self.admit()
        wait_ms = 1000 * (backlog - bound) / rate if rate else None
        return self.defer("prefill_backlog", estimate_ms=wait_ms)

    def decided(self, metrics: Snapshot, d: Decision) -> None:
        """Note when one was let in."""
        self._stuck.decided(metrics, d)

    def _bound(self, rate: float | None) -> float:
        """Tokens that may wait; without a rate a number that suits most engines."""
        most = float("inf") if self.max_tokens is None else float(self.max_tokens)
        if self.target_s is None:
            return most
        return min(most, self.target_s * rate if rate else UNMEASURED_TOKENS)
