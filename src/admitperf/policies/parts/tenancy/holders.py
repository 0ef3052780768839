"""Who holds open work or waits for some, and the sum of their weights."""

from collections import OrderedDict
from collections.abc import Callable
from fractions import Fraction
from itertools import islice

HOLDERS_MOST = 60_000
"""Tenants remembered, those met last. Origin: the ledger keeps 50,000 open requests,
and those that left are looked for at each event. Past it the oldest is left out, and
the shares of the others grow."""

LOOKED_AT = 4
"""Tenants looked at for each event, those first that were looked at longest ago: more
than an event can add."""


class Holders:
    """Tenants with their weights. Not thread-safe by itself: the policy's lock is."""

    def __init__(self) -> None:
        self._weights: OrderedDict[str, float] = OrderedDict()
        self._sum = Fraction(0)  # exact: a running sum of floats would drift

    def __len__(self) -> int:
        return len(self._weights)

    def __contains__(self, tenant: str) -> bool:
        return tenant in self._weights

    @property
    def weight(self) -> float:
        """Of all of them together."""
        return float(self._sum)

    def note(self, tenant: str, weight: float) -> None:
        """It holds work, or waits for some."""
        if tenant not in self._weights:
            self._weights[tenant] = weight
            self._sum += Fraction(weight)
        if len(self._weights) > HOLDERS_MOST:
            self._forget(next(iter(self._weights)))

    def look(self, stays: Callable[[str], bool]) -> None:
        """Forgets some of those that hold nothing any more."""
        for tenant in tuple(islice(self._weights, LOOKED_AT)):
            if stays(tenant):
                self._weights.move_to_end(tenant)
            else:
                self._forget(tenant)

    def _forget(self, tenant: str) -> None:
        self._sum -= Fraction(self._weights.pop(tenant))
