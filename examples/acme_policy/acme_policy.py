"""A policy in a package of its own: each tenant may spend so many tokens a minute."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Annotated, ClassVar

from admitperf import Decision, Param, Policy, Reason, Snapshot
from admitperf.core.signals import INPUT_TOKENS, MAX_OUTPUT_TOKENS

MINUTE_S = 60.0


class AcmeBudget(Policy):
    """Admits a request while its tenant has tokens left in this minute.

    A request costs its input and all the output it asks for. Requests that name no
    tenant share one budget. A refused request costs nothing.
    """

    name = "acme_budget"
    unit = "tenant"
    slo_awareness = "fairness"
    signal_quantity = "rate"
    metadata_assumed = ("tenant", "input_tokens", "max_output_tokens")
    requires = (INPUT_TOKENS, MAX_OUTPUT_TOKENS, "tenant")
    reasons: ClassVar[Mapping[str, Reason]] = {
        "acme_budget": Reason(429, fault="caller", retry=True)
    }

    tokens_per_minute: Annotated[int, Param("budget of one tenant, tokens", low=1)] = (
        100_000
    )

    def __init__(self, **given: object) -> None:
        super().__init__(**given)
        self._minute = -1.0
        self._spent_tokens: defaultdict[str | None, float] = defaultdict(float)

    def decide(self, metrics: Snapshot) -> Decision:
        """Refuse what would go past the budget, until the minute is over."""
        minute, gone_s = divmod(metrics.now_s, MINUTE_S)
        if minute != self._minute:
            self._minute = minute
            self._spent_tokens.clear()
        tenant = metrics.request.tenant
        cost = INPUT_TOKENS.read(metrics) + MAX_OUTPUT_TOKENS.read(metrics)
        spent = self._spent_tokens[tenant] + cost
        if metrics.gate("acme_spent_tokens", spent, self.tokens_per_minute, ">"):
            wait_ms = (MINUTE_S - gone_s) * 1000
            return self.reject("acme_budget", retry_after_ms=wait_ms)
        self._spent_tokens[tenant] = spent
        return self.admit()
