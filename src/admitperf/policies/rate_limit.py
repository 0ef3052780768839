"""A token bucket: so many requests a second, and a burst."""

import math
from collections import OrderedDict
from itertools import islice
from typing import Annotated

from admitperf.core.decision import Decision
from admitperf.core.param import Param
from admitperf.core.policy import Policy
from admitperf.core.signal import Signal
from admitperf.core.snapshot import Snapshot

BUCKETS_MOST = 10_000
"""Tenants with a bucket of their own. Plain choice: about 2 MB. Tenants met while the
table is full share the bucket of the untagged, so that inventing names wins nothing."""

_LOOKED_AT = 2
"""Buckets looked at for idleness per decision: one more than a decision can add."""

_TENANT: tuple[Signal | str, ...] = ("tenant",)


class RateLimit(Policy):
    """Refuses a request when its bucket holds less than one token.

    A bucket is stored as the time at which it will be full again, in whole
    nanoseconds of the monotonic clock: tokens cannot go negative, nothing drifts, and
    a bucket that is full is one that need not be kept. Only an admitted request takes
    a token. The state belongs to one process; a forked child goes on with a copy.
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
            "requests per second that a bucket refills by",
            above=0.0,
            per_process=True,
            high=1e6,
            origin="plain choice, to be set: no number fits every pool",
        ),
    ] = 10.0
    burst: Annotated[
        int,
        Param(
            "requests that a full bucket lets through at once",
            low=1,
            per_process=True,
            high=1e6,
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

    def __init__(self, **given: object) -> None:
        super().__init__(**given)
        self._token_ns = math.ceil(1e9 / self.rate_per_s)
        self._spare_ns = (self.burst - 1) * self._token_ns
        self._full_at_ns: OrderedDict[str | None, int] = OrderedDict()
        if self.per == "pool":
            self.requires = ()

    def decide(self, metrics: Snapshot) -> Decision:
        """Take a token, or say when there will be one."""
        now_ns = metrics.now_ns
        self._forget_full(now_ns)
        bucket = self._bucket(metrics.request.tenant)
        owed_ns = max(0, self._full_at_ns.get(bucket, now_ns) - now_ns)
        short_ns = owed_ns - self._spare_ns
        if metrics.gate("rate_limit_tokens", 1.0 - short_ns / self._token_ns, 1.0, "<"):
            return self.reject("rate_limit", estimate_ms=short_ns / 1e6)
        self._full_at_ns[bucket] = now_ns + owed_ns + self._token_ns
        self._full_at_ns.move_to_end(bucket)
        return self.admit()

    def _bucket(self, tenant: str | None) -> str | None:
        """Whose bucket pays; None is the one for all that have none of their own."""
        if self.per == "pool":
            return None
        known = tenant in self._full_at_ns or len(self._full_at_ns) < BUCKETS_MOST
        return tenant if known else None

    def _forget_full(self, now_ns: int) -> None:
        """Drops buckets that are full again, a few per decision, oldest use first."""
        for bucket in tuple(islice(self._full_at_ns, _LOOKED_AT)):
            if self._full_at_ns[bucket] <= now_ns:
                del self._full_at_ns[bucket]
            else:
                self._full_at_ns.move_to_end(bucket)
