"""A token bucket: so much a second, and a burst; requests, or what they cost."""

import math
from collections import OrderedDict
from itertools import islice
from typing import Annotated, cast

from admitperf.core.charge import Charge
from admitperf.core.decision import Decision
from admitperf.core.errors import ConfigError
from admitperf.core.outcome import Outcome
from admitperf.core.param import Param
from admitperf.core.policy import Policy
from admitperf.core.request import Request
from admitperf.core.signal import Signal
from admitperf.core.snapshot import Snapshot
from admitperf.core.verdict import Verdict
from admitperf.policies.parts.tenancy.settled import never_started, prompt_tokens

BUCKETS_MOST = 10_000
"""Tenants with a bucket of their own. Plain choice: about 2 MB. Tenants met while the
table is full share the bucket of the untagged, so that inventing names wins nothing."""

_LOOKED_AT = 2
"""Buckets looked at for idleness per decision: one more than a decision can add."""

_TENANT: tuple[Signal | str, ...] = ("tenant",)
_SIZES = ("input_tokens", "cached_tokens", "max_output_tokens")


class RateLimit(Policy):
    """Refuses a request when its bucket holds less than it costs.

    A bucket is stored as the time at which it will be full again, in whole
    nanoseconds of the monotonic clock: tokens cannot go negative, nothing drifts, and
    a bucket that is full is one that need not be kept. What is admitted is charged when
    the answer is final, and settled when the request ends. The state belongs to one
    process; a forked child goes on with a copy.

    Raises:
        ConfigError: tokens are counted by the numbers that are meant for requests.
    """

    name = "rate_limit"
    unit = "tenant"
    slo_awareness = "fairness"
    signal_quantity = "rate"
    metadata_assumed = ("tenant",)
    requires = _TENANT

    rate_per_s: Annotated[
        float,
        Param(
            "requests, or tokens, per second that a bucket refills by",
            above=0.0,
            per_process=True,
            high=1e6,
            origin="plain choice, to be set: no number fits every pool",
        ),
    ] = 10.0
    burst: Annotated[
        int,
        Param(
            "requests, or tokens, that a full bucket lets through at once",
            low=1,
            per_process=True,
            high=1e9,
            origin="plain choice: two seconds of the default rate",
        ),
    ] = 20
    per: Annotated[
        str,
        Param(
            "tenant: a bucket for each, one for all that name none; pool: one bucket",
            choices=("tenant", "pool"),
            origin="its 429 tells a caller that the caller is over its share",
        ),
    ] = "tenant"
    cost: Annotated[
        str,
        Param(
            "requests: each costs 1; tokens: prompt tokens not known to be cached, and "
            "those of the answer by their weight",
            choices=("requests", "tokens"),
            origin="what most limits count; tokens need numbers of their own",
        ),
    ] = "requests"
    output_weight: Annotated[
        float,
        Param(
            "what one token of the answer costs, in tokens of a prompt",
            low=0.0,
            high=1000.0,
            origin="VTC (arXiv 2401.00588): 1 for a prompt's token, 2 for an answer's",
        ),
    ] = 2.0

    def __init__(self, **given: object) -> None:
        super().__init__(**given)
        self._token_ns = math.ceil(1e9 / self.rate_per_s)
        self._full_ns = self.burst * self._token_ns
        self._full_at_ns: OrderedDict[str | None, int] = OrderedDict()
        if self.cost == "tokens" and not {"rate_per_s", "burst"} <= self.given:
            fault = "cost = 'tokens' needs rate_per_s and burst, in tokens"
            raise ConfigError(f"policy {self.name}", [fault])
        self.require(
            *(_TENANT if self.per == "tenant" else ()),
            *(_SIZES if self.cost == "tokens" else ()),
        )

    def decide(self, metrics: Snapshot) -> Decision:
        """Compare what the bucket holds with what the request costs."""
        now_ns = metrics.now_ns
        self._forget_full(now_ns)
        cost_ns = self._token_ns
        if self.cost == "tokens":
            prompt = self._prompt(metrics.request)
            if metrics.gate("rate_limit_prompt_tokens", prompt, self.burst, ">"):
                return self.reject("too_large", limit=self.burst, used=prompt)
            cost_ns = self._estimate_ns(metrics)
        owed_ns = self._owed_ns(self._bucket(metrics.request.tenant), now_ns)
        held = (self._full_ns - owed_ns) / self._token_ns
        if metrics.gate("rate_limit_tokens", held, cost_ns / self._token_ns, "<"):
            return self.reject(
                "rate_limit",
                estimate_ms=(owed_ns + cost_ns - self._full_ns) / 1e6,
                limit=self.burst,
                used=-(-owed_ns // self._token_ns),
            )
        return self.admit()

    def decided(self, metrics: Snapshot, d: Decision) -> Charge | None:
        """Take what an admitted request is expected to cost; none is left, none goes.

        What is charged is what was really taken, so that no more is given back.
        """
        if d.verdict is not Verdict.ADMIT:
            return None
        now_ns, bucket = metrics.now_ns, self._bucket(metrics.request.tenant)
        cost_ns = self._token_ns
        if self.cost == "tokens":
            cost_ns = self._estimate_ns(metrics)
        taken_ns = self._pay(bucket, cost_ns, now_ns)
        return Charge((self.name, bucket), taken_ns / self._token_ns)

    def observe(self, metrics: Snapshot, outcome: Outcome | None) -> None:
        """Settle: give back what an ended request did not use, take what it used more.

        All of it goes back when the engine never started it.
        """
        charge = outcome.charge if outcome is not None else None
        if outcome is None or not isinstance(charge, Charge):
            return
        _, bucket = cast("tuple[str, str | None]", charge.account)
        charged_ns = round(charge.amount * self._token_ns)
        used_ns = 0 if never_started(outcome) else self._used_ns(outcome, charged_ns)
        if used_ns != charged_ns:
            known = bucket if bucket in self._full_at_ns else self._bucket(bucket)
            self._pay(known, used_ns - charged_ns, metrics.now_ns)

    def _bucket(self, tenant: str | None) -> str | None:
        """Whose bucket pays; None is the one for all that have none of their own."""
        if self.per == "pool":
            return None
        known = tenant in self._full_at_ns or len(self._full_at_ns) < BUCKETS_MOST
        return tenant if known else None

    def _owed_ns(self, bucket: str | None, now_ns: int) -> int:
        """Time until the bucket is full."""
        return max(0, self._full_at_ns.get(bucket, now_ns) - now_ns)

    def _pay(self, bucket: str | None, cost_ns: int, now_ns: int) -> int:
        """Takes so much, or gives back what is below 0; returns what was taken."""
        owed_ns = self._owed_ns(bucket, now_ns)
        after_ns = min(max(0, owed_ns + cost_ns), self._full_ns)
        if after_ns:
            self._full_at_ns[bucket] = now_ns + after_ns
            self._full_at_ns.move_to_end(bucket)
        else:
            self._full_at_ns.pop(bucket, None)
        return after_ns - owed_ns

    def _prompt(self, request: Request) -> int:
        """Tokens of its prompt that have to be computed, as far as is known."""
        known = request.uncached_tokens
        return (request.input_tokens or 0) if known is None else known

    def _estimate_ns(self, metrics: Snapshot) -> int:
        """What a request should cost: its answer is a guess, so a burst at most."""
        answer = metrics.output_tokens() or 0.0
        tokens = self._prompt(metrics.request) + self.output_weight * answer
        return min(self._cost_ns(tokens), self._full_ns)

    def _cost_ns(self, tokens: float) -> int:
        """The time it takes to refill so many tokens; at least one, for a request."""
        return math.ceil(max(1.0, tokens) * self._token_ns)

    def _used_ns(self, outcome: Outcome, charged_ns: int) -> int:
        """What it cost in the end; what was charged, when nobody says."""
        answer = outcome.output_tokens
        if self.cost == "requests" or answer is None:
            return charged_ns
        prompt = prompt_tokens(outcome, cached=False) or 0
        return self._cost_ns(prompt + self.output_weight * answer)

    def _forget_full(self, now_ns: int) -> None:
        """Drops buckets that are full again, a few per decision, oldest use first."""
        for bucket in tuple(islice(self._full_at_ns, _LOOKED_AT)):
            if self._full_at_ns[bucket] <= now_ns:
                del self._full_at_ns[bucket]
            else:
                self._full_at_ns.move_to_end(bucket)
