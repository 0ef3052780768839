"""A token bucket: so much a second, and a burst; requests, or what they cost."""

import math
from collections import OrderedDict
from collections.abc import Hashable, Mapping
from itertools import islice
from typing import Annotated, cast

from admitperf.core.charge import Charge
from admitperf.core.decision import Decision
from admitperf.core.errors import ConfigError
from admitperf.core.outcome import Outcome
from admitperf.core.param import Param
from admitperf.core.policy import Policy
from admitperf.core.signal import Signal
from admitperf.core.snapshot import Snapshot
from admitperf.core.verdict import Verdict
from admitperf.policies.parts.settled import never_started, prompt_tokens
from admitperf.policies.parts.tenancy.bucket import Bucket

BUCKETS_MOST = 10_000
"""Tenants with a bucket of their own. Plain choice: about 3 MB, at most 12. Tenants met
while the table is full share the bucket of the untagged, so that inventing names wins
nothing."""

DEBT_MOST_S = 86_400.0
"""Seconds of refill that a bucket may lack beyond an empty one, or its burst where that
takes longer. Plain choice: a day is more than any answer takes of a rate above two
tokens a second, and no wrong count of an engine keeps a caller out for longer."""

_LOOKED_AT = 2
"""Buckets looked at for idleness per decision: one more than a decision can add."""


class _Taken(Charge):
    """What a bucket gave for one request, to the nanosecond.

    Args:
        number: of the taking.
        taken_ns: what was taken; the amount says it in tokens.
    """

    __slots__ = ("number", "taken_ns")

    def __init__(
        self, account: Hashable, amount: float, number: int, taken_ns: int
    ) -> None:
        super().__init__(account, amount)
        self.number = number
        self.taken_ns = taken_ns


_TENANT: tuple[Signal | str, ...] = ("tenant",)
_SIZES = ("input_tokens", "cached_tokens", "max_output_tokens")


_NEEDS: Mapping[str, tuple[Signal | str, ...]] = {
    "per=tenant": _TENANT,
    "cost=tokens": _SIZES,
}
"""What each adds to what is read."""


class RateLimit(Policy):
    """Refuses a request when its bucket holds less than it costs.

    A bucket is stored as the time at which it will be full again, in whole
    nanoseconds of the monotonic clock: nothing drifts, and a bucket that is full is one
    that need not be kept. What is admitted is charged when the answer is final, and
    settled when the request ends. It never holds less than no token: what a request
    took beyond the bucket is a debt, time that passes before there is a token again.
    The state belongs to one process; a forked child goes on with a copy.

    Raises:
        ConfigError: tokens are counted by the numbers that are meant for requests.
    """

    name = "rate_limit"
    unit = "tenant"
    slo_awareness = "fairness"
    signal_quantity = "rate"
    metadata_assumed = ("tenant",)
    refuses_with = ("rate_limit",)
    requires = _TENANT
    needs = _NEEDS

    rate_per_s: Annotated[
        float,
        Param(
            "requests, or tokens, per second that a bucket refills by",
            low=1e-6,
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
        self._most_ns = self._full_ns + max(self._full_ns, int(DEBT_MOST_S * 1e9))
        self._buckets: OrderedDict[str | None, Bucket] = OrderedDict()
        self._takings = 0
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
        need_ns = min(self._estimate_ns(metrics), self._full_ns)
        owed_ns = self._owed_ns(self._bucket(metrics.request.tenant), now_ns)
        held = max(0, self._full_ns - owed_ns) / self._token_ns
        if metrics.gate("rate_limit_tokens", held, need_ns / self._token_ns, "<"):
            return self.reject(
                "rate_limit",
                estimate_ms=(owed_ns + need_ns - self._full_ns) / 1e6,
                limit=self.burst,
                used=-(-owed_ns // self._token_ns),
            )
        return self.admit()

    def decided(self, metrics: Snapshot, d: Decision) -> Charge | None:
        """Take what an admitted request is expected to cost, or what is left of that.

        What is charged is what was really taken, so that no more is given back. Only a
        prompt larger than a burst takes more than there is.
        """
        self._forget_full(metrics.now_ns)
        if d.verdict is not Verdict.ADMIT:
            return None
        bucket = self._bucket(metrics.request.tenant)
        cost_ns = self._estimate_ns(metrics)
        most_ns = min(max(self._full_ns, cost_ns), self._most_ns)
        taken_ns = self._pay(bucket, cost_ns, most_ns, metrics.now_ns)
        tokens = taken_ns / self._token_ns
        return _Taken((self.name, bucket), tokens, self._takings, taken_ns)

    def observe(self, metrics: Snapshot, outcome: Outcome | None) -> None:
        """Settle: give back what an ended request did not use, take what it used more.

        All of it goes back when the engine never started it. What the bucket does not
        hold becomes its debt.
        """
        charge = outcome.charge if outcome is not None else None
        if outcome is None or not isinstance(charge, _Taken):
            return
        _, bucket = cast("tuple[str, str | None]", charge.account)
        left_ns = charge.taken_ns
        if not never_started(outcome):
            left_ns -= self._used_ns(outcome, charge.taken_ns)
        if left_ns < 0:
            known = bucket if bucket in self._buckets else self._bucket(bucket)
            self._pay(known, -left_ns, self._most_ns, metrics.now_ns)
        elif left_ns and bucket in self._buckets:
            self._buckets[bucket].give_back(charge.number, left_ns, metrics.now_ns)

    def _bucket(self, tenant: str | None) -> str | None:
        """Whose bucket pays; None is the one for all that have none of their own."""
        if self.per == "pool":
            return None
        known = tenant in self._buckets or len(self._buckets) < BUCKETS_MOST
        return tenant if known else None

    def _owed_ns(self, name: str | None, now_ns: int) -> int:
        """Time until the bucket is full."""
        bucket = self._buckets.get(name)
        return 0 if bucket is None else bucket.owed_ns(now_ns)

    def _pay(self, name: str | None, cost_ns: int, most_ns: int, now_ns: int) -> int:
        """Takes so much of a bucket, until it lacks the most; returns what it took."""
        self._takings += 1
        bucket = self._buckets.get(name)
        if bucket is None:
            bucket = self._buckets[name] = Bucket(now_ns)
        self._buckets.move_to_end(name)
        return bucket.take(self._takings, cost_ns, most_ns, now_ns)

    def _estimate_ns(self, metrics: Snapshot) -> int:
        """What a request should cost: its prompt, and its answer within a burst.

        The answer is a guess, and nothing before anything is known about it: its end
        settles that.
        """
        if self.cost == "requests":
            return self._token_ns
        prompt = metrics.request.own_prefill_tokens or 0
        answer = metrics.output_tokens() or 0.0
        guess_ns = self._cost_ns(prompt + self.output_weight * answer)
        return max(self._cost_ns(prompt), min(guess_ns, self._full_ns))

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
        for bucket in tuple(islice(self._buckets, _LOOKED_AT)):
            if self._buckets[bucket].full_at_ns <= now_ns:
                del self._buckets[bucket]
            else:
                self._buckets.move_to_end(bucket)
