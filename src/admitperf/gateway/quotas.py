"""What each known tenant may have at most, whatever the engine could take."""

import math
from typing import NamedTuple

from admitperf.core.policy import Policy
from admitperf.gateway.setup import Tenant

_MINUTE_NS = 60 * 1_000_000_000


class Over(NamedTuple):
    """What one more request would be over.

    Attributes:
        reason: a row of the table of reasons.
        limit, used: the quota and what is used of it, in requests.
        wait_ms: milliseconds until there is room; None = when one of its own ends.
    """

    reason: str
    limit: float
    used: float
    wait_ms: float | None = None


class Quotas:
    """Requests at once and requests a minute, of tenants that have such a quota.

    A bucket is kept as the time at which it will be full again. Only an admitted
    request takes from it. There are as many as tenants were set up.

    Attributes:
        policies: of all pools: their ledgers say how much a tenant has open.
    """

    def __init__(self) -> None:
        self.policies: list[Policy] = []
        self._full_at_ns: dict[str, int] = {}

    def over(self, tenant: Tenant, in_flight: int, now_ns: int) -> Over | None:
        """Whether one more request would be over a quota; None = it has room.

        Args:
            tenant: whose.
            in_flight: its open requests.
            now_ns: on the monotonic clock.
        """
        if tenant.in_flight is not None and in_flight >= tenant.in_flight:
            return Over("caller_in_flight", tenant.in_flight, in_flight)
        if tenant.per_minute is None:
            return None
        each_ns = _each_ns(tenant)
        owed_ns = max(0, self._full_at_ns.get(tenant.name, 0) - now_ns)
        short_ns = owed_ns + each_ns - max(_MINUTE_NS, each_ns)
        if short_ns <= 0:
            return None
        used = -(-owed_ns // each_ns)
        return Over("rate_limit", tenant.per_minute, used, short_ns / 1e6)

    def open(self, tenant: Tenant) -> int:
        """Its open requests, in all pools."""
        ledgers = (policy.ledger for policy in self.policies)
        return sum(ledger.tenant_in_flight(tenant.name) for ledger in ledgers)

    def charge(self, tenant: Tenant, now_ns: int) -> None:
        """One of its requests was admitted."""
        if tenant.per_minute is not None:
            full_ns = max(now_ns, self._full_at_ns.get(tenant.name, 0))
            self._full_at_ns[tenant.name] = full_ns + _each_ns(tenant)


def _each_ns(tenant: Tenant) -> int:
    return math.ceil(_MINUTE_NS / (tenant.per_minute or 1.0))
