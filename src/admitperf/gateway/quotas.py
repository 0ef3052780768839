"""What each known tenant may have at most, whatever the engine could take."""

import math

from admitperf.core.policy import Policy
from admitperf.gateway.setup import Tenant

_MINUTE_NS = 60 * 1_000_000_000


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

    def over(
        self, tenant: Tenant, in_flight: int, now_ns: int
    ) -> tuple[str, float | None] | None:
        """Whether one more request would be over a quota.

        Args:
            tenant: whose.
            in_flight: its open requests.
            now_ns: on the monotonic clock.

        Returns:
            The reason, and the wait in milliseconds where it is known; None = it has
            room.
        """
        if tenant.in_flight is not None and in_flight >= tenant.in_flight:
            return "caller_in_flight", None
        if tenant.per_minute is None:
            return None
        each_ns = _each_ns(tenant)
        owed_ns = max(0, self._full_at_ns.get(tenant.name, 0) - now_ns)
        short_ns = owed_ns + each_ns - max(_MINUTE_NS, each_ns)
        return ("rate_limit", short_ns / 1e6) if short_ns > 0 else None

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
